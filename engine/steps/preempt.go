package steps

import (
	"cmp"
	"slices"
)

// Running is what a worker runs, since a time in microseconds: a step, or several by one invocation (M27a).
type Running struct {
	// Versions are those that have no result yet; there is one at least.
	Versions []Version
	SinceUs  int64
}

// An invocation is near its end while it has run for between nearEnd and overdue of its likely duration. After that its end cannot
// be predicted.
const (
	nearEnd = 0.8
	overdue = 1.5
)

// HasUrgent reports whether an operator has moved the change of some live build to the front (M35).
func (q *Queue) HasUrgent() bool {
	return slices.ContainsFunc(q.order, func(b *build) bool { return b.urgent })
}

// Preemptible returns the running invocations that may be ended for urgent steps (M35), the lowest rank first. Those that an urgent
// change wants, and those that are near their end, are not among them.
func (q *Queue) Preemptible(nowUs int64, running []Running) []Running {
	type candidate struct {
		Running
		index float64
	}
	var list []candidate
	for _, r := range running {
		c, urgent := candidate{Running: r}, false
		us := int64(0)
		for _, v := range r.Versions {
			w := q.wanted[v]
			if w == nil {
				continue
			}
			us += w.us
			for _, b := range w.askers {
				urgent = urgent || b.urgent
				c.index += q.indexOf(b.build, nowUs)
			}
		}
		if us == 0 {
			continue // its worker ends it anyway
		}
		if ran := float64(nowUs-r.SinceUs) / float64(us); ran >= nearEnd && ran < overdue {
			continue
		}
		if !urgent {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		v, w := a.Versions[0], b.Versions[0]
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(v.Target, w.Target), cmp.Compare(v.Hash, w.Hash))
	})
	out := make([]Running, len(list))
	for i, c := range list {
		out[i] = c.Running
	}
	return out
}
