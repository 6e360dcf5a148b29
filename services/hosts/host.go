package hosts

import (
	"context"
	"errors"
	"net/http"
	"time"

	"landfall.build/platform/access"
)

// Host is one repository at a code host. Every method may be called again with the same arguments: what is as it is to be stays so.
// Methods are safe for concurrent use.
type Host interface {
	// Notice reads a webhook. The error is ErrForged if its signature is not that of the secret, else what is wrong with it.
	Notice(header http.Header, body, secret []byte) (Notice, error)
	// List returns the pull requests that have changed at a time or since, in microseconds; with 0 all that are open. One that changes
	// meanwhile may be missing; its time is later than that of the newest one in the list.
	List(ctx context.Context, sinceUS int64) ([]Listed, error)
	// Look returns a pull request as it is now, with the events of its timeline after one of them, and the status of a commit; if the
	// commit is "", of its head. The error is ErrGone if there is no such pull request.
	Look(ctx context.Context, number, after int64, commit string) (Pull, error)
	// SetStatus sets the status of a commit.
	SetStatus(ctx context.Context, commit string, s Status) error
	// SetComment sets the text of the comment with an id; with 0 of the one that has the marker, and makes one where there is none.
	SetComment(ctx context.Context, number, id int64, text string) (int64, error)
	// RemoveLabel takes the label off.
	RemoveLabel(ctx context.Context, number int64) error
	// Examine looks at what people need to land there, with a webhook to an address that ends in path. It changes nothing.
	Examine(ctx context.Context, path string) Examined
	// MarkMerged closes a pull request as merged by a commit of the branch, or as landed where the host cannot be told that it is merged.
	MarkMerged(ctx context.Context, number int64, commit string) error
}

// Examined is what an examination has found.
type Examined struct {
	Problems []Problem
	// Webhook is the address of the webhook, "" if there is none.
	Webhook string
	// Try has the host send a webhook; nil if that cannot be had.
	Try func(ctx context.Context) error
}

// Add adds a problem.
func (e *Examined) Add(code, message, advice string) {
	e.Problems = append(e.Problems, Problem{Code: code, Message: message, Advice: advice})
}

// Problem is something that is wrong at a host, with a code of the doctor's.
type Problem struct{ Code, Message, Advice string }

// Errors of a Host.
var (
	ErrForged = errors.New("its signature is not that of the webhook's secret")
	ErrGone   = errors.New("there is no such pull request")
)

// Later is the error of a host that takes nothing before a time, or not what it was asked for: its limits are reached. Whoever asks before
// gets the same error, and the host is not troubled.
type Later struct {
	Until time.Time
	Why   string
}

func (l *Later) Error() string { return l.Why }

// Marker is in the comment of a queue, so that it is found again.
func Marker(queue string) string { return "<!-- landfall " + queue + " -->" }

// StatusName is the name of the status of a queue.
func StatusName(queue string) string { return "Landfall (" + queue + ")" }

// Notice names the pull request that a webhook is about. Nothing else of a webhook is believed: the host is asked.
type Notice struct {
	// Repository is owner/name.
	Repository string
	// Number is the pull request's. 0 stands for those that wait for a check of a commit.
	Number int64
	Commit string
	// Event and Delivery are the kind of event and the id of its delivery. Event is "" if it is of no interest.
	Event, Delivery string
}

// Listed is a pull request in a list.
type Listed struct {
	Number int64
	// UpdatedUS is when anything about it changed, in microseconds.
	UpdatedUS int64
	Head      string
	// Open reports whether it is open, Fits whether it is to go to the queue's branch.
	Open, Fits, Labelled bool
}

// User is somebody at the host.
type User struct {
	// ID never changes at the host. Login is the name that people write, and may change.
	ID    int64
	Login string
	Name  string
}

// Permission is a user's permission to the repository.
type Permission int

// Permissions.
const (
	NoPermission Permission = iota
	ReadPermission
	WritePermission
	AdminPermission
)

// role returns the role that a permission stands for.
func (p Permission) role() access.Role {
	switch p {
	case ReadPermission:
		return access.Viewer
	case WritePermission:
		return access.Lander
	case AdminPermission:
		return access.Operator
	}
	return access.NoRole
}

// EventKind is the kind of an event.
type EventKind int

// Kinds of events. Labelled and Unlabelled are also those of another switch that a host has for it, such as GitHub's auto-merge.
const (
	Labelled EventKind = iota + 1
	Unlabelled
	Commented
	Closed
)

// Event is an entry of a pull request's timeline.
type Event struct {
	ID   int64
	Kind EventKind
	// Auto is set if it is of the host's own switch, not of the label.
	Auto bool
	By   User
	// Permission is By's present permission. It is looked up only for events that ask for something.
	Permission Permission
	// Text is the text of a comment.
	Text string
}

// Pull is a pull request.
type Pull struct {
	Number int64
	// UpdatedUS is when it changed last, in microseconds.
	UpdatedUS  int64
	Title, URL string
	Author     User
	// Head is its newest commit, Ref the ref in the repository that has it.
	Head, Ref string
	// Branch is the full name of its branch, if the lander may move it to what lands: it is in the repository, and no branch of others.
	Branch string
	// Landing reports whether the head is a landing commit of its change: the lander has moved the branch.
	Landing bool
	// Fits reports whether it is to go to the queue's branch.
	Fits         bool
	Open, Merged bool
	Labelled     bool
	// Missing says what keeps it from being ready, for people.
	Missing []string
	// Events are those that ask for something, in order; Last is the id of the last one of all.
	Events []Event
	Last   int64
	// Status is the queue's on the commit that was asked for; the zero value if there is none.
	Status Status
}

// States of a status.
const (
	StatusPending = "pending"
	StatusSuccess = "success"
	StatusFailure = "failure"
	StatusError   = "error"
)

// Status is the queue's status of a commit.
type Status struct {
	State string
	// Text is at most maxStatus bytes long.
	Text string
	// URL leads to the change's page; it may be "".
	URL string
}
