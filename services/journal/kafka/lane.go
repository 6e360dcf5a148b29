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

	// order is held from taking a place in pending to handing all parts to the client. A claimed writer does without:
	// there whoever has the turn sends one append after the other.
	order sync.Mutex

	mu      sync.Mutex
	pending []*pendingAppend // in order, until done was called
	telling bool

	// The rest is of a claimed writer only.

	waiting []*pendingAppend // of those pending, what was not sent yet
	bytes   int              // of what waits
	claims  int              // of what waits
	sending bool
	failed  error
	// freed is closed when a call that waits for a place is to look again; nil if none waits.
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
	records     []journal.Record // nil once nothing of it is to be sent any more
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
		la = &lane{writer: w, claimed: ls.claimed[journal.ClaimedWriter{Topic: w.topic, Service: w.source}]}
		ls.of[w] = la
	}
	return la
}

func (p *pendingAppend) bytes() (n int) {
	for _, r := range p.records {
		n += len(r.Key) + len(r.Value) + recordOverhead
	}
	return n
}

// enter takes a place in the order.
func (la *lane) enter(p *pendingAppend) {
	la.mu.Lock()
	defer la.mu.Unlock()
	la.pending = append(la.pending, p)
}

// enterClaimed takes a place in the order of a claimed writer, and waits for one where the lane is full. What will
// not be sent has its place at once, and holds nothing. turn is true if the caller is to send what waits.
func (la *lane) enterClaimed(log, ctx context.Context, p *pendingAppend) (turn bool) {
	la.mu.Lock()
	defer la.mu.Unlock()
	for !la.lost(p) && (len(la.waiting) >= maxWaiting || la.bytes >= maxWaitingBytes) {
		if la.freed == nil {
			la.freed = make(chan struct{})
		}
		freed := la.freed
		la.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
		case <-log.Done():
		}
		p.refused = refusal(log, ctx, la.writer)
		la.mu.Lock()
	}
	if la.lost(p) {
		p.records = nil
	}
	if p.claim {
		la.claims++
	}
	la.pending = append(la.pending, p)
	la.waiting = append(la.waiting, p)
	la.bytes += p.bytes()
	turn = !la.sending
	la.sending = true
	return turn
}

// lost says that an append, if it enters now, will not be sent: it is refused, or belongs to a term that has failed.
func (la *lane) lost(p *pendingAppend) bool {
	return p.refused != nil || la.failed != nil && la.claims == 0 && !p.claim
}

// refusal is why an append is not to be sent, nil if it is.
func refusal(log, ctx context.Context, w writer) error {
	switch {
	case log.Err() != nil:
		return journal.ErrClosed
	case ctx.Err() != nil:
		return fmt.Errorf("append to %s/%d: %w", w.topic, w.partition, ctx.Err())
	}
	return nil
}

// free has the calls that wait for a place look again.
func (la *lane) free() {
	if la.freed != nil {
		close(la.freed)
		la.freed = nil
	}
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
			la.claims--
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
	p.settled, p.records = true, nil
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
