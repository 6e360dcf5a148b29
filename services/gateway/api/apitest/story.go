package apitest

import (
	"slices"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// Ref names a change's first revision.
func Ref(change string) *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: change, Revision: 1}
}

// Each method folds what happens to a build or a change, so that tests read as what happened.

// Schedule folds the schedule of a build of a change that assumes others, for these targets.
func (b *Backend) Schedule(queue, build, change string, assumed []string, targets ...string) {
	s := &eventsv1.BuildScheduled{Build: build, Base: Commit("main"), Needed: 0.9, Change: &eventsv1.AssumedChange{Change: Ref(change)}}
	for _, a := range assumed {
		s.Assumed = append(s.Assumed, &eventsv1.AssumedChange{Change: Ref(a)})
	}
	for _, t := range targets {
		s.Targets = append(s.Targets, &eventsv1.TargetVersion{Target: t, Part: 1})
	}
	b.Fold(queue, events.TopicDecisions, &eventsv1.Decision{Position: b.positionNow(), StampUs: b.now(), Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: s}}}})
}

// Prepare folds that a build's tree is made; the version of each target is named for the build.
func (b *Backend) Prepare(queue, build, change string, targets ...string) {
	b.PrepareOwned(queue, build, change, nil, targets...)
}

// PrepareOwned is Prepare for targets that have owners.
func (b *Backend) PrepareOwned(queue, build, change string, owners []string, targets ...string) {
	p := &eventsv1.BuildPrepared{Build: build, Change: Ref(change), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Worker: "w1", StartedUs: b.now(), FinishedUs: b.now()}
	owned := &eventsv1.OwnedVersions{Owners: owners}
	for i, t := range targets {
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: t, Hash: VersionOf(build, t), Part: 1})
		owned.Versions = append(owned.Versions, uint32(i))
	}
	if len(owners) > 0 {
		p.Owned = append(p.Owned, owned)
	}
	b.Fold(queue, events.TopicBuilds, p)
}

// VersionOf is the hash of a target in a build's tree.
func VersionOf(build, target string) string { return events.DeriveID("version", build, target) }

// Finish folds how one attempt at a target of a build ended.
func (b *Backend) Finish(queue, build, target string, attempt uint32, outcome eventsv1.StepOutcome, output, log string) {
	f := &eventsv1.StepFinished{
		Target: target, Hash: VersionOf(build, target), Attempt: attempt, Outcome: outcome, Build: build, Worker: "w1",
		OutputTail: []byte(output), OutputBytes: int64(len(output)), Log: log, StartedUs: b.now(), FinishedUs: b.now() + 250_000,
	}
	if outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
		f.FailedCommand, f.Reason = "test", "test exited with 1"
	}
	b.Fold(queue, events.TopicBuilds, f)
}

// passed returns the attempt by which a target of a build passed last, 1 if none is folded.
func (b *Backend) passed(queue, build, target string) uint32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range slices.Backward(b.queues[queue].folded) {
		if f, is := e.Message.(*eventsv1.StepFinished); is && f.Build == build && f.Target == target && f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			return f.Attempt
		}
	}
	return 1
}

// LandIt folds that the lander lands a change whose targets a build proved.
func (b *Backend) LandIt(queue, change, build string, bypassed []string, targets ...string) {
	commit := Commit("landed " + change)
	var proof []*eventsv1.Proof
	for _, t := range targets {
		proof = append(proof, &eventsv1.Proof{Build: build, Attempt: b.passed(queue, build, t), Version: &eventsv1.TargetVersion{Target: t, Hash: VersionOf(build, t), Part: 1}})
	}
	var past []*eventsv1.ChangeRef
	for _, id := range bypassed {
		past = append(past, Ref(id))
	}
	b.Fold(queue, events.TopicChanges, &eventsv1.LandIntended{Change: Ref(change), Decision: "land-" + change, Base: Commit("main"), Commits: []string{commit}, Proof: proof, StampUs: b.now()})
	b.Fold(queue, events.TopicChanges, &eventsv1.ChangeLanded{Change: Ref(change), Decision: "land-" + change, Base: Commit("main"), Commits: []string{commit}, Tree: Commit("tree"), Proof: proof, Bypasses: past, StampUs: b.now()})
}

// Reject folds that a change is rejected because a target of a build failed.
func (b *Backend) Reject(queue, change, build, target string, attempt uint32) {
	b.Fold(queue, events.TopicChanges, &eventsv1.ChangeRejected{Change: Ref(change), Decision: "reject-" + change, Base: Commit("main"), StampUs: b.now(), Reason: &eventsv1.Reason{
		Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: "Step " + target + " failed on the mainline as it stands.",
		Failed: []*eventsv1.Proof{{Build: build, Attempt: attempt, Version: &eventsv1.TargetVersion{Target: target, Hash: VersionOf(build, target), Part: 1}}},
	}})
}

// Estimate folds when a change is expected to be decided, in minutes after Start: at the five percentiles of the
// event; without any, why there is no estimate.
func (b *Backend) Estimate(queue, change, unknown string, minutes ...int64) {
	e := &eventsv1.Estimate{Change: Ref(change), Lands: 0.9, Unknown: unknown}
	for i, at := range []*int64{&e.P5Us, &e.P25Us, &e.P50Us, &e.P75Us, &e.P95Us} {
		if i < len(minutes) {
			*at = Start.UnixMicro() + minutes[i]*60_000_000
		}
	}
	b.Fold(queue, events.TopicPriorities, &eventsv1.Priority{StampUs: b.now(), Estimates: &eventsv1.Estimates{Moved: []*eventsv1.Estimate{e}}})
}

// Profile folds what is predicted, at the next second. What is scheduled and decided next is based on it.
func (b *Backend) Profile(queue string, p *eventsv1.Profile) {
	b.mu.Lock()
	b.position++
	p.Position, p.StampUs = b.position, Start.UnixMicro()+b.offset*1_000_000
	b.mu.Unlock()
	b.Fold(queue, events.TopicProfiles, p)
}

// Graph folds a delta of the speculation graph.
func (b *Backend) Graph(queue string, d *eventsv1.GraphDelta) {
	b.Profile(queue, &eventsv1.Profile{Delta: d})
}

// Decide folds a decision to land a change.
func (b *Backend) Decide(queue, change string) {
	d := &eventsv1.LandDecided{Change: Ref(change), Decision: "land-" + change, Why: "every path that can still come about is green"}
	b.Fold(queue, events.TopicDecisions, &eventsv1.Decision{Position: b.positionNow(), StampUs: b.now(), Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: d}}}})
}

func (b *Backend) positionNow() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.position
}

func (b *Backend) now() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Start.UnixMicro() + b.offset*1_000_000
}
