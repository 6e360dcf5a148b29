package targets

import (
	"slices"
	"time"
)

// Command is one step that verifies a target. Argv is started as it stands,
// never through a shell.
type Command struct {
	// Name is unique within the target and shown to people.
	Name string `json:"name"`
	// Argv is the program and its arguments.
	Argv []string `json:"run"`
	// Dir is the working directory, relative to the repository's root with
	// slashes; empty for the root.
	Dir string `json:"dir,omitempty"`
	// Timeout is the step's own limit; 0 leaves the queue's.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Env holds sorted NAME=value entries that the step sees.
	Env []string `json:"env,omitempty"`
	// Needs is what the step asks of the worker besides.
	Needs Needs `json:"needs,omitzero"`
}

// Needs is what a step asks of whoever runs it. Names are sorted, and mean what
// the queue's configuration says of them.
type Needs struct {
	// Caches are folders that outlive the step.
	Caches []string `json:"caches,omitempty"`
}

// IsZero reports whether a step needs nothing.
func (n Needs) IsZero() bool { return len(n.Caches) == 0 }

func (e *encoding) commands(commands []Command) {
	e.number(uint64(len(commands)))
	for _, c := range commands {
		e.text(c.Name)
		e.texts(c.Argv)
		e.text(c.Dir)
		e.number(uint64(c.Timeout))
		e.texts(c.Env)
	}
	// Commands are the last of a target's own fields. Those that need nothing
	// have the hash that they had before there were needs.
	if !slices.ContainsFunc(commands, func(c Command) bool { return !c.Needs.IsZero() }) {
		return
	}
	for _, c := range commands {
		e.texts(c.Needs.Caches)
	}
}
