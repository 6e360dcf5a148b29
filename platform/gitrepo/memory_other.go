//go:build !linux

package gitrepo

// boundMemory does nothing here.
func boundMemory(int, uint64) {}
