package builder

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/steps"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// prepare makes the tree of a build and writes which target versions it has. It needs no lease: every
// instance finds the same, and the first record stands.
func (s *session) prepare(ctx context.Context, queue string, p steps.Preparation) {
	b := p.Build
	record := &eventsv1.BuildPrepared{
		Build: b.GetBuild(), Change: b.GetChange().GetChange(), Base: b.GetBase(),
		Worker: s.Instance, StartedUs: time.Now().UnixMicro(),
	}
	for _, a := range b.GetAssumed() {
		record.Assumed = append(record.Assumed, a.GetChange())
	}
	err := s.fillPatiently(ctx, queue, b, record)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		record.Outcome, record.Message, record.Versions = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE, err.Error(), nil
		s.Logger.Error("a build could not be prepared", "queue", queue, "change", changeOf(b), "build", b.GetBuild(), "error", err)
	}
	if errors.Is(err, errUnusable) {
		e := journal.Entry{Topic: events.TopicDecisions, Partition: s.partitionOf(queue), Offset: p.Origin.Offset,
			Envelope: events.Envelope{Queue: queue, Subject: changeOf(b), Message: b}}
		runner.PutDeadLetter(ctx, s.Log, s.Logger, events.ServiceBuilder, s.Instance, runner.DeadLetter{Entry: e, Reason: fmt.Sprintf("build %s: %v", b.GetBuild(), err)})
	}
	record.FinishedUs = time.Now().UnixMicro()
	s.publishPrepared(ctx, queue, p, record)
}

// publishPrepared writes a preparation unless one has been read by now.
func (s *session) publishPrepared(ctx context.Context, queue string, p steps.Preparation, record *eventsv1.BuildPrepared) {
	wanted := false
	s.shared.read(func() { wanted = s.shared.queue(queue).WantsPreparing(record.Build) })
	if !wanted || s.publish(ctx, queue, changeOf(p.Build), p.Origin.Trace, record) != nil {
		return
	}
	// Until it is read back, the state asks for it.
	s.await(ctx, func() bool { return !s.shared.queue(queue).WantsPreparing(record.Build) })
}

// await waits until a condition, which is called under shared's lock, holds; false if the context ends before.
func (s *session) await(ctx context.Context, holds func() bool) bool {
	for {
		held := false
		changed := s.shared.read(func() { held = holds() })
		if held {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// fillPatiently fills a record, and tries again if that fails for a reason that may go away.
func (s *session) fillPatiently(ctx context.Context, queue string, b *eventsv1.BuildScheduled, record *eventsv1.BuildPrepared) error {
	for try := 0; ; try++ {
		err := s.fill(ctx, queue, b, record)
		if err == nil || errors.Is(err, errUnusable) || errors.Is(err, buildgraph.ErrContained) || ctx.Err() != nil || try >= len(s.pauses) {
			return err
		}
		s.Logger.Warn("a preparation is tried again", "queue", queue, "change", changeOf(b), "build", b.GetBuild(), "error", err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(s.pauses[try]):
		}
	}
}

func (s *session) fill(ctx context.Context, queue string, b *eventsv1.BuildScheduled, record *eventsv1.BuildPrepared) (err error) {
	defer func() {
		if failure := recover(); failure != nil {
			s.Logger.Error("panic in a preparation", "build", b.GetBuild(), "panic", failure, "stack", string(debug.Stack()))
			err = fmt.Errorf("the builder failed: %v", failure)
		}
	}()
	loader := s.graphs[queue]
	if loader == nil {
		return fmt.Errorf("%w: queue %q is not in this builder's configuration", errUnusable, queue)
	}
	a, err := s.assembled(ctx, b)
	if err != nil {
		return err
	}
	if a.conflict != "" {
		record.Outcome, record.Message = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE, a.conflict
		return nil
	}
	record.Tree = a.whole
	record.Outcome = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED
	record.Versions = nil
	record.Needs, record.Claims, record.Owned, record.Groups = nil, nil, nil, nil
	groups := map[string]*eventsv1.StepGroup{}
	settings := s.Configuration.Queues[queue]
	parts, graphs := map[string]buildgraph.Part{}, map[uint32]*targets.Graph{}
	takes := map[string]bool{} // by tree, whether making outputs may take more than a worker
	for _, asked := range b.GetTargets() {
		tree, err := a.tree(asked.GetPart())
		if err != nil {
			return err
		}
		part, had := parts[tree]
		if !had {
			invalid := (*buildgraph.Invalid)(nil)
			if part, invalid, err = loader.Part(ctx, a.repo, tree); err != nil {
				return err
			}
			if invalid != nil {
				valid, err := s.baseIsValid(ctx, loader, a)
				if err != nil {
					return err
				}
				if valid {
					record.Outcome, record.Message = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INVALID, invalid.Message
					record.Versions = nil
					return nil
				}
			}
			parts[tree], takes[tree] = part, makingTakesMore(part, settings)
		}
		if len(part.Graph.Unknown()) > 0 && asked.GetTarget() != targets.Repository {
			// Not "absent", which would pass for verified.
			record.Outcome = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE
			record.Message = fmt.Sprintf("The targets of the tree are not known, %s among them: %s", asked.GetTarget(), part.Graph.Unknown()[0])
			record.Versions = nil
			return nil
		}
		record.Versions = append(record.Versions, part.Version(asked.GetTarget(), asked.GetPart()))
		leaving := part.Graph.Leaving()
		var below []targets.Target
		if takes[tree] { // whoever runs the step may have to make what they leave
			below = leaving.Below(asked.GetTarget())
		}
		labels := labelsFor(settings, asked.GetTarget())
		for _, t := range below {
			labels = append(labels, labelsFor(settings, t.Name)...)
		}
		if claims := claimsOf(part, asked.GetTarget(), below, labels); claims != nil {
			claims.Version = uint32(len(record.Versions) - 1)
			record.Claims = append(record.Claims, claims)
		}
		target, _ := part.Target(asked.GetTarget())
		if key, results := groupOf(target); key != "" && !leaving.Given(asked.GetTarget()) && settings.Steps.Groups != configuration.GroupsOff {
			key = fmt.Sprintf("%d %q %s", asked.GetPart(), labels, key)
			if groups[key] == nil {
				groups[key] = &eventsv1.StepGroup{Ordered: results.Ordered()}
				record.Groups = append(record.Groups, groups[key])
			}
			groups[key].Versions = append(groups[key].Versions, uint32(len(record.Versions)-1))
		}
		graphs[asked.GetPart()] = part.Graph
	}
	record.Groups = slices.DeleteFunc(record.Groups, func(g *eventsv1.StepGroup) bool { return len(g.Versions) == 1 })
	record.Needs = needsOf(record.Versions, graphs)
	record.Owned = s.ownedOf(ctx, loader, a, record.Versions, graphs)
	return nil
}

// makingTakesMore reports whether making the outputs of any target of a tree takes more than a worker.
func makingTakesMore(part buildgraph.Part, settings configuration.Queue) bool {
	return slices.ContainsFunc(part.Graph.Leaving().All(), func(t targets.Target) bool {
		return claimsOf(part, t.Name, nil, labelsFor(settings, t.Name)) != nil
	})
}

// ownedOf returns who owns the targets of versions, by the mainline's tree. It is for people: a build does without it.
func (s *session) ownedOf(ctx context.Context, loader *buildgraph.Loader, a *assembly, versions []*eventsv1.TargetVersion, graphs map[uint32]*targets.Graph) []*eventsv1.OwnedVersions {
	owners, err := loader.Owners(ctx, a.repo, a.base)
	if err != nil {
		s.Logger.Warn("who owns the targets of a build could not be read", "tree", a.base, "error", err)
		return nil
	}
	var all []*eventsv1.OwnedVersions
	places := map[string]*eventsv1.OwnedVersions{}
	for i, v := range versions {
		if v.Trivial || v.Absent {
			continue
		}
		names := owners.Of(graphs[v.Part], v.Target)
		if len(names) == 0 {
			continue
		}
		key := strings.Join(names, " ")
		if places[key] == nil {
			places[key] = &eventsv1.OwnedVersions{Owners: names}
			all = append(all, places[key])
		}
		places[key].Versions = append(places[key].Versions, uint32(i))
	}
	return all
}

// labelsFor returns the labels that the configuration of a queue asks for of the machine that runs a target, sorted.
func labelsFor(queue configuration.Queue, target string) []string {
	var labels []string
	for _, r := range queue.Steps.RunsOn {
		if targets.NewNamePatterns(r.Targets).Has(target) {
			labels = append(labels, r.Labels...)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// claimsOf returns what running a target, and making the outputs of those below it, takes besides a worker, with labels in addition
// to its own; nil for nothing.
func claimsOf(part buildgraph.Part, name string, below []targets.Target, labels []string) *eventsv1.StepClaims {
	target, _ := part.Target(name)
	commands := slices.Clone(target.Commands)
	for _, t := range below {
		commands = append(commands, t.Commands...)
	}
	exclusive, resources, own := targets.Claims(commands)
	if len(exclusive)+len(resources)+len(own)+len(labels) == 0 {
		return nil
	}
	own = append(own, labels...)
	slices.Sort(own)
	claims := &eventsv1.StepClaims{Exclusive: exclusive, Labels: slices.Compact(own)}
	for _, r := range resources {
		claims.Resources = append(claims.Resources, &eventsv1.ResourceAmount{Name: r.Name, Amount: r.Amount})
	}
	return claims
}

// mostNeeds bounds how many dependencies a preparation lists. They order steps and name causes, so a build does without them.
const mostNeeds = 1 << 16

// needsOf returns what each version depends on among those of its landing commit.
func needsOf(versions []*eventsv1.TargetVersion, graphs map[uint32]*targets.Graph) []*eventsv1.VersionNeeds {
	names, places := map[uint32][]string{}, map[uint32][]uint32{}
	for i, v := range versions {
		names[v.Part], places[v.Part] = append(names[v.Part], v.Target), append(places[v.Part], uint32(i))
	}
	all := make([]*eventsv1.VersionNeeds, len(versions))
	for i := range all {
		all[i] = &eventsv1.VersionNeeds{}
	}
	total := 0
	for part, of := range names {
		leaving := graphs[part].Leaving()
		for i, needs := range graphs[part].Among(of, mostNeeds) {
			all[places[part][i]].Given = len(needs) > 0 && leaving.Waits(of[i])
			for _, other := range needs {
				v := all[places[part][i]]
				v.Versions = append(v.Versions, places[part][other])
				total++
			}
		}
	}
	if total == 0 || total > mostNeeds {
		return nil
	}
	return all
}

// baseIsValid reports whether the mainline's definitions are valid. If they are not, those of the build's tree are not held
// against it: the whole repository is one target then.
func (s *session) baseIsValid(ctx context.Context, loader *buildgraph.Loader, a *assembly) (bool, error) {
	_, base, err := loader.Part(ctx, a.repo, a.base)
	if err != nil {
		return false, err
	}
	return base == nil, nil
}
