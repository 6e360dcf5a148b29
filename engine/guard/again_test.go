package guard_test

import (
	"strings"
	"testing"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/guard"
	eventsv1 "landfall.build/events/v1"
)

// TestM23cTheBaseHasToPassAfterTheFailure: a change is rejected once one of its red targets has passed on the mainline since it failed
// with the change, and one target at a time is run there again.
func TestM23cTheBaseHasToPassAfterTheFailure(t *testing.T) {
	at := func(target, hash string) *eventsv1.TargetVersion {
		return &eventsv1.TargetVersion{Target: target, Hash: hash}
	}
	for _, c := range []struct {
		name string
		log  func(l *evidence.Ledger)
		base []*eventsv1.TargetVersion
		// again is the target that is run again, "" if the change is rejected.
		again string
	}{
		{"it passed before", func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "base", passed)
			attemptsAt(l, "//a", "new", failed)
		}, []*eventsv1.TargetVersion{at("//a", "base")}, "//a"},
		{"it passed after", func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "new", failed)
			attemptsAt(l, "//a", "base", passed)
		}, []*eventsv1.TargetVersion{at("//a", "base")}, ""},
		{"it passed before, and that was taken back, and again after", func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "base", passed)
			attemptsAt(l, "//a", "new", failed)
			l.Outdate(evidence.Version{Target: "//a", Hash: "base"}, 1)
			attemptsAt(l, "//a", "base", passed)
		}, []*eventsv1.TargetVersion{at("//a", "base")}, ""},
		{"it failed anew after it passed", func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "new", failed)
			attemptsAt(l, "//a", "base", passed)
			l.Withdraw(evidence.Version{Target: "//a", Hash: "new"}, 1)
			attemptsAt(l, "//a", "new", failed)
		}, []*eventsv1.TargetVersion{at("//a", "base")}, "//a"},
		{"the mainline lacks it", func(l *evidence.Ledger) { attemptsAt(l, "//a", "new", failed) }, nil, ""},
		{"nothing verifies it there", func(l *evidence.Ledger) { attemptsAt(l, "//a", "new", failed) },
			[]*eventsv1.TargetVersion{{Target: "//a", Hash: "base", Trivial: true}}, ""},
		{"of two one passed after", func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "base", passed)
			attemptsAt(l, "//a", "new", failed)
			attemptsAt(l, "//b", "new", failed)
			attemptsAt(l, "//b", "base", passed)
		}, []*eventsv1.TargetVersion{at("//a", "base"), at("//b", "base")}, ""},
		{"of two none did", func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "base", passed)
			attemptsAt(l, "//b", "base", passed)
			attemptsAt(l, "//a", "new", failed)
			attemptsAt(l, "//b", "new", failed)
		}, []*eventsv1.TargetVersion{at("//a", "base"), at("//b", "base")}, "//a"},
	} {
		l := evidence.NewLedger()
		c.log(l)
		candidate := guard.Candidate{Versions: []*eventsv1.TargetVersion{at("//a", "new"), at("//b", "new")}, Base: map[string]*eventsv1.TargetVersion{}}
		for _, b := range c.base {
			candidate.Base[b.Target] = b
		}
		f := guard.Examine(candidate, guard.Evidence{Ledger: l, Policy: &eventsv1.StepPolicy{}, Pushes: directpush.New()})
		reason, refused := guard.MayReject(candidate, f, nil, "")
		if c.again == "" {
			if refused != nil || len(reason.GetFailed()) == 0 {
				t.Errorf("%s: it is not rejected, but refused: %v", c.name, refused)
			}
			continue
		}
		if refused == nil {
			t.Errorf("%s: it is rejected for %v", c.name, reason)
			continue
		}
		if got := refused.BaseOutdated; len(got) != 1 || got[0].Version.Target != c.again || got[0].Attempt != 1 || len(refused.BaseUnproven) != 1 || refused.BaseUnproven[0].Target != c.again {
			t.Errorf("%s: taken back is %v, and to be proven %v", c.name, got, refused.BaseUnproven)
		}
		if !strings.HasPrefix(refused.Message, c.again+" failed, and it has passed on the mainline before that") {
			t.Errorf("%s: %s", c.name, refused.Message)
		}
		if l.TakeBack(refused); l.State(evidence.Version{Target: c.again, Hash: "base"}, &eventsv1.StepPolicy{}) != evidence.Unknown {
			t.Errorf("%s: what was taken back is still known", c.name)
		}
	}
}

// TestM23cAFailureThatTheMainlineSharedIsNotHeldAgainstAChange: the mainline's version failed after the change's did, or just before it, and
// is green again. The change's version runs once more, and counts if it fails then.
func TestM23cAFailureThatTheMainlineSharedIsNotHeldAgainstAChange(t *testing.T) {
	policy := &eventsv1.StepPolicy{}
	base, own := evidence.Version{Target: "//a", Hash: "base"}, evidence.Version{Target: "//a", Hash: "new"}
	for name, log := range map[string]func(l *evidence.Ledger){
		"it failed there later": func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "new", failed)
			attemptsAt(l, "//a", "base", failed)
		},
		"it failed there before": func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "base", failed)
			attemptsAt(l, "//a", "new", failed)
		},
		"it failed there before, after it had passed, and gave no result since": func(l *evidence.Ledger) {
			attemptsAt(l, "//a", "base", passed)
			l.Outdate(base, 1)
			attemptsAt(l, "//a", "base", failed, timedOut)
			attemptsAt(l, "//a", "new", failed)
		},
	} {
		l := evidence.NewLedger()
		log(l)
		l.Withdraw(base, l.NextAttempt(base)-1) // somebody retries another change
		attemptsAt(l, "//a", "base", passed)
		candidate := guard.Candidate{Versions: []*eventsv1.TargetVersion{{Target: "//a", Hash: "new"}}, Base: map[string]*eventsv1.TargetVersion{"//a": {Target: "//a", Hash: "base"}}}
		examine := func() (*eventsv1.Reason, *eventsv1.Refused) {
			return guard.MayReject(candidate, guard.Examine(candidate, guard.Evidence{Ledger: l, Policy: policy, Pushes: directpush.New()}), nil, "")
		}
		_, refused := examine()
		if refused == nil || len(refused.BaseOutdated) != 1 || refused.BaseOutdated[0].Version.Hash != "new" || len(refused.BaseUnproven) > 0 || !strings.Contains(refused.Message, "at that time it failed on the mainline too, which is green again") {
			t.Errorf("%s: it is not run again: %v", name, refused)
			continue
		}
		if l.TakeBack(refused); l.State(own, policy) != evidence.Unknown || l.State(base, policy) != evidence.Green {
			t.Errorf("%s: its version is %v, the mainline's %v", name, l.State(own, policy), l.State(base, policy))
		}
		attemptsAt(l, "//a", "new", failed)
		if _, refused = examine(); refused == nil || len(refused.BaseUnproven) != 1 {
			t.Errorf("%s: the mainline is not run once more: %v", name, refused)
		}
		l.TakeBack(refused)
		attemptsAt(l, "//a", "base", passed)
		if reason, refused := examine(); refused != nil || len(reason.Failed) != 1 || reason.Failed[0].Attempt != 2 {
			t.Errorf("%s: it is not rejected for its second attempt: %v, %v", name, reason, refused)
		}
	}
}
