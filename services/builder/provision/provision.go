// Package provision computes all that a step is given besides its tree, from its target's definition and the queue's
// settings: PATH and variables, scratch folders, caches, secrets, and what its sandbox shows. Nothing comes from the environment
// of the service. Whatever else a step is to have belongs here too, so that one package shows all of it.
package provision

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/platform/sandbox"
	"landfall.build/services/builder/execution"
)

// Step is one target version that is to be run for a queue.
type Step struct {
	Queue configuration.Queue
	// Target is what is verified. One without a name stands for a group of them.
	Target targets.Target
	// Scratch is execution.Request.ScratchDir.
	Scratch string
	// Limit bounds each command that has no shorter time limit of its own; 0 means none.
	Limit time.Duration
	// ContainerRuntime is the path of docker or podman; "" is the one on PATH of steps, if any.
	ContainerRuntime string
	// Secrets has the values of SecretNames.
	Secrets map[string][]byte
	// Isolated is set if the system has a sandbox.
	Isolated bool
	// Network is what it reaches if it is isolated.
	Network sandbox.Network
	// Hide are folders and files that no step sees.
	Hide []string
	// Caches has the folders of those caches of CacheNames that the step is given, by name.
	Caches map[string]string
	// Layered are those of Caches that the request gives it as folders of layers.
	Layered map[string]bool
	// Paths are further folders that the step is given.
	Paths []string
}

// CacheNames returns the caches that the step's commands ask for, and those that the queue's adapters need.
func CacheNames(queue configuration.Queue, target targets.Target) []string {
	names := slices.Clone(queue.CachesOf())
	for _, c := range target.Commands {
		names = append(names, c.Needs.Caches...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// SecretNames returns the secrets that the step's commands name.
func SecretNames(target targets.Target) []string {
	var names []string
	for _, c := range target.Commands {
		names = append(names, c.Needs.Secrets...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Fill puts all that the step is given into a request: commands with their environments, scratch folders, paths and secrets.
func (s Step) Fill(r *execution.Request) {
	r.ScratchDir = s.Scratch
	if r.ContainerRuntime = s.ContainerRuntime; r.ContainerRuntime == "" {
		r.ContainerRuntime = execution.FindContainerRuntime(s.Queue.Steps.Environment.Path)
	}
	r.Paths = slices.Clone(s.Paths)
	for _, name := range slices.Sorted(maps.Keys(s.Caches)) {
		if !s.Layered[name] {
			r.Paths = append(r.Paths, s.Caches[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		asFile := s.Queue.Steps.Secrets[name].As != configuration.AsVariable
		r.Secrets = append(r.Secrets, execution.Secret{Name: name, Value: s.Secrets[name], File: asFile})
	}
	if s.Sandboxed() {
		spec := s.Sandbox()
		r.Sandbox = &spec
	}
	for _, c := range s.Target.Commands {
		limit := s.Limit
		if c.Timeout > 0 && (limit == 0 || c.Timeout < limit) {
			limit = c.Timeout
		}
		r.Commands = append(r.Commands, execution.Command{
			Name: c.Name, Argv: c.Argv, Dir: c.Dir, Timeout: limit, Environment: s.environment(c), OfTree: s.ofTree(c), Services: servicesOf(c), Image: c.Needs.Image,
		})
	}
}

// Sandboxed reports whether the step runs in a sandbox.
func (s Step) Sandboxed() bool {
	isolation := s.Queue.Steps.Isolation
	return isolation == configuration.IsolationRequired || s.Isolated && isolation != configuration.IsolationOff
}

// Sandbox returns what the step sees besides its tree and what else the request gives it.
func (s Step) Sandbox() sandbox.Spec {
	home, _ := os.UserHomeDir() // "" for a user without a home
	return sandbox.Spec{
		Read: append(sandbox.ToolPaths(s.Queue.Steps.Environment.Path, home), s.Queue.Steps.Read...),
		// A folder that is missing would fail every step. Left out, it fails only the steps that use it.
		Write:   slices.DeleteFunc(slices.Clone(s.Queue.Steps.Write), func(path string) bool { _, err := os.Stat(path); return err != nil }),
		Hide:    s.Hide,
		Network: s.Network,
		Deny:    s.Queue.Steps.DeniedNetworks(),
	}
}

func servicesOf(c targets.Command) []execution.Service {
	var list []execution.Service
	for _, s := range c.Needs.Services {
		list = append(list, execution.Service{
			Name: s.Name, Argv: s.Argv, Dir: s.Dir, PortVariable: s.PortVariable, HTTP: s.HTTP, Probe: s.Probe, Timeout: s.Timeout,
		})
	}
	return list
}

// environment returns the variables of one command. What stands later wins: caches, what [execution.Environment] sets, the
// queue's variables, the repository's, secrets, the platform's.
func (s Step) environment(c targets.Command) []string {
	variables := s.cacheVariables(c)
	maps.Copy(variables, s.Queue.Steps.Environment.Variables)
	for _, entry := range c.Env {
		name, value, _ := strings.Cut(entry, "=")
		variables[name] = value
	}
	maps.Copy(variables, s.secretVariables(c))
	maps.Copy(variables, s.platform(c))
	home, tmp := execution.ScratchPaths(s.Scratch)
	return execution.Environment(s.Queue.Steps.Environment.Path, home, tmp, variables)
}

// ofTree returns the names of the variables of a command whose values are the repository's.
func (s Step) ofTree(c targets.Command) (names []string) {
	secrets, platform := s.secretVariables(c), s.platform(c)
	for _, entry := range c.Env {
		name, _, _ := strings.Cut(entry, "=")
		_, isSecret := secrets[name]
		if _, isPlatform := platform[name]; !isSecret && !isPlatform {
			names = append(names, name)
		}
	}
	return names
}

func (s Step) cacheVariables(c targets.Command) map[string]string {
	variables := map[string]string{}
	for _, name := range slices.Concat(s.Queue.CachesOf(), c.Needs.Caches) {
		if dir, given := s.Caches[name]; given {
			cache, _ := s.Queue.Steps.Cache(name)
			variables[cache.Variable] = dir
		}
	}
	return variables
}

// secretVariables returns the variables of the secrets that a command names: the value, or the path of a file with it.
func (s Step) secretVariables(c targets.Command) map[string]string {
	variables := map[string]string{}
	for _, name := range c.Needs.Secrets {
		value, given := s.Secrets[name]
		secret := s.Queue.Steps.Secrets[name]
		switch {
		case !given:
		case secret.As == configuration.AsVariable:
			variables[name] = strings.TrimRight(string(value), "\r\n")
		default:
			variables[secret.Variable(name)] = execution.SecretPath(s.Scratch, name)
		}
	}
	return variables
}

// platform returns the variables that name the step itself. A result is shared by all builds that ask for the target version, so
// only what is the same in all of them may be here: no change, build, commit, tree, attempt or worker (decision 0052).
func (s Step) platform(c targets.Command) map[string]string {
	if s.Target.Name == "" {
		return map[string]string{"LANDFALL_QUEUE": s.Queue.Name, "LANDFALL_STEP": c.Name}
	}
	return map[string]string{
		"LANDFALL_QUEUE":       s.Queue.Name,
		"LANDFALL_TARGET":      s.Target.Name,
		"LANDFALL_TARGET_HASH": s.Target.Hash.String(),
		"LANDFALL_STEP":        c.Name,
	}
}
