package github_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-github/v93/github"

	hostsgithub "landfall.build/services/hosts/github"
	"landfall.build/tools/hosttest"
)

// What people do at the fake. It implements hosttest.Host.

func (f *fake) Kind() string       { return "github" }
func (f *fake) Address() string    { return f.URL }
func (f *fake) Repository() string { return owner + "/" + name }

func (f *fake) Settings() string {
	if f.app {
		return "app: " + clientID
	}
	return ""
}

func (f *fake) Token(user string) string {
	if user == bot && f.app {
		return f.pem()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.users[user].token
}

func (f *fake) Remote(user string) string {
	return hosttest.RemoteOf(f.URL, owner+"/"+name, user)
}

func (f *fake) AddUser(user, permission string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if permission == "" {
		permission = "read" // the repository is public
	}
	f.users[user] = &account{User: &github.User{ID: f.id(), Login: &user, Type: new("User")}, token: "ghp_" + rand.Text(), permission: permission}
}

func (f *fake) Ready(label string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.labels = append(f.labels, label)
}

func (f *fake) AddWebhook(url, secret string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = &github.Hook{ID: f.id(), Active: new(true), Events: hostsgithub.Events, Config: &github.HookConfig{URL: &url, ContentType: new("json"), InsecureSSL: new("0")}}
	f.secret = secret
	f.send("ping", &github.PingEvent{Zen: new("Practicality beats purity."), Hook: f.hook})
}

func (f *fake) Protect(approvals int, checks ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rule("update", nil)
	f.bypass = []*github.BypassActor{{ActorType: new(github.BypassActorTypeDeployKey), BypassMode: new(github.BypassModeAlways)}}
	if err := os.WriteFile(filepath.Join(f.git.Dir, "restricted"), nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
	if approvals > 0 {
		f.rule("pull_request", github.PullRequestRuleParameters{RequiredApprovingReviewCount: approvals})
	}
	if len(checks) > 0 {
		p := github.RequiredStatusChecksRuleParameters{}
		for _, c := range checks {
			p.RequiredStatusChecks = append(p.RequiredStatusChecks, &github.RuleStatusCheck{Context: c})
		}
		f.rule("required_status_checks", p)
	}
}

// rule adds a rule of the branch.
func (f *fake) rule(kind string, parameters any) {
	rule := map[string]any{"type": kind, "ruleset_source_type": "Repository", "ruleset_source": f.Repository(), "ruleset_id": 1}
	if parameters != nil {
		rule["parameters"] = parameters
	}
	f.rules = append(f.rules, rule)
}

func (f *fake) Open(user, branch string) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := f.git.Branches()[branch]
	if head == "" {
		return 0, false
	}
	number := len(f.pulls) + 1
	p := &github.PullRequest{
		ID: f.id(), Number: &number, State: new("open"), Title: &branch, User: f.users[user].User, Draft: new(false), Merged: new(false), CreatedAt: now(), UpdatedAt: now(),
		HTMLURL: new(fmt.Sprintf("%s/%s/pull/%d", f.URL, f.Repository(), number)), Head: &github.PullRequestBranch{Ref: &branch, Repo: f.repository()}, Base: &github.PullRequestBranch{Ref: new("main"), Repo: f.repository()},
	}
	f.pulls[number] = p
	f.record(p, head)
	f.timelines[number] = append(f.timelines[number], &github.Timeline{Event: new("committed"), SHA: &head})
	f.send("pull_request", f.event("opened", p, f.users[user]))
	return number, true
}

func (f *fake) SetDraft(user string, number int, draft bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pulls[number]
	p.Draft = &draft
	action := "ready_for_review"
	if draft {
		action = "converted_to_draft"
	}
	f.enter(p, &github.Timeline{Event: &action, Actor: f.users[user].User})
	f.send("pull_request", f.event(action, p, f.users[user]))
}

func (f *fake) Label(user string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addLabel(f.users[user], f.pulls[number], "landfall")
}

func (f *fake) Unlabel(user string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removeLabel(f.users[user], f.pulls[number], "landfall")
}

// Switch implements hosttest.Switcher.
func (f *fake) Switch(user string, number int, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.autoMerge(f.users[user], f.pulls[number], on)
}

// autoMerge switches auto-merge, which would squash.
func (f *fake) autoMerge(by *account, p *github.PullRequest, on bool) {
	event, action := "auto_merge_disabled", "auto_merge_disabled"
	if p.AutoMerge = nil; on {
		p.AutoMerge = &github.PullRequestAutoMerge{EnabledBy: by.User, MergeMethod: new("squash")}
		event, action = "auto_squash_enabled", "auto_merge_enabled"
	}
	f.enter(p, &github.Timeline{Event: &event, Actor: by.User})
	f.send("pull_request", f.event(action, p, by))
}

func (f *fake) Comment(user string, number int, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addComment(f.users[user], f.pulls[number], text)
}

func (f *fake) Close(user string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.close(f.users[user], f.pulls[number], "")
}

func (f *fake) Approve(user string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.review(user, number, "APPROVED")
}

func (f *fake) review(user string, number int, state string) {
	p := f.pulls[number]
	v := &github.PullRequestReview{ID: f.id(), User: f.users[user].User, State: &state, CommitID: p.Head.SHA, SubmittedAt: now()}
	f.reviews[number] = append(f.reviews[number], v)
	f.enter(p, &github.Timeline{Event: new("reviewed"), ID: v.ID, User: v.User, State: &state})
	f.timelines[number][len(f.timelines[number])-1].CreatedAt = nil // it has the time when it was submitted
	f.send("pull_request_review", &github.PullRequestReviewEvent{Action: new("submitted"), Review: v, PullRequest: p, Repo: f.repository()})
}

func (f *fake) Dismiss(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.reviews[number] {
		v.State = new("DISMISSED")
		f.touch(f.pulls[number])
		f.send("pull_request_review", &github.PullRequestReviewEvent{Action: new("dismissed"), Review: v, PullRequest: f.pulls[number], Repo: f.repository()})
	}
}

func (f *fake) Check(_, commit, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.app {
		s := &github.RepoStatus{ID: f.id(), State: new("success"), Context: &name}
		f.statuses[commit] = append(f.statuses[commit], s)
		f.send("status", &github.StatusEvent{SHA: &commit, State: s.State, Context: &name, Repo: f.repository()})
		return
	}
	run := &github.CheckRun{ID: f.id(), HeadSHA: &commit, Name: &name, Status: new("completed"), Conclusion: new("success"), App: &github.App{ID: new(int64(ciApp))}}
	f.runs = append(f.runs, run)
	f.send("check_run", &github.CheckRunEvent{Action: new("completed"), CheckRun: run, Repo: f.repository()})
}

func (f *fake) Pull(number int) hosttest.Pull {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pulls[number]
	return hosttest.Pull{Open: p.GetState() == "open", Merged: p.GetMerged(), Head: p.GetHead().GetSHA(), Commit: p.GetMergeCommitSHA(),
		Labelled: slices.ContainsFunc(p.Labels, func(l *github.Label) bool { return l.Name == "landfall" })}
}

func (f *fake) Statuses(commit string) (own []hosttest.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range slices.Backward(f.said[commit]) {
		own = append(own, s)
	}
	return own
}

func (f *fake) Comments(number int) (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.comments[number] {
		if login := c.User.GetLogin(); login == bot || login == appLogin {
			texts = append(texts, c.GetBody())
		}
	}
	return texts
}
