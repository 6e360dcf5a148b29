package execution

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"landfall.build/platform/bounds"
	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
	"landfall.build/platform/sandbox/lookups"
)

const (
	// killInterval is how often SIGKILL is repeated for processes that were
	// forked while the last one was under way.
	killInterval = 20 * time.Millisecond
	// settleTime is waited after a failure: when a worker is shut down, its
	// service manager signals every process at once, and a step's failure may
	// be seen before the order to stop is.
	settleTime = 50 * time.Millisecond
)

// MaybeSupervise turns a process that [Run] started as its supervisor into one,
// and one that this started to become a command into that; then it does not return.
// The same goes for [sandbox.MaybeEnter] and [outbound.MaybeCarry]. In any other
// process it does nothing. Call it first thing in main, and in TestMain.
func MaybeSupervise() {
	sandbox.MaybeEnter()
	outbound.MaybeCarry()
	if len(os.Args) > 1 && os.Args[1] == limitedArgument {
		becomeLimited(os.Args[2:])
	}
	if len(os.Args) != 2 || os.Args[1] != supervisorArgument {
		return
	}
	runtime.LockOSThread()
	reports := json.NewEncoder(os.NewFile(reportsDescriptor, "reports"))
	orders := json.NewDecoder(os.NewFile(ordersDescriptor, "orders"))
	var step plan
	if err := orders.Decode(&step); err != nil {
		syscall.Exit(1) // the runner died, or somebody typed the hidden argument
	}
	err := prepareSupervisor(step.Isolation, step.Sandbox)
	if err == nil && step.Sandbox != nil && step.Missing == nil {
		err = sandbox.LimitFilesAndProcesses() // what is watched does so itself
	}
	if err == nil && step.Limits.Set() {
		// This thread's, and so the commands'. A cgroup has a weight in its place.
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness)
	} else if err != nil {
		_ = reports.Encode(report{Unfit: err.Error(), Short: isShort(err)})
		syscall.Exit(0)
	}
	s := &supervisor{
		plan: step, isolation: step.Isolation, reports: reports, output: os.NewFile(outputDescriptor, "output"),
		children: make(chan os.Signal, 1), stopped: make(chan struct{}),
		aborted: make(chan struct{}), orphaned: make(chan struct{}), next: make(chan plan, 1), exceeded: make(chan string, 1),
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(s.children, syscall.SIGCHLD)
	signal.Notify(stop, syscall.SIGTERM)
	// Caught, not ignored: a signal that is ignored stays ignored in every command,
	// and `yes | head` would report a broken pipe.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-stop
		close(s.stopped)
	}()
	go s.readOrders(orders)
	if step.Limits.Set() {
		keepThreads()
		go s.count(step.Limits, step.Sandbox != nil)
	}
	finished, goesOn := s.runStep()
	for goesOn {
		_ = reports.Encode(report{Finished: &finished, GoesOn: true})
		if s.awaitStep() {
			finished, goesOn = s.runStep()
		} else {
			finished, goesOn = verdict{Outcome: Aborted, Reason: "The step was aborted.", Leftovers: s.endTree()}, false
			if s.over != "" {
				finished.Outcome, finished.Reason = CouldNotRun, "What a step before has left running "+s.over+"."
			}
		}
	}
	_ = reports.Encode(report{Finished: &finished})
	// Not os.Exit: its hooks (the race detector's waits a second) are for
	// programs, and the step's result waits for this one.
	syscall.Exit(0)
}

// supervisor owns the processes of one step. All of it but readOrders runs on
// one locked thread.
type supervisor struct {
	plan      plan
	isolation Isolation
	reports   *json.Encoder
	output    *os.File // the step's

	children chan os.Signal // SIGCHLD, coalesced
	stopped  chan struct{}  // closed by SIGTERM, which can come several times
	aborted  chan struct{}  // closed by the order to abort
	orphaned chan struct{}  // closed when the runner is gone
	next     chan plan      // further steps of a session
	exceeded chan string    // what the step has done that its limits forbid, once
	over     string         // the same, once received

	watch *lookups.Watch // of what the step's worktree lacks, if it does

	short bool // see Result.Short

	current int                 // process id of the running command
	status  *syscall.WaitStatus // its end, once seen

	services []*service          // of the command
	probe    int                 // process id of the running probe of a service
	probed   *syscall.WaitStatus // its end, once seen
}

func (s *supervisor) readOrders(orders *json.Decoder) {
	aborting := false
	for {
		var next order
		if orders.Decode(&next) != nil {
			close(s.orphaned)
			return
		}
		if next.Abort && !aborting {
			aborting = true
			close(s.aborted)
		}
		if next.Exceeded != "" {
			s.exceed(next.Exceeded)
		}
		if next.Next != nil {
			s.next <- *next.Next
		}
	}
}

// awaitStep waits for the next step of a session, and reports whether there is one.
func (s *supervisor) awaitStep() bool {
	for {
		select {
		case <-s.children:
			s.reap()
			continue
		case s.over = <-s.exceeded:
			return false
		case s.plan = <-s.next:
			return !s.stopsWithin(0)
		case <-s.aborted:
		case <-s.stopped:
		case <-s.orphaned:
		}
		return false
	}
}

// runStep also reports whether a session goes on: it does if every command that
// was started has ended by itself.
func (s *supervisor) runStep() (finished verdict, goesOn bool) {
	if s.plan.Kept {
		if err := takeOutput(); err != nil {
			return verdict{Outcome: CouldNotRun, Reason: fmt.Sprintf("The step's output could not be had: %v.", err), Leftovers: s.endTree()}, false
		}
		defer dropOutput()
	}
	var stepLimit <-chan time.Time
	if s.plan.Timeout > 0 {
		stepLimit = time.After(s.plan.Timeout)
	}
	finished = verdict{Outcome: Passed}
	if s.watch = nil; s.plan.Missing != nil {
		root, err := filepath.EvalSymlinks(s.plan.Worktree)
		if err != nil {
			root = s.plan.Worktree // There is no worktree, which is said below.
		}
		s.watch = lookups.New(root, *s.plan.Missing)
		defer func() { finished.Lookups = s.watch.Found() }()
	}
	worktree, err := os.OpenRoot(s.plan.Worktree)
	if err != nil {
		finished.Outcome = CouldNotRun
		finished.Reason = fmt.Sprintf("The worker has no worktree to run the step in: %v.", err)
		finished.Leftovers = s.endTree()
		return finished, false
	}
	defer worktree.Close()
	for _, command := range s.plan.Commands {
		began := time.Now()
		_ = s.reports.Encode(report{Command: command.Name})
		result, what := s.runCommand(worktree, command, stepLimit)
		if s.isOver() {
			result.Outcome, what, finished.Exceeded = Failed, s.over, true
		}
		result.Name, result.Duration = command.Name, time.Since(began)
		finished.Commands = append(finished.Commands, result)
		if result.Outcome == Passed {
			s.stopServices()
		} else {
			s.showServices()
			finished.Outcome, finished.FailedCommand = result.Outcome, command.Name
			finished.Reason = reasonFor(command.Name, what)
			finished.Short = s.short && len(finished.Commands) == 1 && len(command.Services) == 0
			break
		}
	}
	last := &finished.Commands[len(finished.Commands)-1]
	if goesOn = s.plan.Kept && last.ExitCode >= 0 && finished.Outcome != CouldNotRun && !finished.Exceeded; goesOn {
		s.reap()
	} else {
		finished.Leftovers = s.endTree()
	}
	if s.watch != nil && s.watch.Err() != nil && (finished.Outcome == Failed || finished.Outcome == Passed) {
		last.Outcome, finished.Outcome = CouldNotRun, CouldNotRun
		finished.Reason = fmt.Sprintf("The worker could not watch what the step looks for: %v.", s.watch.Err())
	}
	if finished.Outcome == Failed && !finished.Exceeded && s.stopsWithin(settleTime) {
		last.Outcome, finished.Outcome = Aborted, Aborted
		finished.Reason = reasonFor(last.Name, "ended while the step was being aborted")
	}
	return finished, goesOn
}

// runCommand also returns, unless the command passed, what happened to it.
func (s *supervisor) runCommand(worktree *os.Root, command Command, stepLimit <-chan time.Time) (CommandResult, string) {
	result := CommandResult{ExitCode: -1}
	if s.stopsWithin(0) {
		result.Outcome = Aborted
		return result, "did not start: the step was aborted"
	}
	if len(command.Services) > 0 {
		environment, outcome, problem := s.startServices(worktree, command, stepLimit)
		if outcome != Passed {
			result.Outcome = outcome
			return result, problem
		}
		command.Environment = environment
	}
	killsBefore := MemoryKills()
	if problem := s.startCommand(worktree, command); problem != nil {
		result.Outcome, s.short = problem.outcome, problem.short
		return result, "did not start: " + problem.reason
	}
	var limit <-chan time.Time
	if command.Timeout > 0 {
		timer := time.NewTimer(command.Timeout)
		defer timer.Stop()
		limit = timer.C
	}
	for s.status == nil {
		select {
		case <-s.children:
			s.reap()
			continue
		case s.over = <-s.exceeded:
			return result, s.over
		case <-limit:
			result.Outcome = TimedOut
			return result, limitReason(command.Timeout)
		case <-stepLimit:
			result.Outcome = TimedOut
			return result, stepLimitReason(s.plan.Timeout)
		case <-s.aborted:
		case <-s.stopped:
		case <-s.orphaned:
		}
		result.Outcome = Aborted
		return result, "was aborted"
	}
	if s.status.Exited() {
		result.ExitCode = s.status.ExitStatus()
	} else {
		result.Signal = signalName(s.status.Signal())
	}
	var seen circumstances
	if *s.status != 0 {
		seen.outOfMemory = MemoryKills() > killsBefore
		seen.diskFull = fullDisk(s.plan.Worktree, s.plan.ScratchDir)
	}
	what := ""
	result.Outcome, what = judgeEnd(*s.status, seen)
	if result.Outcome != Passed {
		what += s.ended()
	}
	return result, what
}

func (s *supervisor) startCommand(worktree *os.Root, command Command) *fault {
	s.status = nil
	pid, problem := s.fork(worktree, command, outputDescriptor)
	if problem != nil {
		return problem
	}
	s.current = pid
	return nil
}

// fork starts a program of the step, whose output goes to a descriptor.
func (s *supervisor) fork(worktree *os.Root, command Command, output uintptr) (int, *fault) {
	directory, problem := openDirectory(worktree, command.Dir)
	if problem != nil {
		return 0, problem
	}
	defer directory.Close()
	found, problem := locateProgram(worktree, command.Dir, command.Argv[0], pathVariable(command.Environment))
	if problem != nil {
		return 0, problem
	}
	// By descriptor, so that a process left by an earlier command cannot
	// exchange the directory for a link after the check.
	if err := directory.Chdir(); err != nil {
		return 0, workerFault("its directory cannot be entered: %v", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, workerFault("%v", err)
	}
	defer null.Close()
	watch := s.watch
	if command.Image != "" {
		watch = nil // Its program is the runtime's client.
	}
	pid, err := forkExec(found.path, command.Argv, s.plan.MemoryLimit, watch, &syscall.ProcAttr{
		Env:   command.Environment,
		Files: []uintptr{null.Fd(), output, output},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if errors.Is(err, errUnlimited) || errors.Is(err, errUnwatched) {
		return 0, shortage(err, workerFault("%v", err))
	}
	if err != nil {
		return 0, shortage(err, startFault(found, err))
	}
	_ = s.reports.Encode(report{Started: pid})
	return pid, nil
}

// reap collects what has ended and reports whether no process is left: every
// orphan of the step becomes a child of the supervisor.
func (s *supervisor) reap() (none bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return true
		case pid == 0:
			return false
		case pid == s.current && s.status == nil:
			s.status = &status
		case pid == s.probe && s.probed == nil:
			s.probed = &status
		default:
			for _, beside := range s.services {
				if beside.pid == pid && beside.status == nil {
					beside.status = &status
				}
			}
		}
	}
}

// stopsWithin reports whether an order to stop comes, waiting for at most patience.
func (s *supervisor) stopsWithin(patience time.Duration) bool {
	select {
	case <-s.aborted:
		return true
	case <-s.orphaned:
		return true
	case <-s.stopped:
		return true
	case <-time.After(patience):
		return false
	}
}

// endTree ends what is left of the step: SIGTERM, the grace, then SIGKILL until
// nothing is left. It returns how many processes withstood even that.
func (s *supervisor) endTree() int {
	if s.reap() {
		return 0
	}
	s.signalTree(syscall.SIGTERM)
	s.signalTree(syscall.SIGCONT) // a stopped process handles no signal
	grace := time.NewTimer(s.plan.Grace)
	defer grace.Stop()
	for waiting := s.over == ""; waiting; {
		select {
		case <-s.children:
			if s.reap() {
				return 0
			}
		case <-s.orphaned:
			waiting = false // nobody waits for the result
		case <-grace.C:
			waiting = false
		}
	}
	limit := time.NewTimer(killLimit)
	defer limit.Stop()
	again := time.NewTicker(killInterval)
	defer again.Stop()
	for {
		s.signalTree(syscall.SIGKILL)
		select {
		case <-s.children:
		case <-again.C:
		case <-limit.C:
			return max(1, len(bounds.Below(os.Getpid(), bounds.Table())))
		}
		if s.reap() {
			return 0
		}
	}
}

func (s *supervisor) signalTree(number syscall.Signal) {
	if s.isolation == ProcessTree {
		signalDescendants(os.Getpid(), number)
		return
	}
	// Everything in the namespace but process 1, in one go that no fork can
	// slip through.
	_ = syscall.Kill(-1, number)
}
