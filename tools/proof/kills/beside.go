package kills

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/events"
	"landfall.build/tools/pipeline"
	"landfall.build/tools/proof/kills/fleet"
	"landfall.build/tools/proof/kills/plan"
)

// release is a command, and what it calls itself.
type release struct{ binary, version string }

// checkBeside asks the command of the other release for its version. The log tells who wrote a record by the versions in claims, so they
// have to differ.
func (r *run) checkBeside(ctx context.Context) (err error) {
	if r.beside, err = filepath.Abs(r.beside); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, r.beside, "version", "--json").Output()
	if err != nil {
		return fmt.Errorf("--beside: %s does not say its version: %w", r.beside, err)
	}
	var said struct{ Version string }
	if err := json.Unmarshal(out, &said); err != nil || said.Version == "" {
		return fmt.Errorf("--beside: %s says %q, which is no version", r.beside, strings.TrimSpace(string(out)))
	}
	if said.Version == r.version {
		return fmt.Errorf("--beside: both commands call themselves %s, so the log cannot tell them apart", r.version)
	}
	r.besideVersion = said.Version
	return nil
}

// releases returns what a round begins with, and what its processes are replaced by. Rounds take turns: the first upgrades and goes back.
func (r *round) releases() (first, second release) {
	first = release{r.run.binary, r.run.version}
	if r.run.beside == "" {
		return first, first
	}
	second = release{r.run.beside, r.run.besideVersion}
	if r.number%2 == 1 {
		return second, first
	}
	return first, second
}

// replace replaces the processes of services, and of the embedded broker, one by one by the second release, and then by the first again. Once
// calm ends it does not wait between them.
func (r *round) replace(calm context.Context, f *fleet.Fleet, b *brokers) error {
	first, second := r.releases()
	for pass, by := range []release{second, first} {
		argv := r.members(by)
		if b.argv != nil {
			argv[b.names[0]] = b.argv(by.binary)
		}
		for _, next := range plan.Replacements(r.seed+uint64(pass), slices.Sorted(maps.Keys(argv))) {
			sleep(calm, next.Wait)
			r.logger.Info("replace", "target", next.Target, "version", by.version)
			if err := f.Replace(next.Target, argv[next.Target]...); err != nil {
				return err
			}
			r.counts.replacements.Add(1)
		}
	}
	return nil
}

// unclaimed returns a sentence for each service that wrote nothing as one of the two releases: that round has shown less than it seems to.
func unclaimed(of map[string]map[string]int, first, second release) (problems []string) {
	for _, service := range claiming {
		for _, version := range []string{first.version, second.version} {
			if of[service][version] == 0 {
				problems = append(problems, fmt.Sprintf("no %s of version %s has owned the queue's partition", service, version))
			}
		}
	}
	return problems
}

// members returns how a release runs each instance of a service, by their names in the fleet.
func (r *round) members(of release) map[string][]string {
	argv := map[string][]string{}
	for _, service := range pipeline.Services() {
		for _, instance := range instances {
			argv[member(service, instance)] = []string{of.binary, service, "--config", r.place.configFile(instance), "--instance", instance, "--log-level", "info"}
		}
	}
	return argv
}

// claiming are the services of a round that claim partitions.
var claiming = []string{
	events.ServiceEnumerator, events.ServiceProfiler, events.ServicePrioritizer, events.ServiceSelector, events.ServiceLander, events.ServiceOutcomes,
}
