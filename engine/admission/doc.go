// Package admission decides what a land request becomes: a new change, a new revision of one that is known, the answer that
// nothing has changed, or a refusal that says what to do.
//
// It reads the queue (package lineup, with the heads that each change had), the request, and what git found of the request's
// entries. The same request, decided again on the queue that its own answer has changed, is "unchanged": so redelivery is
// harmless.
package admission

import eventsv1 "landfall.build/events/v1"

// Code names, for programs, why a request admitted nothing. Codes are fixed: clients compare them.
type Code string

// The codes.
const (
	// Unchanged is no error: the request asks for what is admitted already.
	Unchanged          Code = "unchanged"
	UnknownQueue       Code = "unknown_queue"
	BadRequest         Code = "bad_request"
	NoSuchRef          Code = "no_such_ref"
	NoSuchCommit       Code = "no_such_commit"
	RefMoved           Code = "ref_moved"
	AlreadyIn          Code = "already_in"
	Empty              Code = "empty"
	NotAStack          Code = "not_a_stack"
	UnknownRequirement Code = "unknown_requirement"
	CyclicRequirement  Code = "cyclic_requirement"
	// RevisionTaken: the revision that the request names was admitted with other commits.
	RevisionTaken         Code = "revision_taken"
	TooLate               Code = "too_late"
	QueueFull             Code = "queue_full"
	RepositoryUnreachable Code = "repository_unreachable"
	// RequestIDTaken: the request's id is another change's.
	RequestIDTaken Code = "request_id_taken"
	// Forbidden: who asks may not land this change.
	Forbidden Code = "forbidden"
)

// Codes lists all of them, for documents and their tests.
func Codes() []Code {
	return []Code{Unchanged, UnknownQueue, BadRequest, NoSuchRef, NoSuchCommit, RefMoved, AlreadyIn, Empty, NotAStack,
		UnknownRequirement, CyclicRequirement, RevisionTaken, TooLate, QueueFull, RepositoryUnreachable, RequestIDTaken, Forbidden}
}

// Passing reports whether a refusal with this code holds for the moment only: the same request, under the same id, is decided
// again when it is asked again.
func (c Code) Passing() bool {
	switch c {
	case RepositoryUnreachable, QueueFull, NoSuchRef, NoSuchCommit, RefMoved, UnknownRequirement, TooLate:
		return true
	}
	return false
}

// Refusal is why a request admits nothing. Message is one sentence that says what to do.
type Refusal struct {
	Code    Code
	Message string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// Pinned is what git found of a request's entries: exact commits, or why there are none.
type Pinned struct {
	// Problem is set when git cannot give them; the rest is then empty.
	Problem *Refusal
	// Entries are the request's, each with its full commit id.
	Entries []*eventsv1.Entry
	// LandingCommits are what the queue's strategy makes of them, at least one.
	LandingCommits []*eventsv1.LandingCommit
	// Below are the commits that the first entry was made on top of, the nearest first. They end where it left the mainline, or at
	// a merge.
	Below []string
	// Mainline is its head at that time.
	Mainline string
	// Held is set if each file that the landing commits alter is on the mainline as they leave it.
	Held bool
	// Author, Title and Description of the last entry's commit stand in for what a request leaves out.
	Author, Title, Description string
}

// Limits bound what one queue takes.
type Limits struct {
	// Pending is the number of pending changes.
	Pending int
	// Stack is the number of entries of one change.
	Stack int
	// Requires is the number of changes that one change may require.
	Requires int
}
