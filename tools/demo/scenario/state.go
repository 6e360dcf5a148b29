package scenario

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/demo/sample"
)

// state is what the gateway has sent so far.
type state struct {
	mu      sync.Mutex
	changed chan struct{}
	events  int
	last    map[string]view.Update
}

func newState() *state {
	return &state{changed: make(chan struct{}), last: map[string]view.Update{}}
}

func (s *state) fold(seen client.Seen) {
	if seen.Change == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events++
	s.last[seen.Change.Change] = *seen.Change
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits until a condition holds. The condition takes the state's lock itself.
func (s *state) await(ctx context.Context, holds func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *state) happened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

// at returns a change as it was last sent.
func (s *state) at(name string) (view.Update, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, known := s.last[name]
	return u, known
}

// admitted reports whether a revision of a change, or a later one, is or was in the queue.
func (s *state) admitted(name string, revision uint64) bool {
	u, known := s.at(name)
	return known && u.Revision >= revision
}

// decided counts the changes that are out of the queue.
func (s *state) decided() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, u := range s.last {
		if view.Final(u.State) {
			n++
		}
	}
	return n
}

// revisionOf is the one of a change that decides.
func revisionOf(c *sample.Change) uint64 {
	if c.Better != nil {
		return 2
	}
	return 1
}

func (s *state) isDecided(c *sample.Change) bool {
	u, known := s.at(c.Name)
	return known && u.Revision >= revisionOf(c) && view.Final(u.State)
}

func (s *state) allDecided(r *sample.Repository) bool {
	for i := range r.Changes {
		if !s.isDecided(&r.Changes[i]) {
			return false
		}
	}
	return true
}

// undecided lists the changes that are still pending, and why each waits.
func (s *state) undecided(r *sample.Repository) string {
	var out []string
	for i := range r.Changes {
		c := &r.Changes[i]
		if s.isDecided(c) {
			continue
		}
		u, known := s.at(c.Name)
		if !known {
			out = append(out, c.Name+" was never admitted")
			continue
		}
		out = append(out, fmt.Sprintf("%s is %s: %s", c.Name, u.State, u.Why))
	}
	return strings.Join(out, "; ")
}
