package trace

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// byTarget is the pinned workload with ten targets a change.
func byTarget(seed uint64, changes int, potential float64) Paper {
	p := PinnedPaper()
	p.Seed, p.Changes, p.Potential, p.ByTarget = seed, changes, potential, true
	return p
}

// common is what share means, by hand.
func common(a, b *Change) (list []int) {
	for _, t := range a.Targets {
		if slices.Contains(b.Targets, t) {
			list = append(list, t)
		}
	}
	return list
}

func TestChangesShareTargetsAsOftenAsTheyAreToMeet(t *testing.T) {
	for _, potential := range []float64{0, 0.01, 0.05, 0.2, 0.5, 1} {
		tr := byTarget(7, 1500, potential).Start()
		changes := all(t, tr)
		pairs, met, few := 0, 0, 0
		for i, c := range changes {
			sorted := slices.Clone(c.Targets)
			slices.Sort(sorted)
			if len(slices.Compact(sorted)) != 10 || !slices.Contains(c.Targets, c.Fails) {
				t.Fatalf("potential %v: %s has targets %v and fails in %d", potential, c.ID, c.Targets, c.Fails)
			}
			for _, k := range changes[:i] {
				shared := common(k, c)
				if tr.Meet(k, c) != (len(shared) > 0) {
					t.Fatalf("potential %v: %v and %v", potential, k, c)
				}
				pairs++
				if len(shared) > 0 {
					met++
				}
				if n := len(shared); n > 0 && n <= 3 {
					few++
				}
			}
		}
		if is := float64(met) / float64(pairs); math.Abs(is-potential) > 0.02*potential+0.001 {
			t.Errorf("%v of the pairs meet, should be %v", is, potential)
		}
		if potential == 0.05 && float64(few) < 0.97*float64(met) {
			t.Errorf("%d of %d that meet do so in one to three targets", few, met)
		}
	}
}

func TestATrueConflictIsInATargetOfBoth(t *testing.T) {
	p := byTarget(3, 2000, 0.2)
	p.True = 0.05
	changes := all(t, p.Start())
	n, where := 0, map[int]bool{}
	for _, c := range changes {
		if len(c.BreaksAt) != len(c.Breaks) {
			t.Fatalf("%s breaks with %v, in %v", c.ID, c.Breaks, c.BreaksAt)
		}
		for i, b := range c.Breaks {
			n++
			shared := common(changes[b], c)
			if !slices.Contains(shared, c.BreaksAt[i]) {
				t.Fatalf("%s and %s share %v, and conflict in %d", changes[b].ID, c.ID, shared, c.BreaksAt[i])
			}
			where[slices.Index(c.Targets, c.BreaksAt[i])] = true
		}
	}
	if n < 100 || len(where) != 10 {
		t.Errorf("%d conflicts in %d of ten places show nothing", n, len(where))
	}
}

// Who arrives when, how long it takes and whether it passes is the same with targets and without.
func TestTargetsAlterNothingElse(t *testing.T) {
	with, without := byTarget(5, 400, 0.05), byTarget(5, 400, 0.05)
	without.ByTarget = false
	a, b := all(t, with.Start()), all(t, without.Start())
	for i := range a {
		c := *a[i]
		c.Targets, c.Fails, c.BreaksAt, c.Breaks = nil, 0, nil, b[i].Breaks
		if fmt.Sprint(c) != fmt.Sprint(*b[i]) {
			t.Fatalf("change %d: %v and %v", i, *a[i], *b[i])
		}
	}
}
