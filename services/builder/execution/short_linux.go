package execution

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// errShort is wrapped by what a supervisor says of something that may be there later.
var errShort = errors.New("this machine is short of it")

// shortages are how the kernel says that there is no more of something now, which steps of others may have taken: processes, memory,
// open files, namespaces, watches of epoll. 524 is what it says if filters of system calls may use no more memory.
var shortages = []unix.Errno{
	unix.EAGAIN, unix.ENOMEM, unix.ENFILE, unix.EMFILE, unix.ENOSPC, unix.EUSERS, unix.EDQUOT, unix.ENOBUFS, unix.ETOOMANYREFS, 524,
}

// isShort reports whether what has failed may succeed later.
func isShort(err error) bool {
	return errors.Is(err, errShort) || slices.ContainsFunc(shortages, func(e unix.Errno) bool { return errors.Is(err, e) })
}

// shortage notes in a fault whether the same command may start later.
func shortage(err error, f *fault) *fault {
	f.short = f.outcome == CouldNotRun && isShort(err)
	return f
}
