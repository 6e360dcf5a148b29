package steps

import (
	"cmp"
	"slices"
)

// Running is a step that a worker runs, since a time in microseconds.
type Running struct {
	Version
	SinceUs int64
}

// A step is near its end while it has run for between nearEnd and overdue of its likely duration. After that its end cannot be
// predicted.
const (
	nearEnd = 0.8
	overdue = 1.5
)

// HasUrgent reports whether an operator has moved the change of some live build to the front (M35).
func (q *Queue) HasUrgent() bool {
	return slices.ContainsFunc(q.order, func(b *build) bool { return b.urgent })
}

// Preemptible returns which of the running steps may be ended for urgent ones (M35), the lowest rank first. A step that
// an urgent change wants, or that is near its end, is not among them.
func (q *Queue) Preemptible(nowUs int64, running []Running) []Running {
	type candidate struct {
		Running
		index float64
	}
	var list []candidate
	for _, r := range running {
		w := q.wanted[r.Version]
		if w == nil {
			continue // its worker ends it anyway
		}
		if ran := float64(nowUs-r.SinceUs) / float64(w.us); ran >= nearEnd && ran < overdue {
			continue
		}
		c, urgent := candidate{Running: r}, false
		for _, b := range w.askers {
			urgent = urgent || b.urgent
			c.index += q.indexOf(b.build, nowUs)
		}
		if !urgent {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Hash, b.Hash))
	})
	out := make([]Running, len(list))
	for i, c := range list {
		out[i] = c.Running
	}
	return out
}
