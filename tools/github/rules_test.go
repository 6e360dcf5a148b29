package github_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v93/github"

	"landfall.build/services/hosts"
	hostsgithub "landfall.build/services/hosts/github"
	"landfall.build/tools/hosttest"
)

// clone is a working copy of the fake's repository, with a branch main and a pull request.
type clone struct {
	*fake
	*hosttest.Clone
	number int
}

func newClone(t *testing.T, app bool) *clone {
	c := &clone{fake: newFake(t, app), Clone: hosttest.NewClone(t)}
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
	var is bool
	if c.number, is = c.Open("ada", "one"); !is {
		t.Fatal("no pull request can be made")
	}
	return c
}

// adapter is the service's view of the fake's repository.
func (c *clone) adapter(change ...func(*hostsgithub.Server, *hostsgithub.Options)) *hostsgithub.Repository {
	s := &hostsgithub.Server{URL: c.URL, Secret: func(context.Context) ([]byte, error) { return []byte(c.Token(bot)), nil }}
	if c.app {
		s.App = clientID
	}
	o := hostsgithub.Options{Owner: owner, Name: name, Branch: "main", Queue: "main", Label: "landfall", Merges: true}
	for _, f := range change {
		f(s, &o)
	}
	r, err := s.New(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// TestTheFakeMergesAsGitHubDoes: by the head that is recorded when the base is pushed.
func TestTheFakeMergesAsGitHubDoes(t *testing.T) {
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
		"squashed, the head moved before": {func(c *clone) {
			commit := c.Squash("one")
			c.Run("push", "-q", "-f", c.Remote(bot), commit+":one")
			c.Run("push", "-q", c.Remote(bot), "main")
		}, false, true},
		"squashed, the head moved in the same push": {func(c *clone) {
			commit := c.Squash("one")
			c.Run("push", "-q", "-f", "--atomic", c.Remote(bot), "main", commit+":one")
		}, false, false},
		"squashed, the head moved after": {func(c *clone) {
			commit := c.Squash("one")
			c.Run("push", "-q", c.Remote(bot), "main")
			c.Run("push", "-q", "-f", c.Remote(bot), commit+":one")
		}, false, false},
		"the branch is deleted": {func(c *clone) { c.Run("push", "-q", c.Remote("ada"), ":one") }, false, false},
		"more is pushed": {func(c *clone) {
			c.Commit("more")
			c.Run("push", "-q", c.Remote("ada"), "one")
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t, true)
			test.push(c)
			if p := c.Pull(c.number); p.Open != test.open || p.Merged != test.merged {
				t.Errorf("it is %+v", p)
			}
		})
	}
}

func TestTheFakeLetsNobodyPushPastItsRules(t *testing.T) {
	c := newClone(t, true)
	c.Protect(0)
	c.Run("checkout", "-q", "main")
	c.Commit("past")
	if out, err := c.Try("push", "-q", c.Remote("ada"), "main"); err == nil || !strings.Contains(out, "GH013") {
		t.Errorf("ada pushes: %v %s", err, out)
	}
	if out, err := c.Try("push", "-q", "-f", c.Remote("ada"), "main:refs/pull/1/head"); err == nil || !strings.Contains(out, "hidden ref") {
		t.Errorf("ada moves the head: %v %s", err, out)
	}
	if out, err := c.Try("push", "-q", c.Remote(""), "main:x"); err == nil {
		t.Errorf("nobody pushes: %s", out)
	}
	c.Run("push", "-q", c.Remote(bot), "main")
}

// TestTheStatusIsOneCheckRun that is brought up to date, and another one once it was completed.
func TestTheStatusIsOneCheckRun(t *testing.T) {
	for _, app := range []bool{true, false} {
		c := newClone(t, app)
		r := c.adapter()
		see := func() hosts.Status {
			p, err := r.Look(t.Context(), int64(c.number), 0, "")
			if err != nil {
				t.Fatal(err)
			}
			return p.Status
		}
		if got := see(); got != (hosts.Status{}) {
			t.Errorf("before all it is %+v", got)
		}
		p, _ := r.Look(t.Context(), int64(c.number), 0, "")
		for i, s := range []hosts.Status{
			{State: hosts.StatusPending, Text: "1st in the queue"}, {State: hosts.StatusPending, Text: "2nd in the queue", URL: "https://landfall.example.com/x"},
			{State: hosts.StatusFailure, Text: "Rejected"}, {State: hosts.StatusPending, Text: "In the queue"}, {State: hosts.StatusError, Text: "Cancelled"},
			{State: hosts.StatusSuccess, Text: "Landed"},
		} {
			if i%2 == 1 {
				r = c.adapter() // an owner that has seen nothing
			}
			if err := r.SetStatus(t.Context(), p.Head, s); err != nil {
				t.Fatal(err)
			}
			if got := see(); got != s {
				t.Errorf("it is %+v, want %+v", got, s)
			}
		}
		if app && len(c.runs) != 2 {
			t.Errorf("there are %d check runs", len(c.runs))
		}
	}
}

func TestTheCommentIsFoundAgain(t *testing.T) {
	c := newClone(t, true)
	for i := range 150 {
		c.Comment("ada", c.number, fmt.Sprint("comment ", i))
	}
	c.Comment("ada", c.number, "not ours: "+hosts.Marker("main"))
	id, err := c.adapter().SetComment(t.Context(), int64(c.number), 0, "one\n"+hosts.Marker("main"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.adapter().SetComment(t.Context(), int64(c.number), 0, "two\n"+hosts.Marker("main"))
	if err != nil || again != id {
		t.Errorf("%d is not %d: %v", again, id, err)
	}
	if all := c.Comments(c.number); len(all) != 1 || !strings.HasPrefix(all[0], "two") {
		t.Errorf("comments are %q", all)
	}
	// One that somebody deleted is made again.
	c.mu.Lock()
	c.comments[c.number] = nil
	c.mu.Unlock()
	if again, err = c.adapter().SetComment(t.Context(), int64(c.number), id, "three\n"+hosts.Marker("main")); err != nil || again == id || len(c.Comments(c.number)) != 1 {
		t.Errorf("%d after %d: %v", again, id, err)
	}
}

// TestWhatCannotBeShownAsMergedIsClosed, with a label; what GitHub will see by itself is left to it.
func TestWhatCannotBeShownAsMergedIsClosed(t *testing.T) {
	c := newClone(t, true)
	commit := c.Squash("one")
	c.Run("push", "-q", c.Remote(bot), "main")
	if err := c.adapter().MarkMerged(t.Context(), int64(c.number), commit); err != nil {
		t.Fatal(err)
	}
	p := c.pulls[c.number]
	if p.GetState() != "closed" || len(p.Labels) != 1 || p.Labels[0].Name != "landed" {
		t.Errorf("it is %s with %v", p.GetState(), p.Labels)
	}
	c = newClone(t, true)
	c.breaks = "merged" // GitHub has not come to it yet
	c.Run("push", "-q", c.Remote(bot), "one:main")
	if err := c.adapter().MarkMerged(t.Context(), int64(c.number), c.Run("rev-parse", "one")); err != nil {
		t.Fatal(err)
	}
	if p := c.pulls[c.number]; p.GetState() != "open" || len(p.Labels) > 0 {
		t.Errorf("it is %s with %v", p.GetState(), p.Labels)
	}
}

// TestWithinGitHubsLimitsWhatEndsIsSaidFirst: of sixty changes whose places change all the time, nothing is beyond the limits, and all that
// ends is said while places wait.
func TestWithinGitHubsLimitsWhatEndsIsSaidFirst(t *testing.T) {
	c := newClone(t, true)
	r := c.adapter()
	commits := []string{}
	for i := range 30 {
		commits = append(commits, fmt.Sprintf("%040x", i+1))
	}
	later := 0
	for round := range 4 {
		for _, commit := range commits {
			err := r.SetStatus(t.Context(), commit, hosts.Status{State: hosts.StatusPending, Text: fmt.Sprint("place ", round)})
			if wait := (*hosts.Later)(nil); errors.As(err, &wait) {
				if later++; time.Until(wait.Until) > time.Minute {
					t.Errorf("it waits until %v", wait.Until)
				}
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, commit := range commits {
		if err := r.SetStatus(t.Context(), commit, hosts.Status{State: hosts.StatusSuccess, Text: "Landed"}); err != nil {
			t.Errorf("what landed: %v", err)
		}
	}
	if later != 4*30-38 {
		t.Errorf("%d of 120 wait", later)
	}
	for _, commit := range commits {
		if said := c.Statuses(commit); len(said) == 0 || said[0].Text != "Landed" {
			t.Errorf("of %s it says %+v", commit, said)
		}
	}
}

// TestALimitThatIsReachedAnywayIsKept: others write in the name of the account too.
func TestALimitThatIsReachedAnywayIsKept(t *testing.T) {
	c := newClone(t, false)
	c.perMin = 3
	r := c.adapter()
	var wait *hosts.Later
	for i := range 10 {
		if _, err := r.SetComment(t.Context(), int64(c.number), 0, fmt.Sprint(i, hosts.Marker("main"))); err != nil && !errors.As(err, &wait) {
			t.Fatal(err)
		}
	}
	if wait == nil || time.Until(wait.Until) < 50*time.Second || c.refused != 1 {
		t.Errorf("after %d refusals it waits for %+v", c.refused, wait)
	}
	c.refused = 0
}

// TestTheSuiteFindsWhatAHostDoesWrong: on a fake that breaks a rule it fails.
func TestTheSuiteFindsWhatAHostDoesWrong(t *testing.T) {
	hosttest.SkipUnlessSlow(t)
	hosttest.FindBreaches(t, "TestAnAppOfGitHubIsAHost", map[string]hosttest.Breach{
		"merged":    {Claim: "a pull request is landed by its label", Says: "is merged"},
		"comments":  {Claim: "a pull request is landed by its label", Says: "the comment says that it landed"},
		"checks":    {Claim: "a pull request is landed by its label", Says: "the status is failure"},
		"signature": {Claim: "a webhook is enough", Says: "it is admitted"},
	})
}

// TestEachFaultAtGitHubIsFound takes away what the App or the account needs.
func TestEachFaultAtGitHubIsFound(t *testing.T) {
	c := newClone(t, true)
	expect := func(when string, found hosts.Examined, want ...string) {
		t.Helper()
		hosttest.CheckFound(t, when, found, want...)
	}
	examine := func(change ...func(*hostsgithub.Server, *hostsgithub.Options)) hosts.Examined {
		return c.adapter(change...).Examine(t.Context(), "/v1/hosts/forge")
	}
	expect("with another key", examine(func(s *hostsgithub.Server, _ *hostsgithub.Options) {
		s.Secret = func(context.Context) ([]byte, error) { return []byte("ghp_x"), nil }
	}), "host_token_refused")
	expect("with another App", examine(func(s *hostsgithub.Server, _ *hostsgithub.Options) { s.App = "Iv1.other" }), "host_token_refused")
	expect("where nobody listens", examine(func(s *hostsgithub.Server, _ *hostsgithub.Options) { s.URL = "http://127.0.0.1:1" }), "host_unreachable")
	expect("of another repository", examine(func(_ *hostsgithub.Server, o *hostsgithub.Options) { o.Name = "other" }), "host_repository_missing")
	expect("of another branch, label and strategy, before there is a webhook", examine(func(_ *hostsgithub.Server, o *hostsgithub.Options) {
		o.Branch, o.Label, o.Merges = "trunk", "land", false
	}), "host_merges_unmarked", "branch_missing", "host_label_missing", "host_webhook_missing")
	expect("without rules", examine(), "host_branch_open", "host_webhook_missing")
	c.Protect(1, "ci")
	c.AddWebhook("http://127.0.0.1:1/v1/hosts/forge", "s")
	found := examine()
	expect("where all is well", found)
	if found.Try == nil || found.Webhook != "http://127.0.0.1:1/v1/hosts/forge" {
		t.Errorf("the webhook is %q, and can be tried: %v", found.Webhook, found.Try != nil)
	}
	if err := found.Try(t.Context()); err != nil || len(c.deliveries) != 2 || !c.deliveries[1].GetRedelivery() {
		t.Errorf("it is tried: %v, %v", err, c.deliveries)
	}
	c.hook.Events, c.hook.Config.ContentType = []string{"pull_request", "status", "push"}, new("form")
	expect("with a webhook that tells little", examine(), "host_webhook_incomplete", "host_webhook_incomplete")
	c.hook.Events, c.hook.Config.ContentType = hostsgithub.Events, new("json")
	c.permissions["checks"] = "read"
	delete(c.permissions, "administration")
	expect("with fewer permissions", examine(), "host_permission_missing")
	c.permissions["checks"], c.permissions["administration"] = "write", "write"
	c.bypass = append(c.bypass, &github.BypassActor{ActorType: new(github.BypassActorTypeOrganizationAdmin), BypassMode: new(github.BypassModeAlways)})
	expect("where administrators may push", examine(), "host_branch_open")
	c.bypass = []*github.BypassActor{}
	expect("where nobody may push", examine(), "push_refused")
	c.rule("merge_queue", github.MergeQueueRuleParameters{})
	expect("with GitHub's own queue", examine(), "host_queue_other", "push_refused")
	c.permissions = nil
	expect("where the App is not installed", examine(), "host_repository_missing")

	c = newClone(t, false)
	c.Protect(0)
	expect("of an account, without a webhook", examine(), "host_webhook_missing")
	c.AddWebhook("http://127.0.0.1:1/v1/hosts/forge", "s")
	if found := examine(); len(found.Problems) > 0 || found.Try == nil || found.Try(t.Context()) != nil {
		t.Errorf("of an account it finds %+v", found)
	}
	expect("of an account that may only read", examine(func(s *hostsgithub.Server, _ *hostsgithub.Options) {
		s.Secret = func(context.Context) ([]byte, error) { return []byte(c.Token("eve")), nil }
	}), "host_permission_missing")
}

// TestTheManifestAsksForWhatTheServiceNeeds, and for nothing else.
func TestTheManifestAsksForWhatTheServiceNeeds(t *testing.T) {
	text, err := os.ReadFile("../../deploy/github/app.json")
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Permissions map[string]string `json:"default_permissions"`
		Events      []string          `json:"default_events"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(m.Permissions, hostsgithub.Permissions) || !slices.Equal(m.Events, hostsgithub.Events) {
		t.Errorf("it has %v and %v", m.Permissions, m.Events)
	}
}

// TestWhatTheBranchAsksForIsMissing, as GitHub sees it: approvals of those who may write, until they are dismissed, and checks.
func TestWhatTheBranchAsksForIsMissing(t *testing.T) {
	c := newClone(t, true)
	c.Protect(1, "ci")
	missing := func(want ...string) {
		t.Helper()
		p, err := c.adapter().Look(t.Context(), int64(c.number), 0, "")
		if err != nil || !slices.Equal(p.Missing, want) {
			t.Errorf("missing are %q, want %q: %v", p.Missing, want, err)
		}
	}
	c.SetDraft("ada", c.number, true)
	missing("it is a draft", "1 of 1 approvals", "the check ci, which has not run")
	c.SetDraft("ada", c.number, false)
	c.Approve("eve", c.number)
	missing("1 of 1 approvals", "the check ci, which has not run")
	c.Approve("bob", c.number)
	missing("the check ci, which has not run")
	c.Check("", c.Run("rev-parse", "one"), "ci")
	missing()
	c.Dismiss(c.number)
	missing("1 of 1 approvals")
	c.review("bob", c.number, "CHANGES_REQUESTED")
	missing("1 of 1 approvals", "changes that bob asks for")
}

// TestABranchIsMovedThatNobodyElseWorksOn: not one of a fork, a protected one, or the default one; and what it was moved to is known.
func TestABranchIsMovedThatNobodyElseWorksOn(t *testing.T) {
	moves := func(_ *hostsgithub.Server, o *hostsgithub.Options) { o.Moves = true }
	for name, test := range map[string]struct {
		change func(*clone)
		want   string
	}{
		"one's own":             {func(*clone) {}, "refs/heads/one"},
		"a protected one":       {func(c *clone) { c.protected = "one" }, ""},
		"the default one":       {func(c *clone) { c.pulls[c.number].Base.Repo.DefaultBranch = new("one") }, ""},
		"a fork's":              {func(c *clone) { c.pulls[c.number].Head.Repo = &github.Repository{ID: new(int64(2))} }, ""},
		"that of another one":   {func(c *clone) { c.pulls[99] = copyOf(c.pulls[c.number], 99, "one", "other") }, ""},
		"one with others on it": {func(c *clone) { c.pulls[99] = copyOf(c.pulls[c.number], 99, "more", "one") }, ""},
		"a deleted fork's":      {func(c *clone) { c.pulls[c.number].Head.Repo = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t, true)
			c.mu.Lock()
			test.change(c)
			c.mu.Unlock()
			if p, err := c.adapter(moves).Look(t.Context(), int64(c.number), 0, ""); err != nil || p.Branch != test.want || p.Landing {
				t.Errorf("it is %q, %v: %+v", p.Branch, err, p)
			}
		})
	}
	c := newClone(t, true)
	asked := c.Run("rev-parse", "one")
	for trailers, want := range map[string]bool{"Landfall-Change: pr-1\nLandfall-Queue: main": true, "Landfall-Change: pr-2\nLandfall-Queue: main": false} {
		c.Run("commit", "-q", "--amend", "-m", "b\n\n"+trailers)
		c.Run("push", "-q", "-f", c.Remote(bot), "one")
		if p, err := c.adapter(moves).Look(t.Context(), int64(c.number), 0, asked); err != nil || p.Landing != want {
			t.Errorf("with %q it is a landing: %v, %v", trailers, p.Landing, err)
		}
	}
}

// copyOf returns a pull request of another number, from one branch to another.
func copyOf(p *github.PullRequest, number int, head, base string) *github.PullRequest {
	other := *p
	other.Number, other.Head, other.Base = &number, &github.PullRequestBranch{Ref: &head, SHA: p.Head.SHA, Repo: p.Head.Repo}, &github.PullRequestBranch{Ref: &base, Repo: p.Base.Repo}
	return &other
}
