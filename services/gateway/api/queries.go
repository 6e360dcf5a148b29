package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/platform/access"
	"landfall.build/platform/health"
	"landfall.build/services/gateway/view"
)

const (
	defaultListed = 200
	maxListed     = 5000
)

// read calls f with the view of the queue that the path names.
func (h *handler) read(r *http.Request, f func(*view.Queue)) error {
	if err := h.Backend.Ready(); err != nil {
		return err
	}
	if !h.Backend.Read(r.PathValue("queue"), f) {
		return h.unknownQueue(r, r.PathValue("queue"))
	}
	return nil
}

func (h *handler) unknownQueue(r *http.Request, name string) error {
	return fail(http.StatusNotFound, string(admission.UnknownQueue), fmt.Sprintf("There is no queue %q.", clipText(name, 80)),
		"The queues are: "+strings.Join(h.readable(r), ", ")+".")
}

func unknownChange(queue, id string) error {
	return fail(http.StatusNotFound, codeUnknownChange, fmt.Sprintf("The queue %s has no change %q.", queue, clipText(id, admission.MaxIDBytes)),
		"Changes that left the queue long ago are only in the history; `landfall queue` lists the others.")
}

// serveServices answers with the work of services for the queues that the caller may read, and with what is of no queue.
func (h *handler) serveServices(w http.ResponseWriter, r *http.Request) {
	readable := h.readable(r)
	report, err := h.servicesThen(r, readable)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	shown := func(queues []string) ([]string, bool) {
		of := slices.DeleteFunc(slices.Clone(queues), func(name string) bool { return !slices.Contains(readable, name) })
		return of, len(of) > 0 || len(queues) == 0
	}
	partitions, missing := []health.Ownership{}, []health.Missing{}
	for _, o := range report.Partitions {
		var is bool
		if o.Queues, is = shown(o.Queues); is {
			partitions = append(partitions, o)
		}
	}
	for _, m := range report.Missing {
		if of, is := shown(m.Queues); is {
			missing = append(missing, m.For(of))
		}
	}
	report.Partitions, report.Missing = partitions, missing
	writeJSON(w, http.StatusOK, report)
}

// servicesThen returns which services are at work, or who had claimed the partitions of the queues at the moment that the request names.
func (h *handler) servicesThen(r *http.Request, queues []string) (report health.Report, err error) {
	at, err := h.askedAt(r)
	if err != nil {
		return report, err
	}
	if at.IsZero() {
		return h.Backend.Services(), nil
	}
	if err := h.Backend.Ready(); err != nil {
		return report, err
	}
	report.Instances = []health.Instance{}
	err = h.look(r, func(ctx context.Context) (err error) {
		report.Partitions, err = h.Backend.OwnersAt(ctx, queues, at)
		return err
	})
	return report, err
}

func (h *handler) serveQueues(w http.ResponseWriter, r *http.Request) {
	list := QueueList{Queues: []view.Overview{}}
	err := h.readAllThen(r, h.readable(r), false, func(q *view.Queue, now time.Time) { list.Queues = append(list.Queues, overviewOf(q, now)) })
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func (h *handler) serveQueue(w http.ResponseWriter, r *http.Request) {
	var overview view.Overview
	if err := h.readThen(r, func(q *view.Queue, now time.Time) { overview = overviewOf(q, now) }); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, overview)
}

func (h *handler) serveChanges(w http.ResponseWriter, r *http.Request) {
	limit, err := limitOf(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	states := map[string]bool{}
	for _, state := range r.URL.Query()["state"] {
		switch state {
		case view.StateWaiting, view.StateTesting, view.StatePassed, view.StateLanded, view.StateDropped, view.StateRejected, view.StateEjected, view.StateCancelled:
			states[state] = true
		case "pending":
			states[view.StateWaiting], states[view.StateTesting], states[view.StatePassed] = true, true, true
		default:
			h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%q is not a state.", clipText(state, 40)),
				"States are pending, waiting, testing, passed, landed, dropped, rejected, ejected and cancelled."))
			return
		}
	}
	list := ChangeList{Changes: []view.Summary{}}
	err = h.readThen(r, func(q *view.Queue, _ time.Time) {
		list.Queue = q.Overview()
		all := q.Pending()
		most := maxListed
		if len(states) == 0 {
			most = max(0, limit-len(all))
		}
		for _, s := range append(all, q.Finished(most)...) {
			if len(list.Changes) < limit && (len(states) == 0 || states[s.State]) {
				list.Changes = append(list.Changes, s)
			}
		}
	})
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, list)
}

func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return defaultListed, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxListed {
		return 0, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("limit=%q is not a number from 1 to %d.", clipText(text, 20), maxListed), "Leave it out, or correct it.")
	}
	return limit, nil
}

func (h *handler) serveChange(w http.ResponseWriter, r *http.Request) {
	var change view.Change
	var known bool
	err := h.readThen(r, func(q *view.Queue, _ time.Time) { change, known = q.Change(r.PathValue("change")) })
	h.keepOutput(r, change.Rejection)
	h.answer(w, r, err, known, change)
}

func (h *handler) serveExplain(w http.ResponseWriter, r *http.Request) {
	full := false
	if text := r.URL.Query().Get("full"); text != "" {
		var err error
		if full, err = strconv.ParseBool(text); err != nil {
			h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("full=%s is neither true nor false.", clipText(text, 20)), "Leave it out, or correct it."))
			return
		}
	}
	if full && r.URL.Query().Get("at") != "" {
		h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), "The numbers of an explanation are not given of the past.", "Leave out full or at; landfall replay --at TIME --change CHANGE --full works them out of the log."))
		return
	}
	var explanation view.Explanation
	var inquiry *view.Inquiry
	var known bool
	err := h.readAllThen(r, []string{r.PathValue("queue")}, true, func(q *view.Queue, now time.Time) {
		explanation, known = q.Explain(r.PathValue("change"))
		explanation.WaitingStep = q.Waiting(r.PathValue("change"), now)
		if known && full {
			inquiry, _ = q.Inquire(r.PathValue("change"))
		}
	})
	if err == nil && inquiry != nil {
		explanation.Full = inquiry.Answer
		err = h.Backend.Answer(r.Context(), r.PathValue("queue"), inquiry)
	}
	h.keepOutput(r, explanation.Rejection)
	h.answer(w, r, err, known, explanation)
}

// keepOutput takes the output of steps out of a rejection for who may not read their logs.
func (h *handler) keepOutput(r *http.Request, rejection *view.Rejection) {
	if h.allowed(r, access.ReadLogs, access.Owner{}) != nil {
		rejection.DropOutput()
	}
}

func (h *handler) answer(w http.ResponseWriter, r *http.Request, err error, known bool, body any) {
	if err == nil && !known {
		err = unknownChange(r.PathValue("queue"), r.PathValue("change"))
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, body)
}
