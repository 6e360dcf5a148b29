package github

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/go-github/v93/github"

	"landfall.build/services/hosts"
)

// SetStatus implements hosts.Host.
func (r *Repository) SetStatus(ctx context.Context, commit string, s hosts.Status) error {
	r.mu.Lock()
	before, known := r.shown.Get(commit)
	r.mu.Unlock()
	w := final
	switch {
	case s.State != hosts.StatusPending:
	case before.status.State == hosts.StatusPending:
		w = refresh
	default:
		w = beginning
	}
	if r.app == nil {
		status := github.RepoStatus{State: &s.State, Description: &s.Text, Context: new(hosts.StatusName(r.Queue))}
		if s.URL != "" {
			status.TargetURL = &s.URL
		}
		_, err := write(ctx, r.account, w, func() (*github.RepoStatus, *github.Response, error) {
			return r.client.Repositories.CreateStatus(ctx, r.Owner, r.Name, commit, status)
		})
		if err == nil {
			r.remember(commit, shown{status: s})
		}
		return err
	}
	if !known {
		checks, err := r.checks(ctx, commit, false)
		if err != nil {
			return err
		}
		_, app, err := r.who(ctx)
		if err != nil {
			return err
		}
		for _, c := range checks {
			if c.app == app && c.run > before.run {
				before = shown{c.run, c.status}
			}
		}
	}
	run, err := r.setRun(ctx, w, commit, before, s)
	if err == nil {
		r.remember(commit, shown{run, s})
	}
	return err
}

// setRun brings the check run of a commit up to date. One that is completed cannot be begun again, so another one takes its place.
func (r *Repository) setRun(ctx context.Context, w weight, commit string, before shown, s hosts.Status) (int64, error) {
	state, conclusion := "in_progress", ""
	switch s.State {
	case hosts.StatusSuccess:
		conclusion = "success"
	case hosts.StatusFailure:
		conclusion = "failure"
	case hosts.StatusError:
		conclusion = "cancelled"
	}
	name, output := hosts.StatusName(r.Queue), &github.CheckRunOutput{Title: &s.Text, Summary: &s.Text}
	var concluded, details *string
	if conclusion != "" {
		state, concluded = "completed", &conclusion
	}
	if s.URL != "" {
		details = &s.URL
	}
	// Where a run has no details, GitHub gives it the App's page: the address is kept in the external id too, by which it is compared.
	var run *github.CheckRun
	var err error
	if before.run != 0 && (before.status.State == hosts.StatusPending || conclusion != "") {
		run, err = write(ctx, r.account, w, func() (*github.CheckRun, *github.Response, error) {
			return r.client.Checks.UpdateCheckRun(ctx, r.Owner, r.Name, before.run, github.UpdateCheckRunOptions{
				Name: name, DetailsURL: details, ExternalID: &s.URL, Status: &state, Conclusion: concluded, Output: output,
			})
		})
	} else {
		run, err = write(ctx, r.account, w, func() (*github.CheckRun, *github.Response, error) {
			return r.client.Checks.CreateCheckRun(ctx, r.Owner, r.Name, github.CreateCheckRunOptions{
				Name: name, HeadSHA: commit, DetailsURL: details, ExternalID: &s.URL, Status: &state, Conclusion: concluded, Output: output,
			})
		})
	}
	return run.GetID(), err
}

// SetComment implements hosts.Host.
func (r *Repository) SetComment(ctx context.Context, number, id int64, text string) (int64, error) {
	body := github.IssueCommentRequest{Body: text}
	if id == 0 {
		var err error
		if id, err = r.findComment(ctx, number); err != nil {
			return 0, err
		}
	}
	if id != 0 {
		_, err := write(ctx, r.account, final, func() (*github.IssueComment, *github.Response, error) {
			return r.client.Issues.UpdateComment(ctx, r.Owner, r.Name, id, body)
		})
		if !hosts.IsStatus(err, http.StatusNotFound) {
			return id, err
		}
	}
	c, err := write(ctx, r.account, final, func() (*github.IssueComment, *github.Response, error) {
		return r.client.Issues.CreateComment(ctx, r.Owner, r.Name, int(number), body)
	})
	return c.GetID(), err
}

// findComment returns the comment that an earlier owner made, 0 for none.
func (r *Repository) findComment(ctx context.Context, number int64) (id int64, err error) {
	own, _, err := r.who(ctx)
	if err != nil {
		return 0, err
	}
	err = pages(ctx, r.account, func(page github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
		return r.client.Issues.ListComments(ctx, r.Owner, r.Name, int(number), &github.IssueListCommentsOptions{ListOptions: page})
	}, func(list []*github.IssueComment) bool {
		for _, c := range list {
			if c.GetUser().GetLogin() == own && strings.Contains(c.GetBody(), hosts.Marker(r.Queue)) {
				id = c.GetID()
				return false
			}
		}
		return true
	})
	return id, err
}

// RemoveLabel implements hosts.Host.
func (r *Repository) RemoveLabel(ctx context.Context, number int64) error {
	_, err := write(ctx, r.account, final, func() (struct{}, *github.Response, error) {
		response, err := r.client.Issues.RemoveLabelForIssue(ctx, r.Owner, r.Name, int(number), r.Label)
		return struct{}{}, response, err
	})
	if hosts.IsStatus(err, http.StatusNotFound) {
		return nil // somebody took it off
	}
	return err
}

// MarkMerged implements hosts.Host. GitHub sees by itself that a pull request is merged, if the branch has its head. Else it is closed, with
// a label: there is no way to say that it has landed in other commits.
func (r *Repository) MarkMerged(ctx context.Context, number int64, commit string) error {
	p, err := r.pull(ctx, number)
	if err != nil || p.GetMerged() || p.GetState() != "open" {
		return err
	}
	compared, err := ask(ctx, r.account, func() (*github.CommitsComparison, *github.Response, error) {
		return r.client.Repositories.CompareCommits(ctx, r.Owner, r.Name, commit, p.GetHead().GetSHA(), &github.ListOptions{PerPage: 1})
	})
	if err != nil || compared.AheadBy != nil && *compared.AheadBy == 0 {
		return err
	}
	if _, err := write(ctx, r.account, final, func() ([]*github.Label, *github.Response, error) {
		return r.client.Issues.AddLabelsToIssue(ctx, r.Owner, r.Name, int(number), []string{hosts.LandedLabel})
	}); err != nil {
		return err
	}
	_, err = write(ctx, r.account, final, func() (*github.PullRequest, *github.Response, error) {
		return r.client.PullRequests.Edit(ctx, r.Owner, r.Name, int(number), &github.PullRequest{State: new("closed")})
	})
	return err
}
