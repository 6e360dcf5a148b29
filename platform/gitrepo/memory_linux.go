package gitrepo

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// boundMemory bounds what a process allocates, in bytes, and reports whether it is bounded; files that it maps do not count.
func boundMemory(process int, bytes uint64) bool {
	return unix.Prlimit(process, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil) == nil
}

// boundProcessor bounds the processor time of a process, in whole seconds, and reports whether it is bounded.
func boundProcessor(process int, most time.Duration) bool {
	seconds := uint64(most / time.Second)
	return unix.Prlimit(process, unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds + 1}, nil) == nil
}

// metProcessorBound reports whether a process ended by the bound of its processor time.
func metProcessorBound(status syscall.WaitStatus) bool {
	return status.Signaled() && status.Signal() == syscall.SIGXCPU
}

// isMemoryFree reports whether the system gives a process so many bytes now. They are address space, as what boundMemory bounds: none
// is used.
func isMemoryFree(bytes uint64) bool {
	memory, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return err == nil && unix.Munmap(memory) == nil
}
