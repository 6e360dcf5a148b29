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
	// Ask returns how a queue did in so many weeks. The error is analytics.ErrNone, or says why the history does not answer.
	Ask(ctx context.Context, queue string, weeks int) (analytics.Analytics, error)
}

func (h *handler) serveAnalytics(w http.ResponseWriter, r *http.Request) {
	weeks := analytics.DefaultWeeks
	err := h.read(r, func(*view.Queue) {})
	if text := r.URL.Query().Get("weeks"); err == nil && text != "" {
		if weeks, err = strconv.Atoi(text); err != nil || !slices.Contains(analytics.Weeks(), weeks) {
			known := strings.Join(strings.Fields(strings.Trim(fmt.Sprint(analytics.Weeks()), "[]")), ", ")
			err = fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("weeks=%q is none of %s.", clipText(text, 20), known), "Leave it out, or correct it.")
		}
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	queue := r.PathValue("queue")
	a, err := analytics.Analytics{}, error(analytics.ErrNone)
	if h.Analyst != nil {
		a, err = h.Analyst.Ask(r.Context(), queue, weeks)
	}
	switch {
	case errors.Is(err, analytics.ErrNone):
		a = analytics.None(queue, weeks)
	case err != nil:
		h.Log.Warn("the history does not answer", "queue", queue, "error", err)
		h.writeFailure(w, r, fail(http.StatusServiceUnavailable, codeHistoryAway, "The history in ClickHouse does not answer.", "Ask again; the gateway's log says why."))
		return
	}
	_ = h.read(r, func(q *view.Queue) { a = a.Owned(q.OwnersOf) }) // without owners it is an answer too
	writeJSON(w, http.StatusOK, a)
}
