package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes asks the kernel for the namespaces of a sandbox. They add to what the caller asks for.
//
// A service that runs as root has no user namespace: with one user mapped, honest code that changes owners would fail. Its
// processes keep the user, and lose what it may do outside.
func (s Spec) Attributes(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags |= syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	if s.Network != Host {
		attributes.Cloneflags |= syscall.CLONE_NEWNET
	}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// Without these, exec would take from a user that is not root what Enter needs. Overlays are made with the right to
		// write to a folder of their own that nobody may write to.
		attributes.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_DAC_OVERRIDE}
	}
}

// Enter puts this process, which was started with [Spec.Attributes], into the sandbox. An error wraps [ErrUnavailable]; the
// process must then end.
func (s Spec) Enter() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("%w: the process is not the first of a namespace of its own", ErrUnavailable)
	}
	if err := unix.Sethostname([]byte("landfall")); err != nil {
		return fmt.Errorf("%w: a host name: %w", ErrUnavailable, err)
	}
	if s.Network != Host {
		if err := upLoopback(); err != nil {
			return fmt.Errorf("%w: the loopback: %w", ErrUnavailable, err)
		}
	}
	if s.Network == Outbound {
		if err := s.connect(); err != nil {
			return fmt.Errorf("%w: the network: %w", ErrUnavailable, err)
		}
	}
	if err := s.makeRoot(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// upLoopback lets the processes of this namespace reach each other.
func upLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// kept are the privileges of root that reach no further than the files of a sandbox and its processes. Other users keep none.
var kept = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
	unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE,
}

// Restrict takes privileges, and the means to gain any, from this thread and from all processes that it starts. It locks the
// goroutine to the thread.
func Restrict() error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := dropPrivileges(); err != nil {
		return fmt.Errorf("drop privileges: %w", err)
	}
	// On a kernel without filters the rest of the sandbox still holds.
	if err := filterCalls(); err != nil && err != unix.EINVAL && err != unix.ENOSYS && err != errNoFilter {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	var keep [2]uint32
	if os.Geteuid() == 0 {
		for _, c := range kept {
			keep[c/32] |= 1 << (c % 32)
		}
	}
	for c := uintptr(0); c < 64; c++ {
		if keep[c/32]&(1<<(c%32)) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for i := range data {
		data[i].Permitted &= keep[i]
		data[i].Effective &= keep[i]
		data[i].Inheritable = 0
	}
	return unix.Capset(&header, &data[0])
}
