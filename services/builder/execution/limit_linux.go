package execution

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"landfall.build/platform/sandbox"
	"landfall.build/platform/sandbox/lookups"
)

// errUnlimited: the command was not started, since it would have had no limit.
var errUnlimited = errors.New("its memory could not be limited")

// errUnwatched: the command was not started, since nobody would have seen what it looks for.
var errUnwatched = errors.New("what it looks for could not be watched")

// Descriptors of a process that is to become a command.
const (
	refusalsDescriptor = 3 // where it writes why it cannot
	listenerDescriptor = 4 // where it sends the listener of its lookups
)

// refusal is why a process did not become its command.
type refusal struct {
	Errno syscall.Errno
	// Limit is set if it could not have the limit, Watch if it could not be watched.
	Limit, Watch bool
}

// forkExec starts a command with a memory limit in bytes, 0 for none, whose lookups go to a watch, if there is one. A command
// that was limited once it runs could have taken its memory, or started what is
// under no limit, before: a process of ours has the limit first, and then becomes
// the command. (The supervisor cannot lower its own for the time of a fork: it
// may have more memory than a command is given.)
func forkExec(path string, argv []string, limit int64, watch *lookups.Watch, attributes *syscall.ProcAttr) (int, error) {
	if limit == 0 && watch == nil {
		return syscall.ForkExec(path, argv, attributes)
	}
	lacking := errUnlimited
	if limit == 0 {
		lacking = errUnwatched
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("%w: %w", lacking, err)
	}
	defer reader.Close()
	limited := *attributes
	limited.Files = append(append([]uintptr(nil), attributes.Files...), writer.Fd())
	ends := [2]int{-1, -1}
	if watch != nil {
		if ends, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			writer.Close()
			return 0, fmt.Errorf("%w: %w", errUnwatched, err)
		}
		defer unix.Close(ends[0])
		limited.Files = append(limited.Files, uintptr(ends[1]))
	}
	arguments := []string{"landfall", limitedArgument, strconv.FormatInt(limit, 10), strconv.FormatBool(watch != nil), path}
	pid, err := syscall.ForkExec("/proc/self/exe", append(arguments, argv...), &limited)
	writer.Close()
	if watch != nil {
		unix.Close(ends[1])
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", lacking, err)
	}
	if watch != nil {
		// Without a listener there is a refusal to read.
		if listener, err := lookups.Receive(ends[0]); err == nil {
			go watch.Serve(listener)
		}
	}
	var why refusal
	if json.NewDecoder(reader).Decode(&why) != nil {
		return pid, nil // the pipe was closed by the exec, or by an end that its status shows
	}
	switch {
	case why.Limit:
		return 0, fmt.Errorf("%w: %w", errUnlimited, why.Errno)
	case why.Watch:
		return 0, fmt.Errorf("%w: %w", errUnwatched, why.Errno)
	}
	return 0, why.Errno
}

// becomeLimited gives this process the limit, has its lookups watched if it says so, and makes it the command of
// arguments: limit, watched, path, argv. It does not return.
func becomeLimited(arguments []string) {
	refusals := os.NewFile(refusalsDescriptor, "refusals")
	refuse := func(why refusal) {
		_ = json.NewEncoder(refusals).Encode(why)
		syscall.Exit(1)
	}
	if len(arguments) < 4 {
		syscall.Exit(1) // somebody typed the hidden argument
	}
	limit, err := strconv.ParseInt(arguments[0], 10, 64)
	if err != nil {
		syscall.Exit(1)
	}
	syscall.CloseOnExec(refusalsDescriptor)
	var errno syscall.Errno
	if limit > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: uint64(limit), Max: uint64(limit)}); err != nil {
			errors.As(err, &errno)
			refuse(refusal{Errno: errno, Limit: true})
		}
	}
	if arguments[1] == strconv.FormatBool(true) {
		syscall.CloseOnExec(listenerDescriptor)
		err := lookups.Install(listenerDescriptor)
		if err == nil {
			err = sandbox.LimitFilesAndProcesses()
		}
		if err != nil {
			errors.As(err, &errno)
			refuse(refusal{Errno: errno, Watch: true})
		}
	}
	errors.As(syscall.Exec(arguments[2], arguments[3:], os.Environ()), &errno)
	refuse(refusal{Errno: errno})
}
