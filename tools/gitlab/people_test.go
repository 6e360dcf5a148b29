package gitlab_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"landfall.build/tools/hosttest"
)

// What people do at the fake. It implements hosttest.Host.

func (f *fake) Kind() string       { return "gitlab" }
func (f *fake) Address() string    { return f.URL }
func (f *fake) Repository() string { return path }
func (f *fake) Settings() string   { return "" }

func (f *fake) Remote(user string) string { return hosttest.RemoteOf(f.URL, path, user) }

func (f *fake) Token(user string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.users[user].token
}

func (f *fake) AddUser(user, permission string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[user] = &account{
		BasicUser: gitlab.BasicUser{ID: f.id(), Username: user, Name: user, State: "active"}, token: "glpat-" + rand.Text(), scopes: []string{"api"}, ends: time.Now().AddDate(0, 3, 0),
		level: map[string]gitlab.AccessLevelValue{"admin": gitlab.MaintainerPermissions, "write": gitlab.DeveloperPermissions}[permission], // the project is public
	}
}

func (f *fake) Ready(label string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.labels = append(f.labels, label)
}

func (f *fake) AddWebhook(url, secret string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hook = &gitlab.ProjectHook{ID: f.id(), URL: url, MergeRequestsEvents: true, NoteEvents: true, JobEvents: true, PipelineEvents: true, AlertStatus: "executable"}
	f.secret = secret
}

func (f *fake) Protect(approvals int, checks ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.protected = []gitlab.ProtectedBranch{{Name: "main", PushAccessLevels: []*gitlab.BranchAccessDescription{{AccessLevel: gitlab.MaintainerPermissions, UserID: f.users[bot].ID, AccessLevelDescription: bot}},
		MergeAccessLevels: []*gitlab.BranchAccessDescription{{AccessLevel: gitlab.NoPermissions, AccessLevelDescription: "No one"}}}}
	if err := os.WriteFile(filepath.Join(f.git.Dir, "restricted"), nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.required = int64(approvals)
	f.project.OnlyAllowMergeIfPipelineSucceeds = len(checks) > 0
}

func (f *fake) Open(user, branch string) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := f.git.Branches()[branch]
	if head == "" {
		return 0, false
	}
	return int(f.open(user, branch, head, projectID).IID), true
}

func (f *fake) open(user, branch, head string, source int64) *gitlab.MergeRequest {
	iid := int64(len(f.merges) + 1)
	by := f.users[user].BasicUser
	m := &gitlab.MergeRequest{BasicMergeRequest: gitlab.BasicMergeRequest{
		ID: f.id(), IID: iid, State: "opened", Title: branch, Author: &by, CreatedAt: now(), UpdatedAt: now(), SourceBranch: branch, TargetBranch: "main",
		SourceProjectID: source, TargetProjectID: projectID, WebURL: fmt.Sprintf("%s/%s/-/merge_requests/%d", f.URL, path, iid), Labels: gitlab.Labels{},
		DetailedMergeStatus: "mergeable", BlockingDiscussionsResolved: true,
	}}
	f.merges[iid] = m
	f.record(m, head)
	f.sendMerge("open", m)
	return m
}

func (f *fake) SetDraft(user string, number int, draft bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.merges[int64(number)]
	m.Draft, m.Title = draft, strings.TrimPrefix(m.Title, "Draft: ")
	if draft {
		m.Title = "Draft: " + m.Title
	}
	f.system(f.users[user], m, "marked this merge request as draft or ready")
	f.sendMerge("update", m)
}

func (f *fake) Label(user string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setLabel(f.users[user], f.merges[int64(number)], "landfall", true)
}

func (f *fake) Unlabel(user string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setLabel(f.users[user], f.merges[int64(number)], "landfall", false)
}

func (f *fake) Comment(user string, number int, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addNote(f.users[user], f.merges[int64(number)], text)
}

func (f *fake) Close(user string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.setState(f.users[user], f.merges[int64(number)], "closed")
}

func (f *fake) Approve(user string, number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.merges[int64(number)]
	if !slices.Contains(f.approved[m.IID], user) {
		f.approved[m.IID] = append(f.approved[m.IID], user)
	}
	f.system(f.users[user], m, "approved this merge request")
	f.sendMerge("approved", m)
}

func (f *fake) Dismiss(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.merges[int64(number)]
	f.approved[m.IID] = nil
	f.system(f.users[bot], m, "reset approvals from all approvers")
	f.sendMerge("unapproved", m)
}

// Check has a job of a pipeline of the branch pass.
func (f *fake) Check(user, commit, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.job(user, commit, name, "success")
}

// job runs a job in a new pipeline of a commit, which becomes that of its merge requests.
func (f *fake) job(user, commit, name, state string) {
	p := f.newPipeline(commit, f.branchOf(commit), "push")
	f.addStatus(p, f.users[user], name).Status = state
	f.settle(p)
	f.send("Job Hook", map[string]any{"object_kind": "build", "sha": commit, "ref": p.Ref, "build_name": name, "build_status": state, "project": f.described()})
}

func (f *fake) Pull(number int) hosttest.Pull {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.merges[int64(number)]
	return hosttest.Pull{Open: m.State == "opened", Merged: m.State == "merged", Head: m.SHA, Commit: m.MergeCommitSHA, Labelled: slices.Contains(m.Labels, "landfall")}
}

func (f *fake) Statuses(commit string) (own []hosttest.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own = slices.Clone(f.said[commit])
	slices.Reverse(own)
	return own
}

func (f *fake) Comments(number int) (texts []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.notes[int64(number)] {
		if n.Author.Username == bot && !n.System {
			texts = append(texts, n.Body)
		}
	}
	return texts
}
