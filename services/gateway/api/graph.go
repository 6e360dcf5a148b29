package api

import (
	"net/http"
	"time"

	"landfall.build/services/gateway/view"
)

func (h *handler) serveGraph(w http.ResponseWriter, r *http.Request) {
	var graph view.Graph
	if err := h.readThen(r, func(q *view.Queue, _ time.Time) { graph = q.Graph() }); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, graph)
}
