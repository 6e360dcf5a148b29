package view

import (
	"time"

	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// maxRevisions is how many revisions of a change are kept, the newest ones.
const maxRevisions = 16

// Revision is what somebody asked for at one time: exact commits.
type Revision struct {
	Revision uint64 `json:"revision"`
	// At is when it was admitted.
	At time.Time `json:"at"`
	// Base and Head are the commits between which the whole change lies. What is between them on the mainline is no part of it.
	Base string `json:"base"`
	Head string `json:"head"`
}

func revisionOf(a *eventsv1.Admission, at time.Time) Revision {
	r := Revision{Revision: a.Revision, At: at, Base: a.Mainline, Head: headOf(a)}
	if list := a.LandingCommits; len(list) > 0 {
		r.Base, r.Head = list[0].Base, list[len(list)-1].Head
	}
	return r
}

// Revisions returns the kept revisions of a change, oldest first; nil if the change is not kept.
func (q *Queue) Revisions(id string) []Revision {
	c := q.changes[id]
	if c == nil {
		return nil
	}
	return append(c.earlier[:len(c.earlier):len(c.earlier)], revisionOf(c.admission, c.admittedAt))
}

// replaced returns the earlier revisions of a change once its newest one is replaced.
func (c *change) replaced() []Revision {
	list := append(c.earlier[:len(c.earlier):len(c.earlier)], revisionOf(c.admission, c.admittedAt))
	return list[max(0, len(list)-(maxRevisions-1)):]
}

func revisionMessages(list []Revision) (out []*snapshotv1.GatewayEarlier) {
	for _, r := range list {
		out = append(out, &snapshotv1.GatewayEarlier{Revision: r.Revision, At: timeMessage(r.At), Base: r.Base, Head: r.Head})
	}
	return out
}

func revisionsIn(list []*snapshotv1.GatewayEarlier) (out []Revision) {
	for _, m := range list {
		out = append(out, Revision{Revision: m.Revision, At: timeIn(m.At), Base: m.Base, Head: m.Head})
	}
	return out
}
