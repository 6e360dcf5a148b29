//go:build linux

package execution

import (
	"time"

	"landfall.build/platform/bounds"
	"landfall.build/platform/sandbox"
	"landfall.build/platform/sandbox/lookups"
)

// The runner and its supervisor speak JSON over two pipes that no command
// inherits. The runner's pipe stays open for the whole step: its end of file is
// how the supervisor learns that the runner is dead.

// supervisorArgument is os.Args[1] of a supervisor.
const supervisorArgument = "__landfall-step-supervisor"

// limitedArgument is os.Args[1] of a process that limits itself and then becomes
// a command. The limit, whether it is watched, the command's path and its own arguments follow.
const limitedArgument = "__landfall-limited-command"

// File descriptors of a supervisor.
const (
	outputDescriptor  = 1 // the step's output
	errorsDescriptor  = 2 // the same
	ordersDescriptor  = 3
	reportsDescriptor = 4
	uplinkDescriptor  = 5 // with a network that is carried
	outputsDescriptor = 6 // in a session: where it gets the output of each step
)

// plan is the runner's first message: the validated step.
type plan struct {
	// Kept is set in a session: what the step leaves running is there for the next.
	Kept        bool
	Worktree    string
	ScratchDir  string
	Commands    []Command
	Timeout     time.Duration
	Grace       time.Duration
	MemoryLimit int64
	// Limits are those that the supervisor keeps; none where a cgroup does.
	Limits    bounds.Limits
	Isolation Isolation
	// Sandbox is all that the step sees; nil means all that its user sees.
	Sandbox *sandbox.Spec
	// Missing is what the worktree lacks; nil if lookups are not watched.
	Missing *lookups.Missing
}

// order is each further message.
type order struct {
	Abort bool
	// Exceeded is what the step has done that its limits forbid.
	Exceeded string
	// Next is the next step of a session. Its sandbox is the first one's.
	Next *plan
}

// report is what a supervisor sends: Unfit, and then nothing; or Started for
// each command, and then Finished. A session that is ended between two steps sends
// Finished once more.
type report struct {
	// Unfit is why this isolation cannot be had here. Nothing was run.
	Unfit string `json:",omitempty"`
	// Short is set beside Unfit if the reason may go by itself, see Result.Short.
	Short bool `json:",omitempty"`
	// Started is a command's process id, in the supervisor's PID namespace,
	// which is also the id of its session.
	Started int `json:",omitempty"`
	// Command is the name of the one that is about to start.
	Command  string   `json:",omitempty"`
	Finished *verdict `json:",omitempty"`
	// GoesOn is set beside Finished if the session does: another step may follow.
	GoesOn bool `json:",omitempty"`
}

// verdict is the part of a Result that the supervisor knows.
type verdict struct {
	Outcome       Outcome
	Commands      []CommandResult
	FailedCommand string
	Reason        string
	Leftovers     int
	// Exceeded is set if the step met one of its limits.
	Exceeded bool
	// Short is that of Result.
	Short   bool
	Lookups []lookups.Lookup
}
