//go:build !linux

package whatif

import "os/exec"

// confine does nothing: only Linux ends a process with another.
func confine(*exec.Cmd) {}

// limit does nothing: the process collects its garbage at GOMEMLIMIT, which is no bound.
func limit(int, uint64) {}
