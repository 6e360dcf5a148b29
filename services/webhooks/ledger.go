package webhooks

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"landfall.build/engine/lru"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Bounds of what is kept of an endpoint on a partition.
const (
	// maxOpen bounds the deliveries that are neither made nor given up. What comes on top is given up at once, and can be asked for.
	maxOpen = 20_000
	// maxAsked bounds what people have asked for.
	maxAsked = 1000
	// maxSubjects is of how many subjects the highest sequence is remembered.
	maxSubjects = 10_000
)

// Pauses between two attempts at a delivery, and how long it is tried.
const (
	firstPause = 5 * time.Second
	lastPause  = time.Hour
	tryFor     = 24 * time.Hour
)

// pauseAfter returns the time between an attempt and the next one.
func pauseAfter(attempt uint32) time.Duration {
	return min(lastPause, firstPause<<min(attempt-1, 20))
}

// delivery is a delivery that has not ended.
type delivery struct {
	id      string
	outcome *eventsv1.ChangeOutcome
	trace   string
}

// ledger holds the deliveries to one endpoint on a partition. It folds landfall.deliveries and, beside it, the outcomes that are still
// to be delivered.
type ledger struct {
	// from is the offset of landfall.outcomes from which on outcomes are delivered, since the time in microseconds of log time.
	from  int64
	since int64
	// No delivery before the offset below is open. settled holds the offsets from there on whose deliveries have ended.
	below   int64
	settled map[int64]bool
	// failed has the last attempt at each delivery that failed, by position; askedFailed by the offset of who asked.
	failed, askedFailed map[int64]*eventsv1.WebhookDelivery
	// asked holds the requests of people, by offset.
	asked map[int64]*eventsv1.WebhookAsked
	// delivered holds the highest sequence of each subject that was delivered or given up, read the highest that was read.
	delivered *lru.Cache[string, int64]
	read      *lru.Cache[string, int64] `snapshot:"-"`

	// open holds the deliveries that have not ended, by position. chains holds the positions of each subject's, in order.
	open   map[int64]delivery `snapshot:"-"`
	chains map[string][]int64 `snapshot:"-"`
}

func newLedger(from, since int64) *ledger {
	return &ledger{from: from, since: since, below: from, settled: map[int64]bool{}, failed: map[int64]*eventsv1.WebhookDelivery{},
		askedFailed: map[int64]*eventsv1.WebhookDelivery{}, asked: map[int64]*eventsv1.WebhookAsked{}, delivered: lru.New[string, int64](maxSubjects),
		read: lru.New[string, int64](maxSubjects), open: map[int64]delivery{}, chains: map[string][]int64{}}
}

func subjectKey(queue, subject string) string { return queue + "/" + subject }

// rise notes a sequence of a subject, and reports whether it is above all before.
func rise(highest *lru.Cache[string, int64], key string, sequence int64) bool {
	if before := highest.Peek(key); before != nil && *before >= sequence {
		return false
	}
	highest.Put(key, sequence, 1)
	return true
}

// add takes an outcome at a position, which the endpoint wants or not. It reports whether it is one too many.
func (l *ledger) add(at int64, d delivery, wanted bool) (tooMany bool) {
	key := subjectKey(d.outcome.Queue, d.outcome.Subject)
	if at < l.from || !wanted {
		return false
	}
	if last := l.delivered.Peek(key); !rise(l.read, key, d.outcome.Sequence) || last != nil && *last >= d.outcome.Sequence {
		return false // it is written again
	}
	if at < l.below || l.settled[at] {
		return false
	}
	l.open[at] = d
	l.chains[key] = append(l.chains[key], at)
	return len(l.open) > maxOpen
}

// fold takes the end of an attempt.
func (l *ledger) fold(d *eventsv1.WebhookDelivery) {
	over := d.State != eventsv1.DeliveryState_DELIVERY_STATE_FAILED
	switch {
	case d.Asked && over:
		delete(l.asked, d.Position)
		delete(l.askedFailed, d.Position)
	case d.Asked:
		if l.asked[d.Position] != nil {
			l.askedFailed[d.Position] = d
		}
	case over:
		l.settle(d)
	case d.Position >= l.below && !l.settled[d.Position]:
		l.failed[d.Position] = d
	}
	if d.SettledBelow > l.below {
		l.below = d.SettledBelow
		maps.DeleteFunc(l.settled, func(at int64, _ bool) bool { return at < l.below })
		maps.DeleteFunc(l.failed, func(at int64, _ *eventsv1.WebhookDelivery) bool { return at < l.below })
	}
}

func (l *ledger) settle(d *eventsv1.WebhookDelivery) {
	key := subjectKey(d.Queue, d.Subject)
	if d.Position >= l.below {
		l.settled[d.Position] = true
	}
	if delete(l.failed, d.Position); d.Attempt > 0 {
		rise(l.delivered, key, d.Sequence)
	}
	if _, is := l.open[d.Position]; !is {
		return
	}
	delete(l.open, d.Position)
	rest := slices.DeleteFunc(l.chains[key], func(at int64) bool { return at == d.Position })
	if l.chains[key] = rest; len(rest) == 0 {
		delete(l.chains, key)
	}
}

// settledBelow returns the offset before which nothing is open, once a delivery is settled too. next is how far landfall.outcomes
// is read.
func (l *ledger) settledBelow(next, settling int64) int64 {
	lowest := next
	for _, chain := range l.chains {
		for _, at := range chain {
			if at != settling {
				lowest = min(lowest, at)
				break // a chain is in order
			}
		}
	}
	return max(lowest, l.below)
}

// task is a delivery that can be attempted.
type task struct {
	key      key
	delivery delivery
	last     *eventsv1.WebhookDelivery
}

// due returns the deliveries that can be attempted now, those first that have not failed, then the oldest. A change's next one waits
// for the one before.
func (l *ledger) due(endpoint string, now int64, flying map[key]bool) (tasks []task) {
	add := func(k key, d delivery, last *eventsv1.WebhookDelivery) {
		if !flying[k] && (last == nil || last.NextUs <= now) {
			tasks = append(tasks, task{k, d, last})
		}
	}
	for _, chain := range l.chains {
		add(key{endpoint, chain[0], false}, l.open[chain[0]], l.failed[chain[0]])
	}
	for at, a := range l.asked {
		add(key{endpoint, at, true}, delivery{id: a.Id, outcome: a.Outcome}, l.askedFailed[at])
	}
	slices.SortFunc(tasks, func(a, b task) int {
		return cmp.Or(cmp.Compare(a.last.GetAttempt(), b.last.GetAttempt()), compareBool(a.key.asked, b.key.asked), cmp.Compare(a.key.position, b.key.position))
	})
	return tasks
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func (l *ledger) snapshot(name string) *snapshotv1.WebhooksEndpoint {
	m := &snapshotv1.WebhooksEndpoint{Endpoint: name, From: l.from, SinceUs: l.since, Below: l.below, Settled: slices.Sorted(maps.Keys(l.settled))}
	for _, at := range slices.Sorted(maps.Keys(l.failed)) {
		m.Failed = append(m.Failed, l.failed[at])
	}
	for _, at := range slices.Sorted(maps.Keys(l.asked)) {
		m.Asked, m.AskedOffsets = append(m.Asked, l.asked[at]), append(m.AskedOffsets, at)
	}
	for _, at := range slices.Sorted(maps.Keys(l.askedFailed)) {
		m.AskedFailed = append(m.AskedFailed, l.askedFailed[at])
	}
	for key, sequence := range l.delivered.All() {
		m.Subjects, m.Sequences = append(m.Subjects, key), append(m.Sequences, *sequence)
	}
	return m
}

func restoreLedger(m *snapshotv1.WebhooksEndpoint) *ledger {
	l := newLedger(m.From, m.SinceUs)
	l.below = m.Below
	for _, at := range m.Settled {
		l.settled[at] = true
	}
	for _, d := range m.Failed {
		l.failed[d.Position] = d
	}
	for i, a := range m.Asked {
		if i < len(m.AskedOffsets) {
			l.asked[m.AskedOffsets[i]] = a
		}
	}
	for _, d := range m.AskedFailed {
		l.askedFailed[d.Position] = d
	}
	for i, key := range m.Subjects {
		if i < len(m.Sequences) {
			l.delivered.Put(key, m.Sequences[i], 1)
		}
	}
	return l
}
