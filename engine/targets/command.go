package targets

import "time"

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
}

func (e *encoding) commands(commands []Command) {
	e.number(uint64(len(commands)))
	for _, c := range commands {
		e.text(c.Name)
		e.texts(c.Argv)
		e.text(c.Dir)
		e.number(uint64(c.Timeout))
		e.texts(c.Env)
	}
}
