package demo

import (
	"slices"
	"time"

	"landfall.build/platform/landing"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/demo/plainmerge"
	"landfall.build/tools/demo/sample"
)

// requests are the changes in the order in which they were asked for, those that were cancelled left out. What
// was done better later comes a second time, on top of what was wrong.
func requests(r *sample.Repository, changes map[string]view.Change) []plainmerge.Request {
	type asked struct {
		at time.Time
		plainmerge.Request
	}
	var all []asked
	for _, c := range r.Changes {
		v := changes[c.Name]
		if v.State == view.StateCancelled {
			continue
		}
		first := v.AdmittedAt
		if len(v.Timeline) > 0 && v.OmittedEvent == 0 {
			first = v.Timeline[0].At
		}
		all = append(all, asked{first, plainmerge.Request{Name: c.Name, Picks: picks(r.Head, c.Commits)}})
		if c.Better != nil {
			wrong := c.Commits[len(c.Commits)-1].ID
			all = append(all, asked{v.AdmittedAt, plainmerge.Request{Name: c.Name, Picks: picks(wrong, c.Better)}})
		}
	}
	slices.SortStableFunc(all, func(a, b asked) int { return a.at.Compare(b.at) })
	out := make([]plainmerge.Request, len(all))
	for i, a := range all {
		out[i] = a.Request
	}
	return out
}

// picks are a change's commits, each on the one before it.
func picks(base string, commits []sample.Commit) []landing.Pick {
	var out []landing.Pick
	for _, c := range commits {
		out = append(out, landing.Pick{Base: base, Head: c.ID})
		base = c.ID
	}
	return out
}
