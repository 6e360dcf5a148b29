// Package processortest measures processor time for tests that bound work: elapsed time has all that else runs on the machine in it.
package processortest

import (
	"syscall"
	"testing"
	"time"
)

// Of returns the processor time of this process while f runs, the garbage collector's included.
// No other test of the package may run beside it.
func Of(t testing.TB, f func()) time.Duration {
	t.Helper()
	before := Used(t)
	f()
	return Used(t) - before
}

// Used returns the processor time of this process since it began, the garbage collector's included.
func Used(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
