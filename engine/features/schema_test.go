package features

import (
	"fmt"
	"math"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

func TestEachFeatureIsNamedOnceAndSaysWhatItIs(t *testing.T) {
	for what, schema := range map[string][]Feature{"change": OfChange(), "pair": OfPair()} {
		seen := map[string]bool{}
		for _, f := range schema {
			if seen[f.Name] || f.Name == "" || f.Type.String() == "" || f.Source == "" || f.Group == "" || (f.Type == Count || f.Type == Seconds) && f.Unit == "" {
				t.Errorf("%s: %+v", what, f)
			}
			seen[f.Name] = true
		}
	}
}

func admit(h *History, a *eventsv1.Admission) {
	h.Apply(&eventsv1.Speculation{StampUs: 1_700_000_000_000_000, Facts: []*eventsv1.Fact{{Fact: &eventsv1.Fact_ChangeAdmitted{ChangeAdmitted: &eventsv1.ChangeAdmitted{Admission: a}}}},
		Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: &eventsv1.ChangeRef{Change: a.Change, Revision: a.Revision}}}}})
}

// TestWhatIsNotKnownIsMissingAndNeverZero: a change of which nothing but its admission is known, in a queue without a past.
func TestWhatIsNotKnownIsMissingAndNeverZero(t *testing.T) {
	h := New()
	admit(h, &eventsv1.Admission{Change: "c0", Revision: 1, Labels: map[string]string{"approvals": "2", "comments": "many", "reviewers": "-1", "test_plan": "true"}})
	v := h.ChangeVector(Context{Node: node(0), TargetsSeconds: missing, LongestSeconds: missing}, nil)
	// What is known is zero by knowledge: there were no builds, nothing is ahead.
	zero := map[string]bool{"builds_succeeded": true, "builds_failed": true, "builds_aborted": true, "builds_open": true, "green_versions": true, "red_versions": true, "ahead": true,
		"ahead_merge_conflicts": true, "refusals": true, "queue_length": true, "entries": true, "landing_commits": true, "requires": true, "benefit": true, "mainline_moves": true,
		"flakes_7d": true, "free_workers": true}
	for i, f := range OfChange() {
		switch x := float64(v[i]); {
		case x == 0 && !zero[f.Name]:
			t.Errorf("%s is 0, though nothing says so", f.Name)
		case f.Name == "approvals" && x != 2, f.Name == "test_plan" && x != 1:
			t.Errorf("%s is %v", f.Name, x)
		case (f.Name == "comments" || f.Name == "reviewers" || f.Name == "files_changed" || f.Name == "author_failure_rate" || f.Name == MedianSeconds) && !math.IsNaN(x):
			t.Errorf("%s is %v, and nobody can know", f.Name, x)
		}
	}
	if h.ChangeVector(Context{Node: &eventsv1.Node{Change: ref(0)}}, nil) != nil || h.ChangeVector(Context{Node: node(1)}, nil) != nil {
		t.Error("a change that is not analysed, or not known, has a vector")
	}
}

// TestADifferenceThatWasNotLookedAtIsMissing: it may be too large. One that was, and in which nothing is of some kind, is zero there.
func TestADifferenceThatWasNotLookedAtIsMissing(t *testing.T) {
	at := func(d *eventsv1.Difference) func(name string) float64 {
		h := New()
		admit(h, &eventsv1.Admission{Change: "c0", Revision: 1})
		f := &eventsv1.ChangeAnalyzed{Change: ref(0), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, FilesChanged: 4, LinesAdded: 6, LinesDeleted: 2, Difference: d, Affected: &eventsv1.Affected{}}
		h.Apply(&eventsv1.Speculation{Facts: []*eventsv1.Fact{{Fact: &eventsv1.Fact_ChangeAnalyzed{ChangeAnalyzed: f}}}, Delta: &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node(0)}}})
		v := h.ChangeVector(Context{Node: node(0)}, nil)
		return func(name string) float64 { return float64(v[IndexOfChange(name)]) }
	}
	looked := at(&eventsv1.Difference{FilesAdded: 1, FilesDeleted: 2, FilesRenamed: 3, LargestFileLines: 5, SourceLines: 6, TestLines: 7, ConfigurationLines: 9})
	unlooked := at(nil)
	for name, want := range map[string]float64{
		"files_added": 1, "files_deleted": 2, "files_renamed": 3, "binary_files": 0, "largest_file_lines": 5, "source_lines": 6, "test_lines": 7, "doc_lines": 0, "configuration_lines": 9,
		"lines_added": 6, "lines_deleted": 2, "churn_per_file": 2,
	} {
		if x, none := looked(name), unlooked(name); x != want || !math.IsNaN(none) {
			t.Errorf("%s is %v, want %v; of a difference that was not looked at %v", name, x, want, none)
		}
	}
	if x := unlooked("files_changed"); x != 4 {
		t.Errorf("files_changed is %v, and they were counted", x)
	}
}

// TestTheClockAloneMovesNoVector: what is written again for nothing would fill the log.
func TestTheClockAloneMovesNoVector(t *testing.T) {
	h := New()
	admit(h, &eventsv1.Admission{Change: "c0", Revision: 1, ReceivedUs: 1_700_000_000_000_000, Author: "a"})
	was := h.ChangeVector(Context{Node: node(0), TargetsSeconds: missing}, nil)
	h.Apply(&eventsv1.Speculation{StampUs: 1_700_000_900_000_000})
	if now := h.ChangeVector(Context{Node: node(0), TargetsSeconds: 7, QueueLength: 5}, was); &now[0] != &was[0] {
		t.Error("another vector, though nothing of the change moved")
	}
	moved := node(0)
	moved.Ahead = []*eventsv1.Ahead{{Change: ref(1)}}
	now := h.ChangeVector(Context{Node: moved, TargetsSeconds: 7}, was)
	if now[IndexOfChange("ahead")] != 1 || now[IndexOfChange("waiting")] != 900 || now[IndexOfChange("targets_seconds")] != 7 {
		t.Error("what moved is not in the vector, with the moment")
	}
}

// TestWhatIsKeptIsBounded: whatever comes, only what is pending and the last few thousand of each are kept.
func TestWhatIsKeptIsBounded(t *testing.T) {
	h := New()
	for c := range 3 * keptAuthors {
		at := int64(1_700_000_000_000_000 + c)
		all := []*work{{kind: "change", change: c, begin: at, end: at, good: c%3 > 0}}
		all[0].end = at + 2
		files := make([]int, 12)
		for i := range files {
			files[i] = 12*c + i
		}
		all = append(all, &work{kind: "analysis", change: c, begin: at, end: at, files: files}, &work{kind: "build", change: c, build: c, begin: at, end: at + 1, files: files})
		for _, x := range logOf(all) {
			if a := x.s.Facts[0].GetChangeAdmitted(); a != nil {
				a.Admission.Author, a.Admission.Team = fmt.Sprint("author", c), fmt.Sprint("team", c)
			}
			h.Apply(x.s)
		}
		// The same admission once more takes no place in the lineup: there is no node.
		h.Apply(&eventsv1.Speculation{Facts: []*eventsv1.Fact{{Fact: &eventsv1.Fact_ChangeAdmitted{ChangeAdmitted: &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: ref(c).Change, Revision: 1}}}}}})
	}
	for what, x := range map[string][2]int{
		"pending": {len(h.pending), 0}, "builds": {len(h.builds), 0}, "authors": {h.authors.Len(), keptAuthors}, "teams": {h.teams.Len(), keptAuthors}, "files": {h.files.Len(), keptFiles},
		"targets": {h.targets.Len(), keptTargets}, "versions": {h.failing.Len(), keptVersions}, "outcomes": {len(h.queue.lastOutcomes.values), keptOutcomes}, "build times": {len(h.queue.buildSeconds.values), keptBuilds},
	} {
		if x[0] > x[1] {
			t.Errorf("%d %s are kept, at most %d should be", x[0], what, x[1])
		}
	}
}
