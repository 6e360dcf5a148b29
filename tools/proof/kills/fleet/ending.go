package fleet

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// Calm wakes what is stopped and starts what was killed.
func (f *Fleet) Calm() error {
	var errs []error
	for _, name := range f.names() {
		errs = append(errs, f.Resume(name), f.Revive(name))
	}
	return errors.Join(errs...)
}

// Dump has every process write its stacks into its log and end: SIGQUIT, as Go and Java understand it. Nothing
// is started again afterwards; Close is what can follow.
func (f *Fleet) Dump() {
	f.each(f.names(), func(m *member) { _ = m.cmd.Process.Signal(syscall.SIGQUIT) })
}

// Close ends all processes, those named last after the others, and waits for them.
func (f *Fleet) Close(last ...string) error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	first := slices.DeleteFunc(f.names(), func(name string) bool { return slices.Contains(last, name) })
	return errors.Join(f.end(first), f.end(last))
}

// end asks processes to end, and kills those that do not.
func (f *Fleet) end(names []string) error {
	f.each(names, func(m *member) { _ = m.cmd.Process.Signal(syscall.SIGTERM) })
	until := time.After(farewell)
	var errs []error
	f.mu.Lock()
	var waiting []*member
	for _, name := range names {
		if m := f.members[name]; m != nil {
			waiting = append(waiting, m)
		}
	}
	f.mu.Unlock()
	for _, m := range waiting {
		select {
		case <-m.ended:
			continue
		case <-until:
			until = closedTimer
		}
		errs = append(errs, fmt.Errorf("%s did not end within %s and was killed", m.name, farewell))
		_ = m.cmd.Process.Kill()
		<-m.ended
	}
	return errors.Join(errs...)
}

// closedTimer is a time that has come.
var closedTimer = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// each does something to processes that are expected to end of it; stopped ones are woken for it.
func (f *Fleet) each(names []string, do func(*member)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		m := f.members[name]
		if m == nil {
			continue
		}
		m.expected = true
		if m.stopped {
			_ = m.cmd.Process.Signal(syscall.SIGCONT)
		}
		do(m)
	}
}

// Names are those of the processes, in order.
func (f *Fleet) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for name := range f.members {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// KillChild ends one of the processes that a process started, the n-th modulo their number, with SIGKILL: a
// step's supervisor, a git. It says whether there was one. Only Linux shows children.
func (f *Fleet) KillChild(name string, n int) (bool, error) {
	f.mu.Lock()
	m := f.members[name]
	if m == nil {
		f.mu.Unlock()
		return false, fmt.Errorf("there is no %s", name)
	}
	pid := m.cmd.Process.Pid
	f.mu.Unlock()
	children, err := childrenOf(pid)
	if err != nil || len(children) == 0 {
		return false, err
	}
	child, err := os.FindProcess(children[n%len(children)])
	if err != nil {
		return false, err
	}
	// A child that has ended meanwhile leaves a zombie of its own, or nothing.
	return child.Kill() == nil, nil
}
