package gitlab

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
	"golang.org/x/time/rate"

	"landfall.build/services/hosts"
)

// A status that is pending or running keeps its text at GitLab. Another text is said by going from pending to running, and the next one by a
// new status that takes the place of this one: of a commit so many replacements at once, and then one each replaceEvery.
const (
	replacements = 2
	replaceEvery = time.Minute
)

// ownStatus is what the queue shows of a commit.
type ownStatus struct {
	status hosts.Status
	// state is GitLab's own; id is that of its status, and pipeline of the pipeline that has it.
	state        string
	id, pipeline int64
	// number is that of the merge request.
	number int64
	// replaceLimit is for statuses that take the place of another; nil for all.
	replaceLimit *rate.Limiter
}

// states maps states of a status to those of GitLab, and stated the other way.
var (
	states = map[string]gitlab.BuildStateValue{
		hosts.StatusPending: gitlab.Pending, hosts.StatusSuccess: gitlab.Success, hosts.StatusFailure: gitlab.Failed, hosts.StatusError: gitlab.Canceled,
	}
	stated = map[string]string{"success": hosts.StatusSuccess, "failed": hosts.StatusFailure, "canceled": hosts.StatusError, "skipped": hosts.StatusError}
)

// own returns what the queue shows, by the statuses of a commit.
func (r *Repository) own(statuses []*gitlab.CommitStatus, self hosts.User) (seen ownStatus) {
	for _, s := range statuses {
		if s.Name == hosts.StatusName(r.Queue) && s.Author.ID == self.ID && s.ID >= seen.id {
			seen = ownStatus{id: s.ID, pipeline: s.PipelineID, state: s.Status, status: hosts.Status{State: cmp.Or(stated[s.Status], hosts.StatusPending), Text: s.Description, URL: s.TargetURL}}
		}
	}
	return seen
}

// remember keeps what is shown of a commit, and what is known of it besides.
func (r *Repository) remember(commit string, s ownStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, _ := r.shown.Get(commit)
	s.number, s.replaceLimit = cmp.Or(s.number, before.number), before.replaceLimit
	r.shown.Put(commit, s, 1)
}

// replaceAfter returns when a status of a commit may take the place of another; the zero time for now.
func (r *Repository) replaceAfter(commit string, now time.Time) (until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, _ := r.shown.Get(commit)
	if s.replaceLimit == nil {
		s.replaceLimit = rate.NewLimiter(rate.Every(replaceEvery), replacements)
		r.shown.Put(commit, s, 1)
	}
	place := s.replaceLimit.ReserveN(now, 1)
	if wait := place.DelayFrom(now); wait > 0 {
		place.CancelAt(now)
		return now.Add(wait)
	}
	return until
}

// SetStatus implements hosts.Host.
func (r *Repository) SetStatus(ctx context.Context, commit string, s hosts.Status) error {
	r.mu.Lock()
	before, known := r.shown.Get(commit)
	r.mu.Unlock()
	if !known {
		statuses, err := r.statuses(ctx, commit, false)
		if err != nil {
			return err
		}
		self, err := r.who(ctx)
		if err != nil {
			return err
		}
		before = r.own(statuses, self)
		r.remember(commit, before)
	}
	if before.status == s {
		return nil
	}
	state := states[s.State]
	if s.State == hosts.StatusPending && before.status.State == hosts.StatusPending {
		if until := r.spare(); !until.IsZero() {
			return &hosts.Later{Until: until, Why: "little is left of GitLab's limit of requests"}
		}
		if before.state == "pending" {
			state = gitlab.Running
		} else {
			if until := r.replaceAfter(commit, time.Now()); !until.IsZero() {
				return &hosts.Later{Until: until, Why: "GitLab keeps each text of a status"}
			}
			if _, err := r.post(ctx, commit, before, gitlab.SetCommitStatusOptions{State: gitlab.Canceled}); err != nil {
				return err
			}
		}
	}
	o := gitlab.SetCommitStatusOptions{State: state, Description: &s.Text}
	if s.URL != "" {
		o.TargetURL = &s.URL
	}
	set, err := r.post(ctx, commit, before, o)
	if err != nil {
		return err
	}
	r.remember(commit, ownStatus{status: s, state: string(state), id: set.ID, pipeline: set.PipelineID})
	return nil
}

// post sets the queue's status, in the pipeline that has the one before, if that is not over: else it would stay pending there. GitLab says
// 400 of a state that the status has already.
func (r *Repository) post(ctx context.Context, commit string, before ownStatus, o gitlab.SetCommitStatusOptions) (gitlab.CommitStatus, error) {
	o.Name = new(hosts.StatusName(r.Queue))
	set := func() (*gitlab.CommitStatus, error) {
		return ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.CommitStatus, *gitlab.Response, error) {
			return r.client.Commits.SetCommitStatus(r.Project, commit, &o, option)
		})
	}
	if before.status.State == hosts.StatusPending && before.pipeline > 0 {
		o.PipelineID = &before.pipeline
	}
	s, err := set()
	if hosts.IsStatus(err, http.StatusNotFound) && o.PipelineID != nil {
		o.PipelineID = nil // somebody has deleted the pipeline
		s, err = set()
	}
	if hosts.IsStatus(err, http.StatusNotFound) && before.number > 0 {
		// No branch of the project has the commit: it is of a fork, or its branch is gone.
		o.Ref = new(refOf(before.number))
		if s, err = set(); hosts.IsStatus(err, http.StatusNotFound) {
			return gitlab.CommitStatus{}, nil // there is nowhere to say it but in the note
		}
	}
	var f *hosts.Failure
	if errors.As(err, &f) && f.Status == http.StatusBadRequest && strings.Contains(f.Message, "Cannot transition status") {
		return gitlab.CommitStatus{}, nil
	}
	if err != nil {
		return gitlab.CommitStatus{}, err
	}
	return *s, nil
}

// SetComment implements hosts.Host.
func (r *Repository) SetComment(ctx context.Context, number, id int64, text string) (int64, error) {
	if id == 0 {
		var err error
		if id, err = r.findNote(ctx, number); err != nil {
			return 0, err
		}
	}
	if id != 0 {
		_, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Note, *gitlab.Response, error) {
			return r.client.Notes.UpdateMergeRequestNote(r.Project, number, id, &gitlab.UpdateMergeRequestNoteOptions{Body: &text}, option)
		})
		if !hosts.IsStatus(err, http.StatusNotFound) {
			return id, err
		}
	}
	n, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Note, *gitlab.Response, error) {
		return r.client.Notes.CreateMergeRequestNote(r.Project, number, &gitlab.CreateMergeRequestNoteOptions{Body: &text}, option)
	})
	if err != nil {
		return 0, err
	}
	return n.ID, nil
}

// findNote returns the note that an earlier owner made, 0 for none.
func (r *Repository) findNote(ctx context.Context, number int64) (id int64, err error) {
	own, err := r.who(ctx)
	if err != nil {
		return 0, err
	}
	err = r.notes(ctx, number, func(n *gitlab.Note) bool {
		if !n.System && n.Author.ID == own.ID && strings.Contains(n.Body, hosts.Marker(r.Queue)) {
			id = n.ID
		}
		return id == 0
	})
	return id, err
}

func (r *Repository) change(ctx context.Context, number int64, o gitlab.UpdateMergeRequestOptions) error {
	_, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.MergeRequest, *gitlab.Response, error) {
		return r.client.MergeRequests.UpdateMergeRequest(r.Project, number, &o, option)
	})
	return err
}

// RemoveLabel implements hosts.Host.
func (r *Repository) RemoveLabel(ctx context.Context, number int64) error {
	return r.change(ctx, number, gitlab.UpdateMergeRequestOptions{RemoveLabels: &gitlab.LabelOptions{r.Label}})
}

// MarkMerged implements hosts.Host. GitLab sees by itself that a merge request is merged, if its head was pushed to the branch, in a job that
// comes after the push. Else it is closed, with a label: there is no way to say that it has landed in other commits.
func (r *Repository) MarkMerged(ctx context.Context, number int64, commit string) error {
	m, err := r.merge(ctx, number)
	if err != nil || m.State != "opened" {
		return err
	}
	base, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Commit, *gitlab.Response, error) {
		return r.client.Repositories.MergeBase(r.Project, &gitlab.MergeBaseOptions{Ref: &[]string{commit, m.SHA}}, option)
	})
	if err != nil || base.ID == m.SHA {
		return err
	}
	return r.change(ctx, number, gitlab.UpdateMergeRequestOptions{AddLabels: &gitlab.LabelOptions{hosts.LandedLabel}, StateEvent: new("close")})
}
