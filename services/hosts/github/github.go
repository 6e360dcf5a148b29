// Package github is a repository at GitHub, as the hosts service takes it.
package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/go-github/v93/github"

	"landfall.build/engine/lru"
	"landfall.build/services/hosts"
)

// Options of a repository.
type Options struct {
	// Owner and Name are the repository's, Branch the queue's.
	Owner, Name, Branch string
	// Queue names the status and the comment.
	Queue string
	// Label is the one by which people ask.
	Label string
	// Merges is set if what lands has the commits of the pull request, so that GitHub sees by itself that it is merged.
	Merges bool
	// Moves is set if the lander moves the branch of a pull request to what lands, so that GitHub sees that it is merged.
	Moves bool
}

// Repository is a repository at GitHub. It implements hosts.Host.
type Repository struct {
	Options
	*account

	mu sync.Mutex
	// asked holds what the branch asks for, as of askedAt.
	asked   demands
	askedAt time.Time
	// shown has what the queue shows of a commit.
	shown *lru.Cache[string, shown]
	heads *hosts.Heads
}

// shown is what the queue shows of a commit.
type shown struct {
	// run is the id of the check run; 0 with an account.
	run    int64
	status hosts.Status
}

// maxShown is of how many commits it is remembered what is shown; of others it is asked.
const maxShown = 20_000

// New returns a repository.
func (s *Server) New(o Options) (*Repository, error) {
	a, err := s.account(o.Owner, o.Name)
	if err != nil {
		return nil, err
	}
	return &Repository{Options: o, account: a, shown: lru.New[string, shown](maxShown), heads: hosts.NewHeads()}, nil
}

func (r *Repository) labelled(labels []*github.Label) bool {
	return slices.ContainsFunc(labels, func(l *github.Label) bool { return l.GetName() == r.Label })
}

// pages asks for a list page by page, until take returns false or there is no more.
func pages[T any](ctx context.Context, a *account, list func(github.ListOptions) ([]T, *github.Response, error), take func([]T) bool) error {
	for page := 1; page <= maxPages; page++ {
		all, err := ask(ctx, a, func() ([]T, *github.Response, error) { return list(github.ListOptions{Page: page, PerPage: pageSize}) })
		if err != nil {
			return err
		}
		if !take(all) || len(all) < pageSize {
			return nil
		}
	}
	return nil
}

// List implements hosts.Host.
func (r *Repository) List(ctx context.Context, sinceUS int64) (all []hosts.Listed, err error) {
	o := github.PullRequestListOptions{State: "open", Sort: "updated", Direction: "desc"}
	if sinceUS > 0 {
		o.State = "all"
	}
	err = pages(ctx, r.account, func(page github.ListOptions) ([]*github.PullRequest, *github.Response, error) {
		o.ListOptions = page
		return r.client.PullRequests.List(ctx, r.Owner, r.Name, &o)
	}, func(list []*github.PullRequest) bool {
		for _, p := range list {
			l := hosts.Listed{
				Number: int64(p.GetNumber()), UpdatedUS: p.GetUpdatedAt().UnixMicro(), Head: p.GetHead().GetSHA(), Open: p.GetState() == "open",
				Fits: p.GetBase().GetRef() == r.Branch, Labelled: r.labelled(p.Labels),
			}
			if l.UpdatedUS < sinceUS {
				return false
			}
			all = append(all, l)
		}
		return true
	})
	return all, err
}

func (r *Repository) pull(ctx context.Context, number int64) (*github.PullRequest, error) {
	return ask(ctx, r.account, func() (*github.PullRequest, *github.Response, error) {
		return r.client.PullRequests.Get(ctx, r.Owner, r.Name, int(number))
	})
}

func userOf(u *github.User) hosts.User {
	return hosts.User{ID: u.GetID(), Login: u.GetLogin(), Name: u.GetName()}
}

// Look implements hosts.Host.
func (r *Repository) Look(ctx context.Context, number, after int64, commit string) (out hosts.Pull, err error) {
	p, err := r.pull(ctx, number)
	if hosts.IsStatus(err, http.StatusNotFound) {
		// GitHub says so too of a repository that the account may not see any more.
		if _, err = ask(ctx, r.account, func() (*github.Repository, *github.Response, error) {
			return r.client.Repositories.Get(ctx, r.Owner, r.Name)
		}); err == nil {
			err = hosts.ErrGone
		}
	}
	if err != nil {
		return out, err
	}
	out = hosts.Pull{
		Number: number, UpdatedUS: p.GetUpdatedAt().UnixMicro(), Title: hosts.Clip(p.GetTitle(), 500), URL: p.GetHTMLURL(), Author: userOf(p.User),
		Head: p.GetHead().GetSHA(), Ref: fmt.Sprintf("refs/pull/%d/head", number), Fits: p.GetBase().GetRef() == r.Branch,
		Open: p.GetState() == "open", Merged: p.GetMerged(), Labelled: r.labelled(p.Labels), Last: after,
	}
	if err := r.readTimeline(ctx, &out, after); err != nil {
		return out, err
	}
	if err := r.readBranch(ctx, &out, p, commit); err != nil {
		return out, err
	}
	var checks []check
	if out.Open {
		if out.Missing, checks, err = r.missing(ctx, p); err != nil {
			return out, err
		}
	}
	if commit == "" {
		commit = out.Head
	}
	if commit != out.Head || checks == nil {
		if checks, err = r.checks(ctx, commit, false); err != nil {
			return out, err
		}
	}
	of := shown{}
	_, app, err := r.who(ctx)
	if err != nil {
		return out, err
	}
	for _, c := range checks {
		if c.name == hosts.StatusName(r.Queue) && c.app == app && c.run >= of.run {
			of = shown{c.run, c.status}
		}
	}
	r.remember(commit, of)
	out.Status = of.status
	return out, nil
}

// readBranch fills in whether the branch may be moved, and whether it was: commit is the one that was asked for.
func (r *Repository) readBranch(ctx context.Context, out *hosts.Pull, p *github.PullRequest, commit string) (err error) {
	if !r.Moves || !out.Open {
		return nil
	}
	head, base := p.GetHead(), p.GetBase()
	if head.GetRepo().GetID() != base.GetRepo().GetID() || head.GetRef() == base.GetRepo().GetDefaultBranch() {
		return nil // a fork's, which nobody here may move, or one that others work on
	}
	if commit != "" && commit != out.Head {
		if out.Landing, err = r.heads.IsLanding(out.Head, r.Queue, out.Number, func() (string, error) {
			c, err := ask(ctx, r.account, func() (*github.Commit, *github.Response, error) {
				return r.client.Git.GetCommit(ctx, r.Owner, r.Name, out.Head)
			})
			return c.GetMessage(), err
		}); err != nil {
			return err
		}
	}
	may, err := r.heads.MayMove(head.GetRef(), func() (bool, error) {
		b, err := r.branch(ctx, head.GetRef())
		if hosts.IsStatus(err, http.StatusNotFound) {
			return false, nil
		}
		if err != nil || b.GetProtected() {
			return false, err
		}
		return r.isAlone(ctx, head.GetRef())
	})
	if may {
		out.Branch = "refs/heads/" + head.GetRef()
	}
	return err
}

// isAlone reports whether a branch is that of one open pull request, and none goes to it.
func (r *Repository) isAlone(ctx context.Context, name string) (bool, error) {
	list := func(o github.PullRequestListOptions) ([]*github.PullRequest, error) {
		o.State = "open"
		return ask(ctx, r.account, func() ([]*github.PullRequest, *github.Response, error) {
			return r.client.PullRequests.List(ctx, r.Owner, r.Name, &o)
		})
	}
	own, err := list(github.PullRequestListOptions{Head: r.Owner + ":" + name})
	if err != nil || len(own) > 1 {
		return false, err
	}
	stacked, err := list(github.PullRequestListOptions{Base: name})
	return err == nil && len(stacked) == 0, err
}

func (r *Repository) remember(commit string, s shown) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shown.Put(commit, s, 1)
}

// idBits is how many bits of an event's id are its place among those of the same second.
const idBits = 20

// readTimeline fills in the events. Ids of labels and comments are not of one sequence at GitHub, so an event's id is made of its time and
// its place among the events of the same second: those of others that could ask for something, whatever their text is.
func (r *Repository) readTimeline(ctx context.Context, out *hosts.Pull, after int64) error {
	own, _, err := r.who(ctx)
	if err != nil {
		return err
	}
	second, place := int64(0), int64(0)
	var events []hosts.Event
	if err := pages(ctx, r.account, func(page github.ListOptions) ([]*github.Timeline, *github.Response, error) {
		return r.client.Issues.ListIssueTimeline(ctx, r.Owner, r.Name, int(out.Number), &page)
	}, func(list []*github.Timeline) bool {
		for _, e := range list {
			by := e.Actor
			if by == nil {
				by = e.User
			}
			event := hosts.Event{By: userOf(by)}
			switch e.GetEvent() {
			case "labeled":
				event.Kind = hosts.Labelled
			case "unlabeled":
				event.Kind = hosts.Unlabelled
			case "auto_merge_enabled", "auto_squash_enabled", "auto_rebase_enabled":
				event.Kind, event.Auto = hosts.Labelled, true
			case "auto_merge_disabled":
				event.Kind, event.Auto = hosts.Unlabelled, true
			case "commented":
				event.Kind, event.Text = hosts.Commented, e.GetBody()
			case "closed":
				event.Kind = hosts.Closed
			}
			label := e.GetEvent() == "labeled" || e.GetEvent() == "unlabeled"
			if event.Kind == 0 || e.CreatedAt == nil || event.By.Login == own || label && e.GetLabel().GetName() != r.Label {
				continue
			}
			if at := e.CreatedAt.Unix(); at > second {
				second, place = at, 0
			}
			event.ID = second<<idBits | place
			place++
			out.Last = max(out.Last, event.ID)
			if event.ID > after && (event.Kind != hosts.Commented || len(hosts.Commands(event.Text)) > 0) {
				events = append(events, event)
			}
		}
		return true
	}); err != nil {
		return err
	}
	if err := hosts.SetPermissions(events, func(u hosts.User) (hosts.Permission, error) { return r.permission(ctx, u.Login) }); err != nil {
		return err
	}
	// Auto-merge is also for other branches than the queue's, and for robots that may not land: it then asks for nothing.
	out.Events = slices.DeleteFunc(events, func(e hosts.Event) bool { return e.Auto && (!out.Fits || e.Permission < hosts.WritePermission) })
	return nil
}

func (r *Repository) permission(ctx context.Context, login string) (hosts.Permission, error) {
	if login == "" {
		return hosts.NoPermission, nil // the account is gone
	}
	p, err := ask(ctx, r.account, func() (*github.RepositoryPermissionLevel, *github.Response, error) {
		return r.client.Repositories.GetPermissionLevel(ctx, r.Owner, r.Name, login)
	})
	if hosts.IsStatus(err, http.StatusNotFound) {
		return hosts.NoPermission, nil
	}
	switch p.GetPermission() {
	case "admin":
		return hosts.AdminPermission, err
	case "write":
		return hosts.WritePermission, err
	case "read":
		return hosts.ReadPermission, err
	}
	return hosts.NoPermission, err
}
