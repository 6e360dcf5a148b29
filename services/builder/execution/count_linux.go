package execution

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"landfall.build/platform/bounds"
)

// niceness is that of a step's commands, so that those who end them have the processor first.
const niceness = 5

// spareThreads are more than a supervisor needs at a time.
const spareThreads = 12

// keepThreads makes threads that the runtime uses later: when a step has taken all
// that may be had, the supervisor can start none.
func keepThreads() {
	var all sync.WaitGroup
	all.Add(spareThreads)
	for range spareThreads {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait() // each on a thread of its own
		}()
	}
	all.Wait()
}

// count looks what the processes of the supervisor take, until it is too much.
func (s *supervisor) count(limits bounds.Limits, boxed bool) {
	shared := ""
	if boxed {
		shared = "/dev/shm"
		if os.Geteuid() == 0 {
			go keepSession()
		}
	}
	s.exceed(limits.Watch(nil, os.Getpid(), shared, nil))
}

// keepSession sets back the priority of the supervisor's session. Commands of root can set it by each thread of the supervisor
// (/proc/ID/autogroup), those of another user cannot. For a tenth of a second after a write the kernel takes none from whoever lacks
// CAP_SYS_ADMIN, as commands do.
func keepSession() {
	for range time.Tick(bounds.Interval / 2) {
		_ = os.WriteFile("/proc/self/autogroup", []byte("0"), 0)
	}
}

// exceed ends a step that has exceeded its limits.
func (s *supervisor) exceed(what string) {
	select {
	case s.exceeded <- what:
	default: // it is known
	}
	s.signalTree(syscall.SIGKILL)
}

// isOver reports whether the step has exceeded its limits.
func (s *supervisor) isOver() bool {
	if s.over == "" {
		select {
		case s.over = <-s.exceeded:
		default:
		}
	}
	return s.over != ""
}
