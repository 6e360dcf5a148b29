package builder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/platform/bounds"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/rights"
	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/provision"
)

// isolate finds out whether this system can isolate steps, and logs what it cannot. It fails where a queue requires isolation.
func (s *session) isolate(ctx context.Context) error {
	s.bound()
	s.watch(ctx)
	var wanted []string
	for _, name := range s.Configuration.QueueNames() {
		if s.Configuration.Queues[name].Steps.Isolation != configuration.IsolationOff {
			wanted = append(wanted, name)
		}
	}
	s.makeShared(wanted)
	if len(wanted) < len(s.Configuration.Queues) {
		s.Logger.Warn("steps of some queues may do what the service's user may: steps.isolation is off", "isolated", wanted)
	}
	if len(wanted) == 0 {
		return nil
	}
	lacks := map[sandbox.Network]error{}
	for _, name := range wanted {
		s.networks[name] = sandbox.Network(s.Configuration.Queues[name].Steps.Network)
		for _, network := range []sandbox.Network{s.networks[name], sandbox.Host} {
			if _, known := lacks[network]; !known {
				lacks[network] = execution.Available(ctx, network)
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	problem := lacks[sandbox.Host]
	if problem == nil {
		s.isolated = true
		for _, name := range wanted {
			if err := s.checkNetwork(name, lacks); err != nil {
				return err
			}
			s.tellOfNetwork(name)
			s.warnOfBroker(ctx, name)
			s.warnOfUnseen(name)
		}
		return s.checkCaches(ctx)
	}
	for _, name := range wanted {
		if s.Configuration.Queues[name].Steps.Isolation == configuration.IsolationRequired {
			return fmt.Errorf("queue %s has steps.isolation: required, and this system cannot isolate steps: %w", name, problem)
		}
	}
	s.Logger.Warn("this system cannot isolate steps, so the code of any change can forge results; give the service user namespaces, or set steps.isolation: required",
		"queues", wanted, "problem", problem)
	return nil
}

// bound finds out what keeps steps within bounds on this system, and logs what does not. Without cgroups they are counted, which
// takes what a container or a user without rights has too, so steps.isolation: required does not refuse that (decision 0085).
func (s *session) bound() {
	s.limits = bounds.For(s.Configuration.Builder)
	tree, err := bounds.Delegated()
	if err != nil {
		s.Logger.Warn("this service has no cgroup to divide, so the memory and processes of steps are counted ten times a second, and a step can take too much for as long; delegate one to it",
			"memory", s.limits.Memory, "processes", s.limits.Processes, "problem", err)
		return
	}
	s.cgroups = tree
	s.Logger.Info("each step has a cgroup", "memory", s.limits.Memory, "processes", s.limits.Processes)
}

// watch finds out whether this system can watch what steps of closed workspaces look for, and logs what it cannot.
func (s *session) watch(ctx context.Context) {
	closed := s.Configuration.ClosedQueues()
	if len(closed) == 0 {
		return
	}
	err := execution.LookupsAvailable(ctx)
	if s.watched = err == nil; !s.watched && ctx.Err() == nil {
		s.Logger.Warn("this system cannot watch what steps look for, so a step that passes without a file that its target does not depend on counts as passed; Linux 5.9 can, on amd64 and arm64",
			"queues", closed, "problem", err)
	}
}

// checkCaches finds out whether steps in a sandbox can be given caches in layers.
func (s *session) checkCaches(ctx context.Context) error {
	err := os.MkdirAll(s.caches.Dir, 0o700)
	if err == nil {
		s.caches.Dir, err = filepath.EvalSymlinks(s.caches.Dir)
	}
	if err != nil {
		return fmt.Errorf("the folder of caches: %w", err)
	}
	if err := execution.LayersAvailable(ctx, s.caches.Dir); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.Logger.Warn("this system cannot lay one folder over another, so each step begins with empty caches, but for those whose share is change, queue or worker",
			"folder", s.caches.Dir, "problem", err)
		return nil
	}
	s.caches.Layers = true
	return nil
}

// checkNetwork gives the steps of a queue the machine's network if this system lacks what their sandbox should have, and fails
// where isolation is required.
func (s *session) checkNetwork(name string, lacks map[sandbox.Network]error) error {
	network := s.networks[name]
	problem := lacks[network]
	if problem == nil {
		return nil
	}
	if s.Configuration.Queues[name].Steps.Isolation == configuration.IsolationRequired {
		return fmt.Errorf("queue %s has steps.isolation: required, and this system lacks its steps.network: %s; set steps.network to what it has: %w", name, network, problem)
	}
	s.Logger.Warn("this system lacks the network that steps should have, so they reach its own services; set steps.isolation: required to refuse to run",
		"queue", name, "network", network, "problem", problem)
	s.networks[name] = sandbox.Host
	return nil
}

// tellOfNetwork logs what the steps of a queue reach, and which variables name what they do not.
func (s *session) tellOfNetwork(name string) {
	if s.networks[name] != sandbox.Outbound {
		return
	}
	s.Logger.Info("steps reach the network but not this host", "queue", name)
	steps := s.Configuration.Queues[name].Steps
	filter := outbound.Filter{Deny: steps.DeniedNetworks()}
	for _, variable := range slices.Sorted(maps.Keys(steps.Environment.Variables)) {
		if host := filter.Unreachable(steps.Environment.Variables[variable]); host != "" {
			s.Logger.Warn("steps do not reach the address that a variable names, as it is this host's or denied; if they need what listens there, set steps.network: host",
				"queue", name, "variable", variable, "address", host)
		}
	}
}

// warnOfBroker logs a warning if the steps of a queue reach a broker of another machine that does not authenticate its clients.
func (s *session) warnOfBroker(ctx context.Context, name string) {
	if s.networks[name] != sandbox.Outbound || !s.Configuration.Broker.Open() {
		return
	}
	filter := outbound.Filter{Deny: s.Configuration.Queues[name].Steps.DeniedNetworks()}
	if address := filter.Reached(ctx, s.Configuration.Broker.Brokers); address != "" {
		s.Logger.Warn("steps reach a broker that asks nobody who it is, so the code of any change can write the log; name its network in steps.network_deny, or give services accounts (broker.sasl, broker.tls)",
			"queue", name, "broker", address)
	}
}

// makeShared makes the folders of steps.write: a step in a sandbox cannot make them itself.
func (s *session) makeShared(queues []string) {
	for _, name := range queues {
		for _, path := range s.Configuration.Queues[name].Steps.Write {
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := os.MkdirAll(path, 0o700); err != nil {
				s.Logger.Warn("a folder of steps.write is not there and cannot be made", "queue", name, "folder", path, "error", err)
			}
		}
	}
}

// hide returns what no step sees: the folder of this service, and the files of secrets that the configuration names, those of other services
// too.
func (s *session) hide() []string {
	list := []string{s.dir}
	for _, file := range s.Configuration.SecretFiles() {
		if !strings.Contains(file, configuration.ServicePlaceholder) {
			list = append(list, file)
			continue
		}
		for _, service := range rights.Accounts() {
			list = append(list, strings.ReplaceAll(file, configuration.ServicePlaceholder, service))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// warnOfUnseen logs which variables of a queue name folders that its steps do not see.
func (s *session) warnOfUnseen(name string) {
	queue := s.Configuration.Queues[name]
	spec := provision.Step{Queue: queue, Hide: s.hide()}.Sandbox()
	for _, variable := range slices.Sorted(maps.Keys(queue.Steps.Environment.Variables)) {
		path := queue.Steps.Environment.Variables[variable]
		if _, err := os.Stat(path); filepath.IsAbs(path) && err == nil && !sandbox.Sees(spec, path) {
			s.Logger.Warn("steps do not see the folder that a variable names; give it to them with steps.read, or steps.write", "queue", name, "variable", variable, "folder", path)
		}
	}
}
