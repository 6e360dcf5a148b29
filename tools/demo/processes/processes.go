// Package processes runs every service of a configuration as a process of its own, and the broker too, and
// kills them in the middle of their work.
package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/tools/client"
	embedded "landfall.build/tools/embedded/broker"
	"landfall.build/tools/lifeline"
	"landfall.build/tools/pipeline"
)

// broker is the name of the command that runs the log.
const broker = "broker"

const (
	// patience is how long all of them may take to be there.
	patience = 60 * time.Second
	// farewell is how long a process may take to end when it is asked to.
	farewell = 10 * time.Second
	// between two kills, so that one of each is killed at a different moment of the work.
	between = 400 * time.Millisecond
)

// Options of a set of processes.
type Options struct {
	// Configuration names a broker and the gateway's address.
	Configuration *configuration.Configuration
	// File is where it was read from.
	File string
	// Logs is the folder for the processes' logs, one file each.
	Logs string
	// Binary is the landfall command; this very program if "".
	Binary string
}

// Set is all of them.
type Set struct {
	o      Options
	mu     sync.Mutex
	all    map[string]*process
	failed chan error
	closed bool
}

type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// expected is set once it was signalled to end, or killed on purpose.
	expected bool
}

// Start starts the broker, then the services, and waits until the gateway answers.
func Start(ctx context.Context, o Options) (*Set, error) {
	if o.Binary == "" {
		own, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Binary = own
	}
	s := &Set{o: o, all: map[string]*process{}, failed: make(chan error, 16)}
	for _, name := range append([]string{broker}, pipeline.Services()...) {
		if err := s.launch(name); err != nil {
			s.Close()
			return nil, err
		}
	}
	if err := s.awaitGateway(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// launch starts one, which ends with this program, however that ends; a terminal's interrupt reaches only this one.
func (s *Set) launch(name string) error {
	log, err := os.OpenFile(filepath.Join(s.o.Logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(s.o.Binary, name, "--config", s.o.File, "--log-level", "info"), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.New("the processes are being ended")
	}
	if err := lifeline.Start(p.cmd); err != nil {
		return fmt.Errorf("the %s cannot be started: %w", name, err)
	}
	s.all[name] = p
	go func() {
		err := p.cmd.Wait()
		s.mu.Lock()
		expected := p.expected
		s.mu.Unlock()
		close(p.ended)
		if !expected {
			s.failed <- fmt.Errorf("the %s ended (%v); its log is %s", name, err, log.Name())
		}
	}()
	return nil
}

func (s *Set) awaitGateway(ctx context.Context) error {
	c, err := client.New(s.URL(), "demo")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		queues, err := c.Queues(ctx)
		if err == nil && len(queues) > 0 {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case failure := <-s.failed:
			return failure
		case <-ctx.Done():
			return fmt.Errorf("the gateway does not answer, its log is in %s: %w", s.o.Logs, err)
		}
	}
}

// URL is the gateway's address.
func (s *Set) URL() string { return "http://" + s.o.Configuration.Gateway.Listen }

// Secret is the file with what they ask for, "" for nothing.
func (s *Set) Secret() string { return embedded.SecretOf(s.o.Configuration, s.Brokers()) }

// Brokers are the log's addresses.
func (s *Set) Brokers() []string { return s.o.Configuration.Broker.Brokers }

// Failed yields the error of a process that ended by itself.
func (s *Set) Failed() <-chan error { return s.failed }

// Disturb kills one of each with SIGKILL, one after the other, and starts it again at once.
func (s *Set) Disturb(ctx context.Context, note func(string)) error {
	for _, name := range append(pipeline.Services(), broker) {
		if err := s.restart(name); err != nil {
			return err
		}
		note("the " + name + " is killed with -9 and started again")
		select {
		case <-time.After(between):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *Set) restart(name string) error {
	s.mu.Lock()
	p := s.all[name]
	p.expected = true
	s.mu.Unlock()
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("the %s cannot be killed: %w", name, err)
	}
	<-p.ended
	return s.launch(name)
}

// Close ends all processes, the broker last, and waits for them.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	var errs []error
	services := pipeline.Services()
	for _, name := range append(services, broker) {
		s.mu.Lock()
		p := s.all[name]
		if p != nil {
			p.expected = true
		}
		s.mu.Unlock()
		if p == nil {
			continue
		}
		if name == broker {
			s.wait(services, &errs)
		}
		// It may have ended already.
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	s.wait([]string{broker}, &errs)
	return errors.Join(errs...)
}

// wait waits for processes that were signalled to end, and kills those that do not.
func (s *Set) wait(names []string, errs *[]error) {
	until := time.Now().Add(farewell)
	for _, name := range names {
		s.mu.Lock()
		p := s.all[name]
		s.mu.Unlock()
		if p == nil {
			continue
		}
		select {
		case <-p.ended:
			continue
		case <-time.After(time.Until(until)):
		}
		*errs = append(*errs, fmt.Errorf("the %s did not end within %s and was killed", name, farewell))
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}
