package stack_test

import (
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

// TestWhatNoTargetCoversIsVerifiedByEveryStepOrSaidToBeUnbuilt: a step reads more than its target declares, which a queue that
// goes by declarations alone would land red.
func TestWhatNoTargetCoversIsVerifiedByEveryStepOrSaidToBeUnbuilt(t *testing.T) {
	together(t)
	r := newRepository(t)
	// The sources are *.txt of the folder, and the step looks below it too.
	r.branch("undeclared", "f0/deep/c.txt", "a bug\n")
	r.branch("script", "run.sh", "exit 0\n")
	r.branch("document", "README.md", "read me\n")
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Analysis.Uncovered = configuration.Uncovered{Policy: configuration.UncoveredWholeRepository, Ignore: []string{"**/*.md"}}
	config.Queues[queue] = q
	s, c := start(t, config)
	defer s.Close()
	for _, name := range []string{"document", "script", "undeclared"} {
		land(t, c, name, name)
	}
	if v := settled(t, c, "undeclared"); v.State != "rejected" || len(v.Rejection.Failed) != 1 ||
		v.Rejection.Failed[0].Target != "//:repository" || v.Rejection.Failed[0].FailedCommand != "//f0 has-no-bug" {
		t.Errorf("a bug in a file that no target covers is %s: %s, %+v", v.State, v.Why, v.Rejection)
	}
	v := settled(t, c, "script")
	if v.State != "landed" || len(v.Landing.Proof) != 1 || v.Landing.Proof[0].Target != "//:repository" || v.Landing.Proof[0].Build == "" {
		t.Errorf("a file that no target covers is %s: %s, proven by %+v", v.State, v.Why, v.Landing)
	}
	story := ""
	for _, e := range v.Timeline {
		story += e.Text + "\n"
	}
	if !strings.Contains(story, ": it affects everything: no target covers run.sh, so the whole repository is verified (analysis.uncovered).") {
		t.Errorf("its story is\n%s", story)
	}
	if v := settled(t, c, "document"); v.State != "landed" || len(v.Landing.Proof) > 0 ||
		!strings.HasSuffix(v.Why, "; nothing was built for it: README.md is ignored by analysis.uncovered.") {
		t.Errorf("a document is %s: %s", v.State, v.Why)
	}
}

// TestAFileThatNoTargetCoversSparesNoTargetItsSteps: the queue's steps of the whole repository do not find the bug that the target's own do.
func TestAFileThatNoTargetCoversSparesNoTargetItsSteps(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.git("checkout", "-q", "-B", "both", "main")
	r.write("f0/x.txt", "a bug\n")
	r.write("run.sh", "exit 0\n")
	r.commit("both")
	r.git("push", "-q", "origin", "both")
	r.branch("script", "run.sh", "exit 0\n")
	config := configured(t, r, t.TempDir())
	q := config.Queues[queue]
	q.Analysis.WholeRepositorySteps = []configuration.Step{{Name: "all", Run: []string{"true"}}}
	config.Queues[queue] = q
	s, c := start(t, config)
	defer s.Close()
	land(t, c, "both", "both")
	land(t, c, "script", "script")
	if v := settled(t, c, "both"); v.State != "rejected" || len(v.Rejection.Failed) != 1 || v.Rejection.Failed[0].Target != "//f0" {
		t.Errorf("a bug beside a file that no target covers is %s: %s, %+v", v.State, v.Why, v.Rejection)
	}
	if v := settled(t, c, "script"); v.State != "landed" {
		t.Errorf("a file that no target covers is %s: %s", v.State, v.Why)
	}
}
