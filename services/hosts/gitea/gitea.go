// Package gitea is a repository at a Gitea, as the hosts service takes it.
package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"landfall.build/services/hosts"
)

// Bounds of what is asked for.
const (
	pageSize = 50
	maxPages = 400
	// protectionFor is how long it is believed what the branch asks for.
	protectionFor = 30 * time.Second
)

// Options of a repository.
type Options struct {
	// URL is the server's, Repository owner/name, Branch the queue's.
	URL, Repository, Branch string
	// Queue names the status and the comment.
	Queue string
	// Label is the one by which people ask.
	Label string
	// Token reads the token of the account that answers.
	Token func(ctx context.Context) ([]byte, error)
}

// Repository is a repository at a Gitea. It implements hosts.Host.
type Repository struct {
	Options
	client *http.Client

	mu         sync.Mutex
	login      string
	protection branch
	protected  time.Time
}

// New returns a repository.
func New(o Options) *Repository {
	o.URL = strings.TrimSuffix(o.URL, "/")
	token := &hosts.Secret{Read: o.Token}
	return &Repository{Options: o, client: hosts.NewClient(func(ctx context.Context) (string, error) { return token.Header(ctx, "token") })}
}

// call asks the server for something below /api/v1, and decodes the answer into out unless that is nil.
func (r *Repository) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		content, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(content)
	}
	request, err := http.NewRequestWithContext(ctx, method, r.URL+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := r.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		var f struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(content, &f)
		return &hosts.Failure{Host: "Gitea", Status: answer.StatusCode, Message: hosts.Clip(f.Message, 300)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(content, out)
}

// repo returns a path below that of the repository.
func (r *Repository) repo(format string, args ...any) string {
	return "/repos/" + r.Repository + fmt.Sprintf(format, args...)
}

type user struct {
	ID       int64  `json:"id"`
	Login    string `json:"login"`
	FullName string `json:"full_name"`
}

func (u user) hosts() hosts.User { return hosts.User{ID: u.ID, Login: u.Login, Name: u.FullName} }

type label struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type pull struct {
	Number int64     `json:"number"`
	Title  string    `json:"title"`
	User   user      `json:"user"`
	Labels []label   `json:"labels"`
	State  string    `json:"state"`
	Draft  bool      `json:"draft"`
	Merged bool      `json:"merged"`
	Page   string    `json:"html_url"`
	Update time.Time `json:"updated_at"`
	Base   struct {
		Ref string `json:"ref"`
	} `json:"base"`
	Head struct {
		SHA string `json:"sha"`
	} `json:"head"`
}

func (r *Repository) labelled(labels []label) bool {
	return slices.ContainsFunc(labels, func(l label) bool { return l.Name == r.Label })
}

// pages asks for a list, page by page, until a page is empty or take returns false.
func pages[T any](ctx context.Context, r *Repository, path string, take func([]T) bool) error {
	for page := 1; page <= maxPages; page++ {
		var list []T
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		if err := r.call(ctx, http.MethodGet, fmt.Sprintf("%s%slimit=%d&page=%d", path, separator, pageSize, page), nil, &list); err != nil {
			return err
		}
		if len(list) == 0 || !take(list) {
			return nil
		}
	}
	return nil
}

// List implements hosts.Host.
func (r *Repository) List(ctx context.Context, sinceUS int64) (all []hosts.Listed, err error) {
	state := "open"
	if sinceUS > 0 {
		state = "all"
	}
	err = pages(ctx, r, r.repo("/pulls?state=%s&sort=recentupdate", state), func(list []pull) bool {
		for _, p := range list {
			l := hosts.Listed{Number: p.Number, UpdatedUS: p.Update.UnixMicro(), Head: p.Head.SHA, Open: p.State == "open", Fits: p.Base.Ref == r.Branch, Labelled: r.labelled(p.Labels)}
			if l.UpdatedUS < sinceUS {
				return false
			}
			all = append(all, l)
		}
		return len(list) == pageSize
	})
	return all, err
}

// Look implements hosts.Host.
func (r *Repository) Look(ctx context.Context, number, after int64, commit string) (out hosts.Pull, err error) {
	var p pull
	if err := r.call(ctx, http.MethodGet, r.repo("/pulls/%d", number), nil, &p); err != nil {
		if hosts.IsStatus(err, http.StatusNotFound) {
			err = hosts.ErrGone
		}
		return out, err
	}
	out = hosts.Pull{
		Number: p.Number, UpdatedUS: p.Update.UnixMicro(), Title: hosts.Clip(p.Title, 500), URL: p.Page, Author: p.User.hosts(), Head: p.Head.SHA, Ref: fmt.Sprintf("refs/pull/%d/head", p.Number),
		Fits: p.Base.Ref == r.Branch, Open: p.State == "open", Merged: p.Merged, Labelled: r.labelled(p.Labels), Last: after,
	}
	if err := r.readTimeline(ctx, &out, after); err != nil {
		return out, err
	}
	statuses, err := r.statuses(ctx, p.Head.SHA)
	if err != nil {
		return out, err
	}
	if out.Open {
		if out.Missing, err = r.missing(ctx, p, statuses); err != nil {
			return out, err
		}
	}
	if commit != "" && commit != p.Head.SHA {
		if statuses, err = r.statuses(ctx, commit); err != nil {
			return out, err
		}
	}
	for _, s := range statuses {
		if s.Context == hosts.StatusName(r.Queue) {
			out.Status = hosts.Status{State: s.Status, Text: s.Description, URL: s.TargetURL}
		}
	}
	return out, nil
}

// entry is one of a timeline.
type entry struct {
	ID    int64  `json:"id"`
	Type  string `json:"type"`
	User  user   `json:"user"`
	Body  string `json:"body"`
	Label *label `json:"label"`
}

// readTimeline fills in the events.
func (r *Repository) readTimeline(ctx context.Context, out *hosts.Pull, after int64) error {
	own, err := r.ownLogin(ctx)
	if err != nil {
		return err
	}
	var events []hosts.Event
	if err := pages(ctx, r, r.repo("/issues/%d/timeline", out.Number), func(list []entry) bool {
		for _, e := range list {
			out.Last = max(out.Last, e.ID)
			event := hosts.Event{ID: e.ID, By: e.User.hosts()}
			switch {
			case e.ID <= after || e.User.Login == own:
				continue
			case e.Type == "label" && e.Label != nil && e.Label.Name == r.Label:
				// The body of a label that was added is 1, and empty of one that was removed.
				if event.Kind = hosts.Unlabelled; e.Body == "1" {
					event.Kind = hosts.Labelled
				}
			case e.Type == "comment" && len(hosts.Commands(e.Body)) > 0:
				event.Kind, event.Text = hosts.Commented, e.Body
			case e.Type == "close":
				event.Kind = hosts.Closed
			default:
				continue
			}
			events = append(events, event)
		}
		return true
	}); err != nil {
		return err
	}
	slices.SortFunc(events, func(a, b hosts.Event) int { return int(a.ID - b.ID) })
	if err := hosts.SetPermissions(events, func(u hosts.User) (hosts.Permission, error) { return r.permission(ctx, u.Login) }); err != nil {
		return err
	}
	out.Events = events
	return nil
}

// ownLogin returns the name of the account that the token is of.
func (r *Repository) ownLogin(ctx context.Context) (string, error) {
	r.mu.Lock()
	login := r.login
	r.mu.Unlock()
	if login != "" {
		return login, nil
	}
	var u user
	if err := r.call(ctx, http.MethodGet, "/user", nil, &u); err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.login = u.Login
	return u.Login, nil
}

func (r *Repository) permission(ctx context.Context, login string) (hosts.Permission, error) {
	var p struct {
		Permission string `json:"permission"`
	}
	err := r.call(ctx, http.MethodGet, r.repo("/collaborators/%s/permission", url.PathEscape(login)), nil, &p)
	if hosts.IsStatus(err, http.StatusNotFound) {
		return hosts.NoPermission, nil // the account is gone
	}
	switch p.Permission {
	case "owner", "admin":
		return hosts.AdminPermission, err
	case "write":
		return hosts.WritePermission, err
	case "read":
		return hosts.ReadPermission, err
	}
	return hosts.NoPermission, err
}

type status struct {
	Status      string `json:"status"`
	Context     string `json:"context"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
}

// statuses returns the newest status of each context of a commit.
func (r *Repository) statuses(ctx context.Context, commit string) (all []status, err error) {
	for page := 1; page <= 20; page++ {
		var combined struct {
			Statuses []status `json:"statuses"`
		}
		if err := r.call(ctx, http.MethodGet, r.repo("/commits/%s/status?limit=%d&page=%d", url.PathEscape(commit), pageSize, page), nil, &combined); err != nil {
			return nil, err
		}
		all = append(all, combined.Statuses...)
		if len(combined.Statuses) < pageSize {
			break
		}
	}
	return all, nil
}

// branch holds what a branch's protection requires.
type branch struct {
	Approvals int64    `json:"required_approvals"`
	Checked   bool     `json:"enable_status_check"`
	Checks    []string `json:"status_check_contexts"`
}

func (r *Repository) protectionOf(ctx context.Context) (branch, error) {
	r.mu.Lock()
	known, fresh := r.protection, time.Since(r.protected) < protectionFor
	r.mu.Unlock()
	if fresh {
		return known, nil
	}
	var b branch
	if err := r.call(ctx, http.MethodGet, r.repo("/branches/%s", url.PathEscape(r.Branch)), nil, &b); err != nil {
		return b, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.protection, r.protected = b, time.Now()
	return b, nil
}

// missing returns what keeps a pull request from being ready: that it is a draft, and what the branch's protection asks for.
func (r *Repository) missing(ctx context.Context, p pull, statuses []status) (missing []string, err error) {
	if p.Draft {
		missing = append(missing, hosts.MissingReadiness)
	}
	b, err := r.protectionOf(ctx)
	if err != nil {
		return nil, err
	}
	if b.Approvals > 0 {
		got, asked, err := r.approvals(ctx, p)
		if err != nil {
			return nil, err
		}
		if got < b.Approvals {
			missing = append(missing, hosts.MissingApprovals(b.Approvals-got, b.Approvals))
		}
		if asked != "" {
			missing = append(missing, "changes that "+hosts.Clip(asked, 100)+" asks for")
		}
	}
	if b.Checked {
		checks := make([]hosts.Check, 0, len(statuses))
		for _, s := range statuses {
			checks = append(checks, hosts.Check{Name: s.Context, State: s.Status, Passed: s.Status == "success"})
		}
		for _, pattern := range b.Checks {
			missing = append(missing, hosts.MissingChecks(pattern, checks)...)
		}
	}
	return missing, nil
}

// approvals returns how many approvals count, and who asks for changes.
func (r *Repository) approvals(ctx context.Context, p pull) (got int64, asked string, err error) {
	type review struct {
		User      user   `json:"user"`
		State     string `json:"state"`
		Official  bool   `json:"official"`
		Stale     bool   `json:"stale"`
		Dismissed bool   `json:"dismissed"`
	}
	last := map[string]string{}
	err = pages(ctx, r, r.repo("/pulls/%d/reviews", p.Number), func(list []review) bool {
		for _, v := range list {
			switch {
			case v.Dismissed || !v.Official || v.State == "APPROVED" && v.Stale:
			case v.State == "APPROVED", v.State == "REQUEST_CHANGES":
				last[v.User.Login] = v.State
			}
		}
		return len(list) == pageSize
	})
	for login, state := range last {
		if state == "APPROVED" {
			got++
		} else if asked == "" || login < asked {
			asked = login
		}
	}
	return got, asked, err
}

// SetStatus implements hosts.Host.
func (r *Repository) SetStatus(ctx context.Context, commit string, s hosts.Status) error {
	return r.call(ctx, http.MethodPost, r.repo("/statuses/%s", url.PathEscape(commit)), map[string]string{
		"state": s.State, "description": s.Text, "target_url": s.URL, "context": hosts.StatusName(r.Queue),
	}, nil)
}

type comment struct {
	ID   int64  `json:"id"`
	User user   `json:"user"`
	Body string `json:"body"`
}

// SetComment implements hosts.Host.
func (r *Repository) SetComment(ctx context.Context, number, id int64, text string) (int64, error) {
	body := map[string]string{"body": text}
	if id == 0 {
		var err error
		if id, err = r.findComment(ctx, number); err != nil {
			return 0, err
		}
	}
	if id != 0 {
		err := r.call(ctx, http.MethodPatch, r.repo("/issues/comments/%d", id), body, nil)
		if !hosts.IsStatus(err, http.StatusNotFound) {
			return id, err
		}
	}
	var c comment
	err := r.call(ctx, http.MethodPost, r.repo("/issues/%d/comments", number), body, &c)
	return c.ID, err
}

// findComment returns the comment that an earlier owner made, 0 for none.
func (r *Repository) findComment(ctx context.Context, number int64) (int64, error) {
	own, err := r.ownLogin(ctx)
	if err != nil {
		return 0, err
	}
	var list []comment
	if err := r.call(ctx, http.MethodGet, r.repo("/issues/%d/comments", number), nil, &list); err != nil {
		return 0, err
	}
	for _, c := range list {
		if c.User.Login == own && strings.Contains(c.Body, hosts.Marker(r.Queue)) {
			return c.ID, nil
		}
	}
	return 0, nil
}

// RemoveLabel implements hosts.Host.
func (r *Repository) RemoveLabel(ctx context.Context, number int64) error {
	var labels []label
	if err := r.call(ctx, http.MethodGet, r.repo("/issues/%d/labels", number), nil, &labels); err != nil {
		return err
	}
	for _, l := range labels {
		if l.Name == r.Label {
			return r.call(ctx, http.MethodDelete, r.repo("/issues/%d/labels/%d", number, l.ID), nil, nil)
		}
	}
	return nil
}

// MarkMerged implements hosts.Host.
func (r *Repository) MarkMerged(ctx context.Context, number int64, commit string) error {
	return r.call(ctx, http.MethodPost, r.repo("/pulls/%d/merge", number), map[string]string{"Do": "manually-merged", "MergeCommitID": commit}, nil)
}
