package analyzer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal/memory"
)

const (
	analyzed    = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED
	unmergeable = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE
	invalid     = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID
)

func TestAChangeAffectsWhatItTouchesAndWhatDependsOnIt(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("lib", w.main, files{"lib/lib.txt": "one\n2\nthree\nfour\nfive\nsix\n"})
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.admit("gone", w.main, files{"tool/landfall.yaml": "-", "tool/tool.txt": "-"})
	w.start("a")

	f := w.analysis("lib")
	check(t, "outcome", f.Outcome, analyzed)
	check(t, "δ", targetsOf(f.Affected), []string{"//app@1", "//lib@1"})
	check(t, "leaves", f.Affected.Leaves, []string{"file:lib/lib.txt"})
	check(t, "lines", []uint32{f.FilesChanged, f.LinesAdded, f.LinesDeleted}, []uint32{1, 2, 1})
	check(t, "adapter", f.Affected.Adapter, "manifest")
	check(t, "neighbours", len(f.Textual), 0)
	check(t, "δ of a target without steps", targetsOf(w.analysis("docs").Affected), []string{"//docs@1!"})
	gone := w.analysis("gone")
	check(t, "deleted", gone.Affected.Deleted, []string{"//tool"})
	check(t, "δ of a deletion", len(gone.Affected.Targets), 0)
}

// TestAFileThatNoTargetCoversIsInTheFact of the change, or of the direct push, with what it means.
func TestAFileThatNoTargetCoversIsInTheFact(t *testing.T) {
	w := newWorld(t, monorepo, func(q *configuration.Queue) { q.Analysis.Uncovered.Ignore = []string{"README"} })
	w.admit("readme", w.main, files{"README": "1\n"})
	w.admit("script", w.main, files{"run.sh": "1\n", "docs/docs.txt": "more\n"})
	w.start("a")
	f := w.analysis("readme")
	check(t, "ignored", f.Affected.Uncovered.GetIgnored(), []string{"README"})
	check(t, "all", f.Affected.All, false)
	check(t, "δ", len(f.Affected.Targets), 0)
	f = w.analysis("script")
	check(t, "files", f.Affected.Uncovered.GetFiles(), []string{"run.sh"})
	check(t, "δ", targetsOf(f.Affected), []string{"//:repository@1"})
	check(t, "message", f.Message, "no target covers run.sh, so the whole repository is verified (analysis.uncovered)")
	from, to := w.push(files{"pushed.sh": "1\n"})
	p := await(w, "the push", func(f *eventsv1.MainlineAnalyzed) bool { return f.From == from && f.To == to })
	check(t, "all of the push", p.Affected.All, true)
	check(t, "files of the push", p.Affected.Uncovered.GetFiles(), []string{"pushed.sh"})
	check(t, "δ of the push", targetsOf(p.Affected), []string{"//:repository@1"})
}

func TestAnAnalysisSaysWhatTheDifferenceIsMadeOf(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("mixed", w.main, files{
		"lib/lib.txt": "one\n2\nthree\nfour\nfive\nsix\n", "lib/new.go": "a\nb\n", "lib/new_test.go": "c\n", "picture.bin": "a\x00b", // two lines and one of a document; source, test
		"docs/docs.txt": "-", "docs/moved.txt": monorepo["docs/docs.txt"], // the same file elsewhere
		"tool/landfall.yaml": "-", "tool/tool.txt": "-",
	})
	w.start("a")
	f := w.analysis("mixed")
	d := f.Difference
	check(t, "files", []uint32{f.FilesChanged, d.FilesAdded, d.FilesDeleted, d.FilesRenamed, d.BinaryFiles}, []uint32{8, 3, 2, 1, 1})
	check(t, "lines of source and tests", []uint32{d.SourceLines, d.TestLines}, []uint32{2, 1})
	lines := func(path string) uint32 { return uint32(strings.Count(monorepo[path], "\n")) }
	moved, definition, tool := lines("docs/docs.txt"), lines("tool/landfall.yaml"), lines("tool/tool.txt")
	check(t, "lines of documents and definitions", []uint32{d.DocLines, d.ConfigurationLines}, []uint32{3 + 2*moved + tool, definition})
	check(t, "lines of the largest", d.LargestFileLines, max(3, moved, definition, tool))
	check(t, "all lines", f.LinesAdded+f.LinesDeleted, d.SourceLines+d.TestLines+d.DocLines+d.ConfigurationLines)
}

func TestAnAddedDependencyIsAStructuralEdge(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("edge", w.main, files{"tool/landfall.yaml": manifestOf("tool", "//lib", true)})
	w.start("a")
	f := w.analysis("edge")
	check(t, "δ", targetsOf(f.Affected), []string{"//tool@1"})
	if !slices.Contains(f.Affected.AddedEdges, "//lib") {
		t.Errorf("N is %q, want //lib in it", f.Affected.AddedEdges)
	}
}

func TestAStackHasAVersionForEachLandingCommitThatMakesOne(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("stack", w.main,
		files{"lib/lib.txt": "changed\n"},
		files{"tool/tool.txt": "changed\n"},
		files{"lib/lib.txt": "again\n", "docs/docs.txt": "more\n"})
	w.start("a")
	f := w.analysis("stack")
	check(t, "δ", targetsOf(f.Affected), []string{"//app@1", "//app@3", "//docs@3!", "//lib@1", "//lib@3", "//tool@2"})
	check(t, "files", f.FilesChanged, 3)
}

func TestChangesThatMeetInAPathAreMergedWithEachOther(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("top", w.main, files{"README": "x\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.admit("bottom", w.main, files{"README": "1\n2\n3\n4\n5\n6\n7\n8\nx\n"})
	w.admit("both", w.main, files{"README": "y\n2\n3\n4\n5\n6\n7\n8\ny\n"})
	w.admit("elsewhere", w.main, files{"docs/docs.txt": "more\n"})
	w.admit("folder", w.main, files{"README": "-", "README/text": "a folder now\n"})
	w.start("a")

	textual := func(id string) map[string]bool {
		found := map[string]bool{}
		for _, x := range w.analysis(id).Textual {
			found[x.Other.Change] = x.MergeConflict
			check(t, id+" meets "+x.Other.Change, x.Paths, []string{"README"})
		}
		return found
	}
	check(t, "top", textual("top"), map[string]bool{"bottom": false, "both": true, "folder": true})
	check(t, "both", textual("both"), map[string]bool{"top": true, "bottom": true, "folder": true})
	check(t, "elsewhere", textual("elsewhere"), map[string]bool{})
	check(t, "folder", textual("folder"), map[string]bool{"top": true, "bottom": true, "both": true})
}

// TestChangesWhoseOrderMakesAnotherTreeAreAMergeConflict: back does on main what is there already, and takes back
// what forth does if that came first. Each merges after the other, alone back changes nothing, and no target meets.
func TestChangesWhoseOrderMakesAnotherTreeAreAMergeConflict(t *testing.T) {
	w := newWorld(t, monorepo)
	old := w.main
	w.push(files{"README": "next\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.admit("forth", w.main, files{"README": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.admit("back", old, files{"README": "next\n2\n3\n4\n5\n6\n7\n8\n9\n", "notes": "1\n"})
	w.admit("notes", w.main, files{"other": "1\n"})
	w.start("a")
	for id, other := range map[string]string{"forth": "back", "back": "forth"} {
		f := w.analysis(id)
		check(t, id, f.Outcome, analyzed)
		if len(f.Textual) != 1 || f.Textual[0].Other.Change != other || !f.Textual[0].MergeConflict {
			t.Fatalf("%s meets %v, want a merge conflict with %s", id, f.Textual, other)
		}
		check(t, "where", f.Textual[0].Paths, []string{"README"})
	}
	w.land("forth")
	check(t, "back on what forth made", len(w.analysis("back").Textual), 0)
}

func TestAChangeThatDoesNotMergeNamesWhoCouldMakeItMerge(t *testing.T) {
	w := newWorld(t, monorepo)
	old := w.main
	w.push(files{"README": "new\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.admit("mender", w.main, files{"README": "1\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.admit("stale", old, files{"README": "mine\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.start("a")
	f := w.analysis("stale")
	check(t, "outcome", f.Outcome, unmergeable)
	check(t, "paths", f.ConflictingPaths, []string{"README"})
	if !strings.Contains(f.Message, "README") {
		t.Errorf("the message %q does not name the file", f.Message)
	}
	check(t, "neighbours", len(f.Textual), 1)
	check(t, "neighbour", f.Textual[0].Other.Change, "mender")
	check(t, "is it a conflict of the two", f.Textual[0].MergeConflict, false)

	w.land("mender")
	check(t, "outcome once mended", w.analysis("stale").Outcome, analyzed)
}

func TestInvalidDefinitionsNameFileAndLineAndWhoCouldMendThem(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("definer", w.main, files{"new/landfall.yaml": manifestOf("new", "", true), "new/new.txt": "new\n"})
	w.admit("other", w.main, files{"README": "other\n"})
	w.admit("user", w.main, files{"tool/landfall.yaml": manifestOf("tool", "//new", true)})
	w.start("a")
	f := w.analysis("user")
	check(t, "outcome", f.Outcome, invalid)
	if !strings.Contains(f.Message, "tool/landfall.yaml:4") {
		t.Errorf("the message %q does not name file and line", f.Message)
	}
	check(t, "neighbours", len(f.Textual), 1)
	check(t, "neighbour", f.Textual[0].Other.Change, "definer")

	w.land("definer")
	check(t, "outcome once defined", w.analysis("user").Outcome, analyzed)
}

func TestWithoutManifestsEveryTwoChangesMeetInTheWholeRepository(t *testing.T) {
	steps := []configuration.Step{{Name: "check", Run: []string{"make"}, Timeout: time.Minute}}
	w := newWorld(t, files{"a": "a\n", "b": "b\n"}, func(q *configuration.Queue) { q.Analysis.WholeRepositorySteps = steps })
	w.admit("a", w.main, files{"a": "2\n"})
	w.admit("b", w.main, files{"b": "2\n"})
	w.start("a")
	a, b := w.analysis("a"), w.analysis("b")
	check(t, "δ(a)", targetsOf(a.Affected), []string{"//:repository@1"})
	check(t, "δ(b)", targetsOf(b.Affected), []string{"//:repository@1"})
	if a.Affected.Targets[0].Hash == b.Affected.Targets[0].Hash {
		t.Error("two trees have one version")
	}
}

func TestAWholeRepositoryWithoutStepsIsNotGreenByDefinition(t *testing.T) {
	w := newWorld(t, files{"a": "a\n"}, func(q *configuration.Queue) { q.Analysis.Uncovered.Ignore = nil })
	w.admit("a", w.main, files{"a": "2\n"})
	w.start("a")
	check(t, "δ", targetsOf(w.analysis("a").Affected), []string{"//:repository@1"})
}

func TestOnlyWhatConflictsWithALandingIsAnalysedAnew(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("lib", w.main, files{"lib/lib.txt": "changed\n"})
	w.admit("app", w.main, files{"app/app.txt": "changed\n"})
	w.admit("edge", w.main, files{"tool/landfall.yaml": manifestOf("tool", "//lib", true)})
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.admit("readme", w.main, files{"README": "x\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.admit("readme2", w.main, files{"README": "1\n2\n3\n4\n5\n6\n7\n8\nx\n"})
	w.start("a")
	for _, id := range []string{"lib", "app", "edge", "docs", "readme", "readme2"} {
		w.analysis(id)
	}
	w.land("lib")
	check(t, "app on the new head", targetsOf(w.analysis("app").Affected), []string{"//app@1"})
	w.analysis("edge")
	w.land("readme")
	w.analysis("readme2")
	// A later admission's analysis comes after everything that the landings asked for.
	w.admit("last", w.main, files{"other": "file\n"})
	w.analysis("last")
	for id, n := range map[string]int{"app": 2, "edge": 2, "docs": 1, "readme2": 2} {
		check(t, "analyses of "+id, w.countAnalyses(id), n)
	}
}

func TestADirectPushIsAnalysedAndWhatConflictsWithItIsAnalysedAnew(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("app", w.main, files{"app/app.txt": "changed\n"})
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.admit("readme", w.main, files{"README": "x\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.start("a")
	w.analysis("app")
	w.analysis("docs")
	w.analysis("readme")
	from, to := w.push(files{"lib/lib.txt": "pushed\n", "README": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"})
	f := await(w, "the push", func(f *eventsv1.MainlineAnalyzed) bool { return f.From == from && f.To == to })
	check(t, "δ", targetsOf(f.Affected), []string{"//app@1", "//lib@1"})
	w.analysis("app")
	w.analysis("readme")
	w.admit("last", w.main, files{"other": "file\n"})
	w.analysis("last")
	check(t, "analyses of docs", w.countAnalyses("docs"), 1)
}

func TestAPushOfInvalidDefinitionsAffectsEverythingAndBlamesNoChange(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.start("a")
	w.analysis("docs")
	_, to := w.push(files{"lib/landfall.yaml": "targets: 7\n"})
	f := await(w, "the push", func(f *eventsv1.MainlineAnalyzed) bool { return f.To == to })
	check(t, "all", f.Affected.All, true)
	if !strings.Contains(f.Message, "lib/landfall.yaml") {
		t.Errorf("the message %q does not name the file", f.Message)
	}
	check(t, "its one version", targetsOf(f.Affected), []string{"//:repository@1"})
	docs := w.analysis("docs")
	check(t, "outcome of a change that is innocent", docs.Outcome, analyzed)
	check(t, "all", docs.Affected.All, true)
	w.admit("repair", w.main, files{"lib/landfall.yaml": monorepo["lib/landfall.yaml"]})
	repair := w.analysis("repair")
	check(t, "outcome of the repair", repair.Outcome, analyzed)
	check(t, "its one version", targetsOf(repair.Affected), []string{"//:repository@1"})
}

func TestAForcedPushAffectsEverything(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.start("a")
	w.analysis("docs")
	from := w.main
	w.main = w.commit("", monorepo, "another history")
	w.git("push", "--quiet", "--force", "origin", w.main+":refs/heads/main")
	w.lander(&eventsv1.MainlineMoved{From: from, To: w.main, Forced: true})
	f := await(w, "the push", func(f *eventsv1.MainlineAnalyzed) bool { return f.To == w.main })
	check(t, "all", f.Affected.All, true)
	w.analysis("docs")
	// Back again: the mainline is at a commit that it was at before.
	back := w.main
	w.main = from
	w.git("push", "--quiet", "--force", "origin", from+":refs/heads/main")
	w.lander(&eventsv1.MainlineMoved{From: back, To: from, Forced: true})
	await(w, "the push back", func(f *eventsv1.MainlineAnalyzed) bool { return f.To == from })
	w.admit("last", w.main, files{"other": "file\n"})
	w.analysis("last")
}

func TestTwoInstancesGiveOneFactForEachChange(t *testing.T) {
	w := newWorld(t, monorepo)
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		w.admit(id, w.main, files{"docs/" + id + ".txt": id + "\n"})
	}
	w.start("a")
	w.start("b")
	for _, id := range []string{"1", "2", "3", "4", "5", "6"} {
		w.analysis(id)
	}
	w.land("1")
	for _, id := range []string{"2", "3", "4", "5", "6"} {
		w.analysis(id)
		if n := w.countAnalyses(id); n != 2 {
			t.Errorf("change %s has %d different analyses, want 2", id, n)
		}
	}
}

func TestARestartResumesWhatIsAskedAndNotAnswered(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("first", w.main, files{"docs/docs.txt": "more\n"})
	stop := w.start("a")
	w.analysis("first")
	stop()
	w.admit("second", w.main, files{"tool/tool.txt": "more\n"})
	from, to := w.push(files{"lib/lib.txt": "pushed\n"})
	w.start("b")
	w.analysis("second")
	await(w, "the push", func(f *eventsv1.MainlineAnalyzed) bool { return f.From == from && f.To == to })
	check(t, "analyses of first", w.countAnalyses("first"), 1)
	check(t, "analyses of second", w.countAnalyses("second"), 1)
}

func TestARevisionReplacesWhatWasAsked(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("c", w.main, files{"docs/docs.txt": "one\n"})
	w.admitRevision("c", 2, w.main, files{"tool/tool.txt": "two\n"})
	w.start("a")
	check(t, "δ", targetsOf(w.analysis("c").Affected), []string{"//tool@1"})
	check(t, "analyses", w.countAnalyses("c"), 1)
}

func TestAnUnreachableRepositoryIsWaitedForThenTheChangeConflictsWithEverything(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	attempts := 0
	repo := w.mirror("late")
	stop := w.start("a", func(o *Options) {
		o.Repo = func(context.Context, string) (*gitrepo.Repo, error) {
			if attempts++; attempts < 4 {
				return nil, errors.New("not yet")
			}
			return repo, nil
		}
	})
	check(t, "all", w.analysis("docs").Affected.All, false)
	stop()

	w.admit("tool", w.main, files{"tool/tool.txt": "more\n"})
	w.start("b", func(o *Options) {
		o.Patience = time.Millisecond
		o.Repo = func(context.Context, string) (*gitrepo.Repo, error) { return nil, errors.New("no disk") }
	})
	f := w.analysis("tool")
	check(t, "outcome", f.Outcome, analyzed)
	check(t, "all", f.Affected.All, true)
	if !strings.Contains(f.Message, "no disk") {
		t.Errorf("the message %q does not say why", f.Message)
	}
}

func TestACommitThatNobodyHasEndsInAFact(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	lost := &eventsv1.Admission{Queue: queueName, Change: "lost", Revision: 1,
		LandingCommits: []*eventsv1.LandingCommit{{Head: strings.Repeat("1", 40), Base: w.main}}}
	w.known["lost"] = lost
	w.append("gateway", -1, &eventsv1.ChangeAdmitted{Admission: lost})
	w.start("a")
	f := w.analysis("lost")
	check(t, "all", f.Affected.All, true)
	check(t, "the other one", targetsOf(w.analysis("docs").Affected), []string{"//docs@1!"})
}

func TestAFactThatCouldNotBeWrittenIsWrittenAgain(t *testing.T) {
	w := newWorld(t, monorepo)
	w.faults = []memory.Verdict{memory.FailBefore, memory.FailAfter, memory.Torn, memory.Late}
	for _, id := range []string{"1", "2", "3"} {
		w.admit(id, w.main, files{"docs/" + id + ".txt": id + "\n"})
	}
	w.start("a")
	for _, id := range []string{"1", "2", "3"} {
		w.analysis(id)
	}
	w.log.DeliverLate(events.TopicChanges, 0)
	w.admit("last", w.main, files{"other": "file\n"})
	w.analysis("last")
	for _, id := range []string{"1", "2", "3"} {
		check(t, "different analyses of "+id, w.countAnalyses(id), 1)
	}
}

// TestWhatPendingChangesAffectTogetherIsBounded: a change that would exceed it conflicts with everything until others have landed. One that
// affects little does not.
func TestWhatPendingChangesAffectTogetherIsBounded(t *testing.T) {
	hub := files{"lib/landfall.yaml": manifestOf("lib", "", true), "lib/lib.txt": "lib\n"}
	const dependents = 20
	for i := range dependents {
		hub[fmt.Sprintf("d%d/landfall.yaml", i)] = manifestOf(fmt.Sprintf("d%d", i), "//lib", true)
	}
	w := newWorld(t, hub)
	w.admit("first", w.main, files{"lib/lib.txt": "1\n"})
	w.start("a", func(o *Options) { o.MostNames = 3 * dependents / 2 })
	check(t, "targets of the first", len(w.analysis("first").Affected.Targets), dependents+1)
	w.admit("second", w.main, files{"lib/lib.txt": "2\n"})
	f := w.analysis("second")
	check(t, "all", f.Affected.All, true)
	check(t, "targets of the second", len(f.Affected.Targets), 0)
	if !strings.Contains(f.Message, "landfall cancel") || len(f.Textual) != 1 {
		t.Errorf("it says %q, and meets %v in paths", f.Message, f.Textual)
	}
	w.lander(&eventsv1.ChangeCancelled{Change: "first"})
	w.admitRevision("second", 2, w.main, files{"lib/lib.txt": "2\n"})
	check(t, "targets of the second once the first is gone", len(w.analysis("second").Affected.Targets), dependents+1)
}
