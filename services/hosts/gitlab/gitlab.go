// Package gitlab is a project at a GitLab, as the hosts service takes it.
package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"landfall.build/engine/lru"
	"landfall.build/services/hosts"
)

// Options of a project.
type Options struct {
	// Project is its path, group/name, and Branch the queue's.
	Project, Branch string
	// Queue names the status and the note.
	Queue string
	// Label is the one by which people ask.
	Label string
	// Checks names jobs and statuses that must have passed, besides what the project asks for. A name may have *.
	Checks []string
	// Merges is set if what lands has the commits of the merge request, so that GitLab sees by itself that it is merged.
	Merges bool
	// Moves is set if the lander moves the branch of a merge request to what lands, so that GitLab sees that it is merged.
	Moves bool
}

// Repository is a project at a GitLab. It implements hosts.Host.
type Repository struct {
	Options
	*Server

	mu sync.Mutex
	// settings are the project's, as of settingsAt.
	settings   *gitlab.Project
	settingsAt time.Time
	// shown has what the queue shows of a commit.
	shown *lru.Cache[string, ownStatus]
	heads *hosts.Heads
}

const (
	// maxShown is of how many commits it is remembered what is shown; of others it is asked.
	maxShown = 20_000
	// settingsFor is how long it is believed what the project asks for.
	settingsFor = 30 * time.Second
)

// New returns a project.
func (s *Server) New(o Options) *Repository {
	return &Repository{Options: o, Server: s, shown: lru.New[string, ownStatus](maxShown), heads: hosts.NewHeads()}
}

// project returns the project's settings, as they were at most 30 s ago.
func (r *Repository) project(ctx context.Context) (*gitlab.Project, error) {
	r.mu.Lock()
	known, fresh := r.settings, time.Since(r.settingsAt) < settingsFor
	r.mu.Unlock()
	if known != nil && fresh {
		return known, nil
	}
	p, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Project, *gitlab.Response, error) {
		return r.client.Projects.GetProject(r.Project, nil, option)
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings, r.settingsAt = p, time.Now()
	return p, nil
}

// isOpen reports whether a merge request in a state is open; locked is one that GitLab is merging.
func isOpen(state string) bool { return state == "opened" || state == "locked" }

// List implements hosts.Host.
func (r *Repository) List(ctx context.Context, sinceUS int64) (all []hosts.Listed, err error) {
	o := gitlab.ListProjectMergeRequestsOptions{State: new("opened"), OrderBy: new("updated_at"), Sort: new("desc")}
	if sinceUS > 0 {
		o.State, o.UpdatedAfter = new("all"), new(time.UnixMicro(sinceUS).UTC())
	}
	err = pages(ctx, r.Server, func(page gitlab.ListOptions, option gitlab.RequestOptionFunc) ([]*gitlab.BasicMergeRequest, *gitlab.Response, error) {
		o.ListOptions = page
		return r.client.MergeRequests.ListProjectMergeRequests(r.Project, &o, option)
	}, func(list []*gitlab.BasicMergeRequest) bool {
		for _, m := range list {
			l := hosts.Listed{
				Number: m.IID, UpdatedUS: microseconds(m.UpdatedAt), Head: m.SHA, Open: isOpen(m.State),
				Fits: m.TargetBranch == r.Branch, Labelled: slices.Contains(m.Labels, r.Label),
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

func microseconds(at *time.Time) int64 {
	if at == nil {
		return 0
	}
	return at.UnixMicro()
}

func (r *Repository) merge(ctx context.Context, number int64) (*gitlab.MergeRequest, error) {
	return ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.MergeRequest, *gitlab.Response, error) {
		return r.client.MergeRequests.GetMergeRequest(r.Project, number, nil, option)
	})
}

func userOf(u *gitlab.BasicUser) hosts.User {
	if u == nil {
		return hosts.User{}
	}
	return hosts.User{ID: u.ID, Login: u.Username, Name: u.Name}
}

// refOf is the ref that has the head of a merge request, in the project that it goes to.
func refOf(number int64) string { return fmt.Sprintf("refs/merge-requests/%d/head", number) }

// Look implements hosts.Host.
func (r *Repository) Look(ctx context.Context, number, after int64, commit string) (out hosts.Pull, err error) {
	m, err := r.merge(ctx, number)
	if hosts.IsStatus(err, http.StatusNotFound) {
		// GitLab says so too of a project that the account may not see any more.
		if _, err = ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Project, *gitlab.Response, error) {
			return r.client.Projects.GetProject(r.Project, nil, option)
		}); err == nil {
			err = hosts.ErrGone
		}
	}
	if err != nil {
		return out, err
	}
	out = hosts.Pull{
		Number: number, UpdatedUS: microseconds(m.UpdatedAt), Title: hosts.Clip(m.Title, 500), URL: m.WebURL, Author: userOf(m.Author),
		Head: m.SHA, Ref: refOf(number), Fits: m.TargetBranch == r.Branch,
		Open: isOpen(m.State), Merged: m.State == "merged", Labelled: slices.Contains(m.Labels, r.Label), Last: after,
	}
	if err := r.readTimeline(ctx, &out, after, m.State == "closed"); err != nil {
		return out, err
	}
	if err := r.readBranch(ctx, &out, m, commit); err != nil {
		return out, err
	}
	var statuses []*gitlab.CommitStatus
	statusesOf := ""
	if out.Open {
		if out.Missing, statuses, statusesOf, err = r.missing(ctx, m); err != nil {
			return out, err
		}
	}
	if commit == "" {
		commit = out.Head
	}
	if commit == "" {
		return out, nil // its branch is gone
	}
	if commit != statusesOf {
		if statuses, err = r.statuses(ctx, commit, false); err != nil {
			return out, err
		}
	}
	self, err := r.who(ctx)
	if err != nil {
		return out, err
	}
	seen := r.own(statuses, self)
	seen.number = number
	r.remember(commit, seen)
	out.Status = seen.status
	return out, nil
}

// readBranch fills in whether the branch may be moved, and whether it was: commit is the one that was asked for.
func (r *Repository) readBranch(ctx context.Context, out *hosts.Pull, m *gitlab.MergeRequest, commit string) (err error) {
	if !r.Moves || !out.Open {
		return nil
	}
	if m.SourceProjectID != m.TargetProjectID {
		return nil // a fork's, which nobody here may move
	}
	if commit != "" && commit != out.Head && out.Head != "" {
		if out.Landing, err = r.heads.IsLanding(out.Head, r.Queue, out.Number, func() (string, error) {
			c, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Commit, *gitlab.Response, error) {
				return r.client.Commits.GetCommit(r.Project, out.Head, nil, option)
			})
			if err != nil {
				return "", err
			}
			return c.Message, nil
		}); err != nil {
			return err
		}
	}
	may, err := r.heads.MayMove(m.SourceBranch, func() (bool, error) {
		b, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.Branch, *gitlab.Response, error) {
			return r.client.Branches.GetBranch(r.Project, m.SourceBranch, option)
		})
		if hosts.IsStatus(err, http.StatusNotFound) {
			return false, nil
		}
		if err != nil || b.Protected || b.Default {
			return false, err
		}
		return r.isAlone(ctx, m.SourceBranch)
	})
	if may {
		out.Branch = "refs/heads/" + m.SourceBranch
	}
	return err
}

// isAlone reports whether a branch is that of one open merge request, and none goes to it.
func (r *Repository) isAlone(ctx context.Context, name string) (bool, error) {
	list := func(o gitlab.ListProjectMergeRequestsOptions) ([]*gitlab.BasicMergeRequest, error) {
		o.State = new("opened")
		return ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) ([]*gitlab.BasicMergeRequest, *gitlab.Response, error) {
			return r.client.MergeRequests.ListProjectMergeRequests(r.Project, &o, option)
		})
	}
	own, err := list(gitlab.ListProjectMergeRequestsOptions{SourceBranch: &name})
	if err != nil || len(own) > 1 {
		return false, err
	}
	stacked, err := list(gitlab.ListProjectMergeRequestsOptions{TargetBranch: &name})
	return err == nil && len(stacked) == 0, err
}

// An event's id is made of its time, its kind and the end of GitLab's id, since labels, notes and states have ids of sequences of their own:
// 43 bits of milliseconds, 2 of the kind, 18 of the id, which tell events of a millisecond apart.
const (
	kindBits   = 18
	timeBits   = kindBits + 2
	maxEventID = 1<<kindBits - 1
)

func eventID(at time.Time, kind hosts.EventKind, id int64) int64 {
	place := int64(0)
	switch kind {
	case hosts.Commented:
		place = 1
	case hosts.Closed:
		place = 2
	}
	return at.UnixMilli()<<timeBits | place<<kindBits | id&maxEventID
}

// readTimeline fills in the events: those of labels, of notes and, if it is closed, of its state. Notes are read from the newest on.
func (r *Repository) readTimeline(ctx context.Context, out *hosts.Pull, after int64, closed bool) error {
	own, err := r.who(ctx)
	if err != nil {
		return err
	}
	var events []hosts.Event
	take := func(kind hosts.EventKind, id int64, at *time.Time, by hosts.User, text string) {
		if at == nil || by.ID == own.ID {
			return
		}
		e := hosts.Event{ID: eventID(*at, kind, id), Kind: kind, By: by, Text: text}
		out.Last = max(out.Last, e.ID)
		if e.ID > after && (kind != hosts.Commented || len(hosts.Commands(text)) > 0) {
			events = append(events, e)
		}
	}
	if err := pages(ctx, r.Server, func(page gitlab.ListOptions, option gitlab.RequestOptionFunc) ([]*gitlab.LabelEvent, *gitlab.Response, error) {
		return r.client.ResourceLabelEvents.ListMergeRequestsLabelEvents(r.Project, out.Number, &gitlab.ListLabelEventsOptions{ListOptions: page}, option)
	}, func(list []*gitlab.LabelEvent) bool {
		for _, e := range list {
			kind := map[string]hosts.EventKind{"add": hosts.Labelled, "remove": hosts.Unlabelled}[e.Action]
			if kind != 0 && e.Label.Name == r.Label {
				take(kind, e.ID, e.CreatedAt, userOf(&e.User), "")
			}
		}
		return true
	}); err != nil {
		return err
	}
	if err := r.notes(ctx, out.Number, func(n *gitlab.Note) bool {
		if n.CreatedAt != nil && n.CreatedAt.UnixMilli() < after>>timeBits {
			return false
		}
		if !n.System {
			take(hosts.Commented, n.ID, n.CreatedAt, hosts.User{ID: n.Author.ID, Login: n.Author.Username, Name: n.Author.Name}, n.Body)
		}
		return true
	}); err != nil {
		return err
	}
	if closed {
		if err := pages(ctx, r.Server, func(page gitlab.ListOptions, option gitlab.RequestOptionFunc) ([]*gitlab.StateEvent, *gitlab.Response, error) {
			return r.client.ResourceStateEvents.ListMergeStateEvents(r.Project, out.Number, &gitlab.ListStateEventsOptions{ListOptions: page}, option)
		}, func(list []*gitlab.StateEvent) bool {
			for _, e := range list {
				if e.State == "closed" {
					take(hosts.Closed, e.ID, e.CreatedAt, userOf(e.User), "")
				}
			}
			return true
		}); err != nil {
			return err
		}
	}
	slices.SortFunc(events, func(a, b hosts.Event) int { return cmp.Compare(a.ID, b.ID) })
	out.Events = events
	return hosts.SetPermissions(events, func(u hosts.User) (hosts.Permission, error) { return r.permission(ctx, u) })
}

// notes reads the notes of a merge request, the newest first, until take returns false.
func (r *Repository) notes(ctx context.Context, number int64, take func(*gitlab.Note) bool) error {
	o := gitlab.ListMergeRequestNotesOptions{OrderBy: new("created_at"), Sort: new("desc")}
	return pages(ctx, r.Server, func(page gitlab.ListOptions, option gitlab.RequestOptionFunc) ([]*gitlab.Note, *gitlab.Response, error) {
		o.ListOptions = page
		return r.client.Notes.ListMergeRequestNotes(r.Project, number, &o, option)
	}, func(list []*gitlab.Note) bool {
		return !slices.ContainsFunc(list, func(n *gitlab.Note) bool { return !take(n) })
	})
}

// permission returns what somebody may do, by the access level in the project, or in a group above it.
func (r *Repository) permission(ctx context.Context, u hosts.User) (hosts.Permission, error) {
	if u.ID == 0 {
		return hosts.NoPermission, nil // the account is gone
	}
	m, err := ask(ctx, r.Server, func(option gitlab.RequestOptionFunc) (*gitlab.ProjectMember, *gitlab.Response, error) {
		return r.client.ProjectMembers.GetInheritedProjectMember(r.Project, u.ID, option)
	})
	if hosts.IsStatus(err, http.StatusNotFound) {
		p, err := r.project(ctx)
		if err != nil || p.Visibility == gitlab.PrivateVisibility {
			return hosts.NoPermission, err
		}
		return hosts.ReadPermission, nil // nobody has to be a member to comment
	}
	switch {
	case err != nil || m.State != "active":
		return hosts.NoPermission, err
	case m.AccessLevel >= gitlab.MaintainerPermissions:
		return hosts.AdminPermission, nil
	case m.AccessLevel >= gitlab.DeveloperPermissions:
		return hosts.WritePermission, nil
	case m.AccessLevel >= gitlab.GuestPermissions:
		return hosts.ReadPermission, nil
	}
	return hosts.NoPermission, nil
}
