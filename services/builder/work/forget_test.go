package work

import (
	"math/rand/v2"
	"slices"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
)

// useful says naively, from the whole history, which versions were named, in the order of their last mentions, and
// which are of use to something pending.
func (t *twin) useful() (named []Version, useful map[Version]bool) {
	useful = map[Version]bool{}
	mention := func(v Version) {
		named = append(slices.DeleteFunc(named, func(o Version) bool { return o == v }), v)
	}
	type tree struct {
		change   *eventsv1.ChangeRef
		versions []Version
	}
	var trees []tree
	mainline := map[string]Version{}
	left := map[string]uint64{}
	for _, m := range t.history {
		switch m := m.(type) {
		case *eventsv1.BuildPrepared:
			of := tree{change: m.Change}
			for _, named := range m.Versions {
				if named.Trivial || named.Absent {
					continue
				}
				v := Version{Target: named.Target, Hash: named.Hash}
				mention(v)
				of.versions = append(of.versions, v)
				if m.Change == nil {
					mainline[v.Target] = v
				}
			}
			if m.Change == nil || left[m.Change.Change] >= m.Change.Revision {
				continue
			}
			newer := slices.ContainsFunc(trees, func(o tree) bool {
				return o.change.Change == m.Change.Change && o.change.Revision > m.Change.Revision
			})
			if !newer {
				trees = slices.DeleteFunc(trees, func(o tree) bool {
					return o.change.Change == m.Change.Change && o.change.Revision < m.Change.Revision
				})
				trees = append(trees, of)
			}
		case *eventsv1.StepFinished:
			mention(Version{Target: m.Target, Hash: m.Hash})
		case *eventsv1.EvidenceForgotten:
			for _, v := range m.Versions {
				named = slices.DeleteFunc(named, func(o Version) bool { return o == Version{Target: v.Target, Hash: v.Hash} })
			}
		case *eventsv1.ChangeRejected:
			left[m.Change.Change] = max(left[m.Change.Change], m.Change.Revision)
			trees = slices.DeleteFunc(trees, func(o tree) bool {
				return o.change.Change == m.Change.Change && o.change.Revision <= m.Change.Revision
			})
		}
	}
	for _, o := range trees {
		for _, v := range o.versions {
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
		for _, v := range b.order {
			useful[v] = true
		}
	}
	return named, useful
}

// TestOnlyWhatNobodyPendingHasIsForgettable, against the whole history.
func TestOnlyWhatNobodyPendingHasIsForgettable(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
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
				t.Fatalf("seed %d, run %d, step %d (%v): %v may be forgotten of %d, want %v of %d", seed, run, step, m, got, q.Remembered(), want, len(named))
			}
			listed += len(got)
			if kept := q.Forgettable(len(naive.history) * 8); len(kept) > 0 {
				t.Fatalf("seed %d, run %d, step %d: %v may be forgotten, and all are to be kept", seed, run, step, kept)
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
	q.Apply(&eventsv1.EvidenceForgotten{Attempts: 7, Versions: []*eventsv1.TargetVersion{{Target: "//b", Hash: "h"}}}, Origin{})
	lease.UntilUs = 20
	q.Apply(lease, Origin{})
	if l := q.Leases(); len(l) != 1 || l[0].UntilUs != 20 {
		t.Errorf("the leases are %+v", l)
	}
	if n := q.ledger.NextAttempt(Version{Target: "//b", Hash: "h"}); n != 8 {
		t.Errorf("the next attempt at what was forgotten is number %d, want 8", n)
	}
}
