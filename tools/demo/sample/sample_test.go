package sample

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
	"landfall.build/services/builder/execution"
	"landfall.build/tools/audit"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

func TestTheSampleIsTheSameEveryTime(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	one, err := Make(ctx, filepath.Join(dir, "one.git"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := Make(ctx, filepath.Join(dir, "two.git"))
	if err != nil {
		t.Fatal(err)
	}
	if one.Head != two.Head || len(one.Head) != 40 || len(one.Changes) < 40 {
		t.Fatalf("heads %s and %s, %d changes", one.Head, two.Head, len(one.Changes))
	}
	names := map[string]bool{}
	for i, c := range one.Changes {
		if names[c.Name] || c.Group == "" {
			t.Errorf("change %s is there twice or belongs nowhere", c.Name)
		}
		names[c.Name] = true
		for _, r := range c.Requires {
			if !names[r] {
				t.Errorf("%s requires %s, which does not come before it", c.Name, r)
			}
		}
		for j, commit := range c.Commits {
			if commit.ID != two.Changes[i].Commits[j].ID || len(commit.ID) != 40 {
				t.Errorf("commit %d of %s is %s and %s", j, c.Name, commit.ID, two.Changes[i].Commits[j].ID)
			}
		}
	}
	if _, err := Make(ctx, one.Dir); err == nil {
		t.Error("a repository that is there is made again")
	}
}

// world is the sample with an auditor of its commits.
type world struct {
	*Repository
	t       *testing.T
	mirror  *gitrepo.Repo
	auditor *audit.Auditor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	r, err := Make(t.Context(), filepath.Join(dir, "sample.git"))
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	mirror, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: r.Dir, Dir: filepath.Join(dir, "mirror.git"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mirror.Close() })
	if err := mirror.Fetch(t.Context(), gitrepo.Wanted{}); err != nil {
		t.Fatal(err)
	}
	if err := mirror.Fetch(t.Context(), gitrepo.Wanted{Commits: r.Prepared()}); err != nil {
		t.Fatal(err)
	}
	cache, err := BuildCache(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q := configuration.NewQueue("sample", configuration.Defaults{Workers: 1, Path: os.Getenv("PATH")})
	q.Steps.Environment.Variables = map[string]string{"GOCACHE": cache}
	a, err := audit.New(audit.Options{
		Repo: mirror, Analysis: q.Analysis, Steps: q.Steps, Workers: runtime.NumCPU(), Dir: filepath.Join(dir, "audit"), Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return &world{Repository: r, t: t, mirror: mirror, auditor: a}
}

// ids are the commits of a change's entries.
func ids(commits []Commit) []string {
	var out []string
	for _, c := range commits {
		out = append(out, c.ID)
	}
	return out
}

// merge puts changes onto the head, one after the other, and gives the commits; merged is how many did.
func (w *world) merge(ctx context.Context, changes ...[]string) (commits []string, merged int) {
	w.t.Helper()
	at := w.Head
	for _, entries := range changes {
		picks, err := landing.Expand(ctx, w.mirror, landing.Squash, w.Head, entries)
		if err != nil {
			w.t.Fatal(err)
		}
		landed, conflict, err := landing.Commits(ctx, w.mirror, at, picks, landing.Meta{Change: "test", Date: "1767600000 +0000"})
		if err != nil {
			w.t.Fatal(err)
		}
		if conflict != nil {
			return commits, merged
		}
		commits = append(commits, landed.Commits...)
		at, merged = landed.Commits[len(landed.Commits)-1], merged+1
	}
	return commits, merged
}

func TestTheHistoryIsGreenAndEveryChangeIsAloneWhatItClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("builds some 150 targets")
	}
	ctx, w := t.Context(), newWorld(t)
	history, err := audit.Range(ctx, w.mirror, Branch, "", "")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	all = append(all, history...)
	all = append(all, ids(w.Direct.Commits)...)
	claims := map[string]string{}
	for _, c := range w.Changes {
		all = append(append(all, ids(c.Commits)...), ids(c.Better)...)
		for _, id := range ids(c.Commits) {
			claims[id] = "green"
		}
		last := c.Commits[len(c.Commits)-1].ID
		switch {
		case c.Name == "matrix-rename":
			claims[c.Commits[1].ID] = "failed"
		case c.Rivals != "", c.Name == Withdrawn, c.Want == Landed && len(c.Requires) == 0 && c.Better == nil, c.Want == Requirement:
		case c.Want == Invalid:
			claims[last] = "invalid"
		case c.Want == TimedOut:
			claims[last] = "timed out"
		default: // it fails, or does before it is made better, or without what it requires
			claims[last] = "failed"
		}
	}
	report, err := w.auditor.Judge(ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d commits, %d versions, %d steps in %s, %s of work", len(report.Commits), report.Versions, report.Steps, report.Took, report.Busy)
	if n := report.Commits[len(history)-1].Targets; n < 30 || n > 35 {
		t.Errorf("the sample has %d targets", n)
	}
	for _, c := range report.Commits {
		want, got := claims[c.ID], "green"
		if want == "" {
			want = "green"
		}
		if !c.Green() {
			got = c.Bad[0].Outcome
		}
		if got != want {
			t.Errorf("%s (%s) is %s, not %s", c.Title, c.Author, got, want)
			for _, f := range c.Bad {
				t.Logf("%s: %s\n%s", f.Target, f.Reason, f.Tail)
			}
		}
	}
	w.checkRivals(ctx)
	w.checkAllTogether(ctx)
}

// checkRivals: any two of them do not merge, or break together, as the loser's ending says. What one
// requires makes it green.
func (w *world) checkRivals(ctx context.Context) {
	w.t.Helper()
	for i, a := range w.Changes {
		for _, b := range w.Changes[i+1:] {
			if a.Rivals == "" || a.Rivals != b.Rivals {
				continue
			}
			for _, pair := range [][]Change{{a, b}, {b, a}} {
				commits, merged := w.merge(ctx, ids(pair[0].Commits), ids(pair[1].Commits))
				if a.Want == NoMerge {
					if merged != 1 {
						w.t.Errorf("%s and %s merge", a.Name, b.Name)
					}
					continue
				}
				report, err := w.auditor.Judge(ctx, commits)
				if err != nil {
					w.t.Fatal(err)
				}
				if merged != 2 || !report.Commits[0].Green() || report.Commits[1].Green() {
					w.t.Errorf("%s, then %s: %d merge, %d green", pair[0].Name, pair[1].Name, merged, report.Green())
				}
			}
		}
	}
}

// checkAllTogether: everything that is to land does, with the first of each group of rivals, and in the
// opposite order too.
func (w *world) checkAllTogether(ctx context.Context) {
	w.t.Helper()
	var landing [][]string
	taken := map[string]bool{}
	for _, c := range w.Changes {
		if c.Want != Landed && (c.Rivals == "" || taken[c.Rivals]) {
			continue
		}
		taken[c.Rivals] = true
		entries := ids(c.Commits)
		if c.Better != nil {
			entries = ids(c.Better)
		}
		landing = append(landing, entries)
	}
	landing = append(landing, ids(w.Direct.Commits))
	var heads []string
	for range 2 {
		commits, merged := w.merge(ctx, landing...)
		if merged != len(landing) {
			w.t.Fatalf("%d of %d changes merge one after the other", merged, len(landing))
		}
		heads = append(heads, commits[len(commits)-1])
		slices.Reverse(landing)
	}
	report, err := w.auditor.Judge(ctx, heads)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range report.Commits {
		for _, f := range c.Bad {
			w.t.Errorf("all together: %s: %s\n%s", f.Target, f.Reason, f.Tail)
		}
	}
}
