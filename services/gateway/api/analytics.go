package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/admission"
	"landfall.build/services/gateway/analytics"
	"landfall.build/services/gateway/view"
)

// Analyst asks the history. Its methods are safe for concurrent use.
type Analyst interface {
	// Ask returns how a queue did. The error is analytics.ErrNone, or says why the history does not answer.
	Ask(ctx context.Context, q analytics.Question) (analytics.Analytics, error)
}

func (h *handler) serveAnalytics(w http.ResponseWriter, r *http.Request) {
	q, err := h.questionOf(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	if !q.At.IsZero() {
		done, err := h.beginLook(r)
		if err != nil {
			h.writeFailure(w, r, err)
			return
		}
		defer done()
	}
	a, err := analytics.Analytics{}, error(analytics.ErrNone)
	if h.Analyst != nil {
		a, err = h.Analyst.Ask(r.Context(), q)
	}
	switch {
	case errors.Is(err, analytics.ErrNone):
		a = analytics.None(q)
	case err != nil:
		h.Log.Warn("the history does not answer", "queue", q.Queue, "error", err)
		h.writeFailure(w, r, fail(http.StatusServiceUnavailable, codeHistoryAway, "The history in ClickHouse does not answer.", "Ask again; the gateway's log says why."))
		return
	}
	_ = h.read(r, func(q *view.Queue) { a = a.Owned(q.OwnersOf) }) // without owners it is an answer too
	writeJSON(w, http.StatusOK, a)
}

func (h *handler) questionOf(r *http.Request) (q analytics.Question, err error) {
	q = analytics.Question{Queue: r.PathValue("queue"), Weeks: analytics.DefaultWeeks}
	if err := h.read(r, func(*view.Queue) {}); err != nil {
		return q, err
	}
	if text := r.URL.Query().Get("weeks"); text != "" {
		if q.Weeks, err = strconv.Atoi(text); err != nil || !slices.Contains(analytics.Weeks(), q.Weeks) {
			known := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(analytics.Weeks()), "[]")), ", ")
			return q, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("weeks=%q is none of %s.", clipText(text, 20), known), "Leave it out, or correct it.")
		}
	}
	at, err := h.askedAt(r)
	q.At = at.UTC()
	return q, err
}
