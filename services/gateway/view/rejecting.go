package view

import (
	"cmp"
	"slices"
	"time"

	"landfall.build/engine/lineup"
)

// RejectingTarget is a target for which changes were rejected.
type RejectingTarget struct {
	Target string   `json:"target"`
	Owners []string `json:"owners,omitempty"`
	// Changes is how many, LastChange the last of them.
	Changes    int       `json:"changes"`
	LastAt     time.Time `json:"last_at"`
	LastChange string    `json:"last_change"`
	LastTitle  string    `json:"last_title,omitempty"`
}

// mostRejecting bounds a list of them.
const mostRejecting = 50

// Rejecting lists the targets for which kept changes were rejected, those that rejected most first. A change that came again and has
// another end counts no more.
func (q *Queue) Rejecting() []RejectingTarget {
	byTarget := map[string]*RejectingTarget{}
	for _, f := range q.finished {
		c := q.stillFinished(f)
		if c == nil || c.end.state != lineup.Rejected {
			continue
		}
		var targets []string
		for _, p := range c.end.reason.GetFailed() {
			targets = append(targets, p.GetVersion().GetTarget())
		}
		for _, t := range sortedUnique(targets) {
			r := byTarget[t]
			if r == nil {
				r = &RejectingTarget{Target: t}
				byTarget[t] = r
			}
			r.Changes++
			r.LastAt, r.LastChange, r.LastTitle = c.end.at, c.admission.Change, c.admission.Title
		}
	}
	out := []RejectingTarget{}
	for _, r := range byTarget {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b RejectingTarget) int {
		return cmp.Or(cmp.Compare(b.Changes, a.Changes), b.LastAt.Compare(a.LastAt), cmp.Compare(a.Target, b.Target))
	})
	out = out[:min(len(out), mostRejecting)]
	targets := make([]string, len(out))
	for i := range out {
		targets[i] = out[i].Target
	}
	owners := q.OwnersOf(targets)
	for i := range out {
		out[i].Owners = owners[out[i].Target]
	}
	return out
}

// OwnersOf returns who owns targets, by the newest kept build that wants each.
func (q *Queue) OwnersOf(targets []string) map[string][]string {
	left := map[string]bool{}
	for _, t := range targets {
		left[t] = true
	}
	out := map[string][]string{}
	for _, id := range slices.Backward(q.builds.order) {
		if len(left) == 0 {
			break
		}
		b := q.builds.byID[id]
		if b == nil {
			continue
		}
		for _, v := range b.prepared.GetVersions() {
			if left[v.Target] {
				delete(left, v.Target)
				out[v.Target] = b.ownersOf(v.Target)
			}
		}
	}
	return out
}
