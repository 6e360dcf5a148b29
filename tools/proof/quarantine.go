package proof

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/lander"
)

// flakyPolicy quarantines quickly, so that it happens in a short history.
var flakyPolicy = lander.FlakyPolicy{Above: 0.2, Versions: 2, For: time.Hour}

// quarantine draws what operators do about targets that they take for flaky: some are red in truth.
func (s *schedule) quarantine(x *site) {
	if s.tolerance == nil {
		return
	}
	all, of := x.editor.repo.targets, ""
	if x != s.m.sites[0] {
		of = x.queue + " "
	}
	for i := range 1 + s.tolerance.IntN(4) {
		target := all[s.tolerance.IntN(len(all))]
		if s.tolerance.IntN(6) == 0 {
			target = "//n*"
		}
		begin := s.tolerance.Int64N(s.span)
		until := 20_000_000_000 + s.tolerance.Int64N(1<<40)
		s.ops = append(s.ops, operation{at: begin, name: fmt.Sprintf("%squarantine%d", of, i), do: func() {
			x.steer(fmt.Sprintf("quarantine%d", i), &eventsv1.TargetQuarantined{
				Target: target, UntilUs: until, Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_OPERATOR, Who: "sre",
			})
		}})
		if s.tolerance.IntN(2) == 0 {
			end := begin + s.tolerance.Int64N(s.span)
			s.ops = append(s.ops, operation{at: end, name: fmt.Sprintf("%strust%d", of, i), do: func() {
				x.steer(fmt.Sprintf("trust%d", i), &eventsv1.QuarantineEnded{Target: target, Who: "sre"})
			}})
		}
	}
}

// lenience is how many records of landfall.changes an ended quarantine may still cover a landing, or one that has just begun may
// not yet keep from a rejection: the lander's records are written a little after what it read.
const lenience = 100

// toleration follows the quarantines of a queue, as landfall.changes tells them.
type toleration struct {
	// since has when each in force began, over when each that has ended did.
	since, over map[string]int64
	// at has, by decision, the targets that its intention may leave red; byCommit those of its commits.
	at, byCommit map[string]*targets.NamePatterns
}

func newToleration() toleration {
	return toleration{map[string]int64{}, map[string]int64{}, map[string]*targets.NamePatterns{}, map[string]*targets.NamePatterns{}}
}

// fold takes a record that counts.
func (t toleration) fold(m proto.Message, offset int64) {
	switch f := m.(type) {
	case *eventsv1.TargetQuarantined:
		if _, had := t.since[f.Target]; !had {
			t.since[f.Target] = offset
		}
	case *eventsv1.QuarantineEnded:
		if _, had := t.since[f.Target]; had {
			delete(t.since, f.Target)
			t.over[f.Target] = offset
		}
	case *eventsv1.LandIntended:
		names := slices.Collect(maps.Keys(t.since))
		for name, end := range t.over {
			if end >= offset-lenience {
				names = append(names, name)
			}
		}
		t.at[f.Decision] = targets.NewNamePatterns(names)
		for _, c := range f.Commits {
			t.byCommit[c] = t.at[f.Decision]
		}
	}
}

// firm returns the targets that nobody may be rejected for.
func (t toleration) firm(offset int64) *targets.NamePatterns {
	var names []string
	for name, since := range t.since {
		if since < offset-lenience {
			names = append(names, name)
		}
	}
	return targets.NewNamePatterns(names)
}

// covers reports whether a commit may leave a target red. Of the whole repository nothing follows: each target is looked at.
func (t toleration) covers(commit, target string) bool {
	names := t.byCommit[commit]
	return names.Has(target) || names != nil && target == targets.Repository
}

// isTolerated checks a version of a landing that no attempt has proven: its target is quarantined, it was tried, and the landing
// names it.
func (k *checker) isTolerated(f *eventsv1.ChangeLanded, v *eventsv1.TargetVersion) bool {
	if !k.toleration.at[f.Decision].Has(v.Target) || !slices.Contains(f.Quarantined, v.Target) {
		return false
	}
	tried := slices.ContainsFunc(k.attempts[evidence.Version{Target: v.Target, Hash: v.Hash}], func(a attempt) bool { return a.offset < k.proven[f.Decision] })
	if tried {
		k.tally[Tolerated]++
	}
	return tried
}

// everythingQuarantined has every quarantine cover all targets.
func everythingQuarantined(e *journal.Entry) {
	if f, is := e.Message.(*eventsv1.TargetQuarantined); is {
		f = proto.CloneOf(f)
		f.Target = "*"
		e.Message = f
	}
}
