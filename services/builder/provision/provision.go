// Package provision computes all that a step is given besides its tree, from its target's definition and the queue's
// settings: PATH and variables, and where its scratch folders are. Nothing comes from the environment of the
// service. What else a step gets is added here, so that it can be read in one place.
package provision

import (
	"maps"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/services/builder/execution"
)

// Step is one target version that is to be run for a queue.
type Step struct {
	// Queue is the queue's name.
	Queue string
	// Settings are the queue's.
	Settings configuration.Steps
	Target   targets.Target
	// Scratch is execution.Request.ScratchDir.
	Scratch string
	// Limit bounds each command that has no shorter time limit of its own; 0 means none.
	Limit time.Duration
}

// Commands returns the commands of the step with all that each is given.
func (s Step) Commands() []execution.Command {
	var list []execution.Command
	for _, c := range s.Target.Commands {
		limit := s.Limit
		if c.Timeout > 0 && (limit == 0 || c.Timeout < limit) {
			limit = c.Timeout
		}
		list = append(list, execution.Command{Name: c.Name, Argv: c.Argv, Dir: c.Dir, Timeout: limit, Environment: s.environment(c)})
	}
	return list
}

// environment returns the variables of one command: what [execution.Environment] sets, the queue's variables, the
// repository's, which win over these, and the platform's, which win over all.
func (s Step) environment(c targets.Command) []string {
	variables := map[string]string{}
	maps.Copy(variables, s.Settings.Environment.Variables)
	for _, entry := range c.Env {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	maps.Copy(variables, s.platform(c))
	home, tmp := execution.ScratchPaths(s.Scratch)
	return execution.Environment(s.Settings.Environment.Path, home, tmp, variables)
}

// platform returns what a step is told of itself. A result is shared by all builds that ask for the target version, so
// only what is the same in all of them may be here: no change, build, commit, tree, attempt or worker (decision 0052).
func (s Step) platform(c targets.Command) map[string]string {
	return map[string]string{
		"LANDFALL_QUEUE":       s.Queue,
		"LANDFALL_TARGET":      s.Target.Name,
		"LANDFALL_TARGET_HASH": s.Target.Hash.String(),
		"LANDFALL_STEP":        c.Name,
	}
}
