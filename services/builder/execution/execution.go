// Package execution runs one step: the commands of one target version, one
// after the other, in a worktree, and returns which of five outcomes it had
// (M24, M27).
//
// Whatever a command starts ends with the step: daemons that forked twice,
// left their session or ignore SIGTERM too. On Linux a supervising child (this
// very binary, see [MaybeSupervise]) holds the step's processes: as process 1
// of a PID namespace where the system allows one, otherwise as the child
// subreaper that every orphan falls to. When the builder itself dies, by
// SIGKILL too, the supervisor ends the step. Processes that one command of a
// step leaves running are there for its next commands (a build server, say)
// and end with the step.
//
// With a [sandbox.Spec] a step sees its worktree, its scratch directory, the paths
// that it is given and folders of the system, and nothing else of the machine.
// Without one, it may read what its user may read and use the network.
package execution

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"landfall.build/platform/bounds"
	"landfall.build/platform/sandbox"
	"landfall.build/platform/sandbox/lookups"
)

// Defaults and bounds of a [Request].
const (
	defaultGrace       = 2 * time.Second
	defaultOutputLimit = 16 << 20
	// TailLimit bounds Result.Tail, in bytes.
	TailLimit = 16 << 10

	maximumCommands = 1024

	// killLimit is how long a process may take to end after SIGKILL, which one
	// in an uninterruptible wait can (a dead network file system).
	killLimit              = 10 * time.Second
	defaultSupervisorLimit = killLimit + 10*time.Second
)

// Outcome is how a command or a step ended. Only Failed is held against the
// change.
type Outcome int

const (
	// Unspecified is the zero value; Run never returns it.
	Unspecified Outcome = iota
	// Passed: every command ended with exit code 0.
	Passed
	// Failed: what the tree holds made it fail. A command ended with another
	// exit code, or by a signal of its own making (SIGSEGV, SIGABRT …), or the
	// tree lacks the directory or the program that its manifest names.
	Failed
	// TimedOut: a command, or the whole step, ran longer than its limit.
	TimedOut
	// Aborted: the context was cancelled.
	Aborted
	// CouldNotRun: the worker is to blame, or it is not known who: a program missing
	// on the worker, no process to be had, no disk, the supervisor gone or ended by
	// a signal, which the step itself may have sent, or a
	// command ended by a signal that comes from outside (SIGKILL, as the
	// kernel's when memory is short; SIGTERM, SIGINT, SIGHUP, SIGQUIT, as of a
	// worker that is being shut down). What is in doubt is not held against
	// the change: the step is run again, as often as the caller retries.
	CouldNotRun
)

// String returns the outcome in words, as reasons and logs show it.
func (o Outcome) String() string {
	switch o {
	case Unspecified:
		return "unspecified"
	case Passed:
		return "passed"
	case Failed:
		return "failed"
	case TimedOut:
		return "timed out"
	case Aborted:
		return "aborted"
	case CouldNotRun:
		return "could not run"
	}
	return fmt.Sprintf("outcome %d", int(o))
}

// Isolation is how the processes of a step are held together.
type Isolation int

const (
	// Automatic takes the strongest that the system allows.
	Automatic Isolation = iota
	// PIDNamespace: the supervisor is process 1 of a PID namespace, and the
	// kernel ends everything within when it ends. Steps neither see nor signal
	// processes outside. Needs CAP_SYS_ADMIN.
	PIDNamespace
	// UserNamespace: the same, by way of a user namespace in which the
	// worker's own user is the only one. For users other than root: root with
	// one user mapped could not chown, and honest steps would fail.
	UserNamespace
	// ProcessTree: a child subreaper that walks /proc. A step that means harm
	// can kill its supervisor, and what has left its session by then lives on.
	// On systems other than Linux it is weaker still: the process group alone.
	ProcessTree
)

// String returns the name that logs show.
func (i Isolation) String() string {
	switch i {
	case Automatic:
		return "automatic"
	case PIDNamespace:
		return "pid namespace"
	case UserNamespace:
		return "user namespace"
	case ProcessTree:
		return "process tree"
	}
	return fmt.Sprintf("isolation %d", int(i))
}

// Command is one program with its arguments; no shell is between.
type Command struct {
	// Name is what reasons and logs call it; Argv[0] when empty.
	Name string
	// Argv[0] without a slash is looked up in the PATH of its environment;
	// with one it is relative to Dir.
	Argv []string
	// Dir is relative to the worktree ("" is the worktree itself) and must not
	// lead out of it, by a symbolic link neither.
	Dir string
	// Timeout bounds this command; 0 means that only the step's limit counts.
	Timeout time.Duration
	// Environment is all that this command gets ("NAME=value"); nil means
	// Request.Environment.
	Environment []string
	// OfTree are the names of variables of Environment that the tree sets. They are not those of
	// a container's client, which runs outside of the sandbox.
	OfTree []string
	// Services run beside it.
	Services []Service
	// Image, when set, is the container image that it runs in; Argv[0] is then a
	// program of the image.
	Image string
}

// Request is a step to run.
type Request struct {
	// Worktree is the absolute path of the checked-out tree.
	Worktree string
	// Commands run in order, up to the first that does not pass.
	Commands []Command
	// Environment is all that commands get which have none of their own
	// ("NAME=value"); nothing is inherited. See [Environment].
	Environment []string
	// Timeout bounds the whole step; 0 means none.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL; 0 means defaultGrace.
	Grace time.Duration
	// OutputLimit bounds, in bytes, what of standard output and standard error
	// reaches Log from the start of the output; 0 means defaultOutputLimit.
	// The rest is counted and discarded, but for its last TailLimit bytes,
	// which follow a line that says how much is left out. The step goes on.
	OutputLimit int64
	// Log gets the output, in order; nil discards it. When it fails, the step
	// ends with CouldNotRun: nobody could see why a step failed.
	Log io.Writer
	// Reports, when set, gets all of the output in the place of Log, with secrets
	// masked and whatever OutputLimit is. It must not fail.
	Reports io.Writer
	// ScratchDir, when set, is the absolute path of a directory of the step's own.
	// Run makes it anew, with "home" and "tmp" in it (see [ScratchPaths]), and
	// removes it at the end with all that the step left there.
	ScratchDir string
	// Paths are absolute and lie outside of these two: folders that the step is
	// given to read and write, such as caches. They must be there.
	Paths []string
	// Overlays are folders of layers that the step is given besides. They need a sandbox.
	Overlays []Overlay
	// Sandbox, when set, is what the step sees besides; nil means all that its user
	// may see. A command with an image has the container's walls in its place.
	Sandbox *sandbox.Spec
	// ContainerRuntime is the absolute path of docker or podman, for commands with
	// an image; "" if there is none.
	ContainerRuntime string
	// Secrets are masked in the output, before anything else sees it. Those that
	// ask for a file have one while the step runs. Their values are in no message.
	Secrets []Secret
	// MemoryLimit bounds, in bytes, the private writable memory of each
	// process (RLIMIT_DATA; not RLIMIT_AS, since Go and Java reserve far more
	// addresses than they use). 0 means none. It stops a process that runs
	// away; to bound a step as a whole, bound the worker (its container, or
	// MemoryMax= of its unit). Linux only.
	MemoryLimit int64
	// Limits bound all processes of the step together. A step that exceeds one has failed.
	// Linux only.
	Limits bounds.Limits
	// Cgroups, when set, has the kernel keep Limits; nil means that the supervisor counts.
	Cgroups *bounds.Tree `json:"-"`
	// Missing, when set, is what the worktree lacks of the tree that the step is about. What commands look for of it is in
	// Result.Lookups, but for those with an image. Linux only.
	Missing *lookups.Missing
	// Isolation other than Automatic insists on that one.
	Isolation Isolation

	// supervisorLimit is what a supervisor may take beyond the limits and the
	// grace that it keeps itself, before it is ended: it may have been stopped.
	// Tests set it.
	supervisorLimit time.Duration
}

// Overlay is a folder of layers that a step is given.
type Overlay struct {
	sandbox.Overlay
	// Plain is the folder that commands with an image have in its place: they run outside of the sandbox.
	Plain string
}

// CommandResult is how one command that was tried ended.
type CommandResult struct {
	Name string
	// ExitCode is -1 when the command did not start or ended by a signal.
	ExitCode int
	// Signal is the name of the signal that ended it ("SIGSEGV"), or "".
	Signal   string
	Duration time.Duration
	Outcome  Outcome
}

// Result is how a step ended.
type Result struct {
	Outcome Outcome
	// Commands holds those that were tried, in order; only the last one's
	// outcome can be other than Passed.
	Commands []CommandResult
	// FailedCommand names the command that kept the step from passing, or "".
	FailedCommand string
	// Reason is one sentence for the developer; "" when the step passed.
	Reason string
	// Tail is the end of the output: valid UTF-8, at most TailLimit bytes.
	Tail []byte
	// OutputBytes counts all of the output; Truncated is set if Log did not get
	// all of it.
	OutputBytes int64
	Truncated   bool
	// Leftovers counts processes that could not be ended or, after the loss of
	// a supervisor, may not have been (at least 1 then). Other than 0 it means
	// that the worktree may still change: it must not be used again.
	Leftovers int
	// Lookups is what of Request.Missing was looked for, sorted by path.
	Lookups []lookups.Lookup
	// Short is set if nothing of the step was started, for want of something that other steps on this machine may have taken: the same
	// step may start later.
	Short bool
	// Isolation is the one that was in force.
	Isolation Isolation
}

// Run runs the step and returns when all of its processes have ended (but see
// Result.Leftovers). It does not fail: what goes wrong is CouldNotRun, with its
// reason. Programs that call it must call [MaybeSupervise] first thing in main.
func Run(ctx context.Context, request Request) Result {
	request = request.withDefaults()
	if err := request.validate(); err != nil {
		return Result{Outcome: CouldNotRun, Reason: fmt.Sprintf("The step's request is not valid: %v.", err)}
	}
	if ctx.Err() != nil {
		return Result{Outcome: Aborted, Reason: "The step was aborted before it started."}
	}
	if request.ScratchDir != "" {
		defer func() { _ = RemoveAll(request.ScratchDir) }() // what cannot be removed keeps the next step from running
		if err := makeScratch(request.ScratchDir, request.Secrets); err != nil {
			return Result{Outcome: CouldNotRun, Reason: fmt.Sprintf("The worker could not make the step's scratch directories: %v.", err)}
		}
	}
	for _, command := range request.Commands {
		if command.Image != "" && request.ContainerRuntime == "" {
			return Result{Outcome: CouldNotRun, FailedCommand: command.Name, Reason: reasonFor(command.Name,
				"runs in the image "+command.Image+", and this worker has no container runtime ("+strings.Join(ContainerRuntimes, ", ")+")")}
		}
	}
	request.removeContainers()
	defer request.removeContainers()
	output := newCapture(request.Log, request.OutputLimit, request.Secrets)
	output.reports = request.Reports
	result := runSegments(ctx, request, output)
	output.finish()
	return result.with(ctx, output)
}

// signalPatience is how long the context may take to be cancelled once the
// supervisor got SIGTERM: a worker that is shut down gets the signal as well.
// Only a step that ended its own supervisor waits for all of it.
const signalPatience = 5 * time.Second

// with returns the result with what became of the step's output. A step is not
// aborted by a signal that only its supervisor got: steps can send it, and what
// is aborted is run again for ever.
func (result Result) with(ctx context.Context, output *capture) Result {
	if result.Outcome == Aborted {
		select {
		case <-ctx.Done():
		case <-time.After(signalPatience):
			result.couldNotRun("The step's supervisor was ended by a signal.")
		}
	}
	result.Tail, result.OutputBytes, result.Truncated = output.tail(), output.total, output.truncated()
	if err := output.failure(); err != nil && ctx.Err() == nil {
		result.couldNotRun(fmt.Sprintf("The worker could not write the step's log: %v.", err))
	}
	return result
}

func (result *Result) couldNotRun(reason string) {
	result.Outcome, result.Reason = CouldNotRun, reason
	if last := len(result.Commands) - 1; last >= 0 && result.Commands[last].Outcome == Aborted {
		result.Commands[last].Outcome = CouldNotRun
	}
}

// runSegments runs the commands. Those with an image are started by a client of the
// container runtime, which has to be outside of the sandbox: what comes before and
// after has a supervisor of its own.
func runSegments(ctx context.Context, request Request, output *capture) Result {
	if request.Sandbox == nil {
		return judgeContainer(runIsolated(ctx, request.contained(), output), request.Commands, request.Limits)
	}
	contained, whole := request.contained(), Result{Outcome: Passed}
	began := time.Now()
	for start, end := 0, 0; start < len(request.Commands); start = end {
		image := request.Commands[start].Image != ""
		for end = start; end < len(request.Commands) && (request.Commands[end].Image != "") == image; end++ {
		}
		segment := contained
		segment.Commands = contained.Commands[start:end]
		if image {
			segment.Sandbox, segment.Missing = nil, nil
		}
		if request.Timeout > 0 {
			segment.Timeout = max(1, request.Timeout-time.Since(began))
		}
		result := judgeContainer(runIsolated(ctx, segment, output), request.Commands[start:end], request.Limits)
		whole.Outcome, whole.FailedCommand, whole.Reason = result.Outcome, result.FailedCommand, result.Reason
		whole.Short = result.Short && start == 0
		whole.Commands = append(whole.Commands, result.Commands...)
		whole.Leftovers += result.Leftovers
		whole.Lookups = append(whole.Lookups, result.Lookups...)
		if !image || whole.Isolation == Automatic {
			whole.Isolation = result.Isolation
		}
		if result.Outcome != Passed {
			break
		}
	}
	return whole
}

func (r Request) withDefaults() Request {
	if r.Grace == 0 {
		r.Grace = defaultGrace
	}
	if r.OutputLimit == 0 {
		r.OutputLimit = defaultOutputLimit
	}
	if r.supervisorLimit == 0 {
		r.supervisorLimit = defaultSupervisorLimit
	}
	commands := make([]Command, len(r.Commands))
	copy(commands, r.Commands)
	for i := range commands {
		if commands[i].Name == "" && len(commands[i].Argv) > 0 {
			commands[i].Name = commands[i].Argv[0]
		}
		if commands[i].Environment == nil {
			// Not nil: with nil a command would inherit our own environment.
			commands[i].Environment = append([]string{}, r.Environment...)
		}
		commands[i].Services = slices.Clone(commands[i].Services)
		for j := range commands[i].Services {
			if service := &commands[i].Services[j]; service.Environment == nil {
				service.Environment = commands[i].Environment
			}
		}
	}
	r.Commands = commands
	return r
}

// validate reports everything that is wrong at once.
func (r Request) validate() error {
	var problems []error
	report := func(format string, arguments ...any) {
		problems = append(problems, fmt.Errorf(format, arguments...))
	}
	if !filepath.IsAbs(r.Worktree) {
		report("the worktree %q must be an absolute path", r.Worktree)
	}
	if r.ScratchDir != "" && !filepath.IsAbs(r.ScratchDir) {
		report("the scratch directory %q must be an absolute path", r.ScratchDir)
	}
	for _, path := range r.Paths {
		if info, err := os.Stat(path); !filepath.IsAbs(path) || err != nil || !info.IsDir() {
			report("%q, which the step is given, must be the absolute path of a directory", path)
		}
	}
	if len(r.Overlays) > 0 && r.Sandbox == nil {
		report("folders of layers need a sandbox")
	}
	for _, secret := range r.Secrets {
		if !filepath.IsLocal(secret.Name) || filepath.Base(secret.Name) != secret.Name || secret.File && r.ScratchDir == "" {
			report("the secret %q has no place for a file", secret.Name)
		}
		if len(secret.Value) < SecretMinimum || len(secret.Value) > SecretLimit {
			report("the secret %q has %d bytes, which are %d to %d", secret.Name, len(secret.Value), SecretMinimum, SecretLimit)
		}
	}
	if len(r.Commands) == 0 || len(r.Commands) > maximumCommands {
		report("a step has 1 to %d commands, this one has %d", maximumCommands, len(r.Commands))
	}
	for i, command := range r.Commands {
		if len(command.Argv) == 0 || command.Argv[0] == "" {
			report("command %d names no program", i+1)
		}
		if command.Timeout < 0 {
			report("command %d has a negative time limit", i+1)
		}
		if command.Image != "" && (r.ScratchDir == "" || strings.HasPrefix(command.Image, "-")) {
			report("command %d has an image without a scratch directory, or one that is a flag", i+1)
		}
		if command.Image != "" && len(command.Services) > 0 && r.Sandbox != nil {
			report("command %d has an image and services, which a container does not reach in a sandbox; with steps.isolation: off it does", i+1)
		}
		if len(command.Services) > maximumServices {
			report("command %d has %d services, which are at most %d", i+1, len(command.Services), maximumServices)
		}
		for _, service := range command.Services {
			if len(service.Argv) == 0 || service.Argv[0] == "" || service.PortVariable == "" || service.Timeout < 0 {
				report("the service %q of command %d lacks a program or the variable of its port", service.Name, i+1)
			}
		}
		for _, text := range append([]string{command.Dir}, command.Argv...) {
			if strings.ContainsRune(text, 0) {
				report("command %d contains a NUL byte", i+1)
			}
		}
	}
	if r.Sandbox != nil && (r.Isolation == ProcessTree || r.ScratchDir == "") {
		report("a sandbox needs namespaces and a scratch directory")
	}
	if r.Timeout < 0 || r.Grace < 0 || r.OutputLimit < 0 || r.MemoryLimit < 0 || r.Limits.Memory < 0 || r.Limits.Processes < 0 {
		report("limits must not be negative")
	}
	if r.Isolation < Automatic || r.Isolation > ProcessTree {
		report("%v is unknown", r.Isolation)
	}
	checkEnvironment(r.Environment, report)
	for _, command := range r.Commands {
		if !slices.Equal(command.Environment, r.Environment) {
			checkEnvironment(command.Environment, report)
		}
	}
	return errors.Join(problems...)
}

func checkEnvironment(environment []string, report func(format string, arguments ...any)) {
	seen := make(map[string]bool, len(environment))
	for _, entry := range environment {
		name, _, found := strings.Cut(entry, "=")
		// The value stays out of the message: it may be confidential.
		if !found || name == "" || strings.ContainsRune(entry, 0) || seen[name] {
			report("the environment's entry %q is malformed or there twice", name)
		}
		seen[name] = true
	}
}

// pathVariable returns the PATH that commands are looked up in.
func pathVariable(environment []string) string {
	for _, entry := range environment {
		if value, found := strings.CutPrefix(entry, "PATH="); found {
			return value
		}
	}
	return ""
}

// ScratchPaths returns the HOME and the TMPDIR that Run makes below a scratch
// directory.
func ScratchPaths(scratch string) (home, tmp string) {
	return filepath.Join(scratch, "home"), filepath.Join(scratch, "tmp")
}

// SecretPath returns where Run puts the file of a secret.
func SecretPath(scratch, name string) string { return filepath.Join(scratch, secretsFolder, name) }

const secretsFolder = "secrets"

func makeScratch(scratch string, secrets []Secret) error {
	// What a step before left, if its runner was killed, or if it could not be removed.
	if err := RemoveAll(scratch); err != nil {
		return err
	}
	home, tmp := ScratchPaths(scratch)
	for _, directory := range []string{home, tmp} {
		if err := os.MkdirAll(directory, 0o700); err != nil {
			return err
		}
	}
	folder := filepath.Join(scratch, secretsFolder)
	for _, secret := range secrets {
		if !secret.File {
			continue
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(SecretPath(scratch, secret.Name), secret.Value, 0o400); err != nil {
			return err
		}
	}
	return nil
}
