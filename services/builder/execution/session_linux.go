package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"landfall.build/platform/bounds"
	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
)

// Session is a sandbox in which steps run one after the other. What a step leaves
// running, such as a build server, is there for the next, and so is its scratch
// directory. All of it ends with the session, which ends by itself with a step of
// which a command was ended, or did not start.
//
// Its steps are not protected from each other, so they run the same code and have
// no secrets.
type Session struct {
	request    Request
	isolation  Isolation
	supervisor *supervision
	network    *outbound.Carrier
	group      *bounds.Group
	box        *sandbox.Spec
	outputs    *os.File // where the supervisor gets the output of each step
	began      bool     // set once the supervisor has a step
	leftovers  int

	once   sync.Once
	ending chan struct{} // closed when it is to end
	ended  chan struct{} // closed when it has
}

// Open opens a session with all that a request gives a step but its commands.
func Open(request Request) (*Session, error) {
	request.Commands = nil
	request = request.withDefaults()
	if request.Sandbox == nil || request.ScratchDir == "" || len(request.Secrets) > 0 {
		return nil, errors.New("a session has a sandbox, a scratch directory and no secrets")
	}
	if err := makeScratch(request.ScratchDir, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("scratch directories: %w", err), RemoveAll(request.ScratchDir))
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(err, RemoveAll(request.ScratchDir))
	}
	s := &Session{
		request: request, isolation: isolationsToTry(Automatic, true)[0], box: request.sandboxed(),
		outputs: os.NewFile(uintptr(pair[0]), "outputs"), ending: make(chan struct{}), ended: make(chan struct{}),
	}
	started := make(chan error)
	go s.hold(os.NewFile(uintptr(pair[1]), "outputs"), started)
	if err := <-started; err != nil {
		<-s.ended
		return nil, err
	}
	return s, nil
}

// hold is the life of a session: the kernel ends its processes with the thread
// that started them.
func (s *Session) hold(outputs *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(s.ended)
	defer func() { _ = RemoveAll(s.request.ScratchDir) }()
	defer s.outputs.Close()
	defer outputs.Close()
	var err error
	if s.network, err = outbound.Carry(s.box); err != nil {
		started <- err
		return
	}
	defer s.network.End()
	if s.group, err = s.request.Cgroups.Open(s.request.Limits); err != nil {
		started <- err
		return
	}
	defer s.group.Close()
	if s.supervisor, err = startSupervisor(s.isolation, s.box, s.group, s.network.Uplink(), outputs); err != nil {
		started <- err
		return
	}
	defer s.supervisor.close()
	outputs.Close()
	s.network.HandedOver()
	go s.supervisor.readReports()
	started <- nil
	<-s.ending
	if s.began {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		last, _ := s.supervisor.await(now, s.request, newCapture(nil, 0, nil))
		s.leftovers = max(s.leftovers, last.Leftovers)
	}
	if s.supervisor.end(s.isolation, s.request.supervisorLimit) {
		s.leftovers = max(1, s.leftovers)
	}
}

// Alive reports whether a step can run in the session. It may end at any time.
func (s *Session) Alive() bool {
	select {
	case <-s.supervisor.gone:
		return false
	case <-s.ending:
		return false
	default:
		return !s.network.Ended() && s.group.Exceeded() == ""
	}
}

// End ends all processes of the session, and returns how many withstood that.
func (s *Session) End() (leftovers int) {
	s.once.Do(func() { close(s.ending) })
	<-s.ended
	return s.leftovers
}

// Run runs a step. Of its request, the commands, their environment and time limits
// count, and where the output goes; the rest is as it was when the session was
// opened. Only one step runs at a time.
func (s *Session) Run(ctx context.Context, request Request) Result {
	request = request.withDefaults()
	err := request.validate()
	beyond := func(c Command) bool { return c.Image != "" || len(c.Services) > 0 }
	if err == nil && (slices.ContainsFunc(request.Commands, beyond) || len(request.Secrets) > 0) {
		err = errors.New("a step of a session has no image, services or secrets")
	}
	if err != nil {
		return Result{Outcome: CouldNotRun, Reason: fmt.Sprintf("The step's request is not valid: %v.", err)}
	}
	if ctx.Err() != nil {
		return Result{Outcome: Aborted, Reason: "The step was aborted before it started."}
	}
	output := newCapture(request.Log, request.OutputLimit, nil)
	output.reports = request.Reports
	result := s.runStep(ctx, request, output)
	output.finish()
	return result.with(ctx, output)
}

func (s *Session) runStep(ctx context.Context, request Request, output *capture) Result {
	reader, writer, err := os.Pipe()
	if err != nil {
		return Result{Outcome: CouldNotRun, Reason: fmt.Sprintf("The worker could not make a pipe: %v.", err)}
	}
	defer reader.Close()
	err = syscall.Sendmsg(int(s.outputs.Fd()), []byte{0}, syscall.UnixRights(int(writer.Fd())), nil, 0)
	writer.Close()
	if err != nil {
		leftovers := s.End()
		return Result{Outcome: CouldNotRun, Leftovers: leftovers, Reason: fmt.Sprintf("The step's supervisor takes no step: %v.", err)}
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(output, reader)
	}()
	step := plan{
		Worktree: s.request.Worktree, ScratchDir: s.request.ScratchDir, Commands: request.Commands, Timeout: request.Timeout,
		Grace: s.request.Grace, MemoryLimit: s.request.MemoryLimit, Limits: s.request.counted(), Isolation: s.isolation, Sandbox: s.box, Kept: true,
	}
	if s.began {
		s.supervisor.send(order{Next: &step})
	} else {
		s.began = true
		s.supervisor.send(step)
	}
	last := s.supervisor.awaitReport(ctx, request, output)
	result := Result{Outcome: CouldNotRun, Isolation: s.isolation}
	if last.Finished == nil {
		result.Reason = fmt.Sprintf("The step's sandbox could not be made: %s.", last.Unfit)
	} else {
		result = last.Finished.within(s.group, s.supervisor.current).result(s.isolation, s.network)
	}
	if !last.GoesOn || ctx.Err() != nil || output.failure() != nil || s.network.Ended() {
		result.Leftovers = max(result.Leftovers, s.End())
	}
	// What the step has left may hold the pipe.
	_ = reader.SetReadDeadline(time.Now().Add(drainLimit))
	<-drained
	return result
}

// takeOutput makes what the runner sends the output of the supervisor, and so of
// the step's commands.
func takeOutput() error {
	pipe, err := outbound.ReceiveDescriptor(outputsDescriptor)
	if err != nil {
		return err
	}
	defer syscall.Close(pipe)
	return becomeOutput(pipe)
}

// dropOutput lets the runner see the end of the step's output.
func dropOutput() {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer null.Close()
	_ = becomeOutput(int(null.Fd()))
}

func becomeOutput(descriptor int) error {
	return errors.Join(syscall.Dup3(descriptor, outputDescriptor, 0), syscall.Dup3(descriptor, errorsDescriptor, 0))
}
