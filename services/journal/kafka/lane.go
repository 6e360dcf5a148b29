package kafka

import (
	"context"
	"fmt"
	"sync"

	"landfall.build/services/journal"
)

// writer is a service on a partition.
type writer struct {
	topic     string
	partition int32
	source    string
}

// lane is the order of one writer's appends to one partition.
//
// A writer whose records need no term has all its appends under way at once. One whose records need a
// term (journal.ClaimedWriters) has one at a time, the others wait here: after a failed append nothing
// of that term may be sent, and the client tells of a failure only after it has forgotten it, when more
// could already be on its way. After the failure everything fails until the writer appends a Claim.
type lane struct {
	writer
	claimed bool

	// order is held from taking a place in pending to handing all parts to the client.
	order sync.Mutex

	mu      sync.Mutex
	pending []*pendingAppend // in order, until done was called
	telling bool
	waiting []*pendingAppend // of those, what was not sent yet; only if claimed
	bytes   int              // of what waits
	sending bool
	failed  error
	// freed is signalled when something of what waits was taken.
	freed chan struct{}
}

// Of a claimed writer no more waits in its lane: a service that is behind must not keep all that it has still to write in
// memory while the broker is slow.
const (
	maxWaiting      = 1 << 12
	maxWaitingBytes = 64 << 20
)

// pendingAppend is one event on its way. came, first, last and err belong to whoever sends it, then to
// the client's callbacks, which come one after another.
type pendingAppend struct {
	done        func(offset int64, err error)
	records     []journal.Record
	claim       bool
	refused     error // it must not be sent
	came        int
	first, last int64
	err         error
	settled     bool // guarded by lane.mu
}

// lanes are all lanes of a log.
type lanes struct {
	claimed map[journal.ClaimedWriter]bool
	mu      sync.Mutex
	of      map[writer]*lane
}

func (ls *lanes) lane(w writer) *lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.of == nil {
		ls.claimed = journal.ClaimedWriters()
		ls.of = map[writer]*lane{}
	}
	la := ls.of[w]
	if la == nil {
		la = newLane(w, ls.claimed[journal.ClaimedWriter{Topic: w.topic, Service: w.source}])
		ls.of[w] = la
	}
	return la
}

func newLane(w writer, claimed bool) *lane {
	return &lane{writer: w, claimed: claimed, freed: make(chan struct{}, 1)}
}

// full says whether an append has to wait for a place. After a failure there is room: all that waits fails.
func (la *lane) full() bool {
	la.mu.Lock()
	defer la.mu.Unlock()
	return la.failed == nil && (len(la.waiting) >= maxWaiting || la.bytes >= maxWaitingBytes)
}

// awaitRoom returns once there is a place for another append, or a context has ended. It is called with order held, so
// there is one who waits.
func (la *lane) awaitRoom(ctx, open context.Context) {
	for la.full() {
		select {
		case <-la.freed:
		case <-ctx.Done():
			return
		case <-open.Done():
			return
		}
	}
}

func (la *lane) free() {
	select {
	case la.freed <- struct{}{}:
	default:
	}
}

func (p *pendingAppend) bytes() (n int) {
	for _, r := range p.records {
		n += len(r.Key) + len(r.Value) + recordOverhead
	}
	return n
}

// enter takes a place in the order. turn is true if the caller is to send what waits.
func (la *lane) enter(p *pendingAppend) (turn bool) {
	la.mu.Lock()
	defer la.mu.Unlock()
	la.pending = append(la.pending, p)
	if !la.claimed {
		return false
	}
	la.waiting = append(la.waiting, p)
	la.bytes += p.bytes()
	if la.sending {
		return false
	}
	la.sending = true
	return true
}

// next is what is to be sent now, nil if nothing waits: then the turn ends. What must not be sent is
// settled on the way.
func (la *lane) next() *pendingAppend {
	la.mu.Lock()
	defer la.mu.Unlock()
	for len(la.waiting) > 0 {
		p := la.waiting[0]
		la.waiting[0] = nil
		la.waiting = la.waiting[1:]
		la.bytes -= p.bytes()
		la.free()
		if p.claim {
			la.failed = nil
		}
		switch {
		case p.refused != nil:
			p.err = p.refused
			la.failed = fmt.Errorf("%w: an earlier append was not tried: %w", journal.ErrAppend, p.refused)
		case la.failed != nil:
			p.err = la.failed
		default:
			return p
		}
		// Not on this goroutine: it may be the caller's of AppendAsync.
		go la.settle(p)
	}
	la.sending = false
	return nil
}

// more says whether something waits; if not, the turn ends.
func (la *lane) more() bool {
	la.mu.Lock()
	defer la.mu.Unlock()
	la.sending = len(la.waiting) > 0
	return la.sending
}

// fail ends the term for this writer, if it has one.
func (la *lane) fail(err error) {
	if la.claimed {
		la.mu.Lock()
		defer la.mu.Unlock()
		la.failed = err
		la.free()
	}
}

// settle marks an append as done and tells everyone at the head of the order. One goroutine tells at
// a time, so done is called in the order of the appends.
func (la *lane) settle(p *pendingAppend) {
	la.mu.Lock()
	defer la.mu.Unlock()
	p.settled = true
	if la.telling {
		return
	}
	la.telling = true
	for len(la.pending) > 0 && la.pending[0].settled {
		head := la.pending[0]
		la.pending[0] = nil
		la.pending = la.pending[1:]
		la.mu.Unlock()
		if head.err != nil {
			head.done(-1, head.err)
		} else {
			head.done(head.last, nil)
		}
		la.mu.Lock()
	}
	la.telling = false
}
