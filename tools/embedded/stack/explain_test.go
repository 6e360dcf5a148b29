package stack_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
)

// explained asks for a change's full explanation, and holds the factors of each build to the numbers by which it was ranked.
func explained(t *testing.T, c *client.Client, change string) *view.Full {
	t.Helper()
	// Topics are read side by side: the schedule of a build may have been read before what it rests on.
	read := func(f *view.Full) bool {
		return !slices.ContainsFunc(f.Builds, func(b view.BuildReasons) bool { return b.Position == 0 || b.Position > f.Position })
	}
	e, err := c.Explain(t.Context(), queue, change, true)
	for began := time.Now(); err == nil && !read(e.Full) && time.Since(began) < patience; {
		e, err = c.Explain(t.Context(), queue, change, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e.Full == nil || e.Full.Omitted != "" {
		t.Fatalf("%s is explained by %+v", change, e.Full)
	}
	for _, b := range e.Full.Builds {
		if b.Then == nil {
			t.Fatalf("nothing is known of what build %s of %s was scheduled on: %+v", b.Build, change, b)
		}
		needed, likely := 1.0, 1.0
		for _, f := range b.Then.Factors {
			needed *= f.Factor
			likely *= f.Probability
		}
		value := b.Then.Benefit * b.Then.Soon * likely
		if b.Then.Rule != "" {
			value = 1
		}
		if math.Abs(needed-b.Needed) > 1e-9 || math.Abs(value-b.Then.Value) > 1e-9 || math.Abs(b.Then.InPool-b.Value) > 1e-9 {
			t.Errorf("build %s of %s was ranked with %g and %g, and is explained by %+v", b.Build, change, b.Needed, b.Value, b.Then)
		}
	}
	return e.Full
}

// TestEveryBuildAndDecisionIsExplainedInFull, while it runs and when all is over: by real services, from a real log, and after a
// restart the same.
func TestEveryBuildAndDecisionIsExplainedInFull(t *testing.T) {
	together(t)
	r := newRepository(t)
	g := newGate(t)
	r.step("f0", g.await())
	config := configured(t, r, t.TempDir())
	s, c := start(t, config)
	defer func() { s.Close() }()
	r.branch("one", "f0/one.txt", "1\n")
	r.branch("two", "f0/two.txt", "2\n")
	land(t, c, "one", "one")
	until(t, c, "one", func(v view.Change) bool { return v.RunningBuilds > 0 })
	land(t, c, "two", "two")
	until(t, c, "two", func(v view.Change) bool { return v.RunningBuilds > 0 && v.Builds[0].State == view.BuildRunning })

	f := explained(t, c, "two")
	if f.Prediction == nil || f.Prediction.SuccessFrom != "prior" || f.Prediction.Success <= 0 || f.Prediction.DurationMean <= 0 {
		t.Errorf("of two is predicted %+v", f.Prediction)
	}
	v := f.Verdict
	if v == nil || v.Decision != "wait" || !slices.Equal(v.Ahead, []string{"one"}) || v.Open != 2 || len(v.Paths) != 2 || !slices.Equal(v.Paths[0].Outstanding, []string{"//f0"}) {
		t.Fatalf("it would take %+v to decide two", v)
	}
	if first := f.Builds[0]; !slices.Contains(v.Paths[0].Builds, first.Build) && !slices.Contains(v.Paths[1].Builds, first.Build) {
		t.Errorf("no path waits for %s: %+v", first.Build, v.Paths)
	}
	for _, b := range f.Builds {
		if b.Now == nil && b.State == view.BuildRunning {
			t.Errorf("what %+v is worth now is not known", b)
		}
		terms := b.Then.Factors[0].Terms
		if len(terms) != 1 || terms[0].Says != "success of one" || terms[0].From != "prior" {
			t.Errorf("the factor of one rests on %+v", terms)
		}
	}
	for _, x := range f.Ranked {
		if x.Worth == nil || math.Abs(x.Worth.Value-x.Value) > 1e-9 {
			t.Errorf("what is ranked with %g is worth %+v", x.Value, x.Worth)
		}
	}
	g.open(t)
	for _, name := range []string{"one", "two"} {
		if v := settled(t, c, name); v.State != view.StateLanded {
			t.Fatalf("%s is %s: %s", name, v.State, v.Why)
		}
	}
	f = explained(t, c, "two")
	if f.Verdict != nil || len(f.Ranked) != 0 || len(f.Decisions) == 0 {
		t.Fatalf("what landed is explained by %+v", f)
	}
	last := f.Decisions[len(f.Decisions)-1]
	if last.Decision != view.StateLanded || last.Then == nil || last.Then.Decision != "land" || last.Then.Green == 0 ||
		len(last.Then.Paths[0].Proof) != 1 || last.Then.Paths[0].Proof[0].Build == "" || last.Then.Paths[0].Proof[0].Target != "//f0" {
		t.Errorf("two was decided on %+v, %+v", last, last.Then)
	}
	s.Close()
	s, c = start(t, config)
	until(t, c, "two", func(v view.Change) bool { return v.State == view.StateLanded })
	again := explained(t, c, "two")
	if again.At, again.Position = f.At, f.Position; !reflect.DeepEqual(f, again) {
		was, _ := json.Marshal(f)
		is, _ := json.Marshal(again)
		t.Errorf("after a restart two is explained by\n%s\nbefore\n%s", is, was)
	}
}
