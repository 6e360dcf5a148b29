package gateway

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"landfall.build/engine/admission"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/journal"
)

// asked is a request in an inbox, with what is found out about it before it is decided.
type asked struct {
	admission.Request
	// delivery identifies the record of the request among those under the same request id.
	delivery string
	// own is the request id in the record. A request that is refused for lack of proof is counted under another id.
	own string
	// publisher is who takes turns with others.
	publisher string
	// trace is the traceparent that it came with, "" if that was none.
	trace string
	// read is when it was read from the log.
	read    time.Time
	problem *admission.Refusal
	pinned  admission.Pinned
	// unreachable is why the repository could not be read about it, failing since when.
	unreachable error
	failing     time.Time
	// slowSince is when git was first found to take long to fetch it.
	slowSince time.Time
	tries     int
	// again is set if its answer is that of an earlier delivery.
	again bool
}

// publisherOf returns whose turn a record takes: that of the publisher that has signed it, or of its source, or of the author where the
// source is the gateway, which publishes for everybody, or nobody.
func publisherOf(e journal.Entry, r *eventsv1.LandRequest) string {
	switch {
	case r.Actor.GetIssuer() == access.IssuerPublisher:
		return "publisher " + r.Actor.Subject
	case e.Source == "" || e.Source == events.ServiceGateway:
		return "author " + r.Author
	}
	return "source " + e.Source + "/" + e.Instance
}

// keys returns what a request writes, and what it reads besides: of two requests where one writes what the other writes or
// reads, the earlier is answered first.
func (a *asked) keys() (writes [2]string, reads []string) {
	return [2]string{"request " + a.ID, "change " + a.Land.Change}, a.Land.Requires
}

// touched is what requests write.
type touched map[string]int

func (t touched) add(a *asked, n int) {
	writes, _ := a.keys()
	for _, key := range writes {
		if t[key] += n; t[key] == 0 {
			delete(t, key)
		}
	}
}

// by reports whether a request must wait for one that is counted.
func (t touched) by(a *asked) bool {
	writes, reads := a.keys()
	return t[writes[0]] > 0 || t[writes[1]] > 0 ||
		slices.ContainsFunc(reads, func(change string) bool { return t["change "+change] > 0 })
}

// inbox holds requests that are not answered yet, in order.
type inbox struct {
	mu      sync.Mutex
	waiting []*asked
	// open counts what is written by those that are not answered, waiting or taken.
	open touched
	came chan struct{}
}

func newInbox() *inbox { return &inbox{open: touched{}, came: make(chan struct{}, 1)} }

func (b *inbox) put(a *asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, a)
	b.open.add(a, 1)
	b.tell()
}

func (b *inbox) tell() {
	select {
	case b.came <- struct{}{}:
	default: // it is told already
	}
}

// take waits for requests and takes some, in fair turns.
func (b *inbox) take(ctx context.Context) ([]*asked, error) {
	for {
		b.mu.Lock()
		var batch []*asked
		batch, b.waiting = fairTurns(b.waiting, maxBatch)
		if len(b.waiting) > 0 {
			b.tell()
		}
		b.mu.Unlock()
		if len(batch) > 0 {
			return batch, nil
		}
		select {
		case <-b.came:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// putBack returns requests to the place that they were taken from.
func (b *inbox) putBack(batch []*asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting = slices.Concat(batch, b.waiting); len(batch) > 0 {
		b.tell()
	}
}

// takeIf takes those that wait and of which holds is true.
func (b *inbox) takeIf(holds func(*asked) bool) (taken []*asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = slices.DeleteFunc(b.waiting, func(a *asked) bool {
		if !holds(a) {
			return false
		}
		taken = append(taken, a)
		return true
	})
	return taken
}

// answered forgets requests that were taken.
func (b *inbox) answered(batch []*asked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range batch {
		b.open.add(a, -1)
	}
}

// holdsUp reports whether a request must wait for one of the inbox.
func (b *inbox) holdsUp(a *asked) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open.by(a)
}

// fairTurns takes some of the requests that wait, in turns: one of each publisher after the other, and of one publisher one
// for each ref. A request comes behind those that it must wait for, which are taken with it.
func fairTurns(waiting []*asked, most int) (batch, rest []*asked) {
	if len(waiting) <= 1 {
		return waiting, nil
	}
	before := make([][]int, len(waiting))
	last := map[string]int{}
	publishers := &turns{}
	for i, a := range waiting {
		writes, reads := a.keys()
		for _, change := range reads {
			if at, known := last["change "+change]; known {
				before[i] = append(before[i], at)
			}
		}
		for _, key := range writes {
			if at, known := last[key]; known {
				before[i] = append(before[i], at)
			}
			last[key] = i
		}
		publishers.put(i, a.publisher, firstRef(a))
	}
	taken := make([]bool, len(waiting))
	var take func(i int)
	take = func(i int) {
		if taken[i] {
			return
		}
		taken[i] = true
		for _, earlier := range before[i] {
			take(earlier)
		}
		batch = append(batch, waiting[i])
	}
	for len(batch) < min(most, len(waiting)) {
		take(publishers.next())
	}
	for i, a := range waiting {
		if !taken[i] {
			rest = append(rest, a)
		}
	}
	return batch, rest
}

func firstRef(a *asked) string {
	if len(a.Land.Entries) == 0 {
		return ""
	}
	first := a.Land.Entries[0]
	return cmp.Or(first.GetRef(), first.GetCommit())
}

// turns has numbers below names; next goes round the names.
type turns struct {
	numbers []int
	order   []string
	of      map[string]*turns
}

func (t *turns) put(number int, path ...string) {
	if len(path) == 0 {
		t.numbers = append(t.numbers, number)
		return
	}
	if t.of == nil {
		t.of = map[string]*turns{}
	}
	below := t.of[path[0]]
	if below == nil {
		below = &turns{}
		t.of[path[0]] = below
		t.order = append(t.order, path[0])
	}
	below.put(number, path[1:]...)
}

// next takes a number. There must be one.
func (t *turns) next() (number int) {
	if t.of == nil {
		number, t.numbers = t.numbers[0], t.numbers[1:]
		return number
	}
	name := t.order[0]
	t.order = t.order[1:]
	below := t.of[name]
	number = below.next()
	if len(below.numbers)+len(below.order) > 0 {
		t.order = append(t.order, name)
	}
	return number
}
