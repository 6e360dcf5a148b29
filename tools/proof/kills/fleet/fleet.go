// Package fleet runs processes and does to them what befalls processes: SIGKILL, SIGSTOP and resuming later, a
// kill of something that they started. One that ends although nobody asked it to is started again after a
// second, as a service manager would.
package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"landfall.build/tools/lifeline"
)

const (
	// again is how long a process that ended by itself stays away.
	again = time.Second
	// farewell is how long a process may take to end when it is asked to.
	farewell = 15 * time.Second
	// panicked is the exit code of a Go program that did, and of a Java or Go one that SIGQUIT ended.
	panicked = 2
)

// Fleet is a set of processes by name. It may be used by several goroutines.
type Fleet struct {
	logs string
	note func(string)

	mu       sync.Mutex
	members  map[string]*member
	closed   bool
	problems []error
	byItself int
}

type member struct {
	name string
	argv []string

	cmd   *exec.Cmd
	ended chan struct{}
	// expected: it was killed, or told to end.
	expected bool
	stopped  bool
}

// New makes an empty fleet. Each process writes into a file of its name in the folder logs; note, if not nil, is
// told what happens unasked.
func New(logs string, note func(string)) *Fleet {
	if note == nil {
		note = func(string) {}
	}
	return &Fleet{logs: logs, note: note, members: map[string]*member{}}
}

// Launch starts a process under a name; one that runs under it already is an error.
func (f *Fleet) Launch(name string, argv ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.members[name]; m != nil {
		return fmt.Errorf("%s is there already", name)
	}
	m := &member{name: name, argv: argv}
	if err := f.start(m); err != nil {
		return err
	}
	f.members[name] = m
	return nil
}

// LogFile is where a process writes to.
func (f *Fleet) LogFile(name string) string { return filepath.Join(f.logs, name+".log") }

// start starts a member, which ends with this program, however that ends; a terminal's interrupt reaches only this one.
func (f *Fleet) start(m *member) error {
	if f.closed {
		return errors.New("the processes are being ended")
	}
	log, err := os.OpenFile(f.LogFile(m.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	m.cmd, m.ended, m.expected, m.stopped = exec.Command(m.argv[0], m.argv[1:]...), make(chan struct{}), false, false
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := lifeline.Start(m.cmd); err != nil {
		return fmt.Errorf("%s cannot be started: %w", m.name, err)
	}
	go f.watch(m, m.cmd, m.ended)
	return nil
}

// watch waits for a process, and starts one again that ended by itself.
func (f *Fleet) watch(m *member, cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	close(ended)
	if m.expected || f.closed {
		return
	}
	f.byItself++
	f.note(fmt.Sprintf("%s ended by itself: %v", m.name, err))
	if cmd.ProcessState.ExitCode() == panicked {
		f.problems = append(f.problems, fmt.Errorf("%s ended with a panic; its log is %s", m.name, f.LogFile(m.name)))
	}
	time.AfterFunc(again, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.members[m.name] == m && m.cmd == cmd && !m.expected && !f.closed {
			if err := f.start(m); err != nil {
				f.problems = append(f.problems, err)
			}
		}
	})
}

// Kill ends a process with SIGKILL and waits until it is gone. It stays away until Revive. It says whether there was one
// to be killed: it may have ended by itself.
func (f *Fleet) Kill(name string) (killed bool, err error) {
	m, ended, err := f.expecting(name)
	if err != nil {
		return false, err
	}
	killed = m.Kill() == nil
	<-ended
	return killed, nil
}

// expecting marks a process as one that is about to end.
func (f *Fleet) expecting(name string) (*os.Process, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[name]
	if m == nil {
		return nil, nil, fmt.Errorf("there is no %s", name)
	}
	m.expected = true
	return m.cmd.Process, m.ended, nil
}

// Revive starts a process that was killed, and does nothing to one that runs.
func (f *Fleet) Revive(name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[name]
	if m == nil {
		return fmt.Errorf("there is no %s", name)
	}
	select {
	case <-m.ended:
		return f.start(m)
	default:
		return nil
	}
}

// Replace asks a process to end, kills it if it does not, and starts another program under its name, as an upgrade does.
func (f *Fleet) Replace(name string, argv ...string) error {
	f.mu.Lock()
	m := f.members[name]
	if m == nil {
		f.mu.Unlock()
		return fmt.Errorf("there is no %s", name)
	}
	m.argv, m.expected = argv, true
	process, ended := m.cmd.Process, m.ended
	_ = process.Signal(syscall.SIGTERM)
	if m.stopped {
		_ = process.Signal(syscall.SIGCONT)
	}
	f.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(farewell):
		f.note(fmt.Sprintf("%s did not end within %s and was killed", name, farewell))
		_ = process.Kill()
		<-ended
	}
	return f.Revive(name)
}

// Remove kills a process and forgets its name. It says whether there was one to be killed.
func (f *Fleet) Remove(name string) (killed bool, err error) {
	killed, err = f.Kill(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.members, name)
	return killed, err
}

// Stop stops a process with SIGSTOP: it does not know, and neither does anybody else. Resume wakes it.
func (f *Fleet) Stop(name string) error { return f.signal(name, syscall.SIGSTOP, true) }

// Resume lets a stopped process go on where it was.
func (f *Fleet) Resume(name string) error { return f.signal(name, syscall.SIGCONT, false) }

func (f *Fleet) signal(name string, signal syscall.Signal, stopped bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[name]
	if m == nil {
		return fmt.Errorf("there is no %s", name)
	}
	select {
	case <-m.ended:
		return nil
	default:
	}
	m.stopped = stopped
	if err := m.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s cannot be sent %s: %w", name, signal, err)
	}
	return nil
}

// Running says that a process is there and not stopped.
func (f *Fleet) Running(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.members[name]
	if m == nil || m.stopped {
		return false
	}
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

// Problems are what no process may do, whatever is done to it: panic. ByItself counts those that ended unasked.
func (f *Fleet) Problems() (problems []error, byItself int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]error(nil), f.problems...), f.byItself
}
