package gitrepo

import "golang.org/x/sys/unix"

// boundMemory bounds what a process allocates, in bytes; files that it maps do not count.
func boundMemory(process int, bytes uint64) {
	_ = unix.Prlimit(process, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil) // it may have ended
}
