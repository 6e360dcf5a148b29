package steps

import (
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// useful computes from the whole history which versions were named, in the order of their last mentions, and which are of
// use to something pending.
func (t *twin) useful() (named []Version, useful map[Version]bool) {
	useful = map[Version]bool{}
	mention := func(v Version) {
		named = append(slices.DeleteFunc(named, func(o Version) bool { return o == v }), v)
	}
	trees := map[string]map[Version]bool{} // of each pending change
	mainline := map[string]Version{}
	line := lineup.New()
	for _, m := range t.history {
		switch m := m.(type) {
		case *eventsv1.BuildPrepared:
			for _, named := range m.Versions {
				if named.Trivial || named.Absent {
					continue
				}
				v := Version{Target: named.Target, Hash: named.Hash}
				mention(v)
				switch {
				case m.Change == nil:
					mainline[v.Target] = v
				case line.PendingAt(m.Change) != nil:
					trees[m.Change.Change][v] = true
				}
			}
		case *eventsv1.StepFinished:
			mention(Version{Target: m.Target, Hash: m.Hash})
		case *eventsv1.EvidenceForgotten:
			for _, v := range m.Versions {
				named = slices.DeleteFunc(named, func(o Version) bool { return o == Version{Target: v.Target, Hash: v.Hash} })
			}
		default:
			effect := line.Apply(m, 0)
			if effect.Left != nil {
				delete(trees, effect.Left.ID())
			}
			if effect.Entered != nil {
				trees[effect.Entered.ID()] = map[Version]bool{}
			}
			if f, is := m.(*eventsv1.ChangeLanded); is && effect.Applied {
				delete(mainline, f.Proof[0].Version.Target)
			}
		}
	}
	for _, versions := range trees {
		for v := range versions {
			useful[v] = true
		}
	}
	for _, v := range mainline {
		useful[v] = true
	}
	now := t.now()
	for v := range now.leases {
		useful[v] = true
	}
	for _, b := range now.live() {
		for _, v := range b.asks {
			useful[v] = true
		}
	}
	return named, useful
}

// TestOnlyWhatNobodyPendingHasIsForgettable, against the whole history.
func TestOnlyWhatNobodyPendingHasIsForgettable(t *testing.T) {
	seed := seedtest.Of(t)
	listed := 0
	for run := range uint64(200) {
		h := &history{r: rand.New(rand.NewPCG(seed, run)), clock: 1000, treesOf: true}
		q, naive := New(), &twin{}
		for step := range 60 {
			m := h.next()
			if m == nil {
				continue
			}
			q.Apply(m, Origin{})
			naive.history = append(naive.history, m)
			named, useful := naive.useful()
			want := slices.DeleteFunc(slices.Clone(named), func(v Version) bool { return useful[v] })
			got := q.Forgettable(0)
			if !slices.Equal(got, want) || q.Remembered() != len(named) {
				t.Fatalf("run %d, step %d (%v): %v may be forgotten of %d, want %v of %d", run, step, m, got, q.Remembered(), want, len(named))
			}
			listed += len(got)
			keep := h.r.IntN(6)
			if got, want := q.Forgettable(keep), want[:max(0, len(want)-keep)]; !slices.Equal(got, want) {
				t.Fatalf("run %d, step %d: %v may be forgotten with %d kept, want %v", run, step, got, keep, want)
			}
		}
	}
	if listed == 0 {
		t.Error("nothing may ever be forgotten")
	}
}

// TestWhatIsForgottenWhileItIsMadeKeepsItsNumber: its lease is extended as before.
func TestWhatIsForgottenWhileItIsMadeKeepsItsNumber(t *testing.T) {
	q, v := New(), evidence.Version{Target: "//a", Hash: "h"}
	lease := &eventsv1.StepLeased{Target: v.Target, Hash: v.Hash, Attempt: 1, Lease: "l", UntilUs: 10}
	q.Apply(lease, Origin{})
	q.Apply(&eventsv1.StepFinished{Target: "//b", Hash: "h", Attempt: 7}, Origin{})
	q.Apply(evidence.ForgottenRecord([]Version{{Target: "//b", Hash: "h"}}), Origin{})
	lease.UntilUs = 20
	q.Apply(lease, Origin{})
	if l := q.Leases(); len(l) != 1 || l[0].UntilUs != 20 {
		t.Errorf("the leases are %+v", l)
	}
	if n := q.ledger.NextAttempt(Version{Target: "//b", Hash: "h"}); n != 8 {
		t.Errorf("the next attempt at what was forgotten is number %d, want 8", n)
	}
}
