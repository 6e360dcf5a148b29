package survey

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/snapshottest"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

func surveyed(n int) *eventsv1.MainlineSurveyed {
	f := &eventsv1.MainlineSurveyed{}
	for i := range n {
		f.Targets = append(f.Targets, &eventsv1.TargetVersion{Target: fmt.Sprintf("//t%03d", i), Hash: fmt.Sprint("h", i)})
	}
	return f
}

func all(evidence.Version) bool { return true }

func versionsOf(list []*eventsv1.TargetVersion) []evidence.Version {
	var out []evidence.Version
	for _, v := range list {
		out = append(out, evidence.Version{Target: v.Target, Hash: v.Hash})
	}
	return out
}

// TestM23bEveryTargetIsAskedForOnceAndUntilItIsSettled over random results, landings and observations, held to a map of what is
// left. A snapshot goes on as the survey does.
func TestM23bEveryTargetIsAskedForOnceAndUntilItIsSettled(t *testing.T) {
	r, fields := seedtest.Random(t), snapshottest.New(t)
	for range 100 {
		s, left := New(), map[string]string{}
		f := surveyed(r.IntN(4 * roundTargets))
		s.Begin(f, func(v evidence.Version) bool { return v.Hash != "h3" })
		for _, v := range f.Targets {
			if v.Hash != "h3" {
				left[v.Target] = v.Hash
			}
		}
		s.Begin(surveyed(5*roundTargets), all) // the first counts
		steps := 0
		for ; len(left) > 0; steps++ {
			if steps > 10*len(f.Targets) {
				t.Fatalf("%d of %d targets are left after %d steps, with %v to prove", len(left), len(f.Targets), steps, s.Round())
			}
			round := versionsOf(s.Round())
			if len(round) == 0 || len(round) > roundTargets || !slices.IsSortedFunc(round, func(a, b evidence.Version) int { return len(a.Target) - len(b.Target) }) {
				t.Fatalf("with %d left, the round is %v", len(left), round)
			}
			if !slices.ContainsFunc(round, s.Has) {
				t.Fatalf("nothing of the round is left: %v", round)
			}
			v := round[r.IntN(len(round))]
			name := slices.Sorted(maps.Keys(left))[r.IntN(len(left))]
			switch r.IntN(8) {
			case 0:
				s.Drop(name, "//nobody")
				delete(left, name)
			case 1:
				left[name] = fmt.Sprint(left[name], "'")
				s.Observe(evidence.Version{Target: name, Hash: left[name]})
			case 2:
				s.Pass(evidence.Version{Target: name, Hash: "another"})
				s.Observe(evidence.Version{Target: "//nobody", Hash: "h"})
			default:
				s.Pass(v)
				delete(left, v.Target)
				if slices.ContainsFunc(round, s.Has) && !slices.Equal(versionsOf(s.Round()), round) {
					t.Fatalf("%v passed, and the round was made again before it was over", v)
				}
			}
			if s.Left() != len(left) {
				t.Fatalf("%d are left, want %d", s.Left(), len(left))
			}
			for target, hash := range left {
				if !s.Has(evidence.Version{Target: target, Hash: hash}) {
					t.Fatalf("%s@%s is left, and it does not have it", target, hash)
				}
			}
			if r.IntN(10) == 0 {
				again, err := Restore(snapshottest.ThroughBytes(t, s.Snapshot()))
				if err != nil {
					t.Fatal(err)
				}
				if !proto.Equal(again.Snapshot(), s.Snapshot()) {
					t.Fatalf("restored, it is %v, want %v", again.Snapshot(), s.Snapshot())
				}
				s = again
			}
		}
		if len(s.Round()) > 0 || !s.Known() {
			t.Fatalf("nothing is left, and %v is to be proven", s.Round())
		}
	}
	one := New()
	one.Begin(surveyed(1), all)
	fields.Same(one, one)
	fields.Done()
}

func TestASettledVersionIsFoundAndAClearedSurveyAsksForNothing(t *testing.T) {
	s := New()
	s.Begin(surveyed(3), all)
	settled := s.Settled(func(v evidence.Version) evidence.State {
		if v.Target == "//t001" {
			return evidence.Red
		}
		return evidence.Unknown
	})
	if len(settled) != 1 || settled[0].Target != "//t001" {
		t.Errorf("settled is %v", settled)
	}
	s.Clear()
	if s.Left() != 0 || len(s.Round()) != 0 {
		t.Errorf("%d are left, to prove %v", s.Left(), s.Round())
	}
}

// A target that passed stays in its round, and leaves it when another version comes over it: a build of the round would find that.
func TestWhatPassedLeavesTheRoundWithItsVersion(t *testing.T) {
	for name, leave := range map[string]func(*Survey){
		"something lands or is pushed over it": func(s *Survey) { s.Drop("//t000") },
		"a build of the round is over":         func(s *Survey) { s.End() },
	} {
		s := New()
		s.Begin(surveyed(2), all)
		s.Pass(evidence.Version{Target: "//t000", Hash: "h0"})
		if round := s.Round(); len(round) != 2 {
			t.Fatalf("the round is %v", round)
		}
		leave(s)
		if round := s.Round(); len(round) != 1 || round[0].Target != "//t001" {
			t.Errorf("%s: the round is %v", name, round)
		}
	}
}
