package features

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// work is something that begins and ends: a change's time in the queue, its analysis, a build with one step.
type work struct {
	kind          string // change, analysis, build
	change, build int
	begin, end    int64 // microseconds
	good          bool
	files         []int
}

// invented are changes with their analyses and builds, over some days.
func invented(r *rand.Rand, n int) (all []*work) {
	at := int64(1_700_000_000_000_000)
	for c := range n {
		at += r.Int64N(3_600_000_000)
		change := &work{kind: "change", change: c, begin: at, good: r.IntN(4) > 0}
		analysis := &work{kind: "analysis", change: c, begin: at, end: at + 1 + r.Int64N(60_000_000)}
		for range 1 + r.IntN(4) {
			analysis.files = append(analysis.files, r.IntN(30))
		}
		all = append(all, change, analysis)
		last := analysis.end
		for range r.IntN(4) {
			b := &work{kind: "build", change: c, build: len(all), begin: last + r.Int64N(90_000_000), good: r.IntN(4) > 0, files: analysis.files}
			b.end = b.begin + 1 + r.Int64N(1_200_000_000)
			last = max(last, b.end)
			all = append(all, b)
		}
		change.end = last + 1 + r.Int64N(600_000_000)
	}
	return all
}

func ref(c int) *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: fmt.Sprint("c", c), Revision: 1}
}

func node(c int) *eventsv1.Node { return &eventsv1.Node{Change: ref(c), Analyzed: true} }

// spoken is what the log says of work at a moment: a record for each beginning and each end.
type spoken struct {
	at int64
	s  *eventsv1.Speculation
	// asked is the change whose vector is taken behind it, -1 for none.
	asked int
}

func logOf(all []*work) (log []spoken) {
	say := func(at int64, asked int, fact any, d *eventsv1.GraphDelta) {
		f := &eventsv1.Fact{}
		switch x := fact.(type) {
		case *eventsv1.ChangeAdmitted:
			f.Fact = &eventsv1.Fact_ChangeAdmitted{ChangeAdmitted: x}
		case *eventsv1.ChangeAnalyzed:
			f.Fact = &eventsv1.Fact_ChangeAnalyzed{ChangeAnalyzed: x}
		case *eventsv1.BuildPrepared:
			f.Fact = &eventsv1.Fact_BuildPrepared{BuildPrepared: x}
		case *eventsv1.StepFinished:
			f.Fact = &eventsv1.Fact_StepFinished{StepFinished: x}
		case *eventsv1.ChangeRejected:
			f.Fact = &eventsv1.Fact_ChangeRejected{ChangeRejected: x}
		case *eventsv1.ChangeLanded:
			f.Fact = &eventsv1.Fact_ChangeLanded{ChangeLanded: x}
		}
		log = append(log, spoken{at, &eventsv1.Speculation{StampUs: at, Facts: []*eventsv1.Fact{f}, Delta: d}, asked})
	}
	for _, w := range all {
		id := fmt.Sprint("b", w.build)
		switch w.kind {
		case "change":
			say(w.begin, -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: ref(w.change).Change, Revision: 1, Author: fmt.Sprint("a", w.change%5), Team: fmt.Sprint("t", w.change%2),
				Title: "a title", ReceivedUs: w.begin, LandingCommits: []*eventsv1.LandingCommit{{}}}}, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Change: ref(w.change)}}})
			if w.good {
				say(w.end, -1, &eventsv1.ChangeLanded{Change: ref(w.change)}, &eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: ref(w.change), How: eventsv1.GoneHow_GONE_HOW_LANDED}}})
			} else {
				say(w.end, -1, &eventsv1.ChangeRejected{Change: ref(w.change), Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED}},
					&eventsv1.GraphDelta{Gone: []*eventsv1.NodeGone{{Change: ref(w.change), How: eventsv1.GoneHow_GONE_HOW_REJECTED}}})
			}
		case "analysis":
			f := &eventsv1.ChangeAnalyzed{Change: ref(w.change), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, FilesChanged: uint32(len(w.files)), LinesAdded: 10, Difference: &eventsv1.Difference{SourceLines: 10}, Affected: &eventsv1.Affected{}}
			for _, n := range w.files {
				f.Affected.Leaves = append(f.Affected.Leaves, fmt.Sprintf("file:d%d/f%d.go", n%4, n))
				f.Affected.Targets = append(f.Affected.Targets, &eventsv1.TargetVersion{Target: fmt.Sprintf("//d%d:t%d", n%4, n)})
			}
			say(w.end, w.change, f, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node(w.change)}})
		case "build":
			say(w.begin, w.change, &eventsv1.BuildPrepared{Build: id, Change: ref(w.change), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node(w.change)}})
			outcome := eventsv1.StepOutcome_STEP_OUTCOME_PASSED
			if !w.good {
				outcome = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
			}
			say(w.end, w.change, &eventsv1.StepFinished{Target: fmt.Sprintf("//d%d:t%d", w.files[0]%4, w.files[0]), Hash: id, Build: id, Outcome: outcome, StartedUs: w.begin, FinishedUs: w.end},
				&eventsv1.GraphDelta{Nodes: []*eventsv1.Node{node(w.change)}, Builds: []*eventsv1.BuildProgress{{Build: id, State: eventsv1.BuildState_BUILD_STATE_FINISHED, Change: ref(w.change)}}})
		}
	}
	slices.SortStableFunc(log, func(a, b spoken) int { return cmp.Compare(a.at, b.at) })
	return log
}

// vectors are those that are asked for, with the moment, up to one.
func vectors(all []*work, until int64) (out []string) {
	h := New()
	for _, x := range logOf(all) {
		if x.at > until {
			break
		}
		h.Apply(x.s)
		if x.asked >= 0 {
			out = append(out, fmt.Sprint(x.at, h.ChangeVector(Context{Node: node(x.asked), TargetsSeconds: missing, LongestSeconds: missing}, nil)))
		}
	}
	return out
}

// TestM30NothingThatEndsLaterChangesAFeature: of everything that ends after a moment, the end is shifted and the outcome
// turned round; no vector up to that moment moves. That the same done to what ended before does move some says that the
// test can see.
func TestM30NothingThatEndsLaterChangesAFeature(t *testing.T) {
	r := seedtest.Random(t)
	all := invented(r, 60)
	asked, shifted, seen := 0, 0, 0
	for range 40 {
		moment := all[r.IntN(len(all))].end
		before := vectors(all, moment)
		asked += len(before)
		future, past := make([]*work, len(all)), make([]*work, len(all))
		for i, w := range all {
			f, p := *w, *w
			if w.end > moment {
				f.good, f.end = r.IntN(2) == 0, max(moment, w.begin)+1+r.Int64N(9_000_000_000)
				shifted++
			} else {
				p.good = !w.good
			}
			future[i], past[i] = &f, &p
		}
		if after := vectors(future, moment); !slices.Equal(before, after) {
			for i := range before {
				if i >= len(after) || before[i] != after[i] {
					t.Fatalf("with another future, the vector was\n%s\nand is\n%s", before[i], after[i])
				}
			}
		}
		if !slices.Equal(before, vectors(past, moment)) {
			seen++
		}
	}
	if asked < 500 || shifted < 500 || seen < 30 {
		t.Errorf("%d vectors, %d ends shifted, and another past was seen %d times of 40: the test shows too little", asked, shifted, seen)
	}
}

// TestTheFoldIsWhatLookingThroughAllOfThePastGives: the twin goes through all work for each vector.
func TestTheFoldIsWhatLookingThroughAllOfThePastGives(t *testing.T) {
	all := invented(seedtest.Random(t), 45)
	h := New()
	checked := 0
	for _, x := range logOf(all) {
		h.Apply(x.s)
		if x.asked < 0 || h.at(ref(x.asked)) == nil || h.at(ref(x.asked)).analysis == nil {
			continue
		}
		got := h.ChangeVector(Context{Node: node(x.asked)}, nil)
		author, n, failed, allN, allFailed := x.asked%5, 0.0, 0.0, 0.0, 0.0
		succeeded, broke, open := 0.0, 0.0, 0.0
		var times []*work
		for _, w := range all {
			ended := w.end <= x.at
			switch {
			case w.kind == "change" && ended:
				allN++
				allFailed += indicator(!w.good)
				if w.change%5 == author {
					n++
					failed += indicator(!w.good)
				}
			case w.kind == "build":
				if ended && w.good {
					times = append(times, w)
				}
				if w.change == x.asked {
					succeeded += indicator(ended && w.good)
					broke += indicator(ended && !w.good)
					open += indicator(!ended && w.begin <= x.at)
				}
			}
		}
		slices.SortStableFunc(times, func(a, b *work) int { return cmp.Compare(a.end, b.end) })
		times = times[max(0, len(times)-20):]
		var took []float64
		for _, w := range times {
			took = append(took, float64(w.end-w.begin)/1e6)
		}
		slices.Sort(took)
		median := missing
		if k := len(took); k > 0 {
			median = (took[(k-1)/2] + took[k/2]) / 2
		}
		rate := missing
		if n > 0 {
			rate = (failed + 5*allFailed/allN) / (n + 5)
		}
		for name, want := range map[string]float64{"author_changes": n, "author_failure_rate": rate, "builds_succeeded": succeeded, "builds_failed": broke, "builds_open": open, MedianSeconds: median} {
			have := float64(got[IndexOfChange(name)])
			if math.Abs(have-want) > 1e-6*math.Abs(want) || math.IsNaN(have) != math.IsNaN(want) {
				t.Fatalf("%s of c%d at %d is %v, by looking through everything %v", name, x.asked, x.at, have, want)
			}
			checked++
		}
	}
	if checked < 300 {
		t.Errorf("only %d numbers were compared", checked)
	}
}
