package landing

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
	"landfall.build/platform/gitrepo"
)

// stack makes a mainline and a stack of two entries on an old commit of it: the lower of
// two commits, the upper of one.
func (p *project) stack() (mainline, lower, upper string) {
	p.t.Helper()
	p.commit("start", "a=1\n", "b=1\n")
	p.git("checkout", "--quiet", "-b", "feature")
	p.commit("lower one", "x=1\n")
	lower = p.commit("lower two", "x=2\n")
	upper = p.commit("upper", "y=1\n")
	p.git("checkout", "--quiet", "main")
	mainline = p.commit("meanwhile", "b=2\n")
	p.sync()
	return mainline, lower, upper
}

func TestEachStrategyMakesItsOwnCommitsOfAStack(t *testing.T) {
	p := newProject(t)
	mainline, lower, upper := p.stack()
	for strategy, want := range map[Strategy]struct {
		subjects []string
		parents  [][]string // beyond the first
	}{
		Squash: {[]string{"lower one", "upper"}, [][]string{nil, nil}},
		Rebase: {[]string{"lower one", "lower two", "upper"}, [][]string{nil, nil, nil}},
		Merge:  {[]string{"Merge: lower two", "Merge: upper"}, [][]string{{lower}, {upper}}},
	} {
		picks, err := Expand(p.ctx, p.repo, strategy, mainline, []string{lower, upper})
		if err != nil {
			t.Fatal(strategy, err)
		}
		landed, conflict, err := Commits(p.ctx, p.repo, mainline, picks, meta)
		if err != nil || conflict != nil {
			t.Fatal(strategy, err, conflict)
		}
		infos, err := p.repo.CommitInfos(p.ctx, landed.Commits)
		if err != nil {
			t.Fatal(err)
		}
		parent := mainline
		for i, info := range infos {
			if i >= len(want.subjects) || strings.Split(info.Message, "\n")[0] != want.subjects[i] {
				t.Errorf("%s: commit %d is called %q", strategy, i, info.Message)
				continue
			}
			if !slices.Equal(info.Parents, append([]string{parent}, want.parents[i]...)) {
				t.Errorf("%s: commit %d has the parents %s", strategy, i, info.Parents)
			}
			if part := fmt.Sprintf("Landfall-Part: %d/%d\n", i+1, len(infos)); !strings.HasSuffix(info.Message, part) {
				t.Errorf("%s: commit %d ends in %q, want %q", strategy, i, info.Message, part)
			}
			parent = info.ID
		}
		if len(infos) != len(want.subjects) {
			t.Errorf("%s: %d commits, want %d", strategy, len(infos), len(want.subjects))
		}
		files, err := p.repo.Tree(p.ctx, parent)
		if err != nil || len(files) != 4 {
			t.Errorf("%s: tree %v, %v", strategy, files, err)
		}
	}
}

func TestWhatCannotBeAChangeIsRefusedByName(t *testing.T) {
	p := newProject(t)
	mainline, lower, upper := p.stack()
	p.git("checkout", "--quiet", "-b", "merged", lower)
	p.git("merge", "--quiet", "--no-ff", "-m", "take in the mainline", mainline)
	merged := p.commit("after the merge", "z=1\n")
	p.git("checkout", "--quiet", "-b", "empty", mainline)
	empty := p.commit("says much, does nothing")
	p.git("checkout", "--quiet", "-b", "undone", mainline)
	p.commit("do", "q=1\n")
	undone := p.commit("undo", "q")
	p.git("checkout", "--quiet", "--orphan", "stranger")
	stranger := p.commit("from nowhere", "s=1\n")
	p.sync()
	for name, c := range map[string]struct {
		strategy Strategy
		entries  []string
		want     error
		named    string
	}{
		"landed already":         {Squash, []string{mainline}, ErrAlreadyIn, mainline},
		"landed already, merged": {Merge, []string{p.git("rev-parse", mainline+"~1")}, ErrAlreadyIn, ""},
		"nothing in it":          {Squash, []string{empty}, ErrEmpty, empty},
		"nothing left of it":     {Squash, []string{undone}, ErrEmpty, undone},
		"an entry twice":         {Squash, []string{lower, lower}, ErrEmpty, lower},
		"upside down":            {Squash, []string{upper, lower}, ErrNotStacked, lower},
		"not a stack":            {Merge, []string{lower, empty}, ErrNotStacked, empty},
		"no history in common":   {Merge, []string{stranger}, ErrNoCommonBase, stranger},
		"a merge to be rebased":  {Rebase, []string{merged}, ErrMergeCommit, merged},
		"an unknown commit":      {Squash, []string{strings.Repeat("1", 40)}, gitrepo.ErrNoSuchCommit, "1111"},
		"an option":              {Squash, []string{"--all"}, gitrepo.ErrInvalid, "--all"},
		"nothing at all":         {Squash, nil, ErrInvalid, ""},
		"an unknown strategy":    {"octopus", []string{lower}, ErrInvalid, "octopus"},
		"more than there may be": {Squash, make([]string, MaxPicks+1), ErrTooMany, ""},
	} {
		picks, err := Expand(p.ctx, p.repo, c.strategy, mainline, c.entries)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.named) {
			t.Errorf("%s: %v, %v; want %v with %q", name, picks, err, c.want, c.named)
		}
	}
	for _, strategy := range []Strategy{Squash, Merge} { // a merge from the mainline is no obstacle there
		picks, err := Expand(p.ctx, p.repo, strategy, mainline, []string{merged})
		if err != nil {
			t.Fatal(strategy, err)
		}
		landed, conflict, err := Commits(p.ctx, p.repo, mainline, picks, meta)
		if err != nil || conflict != nil {
			t.Fatal(strategy, err, conflict)
		}
		info, err := p.repo.CommitInfo(p.ctx, landed.Commits[0])
		if err != nil || strings.Contains(info.Message, "take in the mainline") {
			t.Errorf("%s: message %q, %v", strategy, info.Message, err)
		}
	}
}

func TestAConflictNamesItsPick(t *testing.T) {
	p := newProject(t)
	p.commit("start", "a=1\n", "b=1\n")
	p.git("checkout", "--quiet", "-b", "feature")
	p.commit("harmless", "c=1\n")
	head := p.commit("clashes", "a=2\n")
	p.git("checkout", "--quiet", "main")
	mainline := p.commit("meanwhile", "a=3\n")
	p.sync()
	picks, err := Expand(p.ctx, p.repo, Rebase, mainline, []string{head})
	if err != nil {
		t.Fatal(err)
	}
	landed, conflict, err := Commits(p.ctx, p.repo, mainline, picks, meta)
	if err != nil || landed != nil || conflict == nil || conflict.Pick != 1 || !slices.Equal(conflict.Paths, []string{"a"}) {
		t.Fatalf("landed %v, conflict %+v, error %v", landed, conflict, err)
	}
	tree, err := p.repo.TreeOf(p.ctx, mainline)
	if err != nil {
		t.Fatal(err)
	}
	trees, conflict, err := ApplyTree(p.ctx, p.repo, tree, picks)
	if err != nil || len(trees) != 1 || conflict == nil {
		t.Errorf("trees %v, conflict %v, error %v", trees, conflict, err)
	}
}

func TestWhatTheMainlineHoldsAlreadyLandsAsAnEmptyCommit(t *testing.T) {
	p := newProject(t)
	mainline, lower, upper := p.stack()
	picks, err := Expand(p.ctx, p.repo, Squash, mainline, []string{lower, upper})
	if err != nil {
		t.Fatal(err)
	}
	p.git("cherry-pick", lower+"~1", lower)
	same := p.git("rev-parse", "HEAD")
	p.sync()
	landed, conflict, err := Commits(p.ctx, p.repo, same, picks, meta)
	if err != nil || conflict != nil {
		t.Fatal(err, conflict)
	}
	if !slices.Equal(landed.Empty, []bool{true, false}) || len(landed.Commits) != 2 {
		t.Errorf("landed %+v", landed)
	}
}

func TestLandingCommitsAreTheSameForEveryLander(t *testing.T) {
	p := newProject(t)
	mainline, lower, upper := p.stack()
	other, err := gitrepo.Open(p.ctx, gitrepo.Options{Remote: p.remote, Dir: t.TempDir() + "/other.git"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Fetch(p.ctx, gitrepo.Wanted{}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, strategy := range []Strategy{Squash, Rebase, Merge} {
		var landed [2]*Landed
		for i, repo := range []*gitrepo.Repo{p.repo, other} {
			picks, err := Expand(p.ctx, repo, strategy, mainline, []string{lower, upper})
			if err != nil {
				t.Fatal(err)
			}
			if landed[i], _, err = Commits(p.ctx, repo, mainline, picks, meta); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(landed[0].Commits, landed[1].Commits) {
			t.Errorf("%s: %s and %s", strategy, landed[0].Commits, landed[1].Commits)
		}
		seen[landed[0].Commits[len(landed[0].Commits)-1]] = true
	}
	later := meta
	later.Date = "1800000001 +0000"
	picks, err := Expand(p.ctx, p.repo, Squash, mainline, []string{lower, upper})
	if err != nil {
		t.Fatal(err)
	}
	landed, _, err := Commits(p.ctx, p.repo, mainline, picks, later)
	if err != nil || seen[landed.Commits[1]] {
		t.Errorf("another stamp gives the same commit (%v)", err)
	}
}

// TestPicksOnAMainlineThatMovesAreCherryPicks compares Rebase with git cherry-pick on
// random edits.
func TestPicksOnAMainlineThatMovesAreCherryPicks(t *testing.T) {
	random := seedtest.Random(t)
	p := newProject(t)
	content := func(file int) string {
		var text strings.Builder
		for line := range 12 {
			fmt.Fprintf(&text, "%d %d\n", file, line)
		}
		return text.String()
	}
	lines := map[int][]string{}
	var start []string
	for file := range 3 {
		lines[file] = strings.SplitAfter(content(file), "\n")
		start = append(start, fmt.Sprintf("f%d=%s", file, content(file)))
	}
	p.commit("start", start...)
	edit := func(state map[int][]string) string {
		file, line := random.IntN(3), random.IntN(12)
		state[file] = slices.Clone(state[file])
		state[file][line] = fmt.Sprintf("edit %d\n", random.IntN(1000))
		return fmt.Sprintf("f%d=%s", file, strings.Join(state[file], ""))
	}
	clone := func(state map[int][]string) map[int][]string {
		return map[int][]string{0: state[0], 1: state[1], 2: state[2]}
	}
	clean := 0
	const rounds = 10
	for round := range rounds {
		branch := fmt.Sprintf("feature%d", round)
		p.git("checkout", "--quiet", "-b", branch, "main")
		feature := clone(lines)
		var head string
		for range 1 + random.IntN(3) {
			head = p.commit("feature", edit(feature))
		}
		p.git("checkout", "--quiet", "main")
		mainline := p.commit("main", edit(lines))
		p.sync()
		picks, err := Expand(p.ctx, p.repo, Rebase, mainline, []string{head})
		if err != nil {
			t.Fatal(err)
		}
		landed, conflict, err := Commits(p.ctx, p.repo, mainline, picks, meta)
		if err != nil {
			t.Fatal(err)
		}
		p.git("checkout", "--quiet", "--detach", "main")
		if conflict != nil {
			if p.fails("cherry-pick", "--keep-redundant-commits", mainline+".."+head) == "" {
				t.Fatalf("round %d: we see the conflict %v, git none", round, conflict)
			}
			p.git("cherry-pick", "--abort")
		} else {
			clean++
			p.git("cherry-pick", "--keep-redundant-commits", mainline+".."+head)
			if got, want := landed.Trees[len(landed.Trees)-1], p.git("rev-parse", "HEAD^{tree}"); got != want {
				t.Fatalf("round %d: tree %s, git's %s", round, got, want)
			}
		}
		p.git("checkout", "--quiet", "main")
	}
	t.Logf("%d of %d rounds without a conflict", clean, rounds)
}
