package proof

import (
	"fmt"
	"math"
	"slices"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

func (k *checker) changeRejected(f *eventsv1.ChangeRejected, c *lineup.Change, offset int64) {
	k.tally[Rejected]++
	if o := k.fold.queue.Order(); len(o) > 0 && o[0].Position < c.Position {
		k.tally[EarlyRejections]++
	}
	if why := k.wronglyRejected(f, c, offset); why != "" {
		k.bad(WronglyRejected, "%s rejected on %.8s (%s): %s", refString(f.Change), f.Base, f.Reason.GetMessage(), why)
	} else if f.Reason.GetClass() != eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT {
		k.tooEarly(f, c)
	}
}

// wronglyRejected says why a change should not have been rejected; "" if it is red on the mainline as it
// stood.
func (k *checker) wronglyRejected(f *eventsv1.ChangeRejected, c *lineup.Change, offset int64) string {
	if f.Reason.GetClass() == eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT {
		k.tally[RequirementRejections]++
		if k.fold.queue.MissingRequirement(c) == "" {
			return "all that it requires has landed, or still may"
		}
		return ""
	}
	if f.Base != k.fold.queue.Head {
		return "the mainline stood elsewhere"
	}
	m := k.x.main
	base := m.commits[f.Base].tree
	s := m.repository.study(base, m.repository.editsOf(c.Admission.LandingCommits))
	if s.obstacle != "" || s.invalid {
		return ""
	}
	if target := k.unconfirmed(f, base); target != "" {
		return target + " did not pass there next after the failure, or failed there last before it"
	}
	if s.reddens(base, k.toleration.firm(offset)) != "" {
		return ""
	}
	for _, p := range f.Reason.GetFailed() {
		// Nobody can know that a failure is false but by trying again, as often as the policy says.
		if (k.s.flaky || k.s.worlds != nil) && k.attemptsThat(p.Version, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, math.MaxInt64) > k.x.least.failed && slices.ContainsFunc(s.affected.Targets, func(v *eventsv1.TargetVersion) bool {
			return v.Target == p.Version.Target && plain(v.Hash) == plain(p.Version.Hash)
		}) {
			return ""
		}
	}
	if target := s.isNotGreen(base, nil); target != "" {
		return target + " is red there without it"
	}
	return "it is green there"
}

// unconfirmed returns "" if, for one failed target, the next result on the mainline after its failure is a pass, and the last one before it is
// no failure (M23c); else a target for which that is not so.
func (k *checker) unconfirmed(f *eventsv1.ChangeRejected, base *tree) (target string) {
	for _, p := range f.Reason.GetFailed() {
		b := base.baseVersions([]*eventsv1.TargetVersion{p.Version})[p.Version.Target]
		if b == nil || b.Trivial || b.Target == targets.Repository {
			return "" // it has none there, or that of an older head may stand for it
		}
		failed := int64(0)
		for _, a := range k.attempts[evidence.VersionOf(p)] {
			if a.Attempt == p.Attempt && failed == 0 { // later ones are repeats
				failed = a.offset
			}
		}
		v := evidence.Version{Target: b.Target, Hash: b.Hash}
		var before, since []attempt
		told := map[uint32]bool{}
		for _, a := range k.attempts[v] {
			isFailure := a.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && a.offset > k.forgotten[v] // else nobody may know of it any more
			isRepeat := told[a.Attempt]
			told[a.Attempt] = a.offset > k.forgotten[v]
			switch {
			case isRepeat, a.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED && !isFailure:
			case a.offset < failed:
				before = append(before, a)
			default:
				since = append(since, a)
			}
		}
		if len(since) > 0 && since[0].Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED &&
			(len(before) == 0 || before[len(before)-1].Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED) {
			return ""
		}
		target = b.Target
	}
	return target
}

// wronglyEjected says why a change should not have been ejected by who had landfall.builds up to an offset, "" if it should.
func (k *checker) wronglyEjected(f *eventsv1.ChangeEjected, until int64) string {
	if f.Base != k.fold.queue.Head {
		return "the mainline stood elsewhere"
	}
	if f.Reason.GetClass() == eventsv1.ReasonClass_REASON_CLASS_PUSH_REFUSED {
		if k.x.main.refused[f.Change.Change] == 0 {
			return "the remote never refused it, but for refusing everybody"
		}
		return ""
	}
	if len(f.Reason.GetFailed()) == 0 {
		failed := k.x.main.missed[f.Change.Change]
		for _, at := range k.unprepared[refString(f.Change)] {
			if at < until {
				failed++
			}
		}
		if failed <= k.x.least.couldNotRun {
			return fmt.Sprintf("of its trees %d could not be made, and the policy allows %d", failed, k.x.least.couldNotRun)
		}
		return ""
	}
	for _, p := range f.Reason.Failed {
		timedOut, couldNotRun := k.attemptsThat(p.Version, eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT, until), k.attemptsThat(p.Version, eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN, until)
		if timedOut <= k.x.least.timedOut && couldNotRun <= k.x.least.couldNotRun {
			return p.Version.Target + " was not tried as often as the policy says"
		}
	}
	return ""
}

// attemptsThat counts the attempts at a version that ended so, each once, as told before an offset.
func (k *checker) attemptsThat(v *eventsv1.TargetVersion, outcome eventsv1.StepOutcome, until int64) int {
	attempts := map[uint32]bool{}
	for _, f := range k.attempts[evidence.Version{Target: v.Target, Hash: v.Hash}] {
		if f.Outcome == outcome && f.offset < until {
			attempts[f.Attempt] = true
		}
	}
	return len(attempts)
}
