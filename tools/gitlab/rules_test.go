package gitlab_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"landfall.build/services/hosts"
	hostsgitlab "landfall.build/services/hosts/gitlab"
	"landfall.build/tools/hosttest"
)

// clone is a working copy of the fake's repository, with a branch main and a merge request.
type clone struct {
	*fake
	*hosttest.Clone
	number int
}

func newClone(t *testing.T) *clone {
	c := &clone{fake: newFake(t), Clone: hosttest.NewClone(t)}
	c.AddUser(bot, "admin")
	c.AddUser("ada", "write")
	c.AddUser("bob", "write")
	c.AddUser("eve", "")
	c.Ready("landfall")
	c.Commit("a")
	c.Run("push", "-q", c.Remote(bot), "main")
	c.Run("checkout", "-q", "-b", "one")
	c.Commit("b")
	c.Run("push", "-q", c.Remote("ada"), "one")
	c.jobs.Wait()
	var is bool
	if c.number, is = c.Open("ada", "one"); !is {
		t.Fatal("no merge request can be made")
	}
	return c
}

// adapter is the service's view of the fake's project.
func (c *clone) adapter(change ...func(*hostsgitlab.Options)) *hostsgitlab.Repository {
	return c.adapterAs(bot, change...)
}

func (c *clone) adapterAs(user string, change ...func(*hostsgitlab.Options)) *hostsgitlab.Repository {
	token := "glpat-x"
	if user != "" {
		token = c.Token(user)
	}
	s, err := hostsgitlab.NewServer(c.URL, func(context.Context) ([]byte, error) { return []byte(token), nil })
	if err != nil {
		c.t.Fatal(err)
	}
	o := hostsgitlab.Options{Project: path, Branch: "main", Queue: "main", Label: "landfall", Merges: true}
	for _, f := range change {
		f(&o)
	}
	return s.New(o)
}

func (c *clone) look(r *hostsgitlab.Repository) hosts.Pull {
	c.t.Helper()
	p, err := r.Look(c.t.Context(), int64(c.number), 0, "")
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// TestTheFakeMergesAsGitLabDoes: by the head that is recorded when the job of a push to the target runs.
func TestTheFakeMergesAsGitLabDoes(t *testing.T) {
	for name, test := range map[string]struct {
		push         func(*clone)
		open, merged bool
	}{
		"a merge commit": {func(c *clone) {
			c.Run("checkout", "-q", "main")
			c.Run("merge", "-q", "--no-ff", "one")
			c.Run("push", "-q", c.Remote(bot), "main")
		}, false, true},
		"fast-forward": {func(c *clone) { c.Run("push", "-q", c.Remote(bot), "one:main") }, false, true},
		"squashed": {func(c *clone) {
			c.Squash("one")
			c.Run("push", "-q", c.Remote(bot), "main")
		}, true, false},
		"the branch is deleted": {func(c *clone) { c.Run("push", "-q", c.Remote("ada"), ":one") }, true, false},
		"more is pushed": {func(c *clone) {
			c.Commit("more")
			c.Run("push", "-q", c.Remote("ada"), "one")
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			c.gate.Lock()
			test.push(c)
			if p := c.Pull(c.number); !p.Open {
				t.Error("GitLab does it in a job, and not at once")
			}
			c.gate.Unlock()
			c.jobs.Wait()
			if p := c.Pull(c.number); p.Open != test.open || p.Merged != test.merged {
				t.Errorf("it is %+v", p)
			}
		})
	}
}

func TestTheFakeLetsNobodyPushPastItsProtection(t *testing.T) {
	c := newClone(t)
	c.Protect(0)
	c.Run("checkout", "-q", "main")
	c.Commit("past")
	if out, err := c.Try("push", "-q", c.Remote("ada"), "main"); err == nil || !strings.Contains(out, "protected branches") {
		t.Errorf("ada pushes: %v %s", err, out)
	}
	if out, err := c.Try("push", "-q", "-f", c.Remote("ada"), "main:refs/merge-requests/1/head"); err == nil || !strings.Contains(out, "hidden ref") {
		t.Errorf("ada moves the head: %v %s", err, out)
	}
	if out, err := c.Try("push", "-q", c.Remote(""), "main:x"); err == nil {
		t.Errorf("nobody pushes: %s", out)
	}
	c.Run("push", "-q", c.Remote(bot), "main")
}

// TestAStatusSaysWhatItIsToSay, though GitLab keeps the text of one that is pending: six texts at once, and the next within a minute. What
// has ended is said at any time.
func TestAStatusSaysWhatItIsToSay(t *testing.T) {
	c := newClone(t)
	r := c.adapter()
	if got := c.look(r).Status; got != (hosts.Status{}) {
		t.Errorf("before all it is %+v", got)
	}
	head := c.look(r).Head
	set := func(s hosts.Status) {
		t.Helper()
		if err := r.SetStatus(t.Context(), head, s); err != nil {
			t.Fatal(err)
		}
		if got := c.look(r).Status; got != s {
			t.Errorf("it is %+v, want %+v", got, s)
		}
	}
	pending := func(n int) hosts.Status {
		return hosts.Status{State: hosts.StatusPending, Text: fmt.Sprint("place ", n), URL: "https://landfall.example.com/x"}
	}
	for n := range 6 {
		set(pending(n))
	}
	var later *hosts.Later
	n := 5
	for ; n < 50 && later == nil; n++ {
		if err := r.SetStatus(t.Context(), head, pending(n+1)); err != nil && !errors.As(err, &later) {
			t.Fatal(err)
		}
	}
	if later == nil || time.Until(later.Until) > time.Minute {
		t.Errorf("after %d texts it waits until %+v", n, later)
	}
	if got := c.look(r).Status; got != pending(n-1) {
		t.Errorf("it is %+v", got)
	}
	set(hosts.Status{State: hosts.StatusFailure, Text: "Rejected", URL: "https://landfall.example.com/x"})
	r = c.adapter() // an owner that has seen nothing
	again := hosts.Status{State: hosts.StatusPending, Text: "Asked to land"}
	if err := r.SetStatus(t.Context(), head, again); err != nil {
		t.Fatal(err)
	}
	r = c.adapter()
	if err := r.SetStatus(t.Context(), head, again); err != nil {
		t.Errorf("the same once more: %v", err)
	}
	set(hosts.Status{State: hosts.StatusError, Text: "Cancelled"})
	set(hosts.Status{State: hosts.StatusSuccess, Text: "Landed"})
	shown := 0
	for _, s := range c.statuses {
		if s.Name == hosts.StatusName("main") && !s.retried {
			shown++
		}
	}
	if shown != 1 {
		t.Errorf("GitLab shows %d statuses of the queue", shown)
	}
}

// TestAStatusStaysInItsPipeline until it has ended: else it would stay pending there.
func TestAStatusStaysInItsPipeline(t *testing.T) {
	c := newClone(t)
	r := c.adapter()
	head := c.look(r).Head
	for i, s := range []hosts.Status{{State: hosts.StatusPending, Text: "Asked to land"}, {State: hosts.StatusSuccess, Text: "Landed"}} {
		if err := r.SetStatus(t.Context(), head, s); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			c.Check("ada", head, "ci")
		}
	}
	for _, s := range c.statuses {
		if s.Status != "success" {
			t.Errorf("%s is %s", s.Name, s.Status)
		}
	}
	if len(c.pipelines) != 2 {
		t.Errorf("there are %d pipelines", len(c.pipelines))
	}
	// A pipeline that somebody has deleted takes nothing.
	c.pipelines = c.pipelines[1:]
	c.statuses = nil
	r = c.adapter()
	c.look(r)
	if err := r.SetStatus(t.Context(), head, hosts.Status{State: hosts.StatusPending, Text: "Asked to land"}); err != nil || len(c.statuses) != 1 {
		t.Errorf("there are %d statuses: %v", len(c.statuses), err)
	}
}

// TestAStatusOfSomebodyElseIsNotTheQueues, whatever its name is.
func TestAStatusOfSomebodyElseIsNotTheQueues(t *testing.T) {
	c := newClone(t)
	r := c.adapter()
	head := c.look(r).Head
	c.mu.Lock()
	_, no := c.setStatus(c.users["ada"], head, gitlab.SetCommitStatusOptions{State: gitlab.Success, Name: new(hosts.StatusName("main")), Description: new("Landed")})
	c.mu.Unlock()
	if got := c.look(r).Status; no != nil || got != (hosts.Status{}) {
		t.Errorf("it is %+v: %v", got, no)
	}
	s := hosts.Status{State: hosts.StatusPending, Text: "In the queue"}
	if err := r.SetStatus(t.Context(), head, s); err != nil || c.look(r).Status != s {
		t.Errorf("it is %+v: %v", c.look(r).Status, err)
	}
}

// TestAForkHasAStatus, in the project that it goes to: no branch there has its commit.
func TestAForkHasAStatus(t *testing.T) {
	c := newClone(t)
	head := c.Commit("of a fork")
	c.Run("push", "-q", c.Remote(bot), "HEAD:fork")
	c.jobs.Wait()
	c.mu.Lock()
	c.number = int(c.open("ada", "main", head, 2).IID)
	c.mu.Unlock()
	c.Run("push", "-q", c.Remote(bot), ":fork")
	c.jobs.Wait()
	r := c.adapter()
	p := c.look(r)
	if p.Head != head || p.Ref != "refs/merge-requests/2/head" || !p.Open || !p.Fits {
		t.Errorf("it is %+v", p)
	}
	for _, s := range []hosts.Status{{State: hosts.StatusPending, Text: "In the queue"}, {State: hosts.StatusPending, Text: "1st in the queue"}, {State: hosts.StatusSuccess, Text: "Landed"}} {
		if err := r.SetStatus(t.Context(), head, s); err != nil {
			t.Fatal(err)
		}
		if got := c.look(r).Status; got != s {
			t.Errorf("it is %+v, want %+v", got, s)
		}
	}
}

func TestTheNoteIsFoundAgain(t *testing.T) {
	c := newClone(t)
	id, err := c.adapter().SetComment(t.Context(), int64(c.number), 0, "one\n"+hosts.Marker("main"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		c.Comment("ada", c.number, fmt.Sprint("comment ", i))
	}
	c.Comment("ada", c.number, "not ours: "+hosts.Marker("main"))
	again, err := c.adapter().SetComment(t.Context(), int64(c.number), 0, "two\n"+hosts.Marker("main"))
	if err != nil || again != id {
		t.Errorf("%d is not %d: %v", again, id, err)
	}
	if all := c.Comments(c.number); len(all) != 1 || !strings.HasPrefix(all[0], "two") {
		t.Errorf("notes are %q", all)
	}
	// One that somebody deleted is made again.
	c.mu.Lock()
	c.notes[int64(c.number)] = nil
	c.mu.Unlock()
	if again, err = c.adapter().SetComment(t.Context(), int64(c.number), id, "three\n"+hosts.Marker("main")); err != nil || again == id || len(c.Comments(c.number)) != 1 {
		t.Errorf("%d after %d: %v", again, id, err)
	}
}

// TestWhatCannotBeShownAsMergedIsClosed, with a label; what GitLab will see by itself is left to it.
func TestWhatCannotBeShownAsMergedIsClosed(t *testing.T) {
	c := newClone(t)
	commit := c.Squash("one")
	c.Run("push", "-q", c.Remote(bot), "main")
	c.jobs.Wait()
	for range 2 {
		if err := c.adapter().MarkMerged(t.Context(), int64(c.number), commit); err != nil {
			t.Fatal(err)
		}
	}
	m := c.merges[int64(c.number)]
	if m.State != "closed" || !slices.Equal(m.Labels, gitlab.Labels{"landed"}) || len(c.stateEvents[m.IID]) != 1 {
		t.Errorf("it is %s with %v, after %v", m.State, m.Labels, c.stateEvents[m.IID])
	}
	c = newClone(t)
	c.breaks = "merged" // GitLab has not come to it yet
	c.Run("push", "-q", c.Remote(bot), "one:main")
	c.jobs.Wait()
	if err := c.adapter().MarkMerged(t.Context(), int64(c.number), c.Run("rev-parse", "one")); err != nil {
		t.Fatal(err)
	}
	if m := c.merges[int64(c.number)]; m.State != "opened" || len(m.Labels) > 0 {
		t.Errorf("it is %s with %v", m.State, m.Labels)
	}
}

// TestALimitThatIsReachedAnywayIsKept: others ask in the name of the account too.
func TestALimitThatIsReachedAnywayIsKept(t *testing.T) {
	c := newClone(t)
	r := c.adapter()
	if _, err := r.List(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.perMinute = 1
	var wait *hosts.Later
	for range 10 {
		if _, err := r.List(t.Context(), 0); !errors.As(err, &wait) {
			t.Fatalf("it says %v", err)
		}
	}
	if time.Until(wait.Until) < 30*time.Second || c.refused != 1 {
		t.Errorf("after %d refusals it waits for %+v", c.refused, wait)
	}
	c.refused = 0
}

// TestTheSuiteFindsWhatAGitLabDoesWrong: on a fake that breaks a rule it fails.
func TestTheSuiteFindsWhatAGitLabDoesWrong(t *testing.T) {
	hosttest.SkipUnlessSlow(t)
	hosttest.FindBreaches(t, "TestGitLabIsAHost", map[string]hosttest.Breach{
		"merged":    {Claim: "a pull request is landed by its label", Says: "is merged"},
		"comments":  {Claim: "a pull request is landed by its label", Says: "the comment says that it landed"},
		"statuses":  {Claim: "a pull request is landed by its label", Says: "the status is failure"},
		"signature": {Claim: "a webhook is enough", Says: "it is admitted"},
	})
}

// TestEachFaultAtGitLabIsFound takes away what the account needs.
func TestEachFaultAtGitLabIsFound(t *testing.T) {
	c := newClone(t)
	expect := func(when string, found hosts.Examined, want ...string) {
		t.Helper()
		hosttest.CheckFound(t, when, found, want...)
	}
	examine := func(change ...func(*hostsgitlab.Options)) hosts.Examined {
		return c.adapter(change...).Examine(t.Context(), "/v1/hosts/forge")
	}
	expect("with another token", c.adapterAs("").Examine(t.Context(), ""), "host_token_refused")
	nobody, err := hostsgitlab.NewServer("http://127.0.0.1:1", func(context.Context) ([]byte, error) { return []byte("x"), nil })
	if err != nil {
		t.Fatal(err)
	}
	expect("where nobody listens", nobody.New(hostsgitlab.Options{Project: path}).Examine(t.Context(), ""), "host_unreachable")
	expect("of another project", examine(func(o *hostsgitlab.Options) { o.Project = "acme/shop" }), "host_repository_missing")
	expect("of another branch, label and strategy, before there is a webhook", examine(func(o *hostsgitlab.Options) { o.Branch, o.Label, o.Merges = "trunk", "land", false }),
		"host_merges_unmarked", "branch_missing", "host_label_missing", "host_webhook_missing")
	expect("without protection", examine(), "host_branch_open", "host_webhook_missing")
	c.Protect(1, "ci")
	c.AddWebhook("http://127.0.0.1:1/v1/hosts/forge", "s")
	found := examine()
	expect("where all is well", found)
	if found.Try == nil || found.Webhook != "http://127.0.0.1:1/v1/hosts/forge" {
		t.Errorf("the webhook is %q, and can be tried: %v", found.Webhook, found.Try != nil)
	}
	if err := found.Try(t.Context()); err != nil {
		t.Errorf("it is tried: %v", err)
	}
	c.hook.JobEvents, c.hook.NoteEvents = false, false
	expect("with a webhook that tells little", examine(), "host_webhook_incomplete")
	c.hook.JobEvents, c.hook.NoteEvents, c.hook.CustomWebhookTemplate = true, true, "{}"
	expect("with a webhook of another form", examine(), "host_webhook_incomplete")
	c.hook.CustomWebhookTemplate, c.hook.AlertStatus = "", "disabled"
	expect("with a webhook that is off", examine(), "host_webhook_missing")
	c.hook.AlertStatus = "executable"

	main := &c.protected[0]
	main.MergeAccessLevels[0] = &gitlab.BranchAccessDescription{AccessLevel: gitlab.MaintainerPermissions, AccessLevelDescription: "Maintainers"}
	if found := examine(); len(found.Problems) != 1 || found.Problems[0].Message != "main can be changed past the queue: Maintainers may merge" {
		t.Errorf("where maintainers may merge it finds %+v", found.Problems)
	}
	main.MergeAccessLevels = nil
	main.PushAccessLevels = append(main.PushAccessLevels, &gitlab.BranchAccessDescription{AccessLevel: gitlab.DeveloperPermissions, UserID: c.users["ada"].ID, AccessLevelDescription: "ada"})
	expect("where somebody else may push", examine(), "host_branch_open")
	main.PushAccessLevels = []*gitlab.BranchAccessDescription{{AccessLevel: gitlab.NoPermissions, AccessLevelDescription: "No one"}}
	expect("where nobody may push", examine(), "push_refused")
	main.PushAccessLevels = append(main.PushAccessLevels, &gitlab.BranchAccessDescription{AccessLevel: gitlab.NoPermissions, DeployKeyID: 5, AccessLevelDescription: "queue"})
	expect("where a deploy key pushes", examine())
	main.Name = "ma*"
	expect("with a wildcard", examine())

	c.project.MergeMethod = gitlab.FastForwardMerge
	expect("where merge commits are not wanted", examine(), "host_method_other")
	c.project.MergeMethod, c.project.MergeTrainsEnabled = gitlab.RebaseMerge, true
	expect("with merge trains", examine(), "host_queue_other")
	c.project.MergeTrainsEnabled, c.project.Archived = false, true
	expect("of an archived project", examine(), "host_pulls_off")
	c.project.Archived, c.project.MergeRequestsAccessLevel = false, gitlab.DisabledAccessControl
	expect("without merge requests", examine(), "host_pulls_off")
	c.project.MergeRequestsAccessLevel = gitlab.EnabledAccessControl

	c.users[bot].scopes, c.users[bot].ends = []string{"read_api"}, time.Now().AddDate(0, 0, 3)
	expect("with a token that reads, and ends soon", examine(), "host_permission_missing", "host_token_ends")
	expect("of an account that may only read", c.adapterAs("eve").Examine(t.Context(), "/v1/hosts/forge"), "host_permission_missing")
	expect("of a developer, who is not told of webhooks", c.adapterAs("ada").Examine(t.Context(), "/v1/hosts/forge"))
}

// TestWhatTheProjectAsksForIsMissing, as GitLab sees it.
func TestWhatTheProjectAsksForIsMissing(t *testing.T) {
	c := newClone(t)
	c.Protect(1, "ci")
	head := c.Run("rev-parse", "one")
	checks := []string{}
	missing := func(want ...string) {
		t.Helper()
		r := c.adapter(func(o *hostsgitlab.Options) { o.Checks = checks })
		if got := c.look(r).Missing; !slices.Equal(got, want) {
			t.Errorf("missing are %q, want %q", got, want)
		}
	}
	c.SetDraft("ada", c.number, true)
	missing("it is a draft", "1 of 1 approvals", "the pipeline, which has not run")
	c.SetDraft("ada", c.number, false)
	c.Approve("eve", c.number)
	missing("1 of 1 approvals", "the pipeline, which has not run")
	c.Approve("bob", c.number)
	if err := c.adapter().SetStatus(t.Context(), head, hosts.Status{State: hosts.StatusPending, Text: "Waits"}); err != nil {
		t.Fatal(err)
	}
	missing("the pipeline, which has not run")
	c.job("ada", head, "ci", "running")
	missing("the pipeline, which is running")
	c.job("ada", head, "ci", "success")
	missing()
	c.Dismiss(c.number)
	missing("1 of 1 approvals")
	c.required = 0
	m := c.merges[int64(c.number)]
	m.BlockingDiscussionsResolved = false
	missing()
	c.project.OnlyAllowMergeIfAllDiscussionsAreResolved = true
	missing("unresolved threads")
	m.BlockingDiscussionsResolved, m.DetailedMergeStatus = true, "requested_changes"
	missing("changes that a reviewer asks for")
	m.DetailedMergeStatus = "not_approved"
	checks = []string{"ci", "e2e/*"}
	missing("the check e2e/*, which has not run")
	c.job("ada", head, "e2e/one", "failed")
	missing("the pipeline, which is failed", "the check e2e/one, which is failed")
	c.job("ada", head, "ci", "skipped")
	missing("the pipeline, which is skipped", "the check ci, which is skipped", "the check e2e/one, which is failed")
	c.project.AllowMergeOnSkippedPipeline, checks = true, nil
	missing()
}

// TestThePipelineOfAnOlderHeadDoesNotCount: GitLab keeps it after a push, until there is one of the new head.
func TestThePipelineOfAnOlderHeadDoesNotCount(t *testing.T) {
	c := newClone(t)
	c.Protect(0, "ci")
	missing := func(want ...string) {
		t.Helper()
		if got := c.look(c.adapter()).Missing; !slices.Equal(got, want) {
			t.Errorf("missing are %q, want %q", got, want)
		}
	}
	push := func(name string) string {
		head := c.Commit(name)
		c.Run("push", "-q", c.Remote("ada"), "one")
		c.jobs.Wait()
		return head
	}
	// merged runs a pipeline of the result of merging the head.
	merged := func(head string) *gitlab.Pipeline {
		commit := c.fake.git.Run("-c", "user.name=GitLab", "-c", "user.email=gitlab@example.com", "commit-tree", head+"^{tree}", "-p", "main", "-p", head, "-m", "merged")
		p := c.newPipeline(commit, "refs/merge-requests/1/merge", "merge_request_event")
		c.merges[int64(c.number)].HeadPipeline = p
		return p
	}
	c.job("ada", c.Run("rev-parse", "one"), "ci", "success")
	missing()
	head := push("c")
	missing("the pipeline, which has not run")
	p := merged(head)
	p.Status = "running"
	missing("the pipeline, which is running")
	p.Status = "success"
	missing()
	push("d")
	missing("the pipeline, which has not run")
}

// TestWhatIsGoneIsTold from a project that cannot be seen.
func TestWhatIsGoneIsTold(t *testing.T) {
	c := newClone(t)
	if _, err := c.adapter().Look(t.Context(), 99, 0, ""); !errors.Is(err, hosts.ErrGone) {
		t.Errorf("a merge request that is not there: %v", err)
	}
	if _, err := c.adapter(func(o *hostsgitlab.Options) { o.Project = "acme/other" }).Look(t.Context(), 1, 0, ""); err == nil || errors.Is(err, hosts.ErrGone) {
		t.Errorf("a project that is not there: %v", err)
	}
}

// TestABranchIsMovedThatNobodyElseWorksOn: not one of a fork, or a protected one; and what it was moved to is known.
func TestABranchIsMovedThatNobodyElseWorksOn(t *testing.T) {
	moves := func(o *hostsgitlab.Options) { o.Moves = true }
	for name, test := range map[string]struct {
		change func(*clone)
		want   string
	}{
		"one's own":       {func(*clone) {}, "refs/heads/one"},
		"a protected one": {func(c *clone) { c.protected = []gitlab.ProtectedBranch{{Name: "one"}} }, ""},
		"a fork's":        {func(c *clone) { c.merges[int64(c.number)].SourceProjectID = 2 }, ""},
		"that of another one": {func(c *clone) {
			other := *c.merges[int64(c.number)]
			other.IID, other.TargetBranch = 99, "other"
			c.merges[99] = &other
		}, ""},
		"one with others on it": {func(c *clone) {
			other := *c.merges[int64(c.number)]
			other.IID, other.SourceBranch, other.TargetBranch = 99, "more", "one"
			c.merges[99] = &other
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			c.mu.Lock()
			test.change(c)
			c.mu.Unlock()
			if p := c.look(c.adapter(moves)); p.Branch != test.want || p.Landing {
				t.Errorf("it is %q: %+v", p.Branch, p)
			}
		})
	}
	c := newClone(t)
	asked := c.Run("rev-parse", "one")
	for trailers, want := range map[string]bool{"Landfall-Change: pr-1\nLandfall-Queue: main": true, "Landfall-Change: pr-2\nLandfall-Queue: main": false} {
		c.Run("commit", "-q", "--amend", "-m", "b\n\n"+trailers)
		c.Run("push", "-q", "-f", c.Remote(bot), "one")
		c.jobs.Wait()
		if p, err := c.adapter(moves).Look(t.Context(), int64(c.number), 0, asked); err != nil || p.Landing != want {
			t.Errorf("with %q it is a landing: %v, %v", trailers, p.Landing, err)
		}
	}
}
