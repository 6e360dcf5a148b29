package gitlab_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"landfall.build/tools/hosttest"
)

// Names and numbers of the fake.
const (
	path      = "acme/team/shop"
	projectID = 1
	// bot pushes past the branch's protection, and answers.
	bot = "bot"
	// jobDelay is how long after a push the job runs that closes and reloads merge requests.
	jobDelay = 100 * time.Millisecond
)

// account is a user of the fake.
type account struct {
	gitlab.BasicUser
	token  string
	level  gitlab.AccessLevelValue
	scopes []string
	ends   time.Time
}

// status is a job or an external status.
type status struct {
	gitlab.CommitStatus
	// retried is set once another one has its place.
	retried bool
}

// fake is a GitLab with one project, in a group of a group. What it does is what GitLab's documentation and sources say, as far as the hosts
// service and its tests come; breaks names a rule that it does not keep.
type fake struct {
	t *testing.T
	*httptest.Server
	git    *hosttest.Git
	breaks string

	mu sync.Mutex
	// last is the newest id of all kinds but those of states, which have their own.
	last, states int64
	users        map[string]*account
	project      gitlab.Project
	merges       map[int64]*gitlab.MergeRequest
	labelEvents  map[int64][]gitlab.LabelEvent
	stateEvents  map[int64][]gitlab.StateEvent
	notes        map[int64][]*gitlab.Note
	approved     map[int64][]string
	// required is how many approvals the project asks for.
	required int64
	labels   []string
	// pipelines are in the order of their ids, as are statuses.
	pipelines []*gitlab.Pipeline
	statuses  []*status
	// said has what the queue set at each commit.
	said      map[string][]hosttest.Status
	protected []gitlab.ProtectedBranch

	hook   *gitlab.ProjectHook
	secret string
	// failures counts deliveries in a row that were not taken; GitLab sends nothing until mended.
	failures int
	mended   time.Time
	// jobs are under way; those of pushes wait while gate is held.
	jobs sync.WaitGroup
	gate sync.RWMutex
	// perMinute is the limit of requests; requests are the times of those of the last minute, refused counts what was beyond.
	perMinute int
	requests  []time.Time
	refused   int
	// asked counts requests by method and kind.
	asked map[string]int
}

func newFake(t *testing.T) *fake {
	f := &fake{
		t: t, breaks: hosttest.Breaks(), users: map[string]*account{}, merges: map[int64]*gitlab.MergeRequest{}, labelEvents: map[int64][]gitlab.LabelEvent{},
		stateEvents: map[int64][]gitlab.StateEvent{}, notes: map[int64][]*gitlab.Note{}, approved: map[int64][]string{}, said: map[string][]hosttest.Status{},
		perMinute: 2000, asked: map[string]int{}, last: 1000,
		project: gitlab.Project{ID: projectID, PathWithNamespace: path, Visibility: gitlab.PublicVisibility, MergeRequestsAccessLevel: gitlab.EnabledAccessControl, MergeMethod: gitlab.NoFastForwardMerge},
	}
	// As a protected branch, and GitLab's own refs.
	f.git = hosttest.NewGit(t, path, "#!/bin/sh\nwhile read -r old new ref; do\n"+
		"case $ref in refs/merge-requests/*) echo 'deny updating a hidden ref' >&2; exit 1;; esac\n"+
		"if [ $ref = refs/heads/main ] && [ -e restricted ] && [ \"$REMOTE_USER\" != "+bot+" ]; then echo 'GitLab: You are not allowed to push code to protected branches on this project.' >&2; exit 1; fi\ndone\n")
	f.Server = httptest.NewServer(f.routes())
	t.Cleanup(func() {
		f.Server.Close()
		f.jobs.Wait()
		t.Logf("the fake was asked %v", f.asked)
		if f.refused > 0 {
			t.Errorf("the service went beyond GitLab's limits %d times", f.refused)
		}
	})
	return f
}

func now() *time.Time { return new(time.Now().UTC().Truncate(time.Millisecond)) }

func (f *fake) id() int64 {
	f.last++
	return f.last
}

// serveGit serves the repository. What follows from a push is done by a job later.
func (f *fake) serveGit(out http.ResponseWriter, in *http.Request) {
	f.git.Serve(out, in, func(by string, before, after map[string]string) {
		f.jobs.Go(func() {
			time.Sleep(jobDelay)
			f.gate.RLock()
			defer f.gate.RUnlock()
			f.mu.Lock()
			defer f.mu.Unlock()
			f.pushed(f.users[by], before, after)
		})
	})
}

// pushed applies a push to merge requests. First those are merged whose recorded head is among the commits that were pushed to their target;
// then heads are recorded.
func (f *fake) pushed(by *account, before, after map[string]string) {
	for _, m := range f.all() {
		target := m.TargetBranch
		from, to := before[target], after[target]
		if m.State == "opened" && from != "" && to != "" && from != to && m.SHA != "" && f.breaks != "merged" &&
			f.git.Contains(to, m.SHA) && !f.git.Contains(from, m.SHA) {
			m.MergeCommitSHA = to
			f.setState(by, m, "merged")
		}
	}
	for _, m := range f.all() {
		if head := after[m.SourceBranch]; m.State == "opened" && m.SourceProjectID == projectID && head != "" && head != before[m.SourceBranch] {
			f.record(m, head)
			f.system(by, m, "added 1 commit")
			f.sendMerge("update", m)
		}
	}
}

// record sets the head of a merge request, and its ref.
func (f *fake) record(m *gitlab.MergeRequest, head string) {
	m.SHA = head
	f.git.Run("update-ref", fmt.Sprintf("refs/merge-requests/%d/head", m.IID), head)
	f.updateHeadPipeline(m)
}

// updateHeadPipeline sets the pipeline of a merge request to the newest one of its head. That of an older head stays until there is one.
func (f *fake) updateHeadPipeline(m *gitlab.MergeRequest) {
	if p := f.findPipeline(m.SHA, "", 0); p != nil {
		m.HeadPipeline = p
	}
}

func (f *fake) all() (all []*gitlab.MergeRequest) {
	for _, iid := range slices.Sorted(maps.Keys(f.merges)) {
		all = append(all, f.merges[iid])
	}
	return all
}

func (f *fake) touch(m *gitlab.MergeRequest) { m.UpdatedAt = now() }

// setState sets the state of a merge request to closed or merged.
func (f *fake) setState(by *account, m *gitlab.MergeRequest, state string) {
	m.State = state
	f.states++
	f.stateEvents[m.IID] = append(f.stateEvents[m.IID], gitlab.StateEvent{ID: f.states, User: &by.BasicUser, CreatedAt: now(), ResourceType: "MergeRequest", State: gitlab.EventTypeValue(state)})
	f.touch(m)
	f.sendMerge(map[string]string{"closed": "close", "merged": "merge"}[state], m)
}

// setLabel puts a label on, or takes it off.
func (f *fake) setLabel(by *account, m *gitlab.MergeRequest, label string, on bool) {
	if slices.Contains(m.Labels, label) == on {
		return
	}
	action := "remove"
	if on {
		action = "add"
		m.Labels = append(m.Labels, label)
	} else {
		m.Labels = slices.DeleteFunc(m.Labels, func(l string) bool { return l == label })
	}
	f.labelEvents[m.IID] = append(f.labelEvents[m.IID], gitlab.LabelEvent{ID: f.id(), Action: action, CreatedAt: now(), ResourceType: "MergeRequest", User: by.BasicUser, Label: gitlab.LabelEventLabel{Name: label}})
	f.touch(m)
	f.sendMerge("update", m)
}

func (f *fake) addNote(by *account, m *gitlab.MergeRequest, text string) *gitlab.Note {
	n := f.write(by, m, text, false)
	f.sendNote("create", m, n)
	return n
}

// system writes what GitLab itself notes, of which no webhook tells.
func (f *fake) system(by *account, m *gitlab.MergeRequest, text string) { f.write(by, m, text, true) }

func (f *fake) write(by *account, m *gitlab.MergeRequest, text string, system bool) *gitlab.Note {
	if by == nil {
		by = &account{}
	}
	n := &gitlab.Note{ID: f.id(), Body: text, System: system, Author: gitlab.NoteAuthor{ID: by.ID, Username: by.Username, Name: by.Name}, CreatedAt: now(), UpdatedAt: now(), NoteableType: "MergeRequest", NoteableIID: m.IID}
	f.notes[m.IID] = append(f.notes[m.IID], n)
	f.touch(m)
	return n
}

// findPipeline returns the newest pipeline of a commit, of a ref and with an id if those are given.
func (f *fake) findPipeline(commit, ref string, id int64) *gitlab.Pipeline {
	for _, p := range slices.Backward(f.pipelines) {
		if p.SHA == commit && (ref == "" || p.Ref == ref) && (id == 0 || p.ID == id) {
			return p
		}
	}
	return nil
}

func (f *fake) newPipeline(commit, ref string, source gitlab.PipelineSource) *gitlab.Pipeline {
	p := &gitlab.Pipeline{ID: f.id(), SHA: commit, Ref: ref, Source: source, Status: "created", CreatedAt: now()}
	f.pipelines = append(f.pipelines, p)
	for _, m := range f.merges {
		f.updateHeadPipeline(m)
	}
	return p
}

// branchOf returns a branch that has a commit, "" if there is none.
func (f *fake) branchOf(commit string) string {
	for _, branch := range slices.Sorted(maps.Keys(f.git.Branches())) {
		if f.git.Contains("refs/heads/"+branch, commit) {
			return branch
		}
	}
	return ""
}

// refusal is an answer that is none of success.
type refusal struct {
	status  int
	message string
}

// setStatus sets an external status of a commit, as Ci::CreateCommitStatusService does: one that is pending or running is brought up to date,
// if its state may be followed by the other; else another one takes its place.
func (f *fake) setStatus(by *account, commit string, o gitlab.SetCommitStatusOptions) (*status, *refusal) {
	ref, name := "", "default"
	if o.Ref != nil {
		ref = *o.Ref
	}
	if o.Name != nil {
		name = *o.Name
	}
	wanted := int64(0)
	if o.PipelineID != nil {
		wanted = *o.PipelineID
	}
	p := f.findPipeline(commit, ref, wanted)
	if p != nil {
		ref = p.Ref
	}
	if ref == "" {
		ref = f.branchOf(commit)
	}
	switch {
	case ref == "":
		return nil, &refusal{http.StatusNotFound, "404 References for commit Not Found"}
	case p == nil && wanted != 0:
		return nil, &refusal{http.StatusNotFound, "404 Pipeline for pipeline_id, sha and ref Not Found"}
	}
	if p == nil {
		p = f.newPipeline(commit, ref, "external")
	}
	var s *status
	for _, other := range f.statuses {
		if other.PipelineID == p.ID && other.Name == name && other.Author.ID == by.ID && (other.Status == "pending" || other.Status == "running") {
			s = other
		}
	}
	from := "created"
	if s != nil {
		from = s.Status
	}
	event := map[gitlab.BuildStateValue]string{gitlab.Pending: "enqueue", gitlab.Running: "run"}[o.State]
	if event == "enqueue" && from != "created" || event == "run" && from == "running" {
		return nil, &refusal{http.StatusBadRequest, fmt.Sprintf(`Cannot transition status via :%s from :%s (Reason(s): Status cannot transition via "%s")`, event, from, event)}
	}
	if s == nil {
		s = f.addStatus(p, by, name)
	}
	s.Status = string(o.State)
	if o.Description != nil {
		s.Description = *o.Description
	}
	if o.TargetURL != nil {
		s.TargetURL = *o.TargetURL
	}
	f.settle(p)
	return s, nil
}

// addStatus adds a job or a status to a pipeline, in the place of others of its name.
func (f *fake) addStatus(p *gitlab.Pipeline, by *account, name string) *status {
	for _, other := range f.statuses {
		if other.PipelineID == p.ID && other.Name == name {
			other.retried = true
		}
	}
	s := &status{CommitStatus: gitlab.CommitStatus{ID: f.id(), SHA: p.SHA, Ref: p.Ref, Name: name, PipelineID: p.ID, CreatedAt: now(), Author: gitlab.Author{ID: by.ID, Username: by.Username}}}
	f.statuses = append(f.statuses, s)
	return s
}

// settle adds up the state of a pipeline, and tells of it if it has changed.
func (f *fake) settle(p *gitlab.Pipeline) {
	state := "success"
	for _, s := range f.statuses {
		switch {
		case s.PipelineID != p.ID || s.retried || s.Status == "success" || s.Status == "skipped":
		case s.Status == "pending" || s.Status == "running":
			state = "running"
		case state == "success":
			state = s.Status
		}
	}
	if p.Status != state {
		p.Status = state
		f.send("Pipeline Hook", map[string]any{"object_kind": "pipeline", "object_attributes": map[string]any{"id": p.ID, "sha": p.SHA, "ref": p.Ref, "status": state}, "merge_request": nil, "project": f.described()})
	}
}

// encode returns JSON.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// split returns the names of a list with commas.
func split(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
