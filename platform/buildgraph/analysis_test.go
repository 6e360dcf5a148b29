package buildgraph

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

type files map[string]string

// fixture is a repository that is its own remote.
type fixture struct {
	*testing.T
	dir  string
	repo *gitrepo.Repo
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, dir: t.TempDir()}
	f.git("init", "--quiet", "--initial-branch=main", ".")
	repo, err := gitrepo.Open(t.Context(), gitrepo.Options{Remote: f.dir, Dir: filepath.Join(t.TempDir(), "mirror")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	f.repo = repo
	return f
}

func (f *fixture) git(args ...string) string {
	f.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = f.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=1700000000 +0100",
		"GIT_COMMITTER_NAME=Bob", "GIT_COMMITTER_EMAIL=bob@example.com", "GIT_COMMITTER_DATE=1700000100 +0000",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commits makes one commit of each set of edits on top of a parent, and fetches them; "-" deletes.
func (f *fixture) commits(parent string, edits ...files) []string {
	f.Helper()
	if parent != "" {
		f.git("checkout", "--quiet", "--force", "--detach", parent)
	}
	var ids []string
	for _, edit := range edits {
		for _, path := range slices.Sorted(maps.Keys(edit)) {
			full := filepath.Join(f.dir, path)
			if edit[path] == "-" {
				os.Remove(full)
				continue
			}
			os.MkdirAll(filepath.Dir(full), 0o777)
			if err := os.WriteFile(full, []byte(edit[path]), 0o666); err != nil {
				f.Fatal(err)
			}
		}
		f.git("add", "--all")
		f.git("commit", "--quiet", "--allow-empty", "-m", "edit")
		ids = append(ids, f.git("rev-parse", "HEAD"))
	}
	f.git("update-ref", "refs/heads/kept-"+ids[len(ids)-1], ids[len(ids)-1])
	if err := f.repo.Fetch(f.Context(), gitrepo.Wanted{}); err != nil {
		f.Fatal(err)
	}
	return ids
}

func (f *fixture) analyze(settings configuration.Analysis, base string, edits ...files) *Result {
	f.Helper()
	var picks []landing.Pick
	below := base
	for _, id := range f.commits(base, edits...) {
		picks = append(picks, landing.Pick{Head: id, Base: below})
		below = id
	}
	result, err := Analyze(f.Context(), NewLoader(configuration.Queue{Analysis: settings}, nil), f.repo, base, picks)
	if err != nil {
		f.Fatal(err)
	}
	return result
}

func versions(r *Result) string {
	var list []string
	for _, v := range r.Targets {
		list = append(list, fmt.Sprintf("%s@%d", v.Target, v.Part))
	}
	return strings.Join(list, " ")
}

var (
	auto     = configuration.Analysis{Adapter: configuration.AdapterAuto}
	stepped  = configuration.Analysis{Adapter: configuration.AdapterAuto, WholeRepositorySteps: []configuration.Step{{Name: "all", Run: []string{"make", "check"}}}}
	strictly = configuration.Analysis{Adapter: configuration.AdapterManifest}
)

const twoTargets = `targets:
  - {name: a, sources: [a.txt], steps: [{name: check, run: [check, a]}]}
  - {name: b, sources: [b.txt], deps: [":a"], steps: [{name: check, run: [check, b]}]}
  - {name: c, sources: [c.txt]}
`

func base(f *fixture) string {
	return f.commits("", files{"landfall.yaml": twoTargets, "a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n"})[0]
}

func TestAnalyzeUnitesThePrefixesEachAgainstTheBase(t *testing.T) {
	f := newFixture(t)
	r := f.analyze(auto, base(f), files{"b.txt": "2\n"}, files{"a.txt": "2\n"}, files{"a.txt": "1\n", "c.txt": "2\n"})
	// The third commit gives a its first version back, and b the one that it has since the first.
	if got := versions(r); got != "//:a@2 //:b@1 //:b@2 //:c@3" {
		t.Errorf("δ = %s", got)
	}
	if !r.Targets[3].Trivial || r.Targets[0].Trivial {
		t.Errorf("only //:c has no steps: %v", r.Targets)
	}
	if got := fmt.Sprint(r.Leaves); got != "[file:a.txt file:b.txt file:c.txt]" {
		t.Errorf("leaves = %s", got)
	}
	for _, v := range r.Targets {
		if again := r.Parts[v.Part-1].Version(v.Target, v.Part); again.Hash != v.Hash {
			t.Errorf("%s is %s in δ and %s in its part", v.Target, v.Hash, again.Hash)
		}
	}
	if v := r.Parts[0].Version("//:none", 1); !v.Absent || v.Hash != "" {
		t.Errorf("a target that is not there: %v", v)
	}
}

func TestAnalyzeSaysWhichPartDoesNotMergeAndWhichIsInvalid(t *testing.T) {
	f := newFixture(t)
	old := base(f)
	ids := f.commits(old, files{"c.txt": "2\n"}, files{"a.txt": "mine\n"})
	picks := []landing.Pick{{Head: ids[0], Base: old}, {Head: ids[1], Base: ids[0]}}
	onto := f.commits(old, files{"a.txt": "theirs\n"})[0]
	r, err := Analyze(t.Context(), NewLoader(configuration.Queue{Analysis: auto}, nil), f.repo, onto, picks)
	if err != nil || r.Conflict == nil || r.Conflict.Pick != 1 || fmt.Sprint(r.Conflict.Paths) != "[a.txt]" {
		t.Errorf("conflict: %+v, %v", r, err)
	}
	r = f.analyze(auto, old, files{"c.txt": "2\n"}, files{"landfall.yaml": "targets:\n  - nonsense\n"}, files{"landfall.yaml": twoTargets})
	if r.Invalid == nil || r.InvalidPart != 2 || !strings.HasPrefix(r.Invalid.Message, "landfall.yaml:2:") {
		t.Errorf("invalid: %+v in part %d", r.Invalid, r.InvalidPart)
	}
}

func TestOnABrokenBaseAChangeIsTheWholeRepositoryAndNotToBlame(t *testing.T) {
	f := newFixture(t)
	broken := f.commits("", files{"landfall.yaml": "targets: 7\n", "a.txt": "1\n", "b.txt": "1\n", "c.txt": "1\n"})[0]
	innocent := f.analyze(stepped, broken, files{"a.txt": "2\n"})
	if innocent.Invalid != nil || !innocent.All || versions(innocent) != "//:repository@1" || len(innocent.Reasons) == 0 {
		t.Errorf("innocent: %+v", innocent)
	}
	repair := f.analyze(stepped, broken, files{"landfall.yaml": twoTargets}, files{"a.txt": "2\n"})
	if repair.Invalid != nil || !repair.All || versions(repair) != "//:repository@1 //:repository@2" {
		t.Errorf("repair: %+v", repair)
	}
	whole, ok := repair.Parts[0].Target(targets.Repository)
	if !ok || len(whole.Commands) != 1 || whole.Commands[0].Name != "all" {
		t.Errorf("the whole repository is verified by %+v, want the queue's steps", whole.Commands)
	}
	// Without the queue's steps the tree's own verify it, if they are known.
	repair = f.analyze(auto, broken, files{"landfall.yaml": twoTargets})
	whole, _ = repair.Parts[0].Target(targets.Repository)
	if len(whole.Commands) != 2 || IsTrivial(whole) {
		t.Errorf("the repaired repository is verified by %+v, want the steps of its targets", whole.Commands)
	}
	innocent = f.analyze(auto, broken, files{"a.txt": "2\n"})
	if whole, _ = innocent.Parts[0].Target(targets.Repository); len(whole.Commands) != 0 || IsTrivial(whole) || innocent.Targets[0].Trivial {
		t.Errorf("a repository that nothing can verify is green by definition: %+v", whole)
	}
}

func TestTheWholeRepositoryIsOneVersionOfEachTree(t *testing.T) {
	f := newFixture(t)
	start := f.commits("", files{"a.txt": "1\n"})[0]
	r := f.analyze(stepped, start, files{"a.txt": "2\n"}, files{"b.txt": "2\n"})
	if versions(r) != "//:repository@1 //:repository@2" || r.All || len(r.Created) > 0 || r.Adapter != "whole-repository" {
		t.Errorf("%+v", r)
	}
	if r := f.analyze(stepped, start, files{"landfall.yaml": twoTargets, "b.txt": "1\n", "c.txt": "1\n"}); versions(r) != "//:a@1 //:b@1 //:c@1" || fmt.Sprint(r.Deleted) != "[//:repository]" {
		t.Errorf("the first manifest: δ = %s, deleted %v", versions(r), r.Deleted)
	} else if created := r.Affected().Created; !slices.Equal(created, []uint32{0, 1, 2}) {
		t.Errorf("of the first manifest's targets the base lacks those at %v", created)
	}
	if r := f.analyze(strictly, base(f), files{"landfall.yaml": "-"}); r.Invalid == nil {
		t.Errorf("a queue that insists on manifests takes a tree without one: %+v", r)
	}
}

func TestAMissingCommitIsAnErrorAndNoFact(t *testing.T) {
	f := newFixture(t)
	start := base(f)
	nobody := strings.Repeat("1", 40)
	if r, err := Analyze(t.Context(), NewLoader(configuration.Queue{Analysis: auto}, nil), f.repo, start, []landing.Pick{{Head: nobody, Base: start}}); err == nil {
		t.Errorf("%+v", r)
	}
	if r, err := Analyze(t.Context(), NewLoader(configuration.Queue{Analysis: auto}, nil), f.repo, nobody, nil); err == nil {
		t.Errorf("%+v", r)
	}
}

func TestGraphIsTheSameForAllWhoAskAtOnce(t *testing.T) {
	f := newFixture(t)
	tree, err := f.repo.TreeOf(t.Context(), base(f))
	if err != nil {
		t.Fatal(err)
	}
	loader := NewLoader(configuration.Queue{Analysis: auto}, nil)
	graphs := make([]*targets.Graph, 16)
	var all sync.WaitGroup
	for i := range graphs {
		all.Go(func() { graphs[i], _ = loader.Graph(t.Context(), f.repo, tree) })
	}
	all.Wait()
	for _, g := range graphs {
		if g == nil || g != graphs[0] {
			t.Fatal("the graph of one tree was loaded more than once")
		}
	}
}
