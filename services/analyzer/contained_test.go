package analyzer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events/seedtest"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
)

func TestAPoisonousChangeIsContained(t *testing.T) {
	w := newWorld(t, monorepo, func(q *configuration.Queue) { q.Base.Prove = configuration.ProveWhenNeeded }) // one task at a time
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	repo, calls := w.mirror("second"), 0
	w.start("a", func(o *Options) {
		o.Repo = func(context.Context, string) (*gitrepo.Repo, error) {
			if calls++; calls == 1 {
				return nil, nil // whoever uses it panics
			}
			return repo, nil
		}
	})
	f := w.analysis("docs")
	check(t, "all", f.Affected.All, true)
	if !strings.Contains(f.Message, "panic") || strings.Contains(f.Message, "goroutine") {
		t.Errorf("the message %q does not say that it was a panic, or says too much", f.Message)
	}
	w.admit("tool", w.main, files{"tool/tool.txt": "more\n"})
	check(t, "δ of the next one", targetsOf(w.analysis("tool").Affected), []string{"//tool@1"})
}

func TestAnAnalysisThatTakesTooLongEndsInAFact(t *testing.T) {
	w := newWorld(t, monorepo, func(q *configuration.Queue) { q.Analysis.Timeout = time.Nanosecond })
	w.admit("docs", w.main, files{"docs/docs.txt": "more\n"})
	w.start("a")
	f := w.analysis("docs")
	check(t, "outcome", f.Outcome, analyzed)
	check(t, "all", f.Affected.All, true)
	if !strings.Contains(f.Message, "took longer than 1ns") {
		t.Errorf("the message %q does not say that it took too long", f.Message)
	}
}

func TestRenamesMeetEditsOfTheOldPath(t *testing.T) {
	w := newWorld(t, monorepo)
	w.admit("edit", w.main, files{"README": "x\n2\n3\n4\n5\n6\n7\n8\n9\n"})
	w.admit("rename", w.main, files{"README": "-", "README.md": monorepo["README"]})
	w.start("a")
	f := w.analysis("rename")
	check(t, "neighbours", len(f.Textual), 1)
	check(t, "does git follow the rename", !f.Textual[0].MergeConflict, true)
}

func TestSharedPathsEqualAllPairsOnRandomPaths(t *testing.T) {
	random := seedtest.Random(t)
	set := func() touched {
		var paths []string
		for range random.IntN(5) {
			parts := make([]string, 1+random.IntN(3))
			for i := range parts {
				parts[i] = fmt.Sprintf("%c", "ab-0"[random.IntN(4)])
			}
			paths = append(paths, strings.Join(parts, "/"))
		}
		slices.Sort(paths)
		return touched{paths: slices.Compact(paths)}
	}
	for range 20_000 {
		a, b := set(), set()
		want := false
		for _, p := range a.paths {
			for _, q := range b.paths {
				want = want || p == q || strings.HasPrefix(p, q+"/") || strings.HasPrefix(q, p+"/")
			}
		}
		if _, got := a.shared(b); got != want {
			t.Fatalf("%q and %q: %v, want %v", a.paths, b.paths, got, want)
		}
	}
	if _, meets := (touched{everything: true}).shared(touched{}); !meets {
		t.Error("a change that touches more than is kept meets nobody")
	}
}

func TestClipNeverCutsACharacterOrKeepsBadBytes(t *testing.T) {
	for text, want := range map[string]string{"abc": "abc", "abcd": "abc…", "abé": "ab…", "a\xff": "a…", "ab\n": "ab\n"} {
		if got := clip(text, 3); got != want {
			t.Errorf("clip(%q) = %q, want %q", text, got, want)
		}
	}
}
