package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/platform/access"
	"landfall.build/services/gateway/past"
	"landfall.build/services/gateway/view"
)

const (
	// looksPerSecond is how often a caller may ask for the past, looksAtOnce how often in a burst, and looksWaiting how many answers it may
	// wait for at a time.
	looksPerSecond = 10
	looksAtOnce    = 40
	looksWaiting   = 6
	// pastPatience is for how long the log is folded for one answer.
	pastPatience = 10 * time.Second
)

// looks bounds how much of the past each caller asks for.
type looks struct {
	often   *throttle
	mu      sync.Mutex
	waiting map[string]int
}

func newLooks() *looks {
	return &looks{often: newThrottle(looksPerSecond, looksAtOnce), waiting: map[string]int{}}
}

// begin reports whether a caller may ask now. If so, end must be called.
func (l *looks) begin(caller string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[caller] >= looksWaiting || !l.often.allow(caller) {
		return false
	}
	l.waiting[caller]++
	return true
}

func (l *looks) end(caller string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[caller]--; l.waiting[caller] == 0 {
		delete(l.waiting, caller)
	}
}

// readThen calls f with the view of the queue that the path names, at the moment that the request names (at), and with that moment; else as
// the queue is now.
func (h *handler) readThen(r *http.Request, f func(*view.Queue, time.Time)) error {
	return h.readAllThen(r, []string{r.PathValue("queue")}, false, f)
}

// readAllThen is readThen for several queues, one after the other. Only if whole is set a view of the past may be asked where a step waits.
func (h *handler) readAllThen(r *http.Request, queues []string, whole bool, f func(*view.Queue, time.Time)) error {
	at, err := h.readyAt(r)
	if err != nil {
		return err
	}
	if at.IsZero() {
		for _, name := range queues {
			if !h.Backend.Read(name, func(q *view.Queue) { f(q, h.Clock()) }) {
				return h.unknownQueue(r, name)
			}
		}
		return nil
	}
	return h.readAllAt(r, queues, at, whole, func(q *view.Queue) { f(q, at) })
}

// askedAt returns the moment of the past that a request names (at), zero for the present.
func (h *handler) askedAt(r *http.Request) (at time.Time, err error) {
	text := r.URL.Query().Get("at")
	if text == "" {
		return at, nil
	}
	if at, err = momentOf("at", text); err == nil && at.After(h.Clock()) {
		err = fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%s is not in the past.", clipText(text, 40)), "Leave at out for the present.")
	}
	return at, err
}

// readyAt is askedAt for a list, once the gateway has read its log.
func (h *handler) readyAt(r *http.Request) (time.Time, error) {
	if err := h.Backend.Ready(); err != nil {
		return time.Time{}, err
	}
	return h.askedAt(r)
}

// momentOf returns the time that a parameter names.
func momentOf(name, text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		return at, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%s=%s is not a time.", name, clipText(text, 40)), "Give one such as 2026-01-31T14:05:30Z, with + as %2B.")
	case at.Before(time.Unix(0, 0)): // of the first years, what is computed from them could not be written
		return at, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%s=%s is before 1970.", name, clipText(text, 40)), "No log goes back so far: give a later one.")
	}
	return at, nil
}

// readAllAt calls f with the views of several queues, one after the other, as they were at a moment.
func (h *handler) readAllAt(r *http.Request, queues []string, at time.Time, whole bool, f func(*view.Queue)) error {
	return h.look(r, func(ctx context.Context) error {
		for _, name := range queues {
			switch err := h.Backend.ReadAt(ctx, name, at, whole, f); {
			case errors.Is(err, ErrUnknownQueue):
				return h.unknownQueue(r, name)
			case err != nil:
				return err
			}
		}
		return nil
	})
}

// look calls f, which folds the log up to a moment, unless the caller asks for the past too often.
func (h *handler) look(r *http.Request, f func(context.Context) error) error {
	done, err := h.beginLook(r)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := context.WithTimeout(r.Context(), pastPatience)
	defer stop()
	if err = f(ctx); errors.Is(err, past.ErrReading) {
		return fail(http.StatusServiceUnavailable, CodePastUnread, "The log is not folded up to that moment yet.", "Ask again: it goes on from where it is.")
	}
	return err
}

// beginLook returns what is called at the end of an answer about the past, or an error if the caller asks for it too often.
func (h *handler) beginLook(r *http.Request) (done func(), err error) {
	asker := askerOf(r)
	caller := asker.Issuer + " " + asker.Subject
	if asker.Issuer == access.IssuerOpen {
		caller = h.addressOf(r)
	}
	if !h.looks.begin(caller) {
		return nil, tooMany(fmt.Sprintf("You ask for the past more often than %d times a second, or wait for more than %d answers.", looksPerSecond, looksWaiting))
	}
	return func() { h.looks.end(caller) }, nil
}
