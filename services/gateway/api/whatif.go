package api

import (
	"fmt"
	"net/http"

	"landfall.build/engine/admission"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/services/gateway/view"
	"landfall.build/services/gateway/whatif"
)

// WhatIf is GET /v1/queues/{queue}/what-if: the present setting, and the last simulation of the queue under another.
type WhatIf struct {
	Queue   string         `json:"queue"`
	Present whatif.Setting `json:"present"`
	// Run is absent until somebody asks for one. It is forgotten when the gateway ends.
	Run *whatif.Simulation `json:"run,omitempty"`
	// Busy is set while the gateway simulates another queue: none can be started.
	Busy bool `json:"busy,omitempty"`
	// Missing is why this gateway simulates nothing.
	Missing string `json:"missing,omitempty"`
}

// WhatIfBody has the settings to simulate. Those that are left out stay as they are.
type WhatIfBody struct {
	Workers         *int     `json:"workers,omitempty"`
	Threshold       *float64 `json:"threshold,omitempty"`
	BypassThreshold *float64 `json:"bypass_threshold,omitempty"`
	// Changes is how many are simulated at most, the newest; 0: 500.
	Changes int `json:"changes,omitempty"`
	// Who asks, where access is open.
	Who string `json:"who,omitempty"`
}

// presentSetting returns the setting that a queue has.
func presentSetting(s *eventsv1.QueueSettings) whatif.Setting {
	out := whatif.Setting{Workers: int(s.GetPoolWorkers()), Threshold: s.GetThreshold(), BypassThreshold: 2}
	if out.Workers == 0 {
		out.Workers = int(s.GetWorkers())
	}
	if s != nil && s.BypassThreshold != nil {
		out.BypassThreshold = min(s.GetBypassThreshold(), 2)
	}
	return out
}

// whatIf returns what is known of a queue's simulation.
func (h *handler) whatIf(r *http.Request) (WhatIf, error) {
	out := WhatIf{Queue: r.PathValue("queue")}
	if err := h.read(r, func(q *view.Queue) { out.Present = presentSetting(q.Settings()) }); err != nil {
		return out, err
	}
	if h.WhatIf == nil {
		out.Missing = "This gateway simulates nothing. `landfall simulate log` does the same from the log."
		return out, nil
	}
	var running string
	out.Run, running = h.WhatIf.Of(out.Queue)
	out.Busy = running != "" && running != out.Queue
	return out, nil
}

func (h *handler) serveWhatIf(w http.ResponseWriter, r *http.Request) {
	out, err := h.whatIf(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

func (h *handler) serveWhatIfStart(w http.ResponseWriter, r *http.Request) {
	var body WhatIfBody
	err := readJSON(w, r, &body, true)
	var out WhatIf
	if err == nil {
		out, err = h.whatIf(r)
	}
	if err == nil {
		err = h.startWhatIf(r, body, out)
	}
	if err == nil {
		out, err = h.whatIf(r)
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusAccepted, out)
}

func (h *handler) startWhatIf(r *http.Request, body WhatIfBody, is WhatIf) error {
	if is.Missing != "" {
		return fail(http.StatusNotFound, codeNotFound, is.Missing, "Ask the gateway of a deployment.")
	}
	if a := askerOf(r); body.Who == "" || a.Issuer != access.IssuerOpen {
		body.Who = a.Shown()
	}
	q := whatif.Question{Queue: is.Queue, Present: is.Present, Chosen: is.Present, Changes: body.Changes}
	if body.Workers != nil {
		q.Chosen.Workers = *body.Workers
	}
	if body.Threshold != nil {
		q.Chosen.Threshold = *body.Threshold
	}
	if body.BypassThreshold != nil {
		q.Chosen.BypassThreshold = *body.BypassThreshold
	}
	if q.Changes == 0 {
		q.Changes = whatif.DefaultChanges
	}
	wrong := q.Chosen.Validate()
	switch {
	case wrong != "":
	case q.Changes < 1 || q.Changes > whatif.MaxChanges:
		wrong = fmt.Sprintf("changes is %d; it is 1 to %d.", q.Changes, whatif.MaxChanges)
	case q.Chosen == q.Present:
		wrong = "That is the present setting."
	case !printable(body.Who, maxWhoBytes):
		wrong = fmt.Sprintf("who is not printable text of at most %d bytes.", maxWhoBytes)
	}
	if wrong != "" {
		return fail(http.StatusBadRequest, string(admission.BadRequest), wrong, "Choose other workers, another threshold or another bypass_threshold than the queue has.")
	}
	if err := h.WhatIf.Start(q, body.Who); err != nil {
		return fail(http.StatusConflict, codeWhatIfRuns, "A gateway simulates one setting at a time, and is at it.", "Ask again when it has ended, or cancel it.")
	}
	h.Log.Info("a simulation begins", "queue", q.Queue, "workers", q.Chosen.Workers, "threshold", q.Chosen.Threshold, "bypass_threshold", q.Chosen.BypassThreshold, "changes", q.Changes, "who", body.Who)
	return nil
}

func (h *handler) serveWhatIfCancel(w http.ResponseWriter, r *http.Request) {
	out, err := h.whatIf(r)
	if err == nil && (h.WhatIf == nil || !h.WhatIf.Cancel(out.Queue)) {
		err = fail(http.StatusConflict, codeNotApplied, "No simulation of the queue runs.", "It may have ended: look at its result.")
	}
	if err == nil {
		out, err = h.whatIf(r)
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, out)
}
