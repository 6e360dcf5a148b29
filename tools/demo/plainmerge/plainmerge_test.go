package plainmerge

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
	"landfall.build/services/builder/execution"
	"landfall.build/tools/audit"
	"landfall.build/tools/audit/audittest"
)

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	os.Exit(m.Run())
}

// A change breaks a, one conflicts with it, one defines no targets, one touches b, one repairs a by going on
// from the first, one breaks b and c at once.
func TestEachMergeThatTurnsAGreenTargetRedIsCountedOnce(t *testing.T) {
	r := audittest.New(t)
	files := audittest.Target("a")
	maps.Copy(files, audittest.Target("b"))
	maps.Copy(files, audittest.Target("c"))
	start := r.Commit("begin", files)
	change := func(name, base string, files map[string]string) Request {
		t.Helper()
		r.Git("checkout", "--quiet", "-b", name, base)
		return Request{Name: name, Picks: []landing.Pick{{Base: base, Head: r.Commit(name, files)}}}
	}
	breaks := change("breaks-a", start, map[string]string{"a/a.txt": "bad\n"})
	requests := []Request{
		breaks,
		change("conflicts", start, map[string]string{"a/a.txt": "good, but too late\n"}),
		change("typo", start, map[string]string{"d/landfall.yaml": "targets:\n  - name: d\n    deps: [//nowhere]\n"}),
		change("touches-b", start, map[string]string{"b/more.txt": "more\n"}),
		change("repairs-a", breaks.Picks[0].Head, map[string]string{"a/a.txt": "good again\n"}),
		change("breaks-b-and-c", start, map[string]string{"b/b.txt": "bad\n", "c/c.txt": "bad\n"}),
	}
	ctx, dir := t.Context(), t.TempDir()
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	repo, err := gitrepo.Open(ctx, gitrepo.Options{Remote: r.Dir, Dir: filepath.Join(dir, "mirror.git"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer repo.Close()
	if err := repo.Fetch(ctx, gitrepo.Wanted{}); err != nil {
		t.Fatal(err)
	}
	q := configuration.NewQueue("q", configuration.Defaults{Workers: 1, Path: os.Getenv("PATH")})
	chain, err := Merge(ctx, repo, buildgraph.NewLoader(q, nil), start, requests)
	if err != nil {
		t.Fatal(err)
	}
	var merged []string
	for _, m := range chain.Merged {
		merged = append(merged, m.Name)
	}
	if want := []string{"breaks-a", "touches-b", "repairs-a", "breaks-b-and-c"}; !reflect.DeepEqual(merged, want) {
		t.Errorf("merged %q", merged)
	}
	if !reflect.DeepEqual(chain.Refused, []string{"conflicts"}) || !reflect.DeepEqual(chain.Reverted, []string{"typo"}) {
		t.Errorf("refused %q, reverted %q", chain.Refused, chain.Reverted)
	}
	auditor, err := audit.New(audit.Options{Repo: repo, Analysis: q.Analysis, Steps: q.Steps, Workers: 2, Dir: filepath.Join(dir, "audit"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer auditor.Close()
	damage, err := Assess(ctx, auditor, chain)
	if err != nil {
		t.Fatal(err)
	}
	want := []Breaking{{"typo", []string{"//:repository"}}, {"breaks-a", []string{"//a"}}, {"breaks-b-and-c", []string{"//b", "//c"}}}
	if !reflect.DeepEqual(damage.Breaking, want) || damage.RedHeads != 3 || damage.Heads != 4 {
		t.Errorf("%+v", damage)
	}
}
