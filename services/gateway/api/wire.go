package api

import (
	"fmt"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// UserHeader names who asks. It is believed with access.mode: open, and has no meaning otherwise.
const UserHeader = "X-Landfall-User"

// LandBody asks for a change to be landed; see schemas/events/v1/requests.proto for the fields.
type LandBody struct {
	Change      string            `json:"change,omitempty"`
	Revision    uint64            `json:"revision,omitempty"`
	Entries     []LandEntry       `json:"entries"`
	Requires    []string          `json:"requires,omitempty"`
	Author      string            `json:"author,omitempty"`
	Team        string            `json:"team,omitempty"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Host        string            `json:"host,omitempty"`
	Benefit     float64           `json:"benefit,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	RequestID   string            `json:"request_id,omitempty"`
}

// LandEntry is a ref, or an exact commit, or both; then the ref must be at that commit.
type LandEntry struct {
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// Outcomes of a land request that was not refused.
const (
	OutcomeAdmitted  = "admitted"
	OutcomeUnchanged = "unchanged"
	// OutcomeRetried: the change is pending, and what keeps it blocked runs again.
	OutcomeRetried = "retried"
	// OutcomePending: the request is in the log, and not answered yet.
	OutcomePending = "pending"
)

// LandReply answers a land request.
type LandReply struct {
	RequestID string `json:"request_id"`
	Queue     string `json:"queue"`
	Outcome   string `json:"outcome"`
	Change    string `json:"change,omitempty"`
	Revision  uint64 `json:"revision,omitempty"`
	// State is what has become of the change: pending, landed, dropped, rejected, ejected or cancelled.
	State   string `json:"state,omitempty"`
	Message string `json:"message"`
}

// SteerBody is who does something, and why. Each path takes the fields that it needs.
type SteerBody struct {
	Who string `json:"who,omitempty"`
	Why string `json:"why,omitempty"`
	// Revision that a cancellation means; 0: the present one.
	Revision uint64 `json:"revision,omitempty"`
	// Before names the pending change to move before.
	Before string `json:"before,omitempty"`
	// Front moves to the front of the queue.
	Front bool `json:"front,omitempty"`
	// Hold names the hold; one of that name is replaced or released.
	Hold string `json:"hold,omitempty"`
	// Target names what is quarantined, several with *, and Until when that is over.
	Target string    `json:"target,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Force quarantines a target that the queue has not seen.
	Force bool `json:"force,omitempty"`
}

// SteerReply is what was done.
type SteerReply struct {
	Queue   string        `json:"queue"`
	Message string        `json:"message"`
	Change  *view.Summary `json:"change,omitempty"`
}

// Failure is the body of every answer of status 400 and above.
type Failure struct {
	Error FailureDetail `json:"error"`
}

// FailureDetail is what is wrong, and what to do.
type FailureDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// QueueList is GET /v1/queues.
type QueueList struct {
	Queues []view.Overview `json:"queues"`
}

// ChangeList is GET /v1/queues/{queue}/changes: pending ones in queue order, then finished ones, newest
// first.
type ChangeList struct {
	Queue   view.Overview  `json:"queue"`
	Changes []view.Summary `json:"changes"`
}

func (b LandBody) request(queue string) (*eventsv1.LandRequest, error) {
	host := eventsv1.HostClass_HOST_CLASS_UNSPECIFIED
	if b.Host != "" {
		value, known := eventsv1.HostClass_value["HOST_CLASS_"+strings.ToUpper(b.Host)]
		if !known || value == 0 {
			return nil, fmt.Errorf("host %q is none of git, github, gerrit, gitlab, phabricator, gitea", clipText(b.Host, 80))
		}
		host = eventsv1.HostClass(value)
	}
	r := &eventsv1.LandRequest{
		Queue: queue, Change: b.Change, Revision: b.Revision, Requires: b.Requires, Author: b.Author, Team: b.Team,
		Title: b.Title, Description: b.Description, Uri: b.URI, Host: host, Benefit: b.Benefit, Labels: b.Labels,
		RequestId: b.RequestID,
	}
	for _, e := range b.Entries {
		r.Entries = append(r.Entries, &eventsv1.Entry{Ref: e.Ref, Commit: e.Commit})
	}
	return r, nil
}
