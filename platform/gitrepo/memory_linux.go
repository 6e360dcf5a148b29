package gitrepo

import "golang.org/x/sys/unix"

// boundMemory bounds what a process allocates, in bytes, and reports whether it is bounded; files that it maps do not count.
func boundMemory(process int, bytes uint64) bool {
	return unix.Prlimit(process, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil) == nil
}

// isMemoryFree reports whether the system gives a process so many bytes now. They are address space, as what boundMemory bounds: none
// is used.
func isMemoryFree(bytes uint64) bool {
	memory, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	return err == nil && unix.Munmap(memory) == nil
}
