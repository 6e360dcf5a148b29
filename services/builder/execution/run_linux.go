package execution

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"landfall.build/platform/bounds"
	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
)

// drainLimit bounds how long output is read on once the supervisor is gone,
// should a process that nobody could end still hold the pipe.
const drainLimit = time.Second

// errUnfit: the isolation cannot be had on this system; nothing was run, and a
// weaker one may do.
var errUnfit = errors.New("not available on this worker")

func runIsolated(ctx context.Context, request Request, output *capture) Result {
	if len(os.Args) > 1 && slices.Contains([]string{supervisorArgument, limitedArgument}, os.Args[1]) {
		// Going on would start this program within itself without end.
		return Result{Outcome: CouldNotRun, Reason: "The program does not call execution.MaybeSupervise first thing in main."}
	}
	var problems []error
	for _, isolation := range isolationsToTry(request.Isolation, request.Sandbox != nil) {
		result, err := runSupervised(ctx, request, isolation, output)
		if err == nil {
			return result
		}
		problems = append(problems, fmt.Errorf("%v: %w", isolation, err))
		if !errors.Is(err, errUnfit) {
			break
		}
	}
	why := errors.Join(problems...)
	return Result{Outcome: CouldNotRun, Short: isShort(why), Reason: fmt.Sprintf("The step's supervisor could not be started: %v.", why)}
}

// runSupervised runs the step under one supervisor. An error means that no
// command was started.
func runSupervised(ctx context.Context, request Request, isolation Isolation, output *capture) (Result, error) {
	// The kernel's death signal goes by the thread that started a process: this
	// one must live as long as the supervisor does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	box := request.sandboxed()
	network, err := outbound.Carry(box)
	if err != nil {
		return Result{}, err
	}
	defer network.End()
	group, err := request.Cgroups.Open(request.Limits)
	if err != nil {
		return Result{}, err
	}
	defer group.Close()
	supervisor, err := startSupervisor(isolation, box, group, network.Uplink(), nil)
	if err != nil {
		return Result{}, err
	}
	defer supervisor.close()
	network.HandedOver()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(output, supervisor.output)
	}()
	go supervisor.readReports()
	supervisor.send(plan{
		Worktree: request.Worktree, ScratchDir: request.ScratchDir,
		Commands: request.Commands, Timeout: request.Timeout, Grace: request.Grace,
		MemoryLimit: request.MemoryLimit, Limits: request.counted(), Isolation: isolation, Sandbox: box,
		Missing: request.Missing,
	})
	finished, unfit := supervisor.await(ctx, request, output)
	if lost := supervisor.end(isolation, request.supervisorLimit); lost {
		finished.Leftovers = max(1, finished.Leftovers)
	}
	_ = supervisor.output.SetReadDeadline(time.Now().Add(drainLimit))
	<-drained
	if unfit.Unfit != "" {
		err := fmt.Errorf("%w: %s", errUnfit, unfit.Unfit)
		if unfit.Short {
			err = fmt.Errorf("%w: %w", errShort, err)
		}
		return Result{}, err
	}
	return finished.within(group, supervisor.current).result(isolation, network), nil
}

// counted returns the limits that a supervisor keeps.
func (r Request) counted() bounds.Limits {
	if r.Cgroups != nil {
		return bounds.Limits{}
	}
	return r.Limits
}

// within returns the verdict on a step of a group. One that has met a limit has failed whatever else it says: it may have gone on
// without a process that the kernel has ended, and its supervisor may have been that. running names the last command that was
// started.
func (v verdict) within(group *bounds.Group, running string) verdict {
	exceeded := group.Exceeded()
	if exceeded == "" || v.Outcome == Failed && v.Exceeded {
		return v
	}
	if len(v.Commands) == 0 {
		v.Commands = []CommandResult{{Name: running, ExitCode: -1}}
	}
	last := &v.Commands[len(v.Commands)-1]
	last.Outcome = Failed
	v.Outcome, v.Exceeded, v.FailedCommand, v.Reason = Failed, true, last.Name, reasonFor(last.Name, exceeded)
	return v
}

// result returns the result of a step that had a network.
func (v verdict) result(isolation Isolation, network *outbound.Carrier) Result {
	if network.Ended() && v.Outcome == Failed {
		// What it reached the network by broke.
		v.Outcome = CouldNotRun
		v.Reason = "The process that carries the step's network ended before the step did. " + v.Reason
	}
	return Result{
		Outcome: v.Outcome, Commands: v.Commands, FailedCommand: v.FailedCommand, Reason: v.Reason, Leftovers: v.Leftovers, Isolation: isolation,
		Lookups: v.Lookups, Short: v.Short,
	}
}

// sandboxed returns what the step sees, with all that the request gives it.
func (r Request) sandboxed() *sandbox.Spec {
	if r.Sandbox == nil {
		return nil
	}
	box := *r.Sandbox
	box.Write = slices.Concat(box.Write, []string{r.Worktree, r.ScratchDir}, r.Paths)
	for _, o := range r.Overlays {
		box.Overlays = append(box.Overlays, o.Overlay)
	}
	// The kernel's bound is above that of who counts, and only for those who are faster: nobody hears of it.
	box.Processes = 2 * r.counted().Processes
	_, box.Tmp = ScratchPaths(r.ScratchDir)
	if box.Network == sandbox.Outbound {
		box.Uplink, box.IPv6 = uplinkDescriptor, outbound.HasIPv6()
	}
	return &box
}

// supervision is the runner's side of a supervisor.
type supervision struct {
	command *exec.Cmd
	orders  *os.File
	reports *os.File
	output  *os.File
	group   *bounds.Group // nil if the supervisor counts

	finished chan report   // the reports of finished steps: one, or of a session one for each and a last one
	gone     chan struct{} // closed when no more reports can come
	sessions []int         // of the commands; to be read once gone is closed
	current  string        // the command that was started last; as sessions
}

// startSupervisor starts a supervisor. With outputs, it is that of a session, which
// gets the output of each step there.
func startSupervisor(isolation Isolation, box *sandbox.Spec, group *bounds.Group, uplink, outputs *os.File) (_ *supervision, err error) {
	var files []*os.File
	pipe := func() (reader, writer *os.File) {
		if err != nil {
			return nil, nil
		}
		reader, writer, err = os.Pipe()
		if err == nil {
			files = append(files, reader, writer)
		}
		return reader, writer
	}
	ordersReader, ordersWriter := pipe()
	reportsReader, reportsWriter := pipe()
	outputReader, outputWriter := pipe()
	if err == nil {
		command := &exec.Cmd{
			Path:        sandbox.OwnProgram(),
			Args:        []string{"landfall", supervisorArgument},
			Env:         []string{"GOMAXPROCS=2", "GOTRACEBACK=single"},
			Dir:         "/",
			Stdout:      outputWriter,
			Stderr:      outputWriter,
			ExtraFiles:  []*os.File{ordersReader, reportsWriter, uplink, outputs}, // nil is closed
			SysProcAttr: supervisorAttributes(isolation, box),
		}
		group.Join(command.SysProcAttr)
		if err = command.Start(); err == nil {
			ordersReader.Close()
			reportsWriter.Close()
			outputWriter.Close()
			return &supervision{
				command: command, orders: ordersWriter, reports: reportsReader, output: outputReader,
				group: group, finished: make(chan report, 2), gone: make(chan struct{}),
			}, nil
		}
	}
	for _, file := range files {
		file.Close()
	}
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOSPC),
		errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EUSERS):
		return nil, fmt.Errorf("%w: %w", errUnfit, err)
	}
	return nil, err
}

func (s *supervision) readReports() {
	defer close(s.gone)
	decoder := json.NewDecoder(s.reports)
	for {
		var next report
		if decoder.Decode(&next) != nil {
			return
		}
		if next.Command != "" {
			s.current = next.Command
			continue
		}
		if next.Started > 0 {
			s.sessions = append(s.sessions, next.Started)
			continue
		}
		s.finished <- next
		if !next.GoesOn {
			return
		}
	}
}

// send does not fail: a supervisor that no longer reads is noticed by its
// missing report.
func (s *supervision) send(message any) {
	_ = json.NewEncoder(s.orders).Encode(message)
}

// await returns the supervisor's verdict, or the report of why the isolation is unfit.
func (s *supervision) await(ctx context.Context, request Request, output *capture) (finished verdict, unfit report) {
	last := s.awaitReport(ctx, request, output)
	if last.Finished != nil {
		return *last.Finished, report{}
	}
	return verdict{}, last
}

// awaitReport returns the supervisor's next report but Started. It aborts the step
// when the context ends or the log fails, and gives up on a supervisor that keeps
// no limit.
func (s *supervision) awaitReport(ctx context.Context, request Request, output *capture) report {
	without := func(outcome Outcome, reason string) report {
		return report{Finished: &verdict{Outcome: outcome, Reason: reason}}
	}
	var overdue <-chan time.Time
	if request.Timeout > 0 {
		overdue = time.After(request.Timeout + request.Grace + request.supervisorLimit)
	}
	cancelled, logFailed := ctx.Done(), output.failed
	var looks <-chan time.Time
	if s.group != nil {
		look := time.NewTicker(bounds.Interval)
		defer look.Stop()
		looks = look.C
	}
	abort := func() {
		s.send(order{Abort: true})
		cancelled, logFailed = nil, nil
		overdue = time.After(request.Grace + request.supervisorLimit)
	}
	for {
		select {
		case <-cancelled:
			abort()
			continue
		case <-logFailed:
			abort()
			continue
		case <-looks:
			if exceeded := s.group.Exceeded(); exceeded != "" {
				s.send(order{Exceeded: exceeded})
				looks, overdue = nil, time.After(request.Grace+request.supervisorLimit)
			}
			continue
		case <-overdue:
			return without(CouldNotRun, "The step's supervisor did not answer and was ended.")
		case last := <-s.finished:
			if !last.GoesOn {
				<-s.gone
			}
			return last
		case <-s.gone:
		}
		select {
		case last := <-s.finished:
			return last
		default:
		}
		if ctx.Err() != nil {
			return without(Aborted, "The step was aborted.")
		}
		ended := without(CouldNotRun, "The step's supervisor ended before the step did.")
		ended.Finished.Short = len(s.sessions) == 0 // nothing of the step can have ended it
		return ended
	}
}

// end makes sure that neither the supervisor nor, without a namespace, what can
// be found of its processes outlives the step. It reports whether processes may
// have been lost: a subreaper that is killed leaves orphans to others.
func (s *supervision) end(isolation Isolation, limit time.Duration) (lost bool) {
	exited := make(chan struct{})
	go func() {
		select {
		case <-exited:
		case <-s.exitOverdue(limit):
			if isolation == ProcessTree {
				// From below: once the subreaper is gone, orphans are lost.
				for range 10 {
					if signalDescendants(s.command.Process.Pid, syscall.SIGKILL) == 0 {
						break
					}
				}
			}
			_ = s.command.Process.Kill()
		}
	}()
	_ = s.command.Wait()
	close(exited)
	<-s.gone
	if isolation != ProcessTree || s.command.ProcessState.Success() {
		return false
	}
	killLost(s.sessions, s.output)
	return true
}

// exitOverdue fires at once for a supervisor that still owes its last report.
func (s *supervision) exitOverdue(limit time.Duration) <-chan time.Time {
	select {
	case <-s.gone:
		return time.After(limit)
	default:
		return time.After(0)
	}
}

func (s *supervision) close() {
	s.orders.Close()
	s.reports.Close()
	s.output.Close()
}
