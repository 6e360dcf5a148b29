package stack_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/audit"
)

// TestABuildThatIsCancelledInCIIsRunAgainAndStrandsNobody: somebody ends the step from outside.
func TestABuildThatIsCancelledInCIIsRunAgainAndStrandsNobody(t *testing.T) {
	together(t)
	r, cancelled := newRepository(t), newGate(t)
	r.step("f0", cancelled.once()+" && kill -9 $$; true")
	r.branch("change", "f0/b.txt", "b\n")
	s, c := newPeerStack(t, r)
	land(t, c, "change", "change")
	expect(t, c, "change", "landed")
	outcomes := map[eventsv1.StepOutcome]int{}
	for _, f := range records[*eventsv1.StepFinished](t, s, events.TopicBuilds) {
		outcomes[f.GetOutcome()]++
	}
	if !cancelled.was(t) || outcomes[eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN] != 1 || outcomes[eventsv1.StepOutcome_STEP_OUTCOME_PASSED] == 0 {
		t.Errorf("the steps ended so: %v", outcomes)
	}
}

// TestOneFlakeRejectsNobody: the step fails the first time, and passes when it is run again.
func TestOneFlakeRejectsNobody(t *testing.T) {
	together(t)
	r, failed := newRepository(t), newGate(t)
	r.step("f0", failed.once()+" && exit 1; true")
	r.branch("change", "f0/b.txt", "b\n")
	_, c := newPeerStack(t, r)
	land(t, c, "change", "change")
	expect(t, c, "change", "landed")
	if !failed.was(t) {
		t.Error("nothing flaked")
	}
}

// TestTiesGoByAgeAndNotByTheIdsStringOrder: 12 changes that differ in nothing but their ids, and one worker.
func TestTiesGoByAgeAndNotByTheIdsStringOrder(t *testing.T) {
	together(t)
	const n = 12
	r, all := newRepository(t), newGate(t)
	r.step("f0", all.await())
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Workers = 1
	config.Queues[queue] = q
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	want := []string{"first", "the step of f0"}
	for i := range n {
		name := fmt.Sprint(i + 1)
		r.branch(name, fmt.Sprintf("f0/c%d.txt", i), "x\n")
		land(t, c, name, name)
		want = append(want, name)
	}
	all.open(t)
	for i := range n {
		expect(t, c, fmt.Sprint(i+1), "landed")
	}
	if got := r.mainline(); !slices.Equal(got, want) {
		t.Errorf("landed in the order %v", got)
	}
}

// TestNoBuildIsFundedThatIsHardlyNeeded: eight changes that meet have 255 builds, and there is a worker for 64
// of them; but only a few have a chance of 5 % to be needed.
func TestNoBuildIsFundedThatIsHardlyNeeded(t *testing.T) {
	together(t)
	const n, threshold = 8, 0.05
	r, all := newRepository(t), newGate(t)
	r.step("f0", all.await())
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Workers, q.PoolWorkers, q.Speculation.Threshold = 64, 64, threshold
	config.Queues[queue] = q
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	for i := range n {
		name := fmt.Sprint("c", i)
		r.branch(name, fmt.Sprintf("f0/c%d.txt", i), "x\n")
		land(t, c, name, name)
	}
	for i := range n {
		until(t, c, fmt.Sprint("c", i), func(v view.Change) bool { return len(v.Builds) > 0 || v.State == view.StateLanded })
	}
	all.open(t)
	for i := range n {
		expect(t, c, fmt.Sprint("c", i), "landed")
	}
	for _, p := range records[*eventsv1.Priority](t, s, events.TopicPriorities) {
		listed := p.GetRanking().GetBest()
		for _, splice := range p.GetEdit().GetSplices() {
			listed = append(listed, splice.GetInserted()...)
		}
		for _, b := range listed {
			if b.GetNeeded() < threshold {
				t.Errorf("a build is listed that is needed with %.3f: %v", b.GetNeeded(), b)
			}
		}
	}
	scheduled := 0
	for _, d := range records[*eventsv1.Decision](t, s, events.TopicDecisions) {
		for _, item := range d.GetItems() {
			if b := item.GetBuildScheduled(); b != nil {
				if scheduled++; b.GetNeeded() < threshold && !b.GetIdle() {
					t.Errorf("a build is funded that is needed with %.3f: %v", b.GetNeeded(), b)
				}
			}
		}
	}
	if scheduled < n || scheduled > 64 {
		t.Errorf("%d builds were funded", scheduled)
	}
}

// TestWhatWasNeverBuiltTogetherDoesNotLandTogether: C meets B and B meets A, but C does not meet A. Each of them
// could land on a tree that nobody has built; what landed is held against what was built.
func TestWhatWasNeverBuiltTogetherDoesNotLandTogether(t *testing.T) {
	together(t)
	r, all := newRepository(t), newGate(t)
	r.step("f0", all.await())
	r.step("f1", all.await())
	r.step("f2", all.await(), "//f0", "//f1")
	r.branch("a", "f0/a.txt", "a\n")
	r.git("checkout", "-q", "-B", "b", "main")
	r.write("f0/b.txt", "b\n")
	r.write("f1/b.txt", "b\n")
	r.commit("b")
	r.git("push", "-q", "origin", "b")
	r.git("checkout", "-q", "main")
	r.branch("c", "f1/c.txt", "c\n")
	config := configured(t, r, t.TempDir())
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	for _, name := range []string{"a", "b", "c"} {
		land(t, c, name, name)
	}
	all.open(t)
	for _, name := range []string{"a", "b", "c"} {
		expect(t, c, name, "landed")
	}
	green := map[string]bool{}
	for _, f := range records[*eventsv1.StepFinished](t, s, events.TopicBuilds) {
		if f.GetOutcome() == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			green[f.GetTarget()+" "+f.GetHash()] = true
		}
	}
	mirror, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: r.bare, Dir: filepath.Join(t.TempDir(), "mirror.git"), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer mirror.Close()
	if err := mirror.Fetch(t.Context(), gitrepo.Wanted{}); err != nil {
		t.Fatal(err)
	}
	commits, err := audit.Range(t.Context(), mirror, "main", "", "")
	if err != nil {
		t.Fatal(err)
	}
	infos, err := mirror.CommitInfos(t.Context(), commits[4:])
	if err != nil || len(infos) != 3 {
		t.Fatalf("%d landed, %v", len(infos), err)
	}
	loader := buildgraph.NewLoader(configuration.Queue{Analysis: config.Queues[queue].Analysis}, nil)
	before, _, err := loader.Part(t.Context(), mirror, r.git("rev-parse", "main^{tree}"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for target := range before.Graph.Targets() {
		known[target.Name+" "+target.Hash.String()] = true
	}
	for _, info := range infos {
		part, _, err := loader.Part(t.Context(), mirror, info.Tree)
		if err != nil {
			t.Fatal(err)
		}
		for target := range part.Graph.Targets() {
			if v := target.Name + " " + target.Hash.String(); !known[v] && !green[v] {
				t.Errorf("%q landed with %s, which nobody has built", info.Message, v)
			}
		}
	}
}
