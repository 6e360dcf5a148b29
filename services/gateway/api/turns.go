package api

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// turnsOfOne is how many requests of one caller are worked on at a time. The caller's further requests wait, so that other callers do not.
const turnsOfOne = 8

// turnPatience is how long a request waits for its turn, below the time that an answer may take to be written.
const turnPatience = 20 * time.Second

// turns are who is being served.
type turns struct {
	mu sync.Mutex
	of map[string]*places // by caller
}

// places are those of one caller.
type places struct {
	taken chan struct{}
	// users are who has one or waits for one.
	users int
}

func newTurns() *turns { return &turns{of: map[string]*places{}} }

// begin waits for a place of a caller. It returns what gives the place back, which may be called again, and the context's error if that ends
// first.
func (t *turns) begin(ctx context.Context, caller string) (end func(), err error) {
	t.mu.Lock()
	p := t.of[caller]
	if p == nil {
		p = &places{taken: make(chan struct{}, turnsOfOne)}
		t.of[caller] = p
	}
	p.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if p.users--; p.users == 0 {
			delete(t.of, caller)
		}
	}
	select {
	case p.taken <- struct{}{}:
		return sync.OnceFunc(func() { <-p.taken; leave() }), nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

type turnKey struct{}

// endTurn lets others of the caller be worked on while a request waits for something, or for its client. It has no turn any more.
func endTurn(r *http.Request) {
	if end, is := r.Context().Value(turnKey{}).(func()); is {
		end()
	}
}

// inTurnOf calls f in a turn of who sends a request, and reports whether it did: not if the client has gone.
func (h *handler) inTurnOf(r *http.Request, f func()) bool {
	if caller := callerKeyOf(r); caller != "" {
		end, err := h.turns.begin(r.Context(), caller)
		if err != nil {
			return false
		}
		defer end()
	}
	f()
	return true
}
