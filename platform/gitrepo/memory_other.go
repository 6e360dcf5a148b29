//go:build !linux

package gitrepo

import (
	"syscall"
	"time"
)

// boundMemory bounds nothing here, and says so.
func boundMemory(int, uint64) bool { return false }

func isMemoryFree(uint64) bool { return false }

// boundProcessor bounds nothing here, and says so.
func boundProcessor(int, time.Duration) bool { return false }

func metProcessorBound(syscall.WaitStatus) bool { return false }
