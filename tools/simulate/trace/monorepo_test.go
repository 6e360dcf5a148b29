package trace

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func drawnRepository() Monorepo {
	p := PinnedPaper()
	p.Median, p.P95, p.Shortest, p.Longest = 15*time.Second, time.Minute, time.Second, 10*time.Minute
	return PinnedMonorepo(p)
}

func TestADrawnRepositoryHasTheSizesThatItSays(t *testing.T) {
	m := drawnRepository()
	m.Changes = 20_000
	changes := all(t, m.Start())
	var sizes []int
	var took []int64
	failed := 0
	for _, c := range changes {
		sizes = append(sizes, len(c.Targets))
		took = append(took, c.Steps...)
		var sum int64
		for _, s := range c.Steps {
			sum += s
		}
		if sum != c.Duration || !slices.IsSorted(c.Targets) || len(slices.Compact(slices.Clone(c.Targets))) != len(c.Steps) || len(c.BreaksAt) != len(c.Breaks) {
			t.Fatalf("%+v", c)
		}
		if !slices.Contains(c.Targets, c.Fails) {
			t.Fatalf("%s fails in %d, which is none of its targets", c.ID, c.Fails)
		}
		if !c.Green {
			failed++
		}
	}
	slices.Sort(sizes)
	slices.Sort(took)
	at := func(p float64) float64 { return float64(sizes[int(p*float64(len(sizes)))]) }
	seconds := func(p float64) float64 { return float64(took[int(p*float64(len(took)))]) / 1e6 }
	for _, x := range []struct{ is, want, within float64 }{
		{at(0.5), 30, 2}, {at(0.975), 494, 40}, {seconds(0.5), 15, 1.5}, {seconds(0.95), 60, 6}, {float64(failed) / float64(len(changes)), 0.06, 0.01},
	} {
		if math.Abs(x.is-x.want) > x.within {
			t.Errorf("%v, should be %v", x.is, x.want)
		}
	}
}

// Whether two meet, and where they break, against the sets of their targets.
func TestInADrawnRepositoryTwoMeetInWhatTheyShare(t *testing.T) {
	m := drawnRepository()
	m.Changes, m.True, m.Targets = 300, 0.3, 700
	tr := m.Start()
	var before []*Change
	pairs, broken := 0, 0
	for _, c := range all(t, tr) {
		for _, k := range before {
			shared := slices.ContainsFunc(c.Targets, func(x int) bool { return slices.Contains(k.Targets, x) })
			if tr.Meet(k, c) != shared {
				t.Fatalf("%s and %s meet: %v", k.ID, c.ID, !shared)
			}
			if shared {
				pairs++
			}
		}
		for i, b := range c.Breaks {
			broken++
			if x := c.BreaksAt[i]; !slices.Contains(c.Targets, x) || !slices.Contains(before[b].Targets, x) {
				t.Fatalf("%s breaks with %d in %d, which they do not share", c.ID, b, x)
			}
		}
		before = append(before, c)
	}
	if pairs < 1000 || broken < 50 {
		t.Errorf("%d pairs meet and %d break; the test shows nothing", pairs, broken)
	}
}

// Commits on a graph in steps: each target that a commit affects is a step, and commits that affect none are left out.
func TestCommitsInStepsHaveAStepForEachTarget(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n", "a/a.go": "package a\n", "b/b.go": "package b\n\nimport _ \"example.com/m/a\"\n", "b/b_test.go": "package b\n",
	} {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, err := Imports(folder)
	if err != nil {
		t.Fatal(err)
	}
	commits := []Commit{{ID: "1", At: 1, Affected: 3, Folders: []string{"a"}}, {ID: "2", At: 2}, {ID: "3", At: 3, Affected: 2, Folders: []string{"b"}}}
	r := OnGraph(commits, g, time.Second, time.Minute).InSteps(drawnRepository().Paper)
	r.Seed, r.Rate = 1, 60
	tr := r.Start()
	list := all(t, tr)
	if len(list) != 2 || len(list[0].Steps) != 3 || len(list[1].Steps) != 2 || list[0].Number != 0 || list[1].Number != 1 {
		t.Fatalf("%+v", list)
	}
	if !tr.Meet(list[0], list[1]) || list[1].Duration != list[1].Steps[0]+list[1].Steps[1] {
		t.Errorf("%+v and %+v", list[0], list[1])
	}
	if ran := tr.(Remembering).Ran(); len(ran) != 3 || ran[0].Duration < 1e6 {
		t.Errorf("%+v", ran)
	}
}
