//go:build amd64 || arm64

package lookups

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"landfall.build/platform/sandbox/callfilter"
)

// call is where a system call has its arguments.
type call struct {
	// folder is the descriptor that a path is relative to, path the path, flags the flags.
	folder, path, flags int
	// opens is set if the flags are those of open, reads if the call reads the file, ofLink if a link at the end of the path is not
	// followed.
	opens, reads, ofLink bool
	// changes is set if links can lead elsewhere afterwards.
	changes bool
}

// none stands for an argument that a call does not have.
const none = -1

// filter returns the program that has the kernel ask about lookups.
func filter() callfilter.Program {
	program, _ := callfilter.New(unix.SECCOMP_RET_ALLOW)
	for _, number := range slices.Sorted(maps.Keys(calls)) {
		c := calls[number]
		if c.flags == none || c.opens {
			program.Jump(unix.BPF_JEQ, uint32(number), 0, 1)
			program.Answer(unix.SECCOMP_RET_USER_NOTIF)
			continue
		}
		// With this flag the call is about a file that is open, unless it has a path too. C libraries and runtimes make it all the time.
		program.Jump(unix.BPF_JEQ, uint32(number), 0, 4)
		program.Load(callfilter.Argument(c.flags))
		program.Jump(unix.BPF_JSET, unix.AT_EMPTY_PATH, 0, 1)
		program.Answer(unix.SECCOMP_RET_ALLOW)
		program.Answer(unix.SECCOMP_RET_USER_NOTIF)
	}
	program.Answer(unix.SECCOMP_RET_ALLOW)
	return program
}

// Install has the kernel ask about the lookups of this thread and of all that it starts, and sends the listener over a socket. It
// locks the goroutine to the thread. The thread must not be able to gain privileges (PR_SET_NO_NEW_PRIVS). After an error the kernel
// asks nobody: it has no listeners, or the thread has one already.
func Install(socket int) error {
	runtime.LockOSThread()
	program := filter()
	// Since Linux 5.19 a signal that does not kill waits for the answer; runtimes send themselves many.
	listener, errno := program.Install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errno == unix.EINVAL {
		listener, errno = program.Install(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	}
	if errno != 0 {
		return fmt.Errorf("install a filter of system calls with a listener: %w", errno)
	}
	defer unix.Close(listener)
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("send the listener: %w", err)
	}
	return nil
}

// Receive takes the listener that [Install] sends to the other end of a socket. An error means that none is sent.
func Receive(socket int) (*os.File, error) {
	text, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	for {
		_, n, _, _, err := unix.Recvmsg(socket, text, rights, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		messages, err := unix.ParseSocketControlMessage(rights[:n])
		if err != nil || len(messages) == 0 {
			return nil, fmt.Errorf("no listener was sent")
		}
		descriptors, err := unix.ParseUnixRights(&messages[0])
		if err != nil || len(descriptors) != 1 {
			return nil, fmt.Errorf("no listener was sent")
		}
		return os.NewFile(uintptr(descriptors[0]), "listener"), nil
	}
}
