package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/services/gateway/view"
)

const (
	defaultWait = 10 * time.Second
	maxWait     = 25 * time.Second // below the time that an answer may take to be written
)

// serveLand publishes a land request and waits for its answer.
func (h *handler) serveLand(w http.ResponseWriter, r *http.Request) {
	var body LandBody
	if err := readJSON(w, r, &body, false); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	request, err := body.request(r.PathValue("queue"))
	if err != nil {
		h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), err.Error(), "See /v1/openapi.yaml."))
		return
	}
	if err := h.mayLand(r, request); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	note := ""
	if body.Author != "" && body.Author != request.Author {
		note = fmt.Sprintf(" Its author is %q, who asks for it: only a lander names another one.", request.Author)
	}
	h.land(w, r, request, note)
}

// mayLand returns nil if who asks may land the change that the request names. It sets the author of a contributor, and of who names none.
func (h *handler) mayLand(r *http.Request, request *eventsv1.LandRequest) error {
	a, queue := askerOf(r), r.PathValue("queue")
	if err := h.allowed(r, access.Land, h.ownerOf(queue, changeOf(request))); err != nil {
		return err
	}
	if request.Benefit > 1 {
		if err := h.allowed(r, access.Urgent, access.Owner{}); err != nil {
			return err
		}
	}
	// The author of what a program lands is that of its commits. Of programs, those with a token of Landfall have a name, and jobs none.
	person := a.Token == "" && a.Name != ""
	if request.Author == "" && person || h.rules.RoleIn(a.Caller, queue) < access.Lander && !a.IsAuthor(request.Author) {
		request.Author = a.Author()
	}
	return nil
}

// serveRetry publishes a land request of the same commits, as the next revision. What keeps a pending change blocked runs again.
func (h *handler) serveRetry(w http.ResponseWriter, r *http.Request) {
	var body SteerBody
	if err := readJSON(w, r, &body, true); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	id := r.PathValue("change")
	var request *eventsv1.LandRequest
	var state lineup.State
	var dropped bool
	err := h.read(r, func(q *view.Queue) {
		a := q.Admission(id)
		if a == nil {
			return
		}
		state, dropped = q.Lineup().RequirementState(id), q.Dropped(id)
		request = &eventsv1.LandRequest{
			Queue: a.Queue, Change: id, Revision: a.Revision + 1, Entries: commitsOf(a.Entries), Requires: a.Requires, Author: a.Author,
			Team: a.Team, Title: a.Title, Description: a.Description, Uri: a.Uri, Host: a.Host, Benefit: a.Benefit, Labels: a.Labels,
		}
	})
	switch {
	case err != nil:
	case request == nil:
		err = unknownChange(r.PathValue("queue"), id)
	case state == lineup.Pending:
		h.unblock(w, r, body)
		return
	case state == lineup.Landed && !dropped:
		err = fail(http.StatusConflict, codeNotApplied, id+" has landed; there is nothing to retry.", "Land further commits as a new change.")
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	h.land(w, r, request, "")
}

// unblock takes back the failures that keep a pending change blocked (M23a).
func (h *handler) unblock(w http.ResponseWriter, r *http.Request, body SteerBody) {
	id := r.PathValue("change")
	reply := LandReply{Queue: r.PathValue("queue"), Outcome: OutcomeRetried, Change: id}
	steer := func(s *steering) (proto.Message, error) {
		var block view.Block
		err := h.read(r, func(q *view.Queue) {
			block = q.BlockOf(id)
			reply.Revision = q.Lineup().Known(id)
		})
		at := clipText(strings.Join(block.Targets, ", "), 200)
		switch {
		case err != nil:
			return nil, err
		case block.Unread:
			return nil, unread(id + " is blocked")
		case len(block.Targets) == 0:
			return nil, fail(http.StatusConflict, codeNotApplied, id+" is in the queue; there is nothing to retry.", "Steps that failed by chance are retried automatically; `landfall explain` says what it waits for.")
		case !block.OnMainline:
			return nil, fail(http.StatusConflict, codeNotApplied, at+" is being verified on the mainline; there is nothing to retry yet.", "`landfall status` says what comes of it.")
		}
		reply.Message = "What failed in " + at + ", on the mainline and with " + id + ", no longer counts; both are verified again."
		return &eventsv1.ChangeRetried{Change: &eventsv1.ChangeRef{Change: id, Revision: reply.Revision}, Failed: block.Failed, Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
	}
	if _, err := h.steered(r, body, steer); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	reply.State = h.stateOf(r, id)
	writeJSON(w, http.StatusOK, reply)
}

// unread is the failure to retry what follows from a run in another topic, which may be read first.
func unread(what string) error {
	return fail(http.StatusServiceUnavailable, CodeNotReady, "No run that failed for which "+what+" has been read yet.", "Ask again in a moment.")
}

// serveRetryMainline takes back the failures for which the mainline itself is red or without a result, so that it is verified again.
func (h *handler) serveRetryMainline(w http.ResponseWriter, r *http.Request) {
	var body SteerBody
	if err := readJSON(w, r, &body, true); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	reply := SteerReply{Queue: r.PathValue("queue")}
	steer := func(s *steering) (proto.Message, error) {
		var failed []*eventsv1.Proof
		var missing bool
		err := h.read(r, func(q *view.Queue) { failed, missing = q.MainlineFailed() })
		switch {
		case err != nil:
			return nil, err
		case missing:
			return nil, unread("the mainline is red")
		case len(failed) == 0:
			return nil, fail(http.StatusConflict, codeNotApplied, "Nothing is known to fail on the mainline; there is nothing to retry.", "`landfall status` says what is verified there.")
		}
		var list []string
		for _, p := range failed {
			list = append(list, p.Version.Target)
		}
		reply.Message = "What failed on the mainline in " + clipText(strings.Join(slices.Compact(list), ", "), 200) + " no longer counts; it is verified again."
		return &eventsv1.ChangeRetried{Change: &eventsv1.ChangeRef{}, Failed: failed, Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
	}
	if _, err := h.steered(r, body, steer); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, reply)
}

// commitsOf returns entries without their refs, which need not hold the commits any more.
func commitsOf(entries []*eventsv1.Entry) (out []*eventsv1.Entry) {
	for _, e := range entries {
		out = append(out, &eventsv1.Entry{Commit: e.Commit, Review: e.Review})
	}
	return out
}

// land publishes a land request and answers it. note is added to what is said of an admission.
func (h *handler) land(w http.ResponseWriter, r *http.Request, request *eventsv1.LandRequest, note string) {
	if id := request.RequestId; id != "" && !admission.ValidRequestID(id) {
		// The gateway would answer it under another id, and nobody would learn the answer.
		h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("request_id %q is not printable text of at most %d bytes.",
			clipText(id, 80), admission.MaxIDBytes), "Give another one, or none."))
		return
	}
	wait := defaultWait
	if text := r.URL.Query().Get("wait"); text != "" {
		given, err := time.ParseDuration(text)
		if err != nil || given < 0 {
			h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("wait=%s is not a duration.", clipText(text, 20)), "Give one such as 10s, or leave it out."))
			return
		}
		wait = min(given, maxWait)
	}
	ctx, cancel := context.WithTimeout(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)), wait)
	defer cancel()
	request.Actor = askerOf(r).actor()
	endTurn(r)
	answer, err := h.Backend.Land(ctx, request)
	if errors.Is(err, ErrUnknownQueue) {
		err = h.unknownQueue(r, request.Queue)
	}
	reply := LandReply{RequestID: request.RequestId, Queue: request.Queue, Change: request.Change}
	used := answer.Admitted.GetChange() + answer.Refused.GetChange()
	switch refused := answer.Refused; {
	case errors.Is(err, ErrUnconfirmed):
		h.writeFailure(w, r, fail(http.StatusGatewayTimeout, codeUnanswered, fmt.Sprintf("The log did not confirm the request to land %q (request_id %s): it may or may not be there.",
			clipText(changeOf(request), admission.MaxIDBytes), clipText(request.RequestId, admission.MaxIDBytes)), "Ask again once the log answers; the same commits are not admitted twice, and neither is a request_id."))
	case errors.Is(err, ErrUnanswered):
		reply.Change = changeOf(request)
		reply.Outcome, reply.Message = OutcomePending, fmt.Sprintf("The request (request_id %s) is in the log and will be answered; look up the change, or send the request again with the same request_id.", request.RequestId)
		writeJSON(w, http.StatusAccepted, reply)
	case err != nil:
		h.writeFailure(w, r, err)
	case refused.GetCode() == string(admission.RequestIDTaken):
		message := strings.TrimRight(strings.TrimSuffix(refused.Message, "; give each request its own id, or none."), ".") + "."
		h.writeFailure(w, r, fail(http.StatusConflict, refused.Code, message, "Give each request its own id, or none."))
	case used != "" && used != changeOf(request):
		h.writeFailure(w, r, fail(http.StatusConflict, string(admission.RequestIDTaken), fmt.Sprintf("The request_id %s was used for %s before; nothing was done for %s.",
			request.RequestId, used, changeOf(request)), "Give each request its own id, or none."))
	case refused == nil:
		reply.Outcome, reply.Change, reply.Revision = OutcomeAdmitted, answer.Admitted.Change, answer.Admitted.Revision
		reply.State = h.stateOf(r, reply.Change)
		reply.Message = fmt.Sprintf("Admitted as revision %d.", reply.Revision) + note
		writeJSON(w, http.StatusCreated, reply)
	case refused.Code == string(admission.Unchanged):
		reply.Outcome, reply.Change, reply.Revision, reply.Message = OutcomeUnchanged, refused.Change, refused.Revision, refused.Message
		reply.State = h.stateOf(r, reply.Change)
		writeJSON(w, http.StatusOK, reply)
	default:
		status, advice := refusalStatus(refused.Code)
		h.writeFailure(w, r, fail(status, refused.Code, refused.Message, advice))
	}
}

// stateOf returns what has become of a change by now.
func (h *handler) stateOf(r *http.Request, change string) (state string) {
	_ = h.read(r, func(q *view.Queue) {
		state = admission.Known{Lineup: q.Lineup(), Dropped: q.Dropped}.StateOf(change)
	})
	return state
}

// changeOf returns the id of the change that a request is about; "" if it names none.
func changeOf(r *eventsv1.LandRequest) string {
	if r.Change != "" {
		return r.Change
	}
	return admission.DefaultID(r.Entries)
}
