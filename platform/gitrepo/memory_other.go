//go:build !linux

package gitrepo

// boundMemory bounds nothing here, and says so.
func boundMemory(int, uint64) bool { return false }

func isMemoryFree(uint64) bool { return false }
