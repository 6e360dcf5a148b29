package hosts

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"landfall.build/engine/lru"
)

const (
	// maxHeads bounds the commits, and the branches, that are remembered.
	maxHeads = 20_000
	// movableFor is how long it is believed whether a branch may be moved.
	movableFor = 10 * time.Minute
)

// Heads remembers which heads of pull requests are landing commits, and which branches may be moved.
type Heads struct {
	mu       sync.Mutex
	landings *lru.Cache[string, bool]
	movable  *lru.Cache[string, movable]
}

// movable is whether a branch may be moved, as of a time.
type movable struct {
	is bool
	at time.Time
}

// NewHeads returns one that remembers nothing.
func NewHeads() *Heads {
	return &Heads{landings: lru.New[string, bool](maxHeads), movable: lru.New[string, movable](maxHeads)}
}

// IsLanding reports whether a commit is one of a landing of a pull request in a queue, by its message.
func (h *Heads) IsLanding(commit, queue string, number int64, message func() (string, error)) (bool, error) {
	key := fmt.Sprint(number, " ", commit)
	h.mu.Lock()
	is, known := h.landings.Get(key)
	h.mu.Unlock()
	if known {
		return is, nil
	}
	text, err := message()
	if err != nil {
		return false, err
	}
	lines := strings.Split(text, "\n")
	is = slices.Contains(lines, "Landfall-Change: "+ChangeOf(number)) && slices.Contains(lines, "Landfall-Queue: "+queue)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.landings.Put(key, is, 1)
	return is, nil
}

// MayMove reports whether a branch may be moved, as ask has said at most ten minutes ago.
func (h *Heads) MayMove(name string, ask func() (bool, error)) (bool, error) {
	h.mu.Lock()
	known, _ := h.movable.Get(name)
	h.mu.Unlock()
	if time.Since(known.at) < movableFor {
		return known.is, nil
	}
	is, err := ask()
	if err != nil {
		return false, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.movable.Put(name, movable{is, time.Now()}, 1)
	return is, nil
}
