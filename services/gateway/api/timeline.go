package api

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/events"
	"landfall.build/services/gateway/timeline"
	"landfall.build/services/gateway/view"
)

const (
	// defaultTimeline is how long a timeline is that names no beginning, and maxTimeline how long one may be.
	defaultTimeline = time.Hour
	maxTimeline     = 7 * 24 * time.Hour
	// maxTimelines is how many timelines are made at a time.
	maxTimelines = 2
)

// serveTimeline answers with what the workers of a pool did. What the gateway keeps serves it; where that begins later than what is asked
// for, the log is folded up to the end of that.
func (h *handler) serveTimeline(w http.ResponseWriter, r *http.Request) {
	from, to, err := h.spanOf(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	pool, now := r.PathValue("pool"), h.Clock()
	var queues []string
	var activities []timeline.Activity
	pools := map[string]bool{}
	err = h.Backend.Ready()
	for _, name := range h.Backend.Queues() {
		if err == nil {
			h.Backend.Read(name, func(q *view.Queue) {
				if pools[q.Pool()] = pools[q.Pool()] || h.mayRead(r, name); q.Pool() == pool {
					queues = append(queues, name)
				}
			})
		}
	}
	maps.DeleteFunc(pools, func(_ string, readable bool) bool { return !readable })
	if err == nil && !pools[pool] {
		err = fail(http.StatusNotFound, codeNotFound, fmt.Sprintf("No queue has the pool %q.", clipText(pool, 80)), "The pools are: "+strings.Join(slices.Sorted(maps.Keys(pools)), ", ")+".")
	}
	var made timeline.Timeline
	short := false
	take := func(q *view.Queue) {
		if q.Pool() == pool {
			a := q.Activity(from, to)
			short = short || a.Since.After(from)
			activities = append(activities, timeline.Activity{Activity: a, Hidden: !h.mayRead(r, a.Queue)})
		}
	}
	tell := func() { made = timeline.Make(pool, from, to, activities, h.machines(pool)) }
	if err == nil {
		err = h.inTurn(r, func() {
			for _, name := range queues {
				h.Backend.Read(name, take)
			}
			if short = short && to.Before(now); !short {
				tell()
			}
		})
	}
	if err == nil && short {
		activities = nil
		if err = h.readAllAt(r, queues, to, false, take); err == nil {
			err = h.inTurn(r, tell)
		}
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, made)
}

// inTurn calls f once fewer than maxTimelines others are at theirs. The log is folded outside of it, which takes longer and has bounds of
// its own.
func (h *handler) inTurn(r *http.Request, f func()) error {
	select {
	case h.timelines <- struct{}{}:
		defer func() { <-h.timelines }()
		f()
		return nil
	case <-r.Context().Done():
		return context.Cause(r.Context())
	}
}

// spanOf returns the time that a request names: an hour, if it names no beginning, up to now, if it names no end.
func (h *handler) spanOf(r *http.Request) (from, to time.Time, err error) {
	now := h.Clock().UTC()
	to = now
	if text := r.URL.Query().Get("to"); text != "" {
		if to, err = momentOf("to", text); err != nil {
			return from, to, err
		}
	}
	from = to.Add(-defaultTimeline)
	if text := r.URL.Query().Get("from"); text != "" {
		if from, err = momentOf("from", text); err != nil {
			return from, to, err
		}
	}
	if to.After(now) {
		to = now
	}
	switch {
	case !from.Before(to):
		err = fail(http.StatusBadRequest, string(admission.BadRequest), "from is not before to, or not in the past.", "Give the earlier time as from.")
	case to.Sub(from) > maxTimeline:
		err = fail(http.StatusBadRequest, string(admission.BadRequest), "A timeline is 7 days long at most.", "Ask for a shorter time.")
	}
	return from.UTC(), to.UTC(), err
}

// machines are the builders of a pool that live.
func (h *handler) machines(pool string) (list []timeline.Machine) {
	for _, i := range h.Backend.Services().Instances {
		if i.Service == events.ServiceBuilder && i.Alive && i.Pool == pool {
			list = append(list, timeline.Machine{Instance: i.Instance, Workers: i.Workers, Labels: i.Labels, Started: i.Started})
		}
	}
	return list
}
