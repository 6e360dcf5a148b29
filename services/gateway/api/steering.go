package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/services/gateway/view"
)

const (
	maxWhyBytes = 1000
	maxWhoBytes = 300
)

// steering is one request to change something: what it carries, checked.
type steering struct {
	queue, change string
	body          SteerBody
	stampUS       int64
	// position is where the change was, for a fact that moves it.
	position int
}

// steer reads the request, makes the fact and reports what it did.
func (h *handler) steer(w http.ResponseWriter, r *http.Request, done string, fact func(*steering) (proto.Message, error)) {
	var body SteerBody
	if err := readJSON(w, r, &body, true); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	h.steerWith(w, r, body, done, fact)
}

func (h *handler) steerWith(w http.ResponseWriter, r *http.Request, body SteerBody, done string, fact func(*steering) (proto.Message, error)) {
	s, err := h.steered(r, body, fact)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	reply := SteerReply{Queue: s.queue, Message: done, Change: h.summary(s)}
	if c := reply.Change; s.position > 0 && c != nil && c.Position == s.position {
		reply.Message = "It is as far ahead as that already; nothing moved."
		if s.position == 1 {
			reply.Message = "It is first already; nothing moved."
		}
	}
	writeJSON(w, http.StatusOK, reply)
}

// summary returns the change that a request is about as it is now, nil for none.
func (h *handler) summary(s *steering) (c *view.Summary) {
	h.Backend.Read(s.queue, func(q *view.Queue) {
		if summary, known := q.Summary(s.change); known {
			c = &summary
		}
	})
	return c
}

// steered makes the fact that a request asks for, and has it written. The error is for the client.
func (h *handler) steered(r *http.Request, body SteerBody, fact func(*steering) (proto.Message, error)) (*steering, error) {
	if a := askerOf(r); body.Who == "" || a.Issuer != access.IssuerOpen {
		body.Who = a.Shown()
	}
	s := &steering{queue: r.PathValue("queue"), change: r.PathValue("change"), body: body, stampUS: time.Now().UnixMicro()}
	if err := h.checkSteering(r, *s); err != nil {
		return nil, err
	}
	m, err := fact(s)
	if err != nil {
		return nil, err
	}
	events.SetActor(m, askerOf(r).actor())
	ctx, cancel := context.WithTimeout(r.Context(), defaultWait)
	defer cancel()
	endTurn(r)
	consequence, err := h.Backend.Steer(ctx, s.queue, s.change, m)
	if err != nil {
		return nil, err
	}
	if !consequence.Applied {
		advice := "Look at the change as it is now."
		if c := h.summary(s); c != nil && view.Final(c.State) {
			advice = fmt.Sprintf("%s has left the queue. %s", s.change, c.Why)
		}
		return nil, fail(http.StatusConflict, codeNotApplied, sentence(consequence.Why), advice)
	}
	return s, nil
}

func (h *handler) checkSteering(r *http.Request, s steering) error {
	for name, field := range map[string]struct {
		text string
		most int
	}{"who": {s.body.Who, maxWhoBytes}, "why": {s.body.Why, maxWhyBytes}, "hold": {s.body.Hold, maxWhoBytes}} {
		if !printable(field.text, field.most) {
			return fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%s is not printable text of at most %d bytes.", name, field.most), "Shorten it.")
		}
	}
	known := s.change == ""
	if err := h.read(r, func(q *view.Queue) { known = known || q.Lineup().Known(s.change) > 0 }); err != nil {
		return err
	}
	if !known {
		return unknownChange(s.queue, s.change)
	}
	return nil
}

func printable(text string, most int) bool {
	if len(text) > most || !utf8.ValidString(text) {
		return false
	}
	for _, c := range text {
		if !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

func sentence(why string) string {
	first, size := utf8.DecodeRuneInString(why)
	return string(unicode.ToUpper(first)) + why[size:] + "."
}

func cancellation(s *steering) (proto.Message, error) {
	return &eventsv1.ChangeCancelled{Change: s.change, Revision: s.body.Revision, Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
}

func (h *handler) serveCancel(w http.ResponseWriter, r *http.Request) {
	h.steer(w, r, "Cancelled.", cancellation)
}

// serveDelete is serveCancel for clients that think in resources.
func (h *handler) serveDelete(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	body := SteerBody{Why: query.Get("why")}
	if text := query.Get("revision"); text != "" {
		revision, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), "revision is not a number.", "Correct it or leave it out."))
			return
		}
		body.Revision = revision
	}
	h.steerWith(w, r, body, "Cancelled.", cancellation)
}

func (h *handler) servePriority(w http.ResponseWriter, r *http.Request) {
	h.steer(w, r, "Moved.", func(s *steering) (proto.Message, error) {
		if (s.body.Before != "") == s.body.Front {
			return nil, fail(http.StatusBadRequest, string(admission.BadRequest), "Say where to: either front or before.", `Send {"front":true} or {"before":"CHANGE"}.`)
		}
		known := s.body.Before == ""
		if err := h.read(r, func(q *view.Queue) {
			known = known || q.Lineup().Known(s.body.Before) > 0
			if summary, pending := q.Summary(s.change); pending {
				s.position = summary.Position
			}
		}); err != nil {
			return nil, err
		}
		if !known {
			return nil, unknownChange(s.queue, s.body.Before)
		}
		return &eventsv1.ChangeMoved{Change: s.change, Before: s.body.Before, Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
	})
}

func (h *handler) serveHold(w http.ResponseWriter, r *http.Request) {
	h.steer(w, r, "Held: it does not land until it is released.", func(s *steering) (proto.Message, error) {
		if s.body.Why == "" {
			// As with a pause, the reason that there is stays.
			if err := h.read(r, func(q *view.Queue) {
				if c := q.Lineup().Pending(s.change); c != nil {
					if i := slices.IndexFunc(c.Holds, func(has lineup.Hold) bool { return has.Name == holdName(s) }); i >= 0 {
						s.body.Why = c.Holds[i].Why
					}
				}
			}); err != nil {
				return nil, err
			}
		}
		return &eventsv1.ChangeHeld{Change: s.change, Hold: holdName(s), Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
	})
}

func (h *handler) serveRelease(w http.ResponseWriter, r *http.Request) {
	h.steer(w, r, "Released.", func(s *steering) (proto.Message, error) {
		return &eventsv1.ChangeReleased{Change: s.change, Hold: holdName(s), Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
	})
}

func holdName(s *steering) string {
	if s.body.Hold == "" {
		return view.DefaultHold
	}
	return s.body.Hold
}

func (h *handler) servePause(w http.ResponseWriter, r *http.Request) {
	h.steer(w, r, "Paused: builds go on, nothing lands.", func(s *steering) (proto.Message, error) {
		if s.body.Why == "" {
			// Somebody who pauses what is paused, and has no reason to add, leaves the reason that there is.
			if err := h.read(r, func(q *view.Queue) {
				if p := q.Lineup().Paused; p != nil {
					s.body.Why = p.Why
				}
			}); err != nil {
				return nil, err
			}
		}
		return &eventsv1.QueuePaused{Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
	})
}

func (h *handler) serveResume(w http.ResponseWriter, r *http.Request) {
	h.steer(w, r, "Resumed.", func(s *steering) (proto.Message, error) {
		return &eventsv1.QueueResumed{Who: s.body.Who, Why: s.body.Why, StampUs: s.stampUS}, nil
	})
}
