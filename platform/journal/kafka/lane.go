package kafka

import (
	"context"
	"fmt"
	"sync"

	"landfall.build/platform/journal"
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
// of that term may be sent, and the client reports a failure only after it has dropped the record, when
// more could already be on their way. After the failure everything fails until the writer appends a Claim.
type lane struct {
	writer
	claimed bool

	// order is held from taking a place in pending to handing all parts to the client. A claimed writer does without:
	// there whoever has the turn sends one append after the other.
	order sync.Mutex

	mu        sync.Mutex
	pending   []*pendingAppend // in order, until done was called
	notifying bool

	// The rest is of a claimed writer only.

	waiting []*pendingAppend // of those pending, what was not sent yet
	bytes   int              // of what waits
	claims  int              // of what waits
	sending bool
	failed  error
	// room is closed when a call that waits for a place may have one; nil if none waits.
	room chan struct{}
}

// Of a claimed writer no more waits in its lane: a service that is behind must not hold all that it still has to write in
// memory while the broker is slow.
const (
	maxWaiting      = 1 << 12
	maxWaitingBytes = 64 << 20
)

// pendingAppend is one event on its way. came, first, last and err belong to whoever sends it, then to
// the client's callbacks, which come one after another.
type pendingAppend struct {
	done        func(offset int64, err error)
	records     []journal.Record // nil once none of it is to be sent
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
	for !la.isLost(p) && (len(la.waiting) >= maxWaiting || la.bytes >= maxWaitingBytes) {
		if la.room == nil {
			la.room = make(chan struct{})
		}
		room := la.room
		la.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
		case <-log.Done():
		}
		p.refused = refusal(log, ctx, la.writer)
		la.mu.Lock()
	}
	if la.isLost(p) {
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

// isLost reports whether an append, if it enters now, will not be sent: it is refused, or belongs to a term that has failed.
func (la *lane) isLost(p *pendingAppend) bool {
	return p.refused != nil || la.failed != nil && la.claims == 0 && !p.claim
}

// refusal returns why an append is not to be sent, nil if it is.
func refusal(log, ctx context.Context, w writer) error {
	switch {
	case log.Err() != nil:
		return journal.ErrClosed
	case ctx.Err() != nil:
		return fmt.Errorf("append to %s/%d: %w", w.topic, w.partition, ctx.Err())
	}
	return nil
}

// wakeWaiting wakes the calls that wait for a place.
func (la *lane) wakeWaiting() {
	if la.room != nil {
		close(la.room)
		la.room = nil
	}
}

// takeNext takes the next append that is to be sent from those that wait. Nil: none does, and the turn ends. It settles
// what must not be sent.
func (la *lane) takeNext() *pendingAppend {
	la.mu.Lock()
	defer la.mu.Unlock()
	for len(la.waiting) > 0 {
		p := la.waiting[0]
		la.waiting[0] = nil
		la.waiting = la.waiting[1:]
		la.bytes -= p.bytes()
		la.wakeWaiting()
		if p.claim {
			la.claims--
			la.failed = nil
		}
		switch {
		case p.refused != nil:
			p.err = p.refused
			la.failed = fmt.Errorf("%w: not tried, since an earlier append failed: %w", journal.ErrAppend, p.refused)
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

// keepTurn keeps the turn if something waits, and reports whether it does; else the turn ends.
func (la *lane) keepTurn() bool {
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
		la.wakeWaiting()
	}
}

// settle marks an append as done and calls done for all that are done at the head of the order. One goroutine does
// so at a time, so done is called in the order of the appends.
func (la *lane) settle(p *pendingAppend) {
	la.mu.Lock()
	defer la.mu.Unlock()
	p.settled, p.records = true, nil
	if la.notifying {
		return
	}
	la.notifying = true
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
	la.notifying = false
}
