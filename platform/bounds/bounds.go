// Package bounds keeps processes that run the code of a change within bounds of memory and of processes, so that they take
// neither the service nor other steps with them. Where the service was given a cgroup of Linux, the kernel keeps them
// ([Tree]); elsewhere the processes are counted, and ended once they are over ([Limits.Exceeded]).
package bounds

import (
	"cmp"
	"fmt"
	"time"

	"landfall.build/platform/configuration"
)

// Limits bound all processes of a step together. 0 is no bound.
type Limits struct {
	// Memory is in bytes: what belongs to no file, and what is in file systems in memory.
	Memory int64
	// Processes counts processes and their threads.
	Processes int
	// Setting is what both come from; "" is the builder's memory_limit and process_limit.
	Setting string
}

// Set reports whether there is a bound.
func (l Limits) Set() bool { return l.Memory > 0 || l.Processes > 0 }

// memoryExceeded and processesExceeded say what a step did, for its author: they follow its name.
func (l Limits) memoryExceeded() string {
	return "used more than " + l.MemoryText()
}

// Interval is how often it is looked whether limits are exceeded.
const Interval = 100 * time.Millisecond

// Watch returns what the processes below root have done that the limits forbid as soon as it is seen, or "" once stop is closed. A
// group that is not nil is asked; else they are counted, as by [Limits.Exceeded].
func (l Limits) Watch(stop <-chan struct{}, root int, shared string, g *Group) string {
	look := time.NewTicker(Interval)
	defer look.Stop()
	for {
		select {
		case <-stop:
			return ""
		case <-look.C:
		}
		exceeded := g.Exceeded()
		if g == nil {
			exceeded = l.Exceeded(root, shared)
		}
		if exceeded != "" {
			return exceeded
		}
	}
}

// MemoryText returns the bound of memory in words, with the setting that it comes from.
func (l Limits) MemoryText() string {
	return fmt.Sprintf("%s of memory (%s)", size(l.Memory), cmp.Or(l.Setting, "builder.memory_limit"))
}

func (l Limits) processesExceeded() string {
	return fmt.Sprintf("had more than %d processes and threads at once (%s)", l.Processes, cmp.Or(l.Setting, "builder.process_limit"))
}

func (l Limits) uncounted() string {
	return fmt.Sprintf("kept its memory and processes from being counted (%s)", cmp.Or(l.Setting, "builder.memory_limit"))
}

func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(bytes)/(1<<30))
	default:
		return fmt.Sprintf("%.4g MiB", float64(bytes)/(1<<20))
	}
}

// Bounds of the defaults.
const (
	mostProcesses  = 8192
	leastProcesses = 512
	leastMemory    = 512 << 20
)

// For returns the limits of the steps of a builder on this machine. By default a step has half of the memory, and an equal share of
// half of the processes that the machine allows the service's user. What the machine does not say is not bounded.
func For(b configuration.Builder) Limits {
	memory, processes := machine()
	l := Limits{}
	switch {
	case b.MemoryLimit != nil:
		l.Memory = int64(*b.MemoryLimit)
	case memory > 0:
		l.Memory = max(leastMemory, memory/2)
	}
	switch {
	case b.ProcessLimit != nil:
		l.Processes = *b.ProcessLimit
	case processes > 0:
		l.Processes = min(mostProcesses, max(leastProcesses, processes/2/b.Workers))
	}
	return l
}
