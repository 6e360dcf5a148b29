package pinning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"landfall.build/engine/admission"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

type fixture struct {
	t             testing.TB
	remote, clone string
	mirror        *counting
}

// counting counts what would start a git process.
type counting struct {
	*gitrepo.Repo
	processes atomic.Int64
	fail      error
	// costly are what is told of names that take git long, one answer after another; costs is how often it was asked for them.
	costly map[string][]error
	costs  int
	whose  map[string][]string // of the last call
}

func (c *counting) FetchSome(ctx context.Context, w gitrepo.Wanted) (gitrepo.Missing, error) {
	if !w.Change {
		return nil, errors.New("a change is fetched without bounds")
	}
	c.whose = w.Whose
	if c.fail != nil {
		return nil, c.fail
	}
	missing, left := gitrepo.Missing{}, gitrepo.Wanted{Change: true}
	of := func(name string) bool {
		if len(c.costly[name]) > 0 {
			missing[name], c.costly[name] = c.costly[name][0], c.costly[name][1:]
			c.costs++
		}
		return missing[name] != nil
	}
	for _, name := range w.Branches {
		if !of(name) {
			left.Branches = append(left.Branches, name)
			c.processes.Add(1)
		}
	}
	for _, id := range w.Commits {
		if !of(id) {
			left.Commits = append(left.Commits, id)
		}
	}
	if len(left.Branches)+len(left.Commits) == 0 {
		return missing, nil
	}
	lacking, err := c.Repo.FetchSome(ctx, left)
	maps.Copy(missing, lacking)
	return missing, err
}

func (c *counting) Fetch(ctx context.Context, w gitrepo.Wanted) error {
	if c.fail != nil {
		return c.fail
	}
	if len(w.Branches) > 0 {
		c.processes.Add(1)
	}
	return c.Repo.Fetch(ctx, w)
}

func (c *counting) RemoteRefs(ctx context.Context, refs []string) (map[string]string, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	c.processes.Add(1)
	return c.Repo.RemoteRefs(ctx, refs)
}

func (c *counting) IsAncestor(ctx context.Context, a, d string) (bool, error) {
	c.processes.Add(1)
	return c.Repo.IsAncestor(ctx, a, d)
}

func (c *counting) MergeBase(ctx context.Context, a, b string) (string, error) {
	c.processes.Add(1)
	return c.Repo.MergeBase(ctx, a, b)
}

func (c *counting) Commits(ctx context.Context, base, head string) ([]string, error) {
	c.processes.Add(1)
	return c.Repo.Commits(ctx, base, head)
}

func (c *counting) FirstParents(ctx context.Context, from, to string, limit int) ([]string, error) {
	c.processes.Add(1)
	return c.Repo.FirstParents(ctx, from, to, limit)
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, remote: filepath.Join(t.TempDir(), "remote.git"), clone: filepath.Join(t.TempDir(), "clone")}
	f.run("", "init", "--quiet", "--bare", "--initial-branch=main", f.remote)
	f.run("", "clone", "--quiet", f.remote, f.clone)
	f.git("checkout", "--quiet", "-b", "main")
	f.commit("begin")
	f.git("push", "--quiet", "origin", "main")
	repo, err := gitrepo.Open(context.Background(), gitrepo.Options{Remote: f.remote, Dir: filepath.Join(t.TempDir(), "mirror.git")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { repo.Close() })
	f.mirror = &counting{Repo: repo}
	return f
}

func (f *fixture) run(dir string, args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (f *fixture) git(args ...string) string { f.t.Helper(); return f.run(f.clone, args...) }

func (f *fixture) commit(name string) string {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.clone, name), []byte(name+"\n"), 0o644); err != nil {
		f.t.Fatal(err)
	}
	f.git("add", name)
	f.git("commit", "--quiet", "-m", "Add "+name+"\n\nBecause of "+name+".")
	return f.git("rev-parse", "HEAD")
}

func entries(commits ...string) []*eventsv1.Entry {
	var out []*eventsv1.Entry
	for _, c := range commits {
		out = append(out, &eventsv1.Entry{Commit: c})
	}
	return out
}

// pin looks for the entries' refs, and pins them.
func pin(p *Pinner, ctx context.Context, entries []*eventsv1.Entry, head string) (admission.Pinned, error) {
	return p.Pin(ctx, entries, head, p.Look(ctx, entries))
}

// The answers from the mainline's window are those that git itself gives, on histories with merges, old
// branches, stacks, and a mainline that moves and is rewritten.
func TestPinsAreThoseOfPlainGit(t *testing.T) {
	random := seedtest.Random(t)
	f := newFixture(t)
	known := []string{f.git("rev-parse", "HEAD")}
	pinners := map[landing.Strategy]*Pinner{}
	for _, s := range []landing.Strategy{landing.Squash, landing.Rebase, landing.Merge} {
		pinners[s] = New(f.mirror, "main", s)
	}
	for step := range 40 {
		base := known[random.IntN(len(known))]
		f.git("checkout", "--quiet", "--detach", base)
		for i := range 1 + random.IntN(3) {
			known = append(known, f.commit(fmt.Sprintf("f%d-%d", step, i)))
		}
		switch random.IntN(4) {
		case 0:
			f.git("merge", "--quiet", "--no-edit", "--no-ff", known[random.IntN(len(known))])
			known = append(known, f.git("rev-parse", "HEAD"))
		case 1: // the mainline takes a merge of it
			f.git("checkout", "--quiet", "main")
			f.git("merge", "--quiet", "--no-edit", "--no-ff", known[len(known)-1])
			known = append(known, f.git("rev-parse", "HEAD"))
		case 2: // the mainline takes it as it is, or is rewritten to it
			f.git("branch", "--quiet", "--force", "main", known[len(known)-1])
		}
		f.git("push", "--quiet", "--force", "origin", "main", "HEAD:refs/heads/last")
		head := f.git("rev-parse", "main")
		want := []string{known[random.IntN(len(known))]}
		if random.IntN(3) == 0 {
			want = append(want, known[len(known)-1])
		}
		for strategy, pinner := range pinners {
			ctx := context.Background()
			got, err := pin(pinner, ctx, entries(want...), head)
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			picks, plainErr := landing.Expand(ctx, f.mirror.Repo, strategy, head, want)
			if plainErr != nil {
				var refusal *admission.Refusal
				if !errors.As(refusalOf(plainErr, nil), &refusal) || got.Problem == nil || got.Problem.Code != refusal.Code {
					t.Fatalf("step %d, %s, %v on %s: %v, git says %v", step, strategy, want, head, got.Problem, plainErr)
				}
				continue
			}
			if got.Problem != nil || got.Mainline != head {
				t.Fatalf("step %d, %s, %v on %s: %v on %s, git has no problem", step, strategy, want, head, got.Problem, got.Mainline)
			}
			var plain, pinned []string
			for _, p := range picks {
				plain = append(plain, fmt.Sprint(p.Head, p.Base, p.Merge))
			}
			for _, c := range got.LandingCommits {
				pinned = append(pinned, fmt.Sprint(c.Head, c.Base, c.Merge))
			}
			if !slices.Equal(plain, pinned) {
				t.Fatalf("step %d, %s: %v, git gives %v", step, strategy, pinned, plain)
			}
			if below := f.below(want[0], picks[0].Base); !slices.Equal(got.Below, below) {
				t.Fatalf("step %d, %s: below %s is %v, git gives %v", step, strategy, want[0], got.Below, below)
			}
		}
	}
}

// below goes from a head to its base by what git says of each commit's parents.
func (f *fixture) below(head, base string) []string {
	var below []string
	for {
		parents := strings.Fields(f.git("log", "-1", "--format=%P", head))
		if len(parents) != 1 || parents[0] == base {
			return below
		}
		head = parents[0]
		below = append(below, head)
	}
}

func TestAKnownCommitCostsNoGitProcess(t *testing.T) {
	f := newFixture(t)
	var heads []string
	for i := range 5 {
		f.git("checkout", "--quiet", "-B", fmt.Sprint("b", i), "main")
		f.commit(fmt.Sprint("lower", i))
		heads = append(heads, f.commit(fmt.Sprint("upper", i)))
	}
	f.git("push", "--quiet", "origin", "--all")
	ctx := context.Background()
	if err := f.mirror.Repo.Fetch(ctx, gitrepo.Wanted{}); err != nil {
		t.Fatal(err)
	}
	for _, strategy := range []landing.Strategy{landing.Squash, landing.Rebase, landing.Merge} {
		p := New(f.mirror, "main", strategy)
		if _, err := pin(p, ctx, entries(heads[0]), ""); err != nil {
			t.Fatal(err)
		}
		before := f.mirror.processes.Load()
		for _, head := range heads {
			got, err := pin(p, ctx, entries(head), f.git("rev-parse", "main"))
			if err != nil || got.Problem != nil {
				t.Fatal(err, got.Problem)
			}
			if strategy == landing.Rebase && len(got.LandingCommits) != 2 {
				t.Errorf("%d landing commits", len(got.LandingCommits))
			}
			if !strings.HasPrefix(got.Title, "Add upper") || !strings.HasPrefix(got.Description, "Because of upper") || got.Author != "Ada <ada@example.org>" {
				t.Errorf("pinned as %q %q %q", got.Title, got.Description, got.Author)
			}
		}
		if n := f.mirror.processes.Load() - before; n != 0 {
			t.Errorf("%s: %d git processes", strategy, n)
		}
	}
}

func TestARemoteThatDoesNotAnswerIsNotTheRequestsFault(t *testing.T) {
	f := newFixture(t)
	f.mirror.fail = fmt.Errorf("no route: %w", gitrepo.ErrUnreachable)
	if _, err := pin(New(f.mirror, "main", landing.Squash), context.Background(), []*eventsv1.Entry{{Ref: "x"}}, ""); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the error is %v", err)
	}
}

func TestAQueueWithoutItsBranchSaysSo(t *testing.T) {
	f := newFixture(t)
	got, err := pin(New(f.mirror, "release", landing.Squash), context.Background(), []*eventsv1.Entry{{Ref: "main"}}, "")
	if err != nil || got.Problem == nil || got.Problem.Code != admission.NoSuchRef || !strings.Contains(got.Problem.Message, `"release"`) {
		t.Errorf("%v %v", got.Problem, err)
	}
}

func TestATagAndAnOldCommitOfABranchCanBeLanded(t *testing.T) {
	f := newFixture(t)
	f.git("checkout", "--quiet", "-b", "topic")
	old := f.commit("one")
	f.git("tag", "v1")
	f.git("tag", "--annotate", "--message", "A note.", "noted")
	f.commit("two")
	f.git("push", "--quiet", "origin", "topic", "v1", "noted")
	p := New(f.mirror, "main", landing.Squash)
	for _, e := range []*eventsv1.Entry{{Ref: "v1"}, {Ref: "refs/tags/v1"}, {Commit: old}, {Ref: "v1", Commit: old}, {Ref: "noted", Commit: old}} {
		got, err := pin(p, context.Background(), []*eventsv1.Entry{e}, "")
		if err != nil || got.Problem != nil || got.Entries[0].Commit != old || got.Entries[0].Ref != e.Ref {
			t.Errorf("%v: %v %v", e, got, err)
		}
	}
}

// TestARefThatIsGivenWithACommitMustHoldIt at the moment, whatever the mirror has.
func TestARefThatIsGivenWithACommitMustHoldIt(t *testing.T) {
	f := newFixture(t)
	f.git("checkout", "--quiet", "-b", "topic")
	approved := f.commit("one")
	f.git("push", "--quiet", "origin", "topic", "topic:refs/review/7/head")
	p := New(f.mirror, "main", landing.Squash)
	both := func(ref string, commit string) []*eventsv1.Entry {
		return []*eventsv1.Entry{{Ref: ref, Commit: commit}}
	}
	want := func(entries []*eventsv1.Entry, code admission.Code) {
		t.Helper()
		got, err := pin(p, t.Context(), entries, "")
		if err != nil {
			t.Fatal(err)
		}
		if code == "" {
			if got.Problem != nil || got.Entries[0].Commit != entries[0].Commit {
				t.Errorf("%v: %v", entries, got)
			}
		} else if got.Problem == nil || got.Problem.Code != code {
			t.Errorf("%v: %v, want %s", entries, got.Problem, code)
		}
	}
	want(both("topic", approved), "")
	want(both("refs/review/7/head", approved), "")
	pushed := f.commit("two")
	want(both("topic", pushed), admission.RefMoved) // not pushed yet
	f.git("push", "--quiet", "origin", "topic")
	want(both("topic", approved), admission.RefMoved)
	want(both("topic", pushed), "")
	want(both("refs/review/7/head", approved), "")
	want([]*eventsv1.Entry{{Ref: "refs/review/7/head", Commit: approved}, {Ref: "topic", Commit: approved}}, admission.RefMoved)
	want(entries(approved), "") // alone it is what lands
	f.git("push", "--quiet", "--delete", "origin", "topic")
	want(both("topic", pushed), admission.NoSuchRef)
	want(entries(pushed), "")
	f.mirror.fail = fmt.Errorf("no route: %w", gitrepo.ErrUnreachable)
	if _, err := pin(p, t.Context(), both("refs/review/7/head", approved), ""); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the remote does not answer: %v", err)
	}
}

// TestOneLookIsForAllRefs of a batch, and none for commits alone.
func TestOneLookIsForAllRefs(t *testing.T) {
	f := newFixture(t)
	p := New(f.mirror, "main", landing.Squash)
	var requests [][]*eventsv1.Entry
	for i := range 300 {
		requests = append(requests, []*eventsv1.Entry{{Ref: fmt.Sprint("ghost-", i)}, {Ref: "main"}}, entries(f.git("rev-parse", "HEAD")))
	}
	sight := p.Look(t.Context(), requests...)
	if n := f.mirror.processes.Load(); n != 1 || sight.err != nil || len(sight.at) != 1 {
		t.Errorf("%d questions, %v", n, sight)
	}
	if p.Look(t.Context(), requests[1]); f.mirror.processes.Load() != 1 {
		t.Error("commits alone need no look")
	}
}

func TestARefusalNamesTheEntryAsTheRequestDoes(t *testing.T) {
	f := newFixture(t)
	f.git("checkout", "--quiet", "-b", "one", "main")
	f.commit("one")
	f.git("checkout", "--quiet", "-b", "two", "main")
	two := f.commit("two")
	f.git("push", "--quiet", "origin", "one", "two")
	got, err := pin(New(f.mirror, "main", landing.Squash), context.Background(), []*eventsv1.Entry{{Ref: "one"}, {Ref: "two"}}, "")
	if err != nil || got.Problem == nil || got.Problem.Code != admission.NotAStack {
		t.Fatalf("%v %v", got.Problem, err)
	}
	for _, name := range []string{"Entry two (" + two[:12] + ")", "before it, one ("} {
		if !strings.Contains(got.Problem.Message, name) {
			t.Errorf("%q lacks %q", got.Problem.Message, name)
		}
	}
}

func TestATreeIsRefusedAsNoCommitAndNotTakenForAnUnreachableRepository(t *testing.T) {
	f := newFixture(t)
	tree := f.git("rev-parse", "main^{tree}")
	got, err := pin(New(f.mirror, "main", landing.Squash), context.Background(), entries(tree), "")
	if err != nil || got.Problem == nil || got.Problem.Code != admission.NoSuchCommit {
		t.Errorf("%v %v", got.Problem, err)
	}
}

// TestWhatTheMainlineHoldsUnderAnotherIdIsSeen: squashed commits leave no trace of the branch that they came from.
func TestWhatTheMainlineHoldsUnderAnotherIdIsSeen(t *testing.T) {
	f := newFixture(t)
	begin := f.git("rev-parse", "HEAD")
	f.git("checkout", "--quiet", "-b", "topic")
	lower := f.commit("lower")
	upper := f.commit("upper")
	f.git("checkout", "--quiet", "-b", "more")
	more := f.commit("more")
	f.git("checkout", "--quiet", "-b", "back", begin)
	back := f.commit("unrelated")
	f.git("checkout", "--quiet", "main")
	pinned := func(heads ...string) admission.Pinned {
		t.Helper()
		f.git("push", "--quiet", "--all", "origin")
		got, err := pin(New(f.mirror, "main", landing.Squash), t.Context(), entries(heads...), f.git("rev-parse", "main"))
		if err != nil || got.Problem != nil {
			t.Fatal(err, got.Problem)
		}
		return got
	}
	f.commit("elsewhere")
	if pinned(upper).Held || pinned(lower, upper).Held {
		t.Error("the mainline has none of it")
	}
	f.git("merge", "--quiet", "--squash", "topic")
	f.git("commit", "--quiet", "-m", "all of topic")
	f.commit("farther on")
	if !pinned(upper).Held || !pinned(lower).Held || !pinned(lower, upper).Held {
		t.Error("the mainline has all of it")
	}
	if pinned(more).Held || pinned(upper, more).Held || pinned(back).Held {
		t.Error("the mainline has only a part of it")
	}
	f.git("rm", "--quiet", "upper")
	f.git("commit", "--quiet", "-m", "taken back")
	if pinned(upper).Held || !pinned(lower).Held {
		t.Error("what was taken back can land again")
	}
}

// A pack of 7 MB held 200 commits with messages of 32 MiB each, all of which were kept until the request was answered.
func TestCommitsOfManyMegabytesAreRefused(t *testing.T) {
	f := newFixture(t)
	head, tree := f.git("rev-parse", "HEAD"), f.git("rev-parse", f.commit("more")+"^{tree}")
	message := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(message, []byte(strings.Repeat("long ", mostRead/5/4)), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		head = f.git("commit-tree", "-F", message, "-p", head, tree)
	}
	f.git("push", "--quiet", "origin", head+":refs/heads/long", head+"~3:refs/heads/short")
	for ref, want := range map[string]admission.Code{"long": admission.BadRequest, "short": ""} {
		pinned, err := pin(New(f.mirror, "main", landing.Squash), t.Context(), []*eventsv1.Entry{{Ref: ref}}, "")
		if err != nil {
			t.Fatal(err)
		}
		got := admission.Code("")
		if pinned.Problem != nil {
			got = pinned.Problem.Code
		}
		if got != want {
			t.Errorf("%s: %q, want %q", ref, got, want)
		}
	}
}

// What git takes long to fetch is asked for again, until it is known to take too long: then it is refused, and not fetched again.
func TestWhatTakesTooLongToFetchIsRefused(t *testing.T) {
	f := newFixture(t)
	f.git("checkout", "--quiet", "--detach")
	slow := f.commit("slow")
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/slow", "HEAD:refs/heads/again")
	f.git("checkout", "--quiet", "--detach", "main")
	other := f.commit("other")
	f.git("push", "--quiet", "origin", "HEAD:refs/heads/other")
	tooLong := fmt.Errorf("git takes longer than 2m0s: %w", gitrepo.ErrTooLarge)
	for _, asked := range [][]*eventsv1.Entry{{{Ref: "slow"}}, {{Commit: slow}}} {
		name := asked[0].Commit
		if name == "" {
			name = "refs/heads/slow"
		}
		f.mirror.costly, f.mirror.costs = map[string][]error{name: {gitrepo.ErrSlow, tooLong, nil}}, 0
		p := New(f.mirror, "main", landing.Squash)
		ask := func() (admission.Pinned, error) {
			sight := p.Look(t.Context(), asked)
			sight.By("ada", asked)
			sight.By("bob", asked)
			sight.By("", asked)
			sight, err := p.Fetch(t.Context(), "", sight, asked, entries(other))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.Pin(t.Context(), entries(other), "", sight); err != nil || got.Problem != nil {
				t.Errorf("another one: %v, %v", got.Problem, err)
			}
			return p.Pin(t.Context(), asked, "", sight)
		}
		if got, err := ask(); !errors.Is(err, gitrepo.ErrSlow) || !slices.Equal(f.mirror.whose[name], []string{"ada", "bob"}) || errors.Is(err, ErrUnreachable) {
			t.Errorf("%s at first: %v, %v, want ErrSlow", name, got.Problem, err)
		}
		for range 2 {
			got, err := ask()
			if err != nil || got.Problem == nil || got.Problem.Code != admission.BadRequest || !strings.Contains(got.Problem.Message, "longer than 2m0s") ||
				!strings.HasPrefix(got.Problem.Message, "Fetching "+cmp.Or(asked[0].Ref, slow)+": ") {
				t.Errorf("%s then: %+v, %v", name, got.Problem, err)
			}
		}
		if f.mirror.costs != 2 {
			t.Errorf("%s was fetched %d times", name, f.mirror.costs)
		}
		// Who asks for the same commit by another name reads of that.
		asked = []*eventsv1.Entry{{Ref: "refs/heads/again"}}
		if got, err := ask(); err != nil || got.Problem == nil || !strings.HasPrefix(got.Problem.Message, "Fetching refs/heads/again: ") {
			t.Errorf("by another name: %+v, %v", got.Problem, err)
		}
	}
}
