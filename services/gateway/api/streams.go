package api

import (
	"fmt"
	"net/http"
	"sync"
)

// streams counts open streams, or logs that are being sent.
type streams struct {
	mu  sync.Mutex
	all int
	// of is the number of streams by caller, and changes the number of single changes that these name. They hold callers with proof alone.
	of, changes map[string]int
}

// beginStream counts one more stream of who sends a request, and the single changes that are kept up for it, until end is called. Its error
// says to ask again later, or to do what instead names.
func (h *handler) beginStream(r *http.Request, instead string, changes int) (end func(), err error) {
	caller := callerKeyOf(r)
	s := h.streams
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= maxStreams:
		return nil, fail(http.StatusServiceUnavailable, codeBusy, "Too many clients are watching.", "Ask again later, or "+instead+".")
	case caller != "" && s.of[caller] >= maxStreamsOfOne:
		return nil, fail(http.StatusServiceUnavailable, codeBusy, fmt.Sprintf("You have %d streams open, the most that one may have.", maxStreamsOfOne), "End some, or "+instead+".")
	case caller != "" && changes > 0 && s.changes[caller]+changes > maxChangesOfOne:
		return nil, fail(http.StatusServiceUnavailable, codeBusy, fmt.Sprintf("You watch %d single changes; one may watch %d.", s.changes[caller], maxChangesOfOne), "End some streams, or watch the whole queue.")
	}
	return s.begin(caller, changes), nil
}

// beginLog counts one more finished log that is sent to who sends a request, until end is called. Streams do not count: whoever watches
// keeps nobody from reading why a step has failed.
func (h *handler) beginLog(r *http.Request) (end func(), err error) {
	caller := callerKeyOf(r)
	s := h.logsSent
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= maxStreams:
		return nil, fail(http.StatusServiceUnavailable, codeBusy, "Too many logs are being sent.", "Ask again later.")
	case caller != "" && s.of[caller] >= maxStreamsOfOne:
		return nil, fail(http.StatusServiceUnavailable, codeBusy, fmt.Sprintf("You are sent %d logs, the most at a time.", maxStreamsOfOne), "Wait until one has been sent.")
	}
	return s.begin(caller, 0), nil
}

// begin counts one more of a caller until end is called. The caller of begin holds mu.
func (s *streams) begin(caller string, changes int) (end func()) {
	s.all++
	if caller != "" {
		s.of[caller]++
		s.changes[caller] += changes
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if caller == "" {
			return
		}
		if s.of[caller]--; s.of[caller] == 0 {
			delete(s.of, caller)
		}
		if s.changes[caller] -= changes; s.changes[caller] == 0 {
			delete(s.changes, caller)
		}
	}
}

func newStreams() *streams { return &streams{of: map[string]int{}, changes: map[string]int{}} }
