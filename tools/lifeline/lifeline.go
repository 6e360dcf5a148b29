// Package lifeline is about how programs end: by which signals, and their processes with them, whatever ended them.
package lifeline

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

// Signals returns those that ask a command to end: by a key, by whoever runs it, or because its terminal is closed. Of
// the last one nothing is to be heard where it is ignored, as under nohup.
func Signals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// starter starts commands, all on one thread that lives as long as this process: on Linux the end of the thread that
// started a process counts as the end of its parent.
var starter = sync.OnceValue(func() chan<- start {
	starts := make(chan start)
	go func() {
		runtime.LockOSThread()
		for s := range starts {
			s.err <- s.cmd.Start()
		}
	}()
	return starts
})

type start struct {
	cmd *exec.Cmd
	err chan error
}

// Start starts a command in a process group of its own, so that a terminal's interrupt reaches only this process. On
// Linux it ends with this process even if that is killed with SIGKILL; what it has started itself does not.
func Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = attributes()
	s := start{cmd, make(chan error, 1)}
	starter() <- s
	return <-s.err
}
