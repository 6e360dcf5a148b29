package execution

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// service is one that runs beside the current command.
type service struct {
	Service
	port   int
	pid    int
	output *tailOutput
	status *syscall.WaitStatus // its end, once seen
}

// tailOutput keeps the end of what is written to its pipe.
type tailOutput struct {
	reader, writer *os.File
	done           chan struct{} // closed when no more is read
	text           []byte        // to be read once done is closed, as lost
	lost           int64
}

func newTailOutput() (*tailOutput, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o := &tailOutput{reader: reader, writer: writer, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer reader.Close()
		buffer := make([]byte, 8<<10)
		for {
			n, err := reader.Read(buffer)
			o.text = append(o.text, buffer[:n]...)
			if more := len(o.text) - serviceTail; more > 0 {
				o.text = append(o.text[:0], o.text[more:]...)
				o.lost += int64(more)
			}
			if err != nil {
				return
			}
		}
	}()
	return o, nil
}

// end returns what there is by now, and reads no more: who still writes is about
// to be ended.
func (o *tailOutput) end() (text string, lost int64) {
	_ = o.reader.SetReadDeadline(time.Now().Add(probeInterval))
	<-o.done
	return string(o.text), o.lost
}

// startServices starts the services of a command one after the other, each once
// the one before is ready, and returns the environment with their ports. problem
// is what happened otherwise, as runCommand says it.
func (s *supervisor) startServices(worktree *os.Root, command Command, stepLimit <-chan time.Time) (environment []string, outcome Outcome, problem string) {
	// All ports are found before one is used, so that no two are the same.
	var listeners []net.Listener
	for _, given := range command.Services {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, CouldNotRun, fmt.Sprintf("did not start: there is no port for service %q: %v", given.Name, err)
		}
		defer listener.Close()
		listeners = append(listeners, listener)
		port := listener.Addr().(*net.TCPAddr).Port
		s.services = append(s.services, &service{Service: given, port: port})
	}
	environment = s.withPorts(command.Environment)
	for i, beside := range s.services {
		listeners[i].Close()
		own := s.withPorts(beside.Environment)
		if problem := s.startService(worktree, beside, own); problem != nil {
			return nil, problem.outcome, fmt.Sprintf("did not start: service %q: %s", beside.Name, problem.reason)
		}
		if outcome, problem := s.awaitReady(worktree, beside, own, stepLimit); outcome != Passed {
			return nil, outcome, problem
		}
	}
	return environment, Passed, ""
}

// withPorts returns an environment with the ports of all services.
func (s *supervisor) withPorts(environment []string) []string {
	out := []string{}
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(s.services, func(b *service) bool { return b.PortVariable == name }) {
			out = append(out, entry)
		}
	}
	for _, beside := range s.services {
		out = append(out, beside.PortVariable+"="+strconv.Itoa(beside.port))
	}
	return out
}

func (s *supervisor) startService(worktree *os.Root, beside *service, environment []string) *fault {
	output, err := newTailOutput()
	if err != nil {
		return workerFault("%v", err)
	}
	defer output.writer.Close()
	beside.output = output
	program := Command{Argv: beside.Argv, Dir: beside.Dir, Environment: environment}
	pid, problem := s.fork(worktree, program, output.writer.Fd())
	beside.pid = pid
	return problem
}

// awaitReady returns Passed once a service is ready.
func (s *supervisor) awaitReady(worktree *os.Root, beside *service, environment []string, stepLimit <-chan time.Time) (Outcome, string) {
	limit := beside.Timeout
	if limit == 0 {
		limit = defaultReadyTimeout
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	again := time.NewTicker(probeInterval)
	defer again.Stop()
	answers, stop := make(chan struct{}), make(chan struct{})
	defer close(stop)
	if len(beside.Probe) == 0 {
		go beside.probe(answers, stop)
	}
	s.probe, s.probed = 0, nil
	for {
		if beside.status != nil {
			return Failed, fmt.Sprintf("did not start: service %q %s before it was ready", beside.Name, endOf(*beside.status))
		}
		if s.probed != nil && *s.probed == 0 {
			return Passed, ""
		}
		select {
		case <-answers:
			return Passed, ""
		case <-s.children:
			s.reap()
		case <-again.C:
			if len(beside.Probe) == 0 || s.probe != 0 && s.probed == nil {
				continue
			}
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				return CouldNotRun, fmt.Sprintf("did not start: %v", err)
			}
			var problem *fault
			s.probed = nil
			s.probe, problem = s.fork(worktree, Command{Argv: beside.Probe, Dir: beside.Dir, Environment: environment}, null.Fd())
			null.Close()
			if problem != nil {
				return problem.outcome, fmt.Sprintf("did not start: the probe of service %q: %s", beside.Name, problem.reason)
			}
		case <-deadline.C:
			return TimedOut, fmt.Sprintf("did not start: service %q was not ready within %v", beside.Name, limit)
		case <-stepLimit:
			return TimedOut, stepLimitReason(s.plan.Timeout)
		case <-s.aborted:
			return Aborted, "was aborted"
		case <-s.stopped:
			return Aborted, "was aborted"
		case <-s.orphaned:
			return Aborted, "was aborted"
		}
	}
}

// probe closes answers once the service's port answers.
func (b *service) probe(answers, stop chan struct{}) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port))
	client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		if b.HTTP == "" {
			if connection, err := net.DialTimeout("tcp4", address, probeTimeout); err == nil {
				// A connection to a port where nobody listens yet can get that very
				// port for its own end, and then reaches itself.
				itself := connection.LocalAddr().String() == connection.RemoteAddr().String()
				connection.Close()
				if !itself {
					close(answers)
					return
				}
			}
		} else if answer, err := client.Get("http://" + address + b.HTTP); err == nil {
			answer.Body.Close()
			if answer.StatusCode < 400 {
				close(answers)
				return
			}
		}
		select {
		case <-stop:
			return
		case <-time.After(probeInterval):
		}
	}
}

// ended says which services ended while the command ran, as a part of its reason.
func (s *supervisor) ended() string {
	text := ""
	for _, beside := range s.services {
		if beside.status != nil {
			text += fmt.Sprintf("; service %q %s before", beside.Name, endOf(*beside.status))
		}
	}
	return text
}

func endOf(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "was ended by " + signalName(status.Signal())
	}
	return fmt.Sprintf("ended with exit code %d", status.ExitStatus())
}

// showServices prints what the services of a command that did not pass have
// printed, to the step's output.
func (s *supervisor) showServices() {
	for _, beside := range s.services {
		if beside.output == nil {
			continue
		}
		text, lost := beside.output.end()
		if lost > 0 {
			text = fmt.Sprintf("[%d bytes left out]\n", lost) + text
		}
		fmt.Fprintf(s.output, "\n[output of service %s]\n%s", beside.Name, text)
		if text != "" && !strings.HasSuffix(text, "\n") {
			fmt.Fprintln(s.output)
		}
	}
}

// stopServices ends the services of a command that passed: its next command has
// its own. What has left a service's process group ends with the step.
func (s *supervisor) stopServices() {
	for _, beside := range s.services {
		if beside.pid > 0 && beside.status == nil {
			_ = syscall.Kill(-beside.pid, syscall.SIGTERM)
		}
	}
	grace := time.After(s.plan.Grace)
	for running := true; running; {
		running = false
		for _, beside := range s.services {
			running = running || beside.pid > 0 && beside.status == nil
		}
		if !running {
			break
		}
		select {
		case <-s.children:
			s.reap()
		case <-grace:
			running = false
		case <-s.orphaned:
			running = false
		}
	}
	for _, beside := range s.services {
		if beside.pid > 0 {
			_ = syscall.Kill(-beside.pid, syscall.SIGKILL)
		}
	}
	s.services = nil
}
