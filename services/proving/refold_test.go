package proving

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/fold"
	"landfall.build/services/gateway/state"
	"landfall.build/services/gateway/view"
	"landfall.build/services/journal"
)

// refolded is a fold of a log that can be frozen.
type refolded interface {
	// step takes one record; false if there is none.
	step() bool
	// settled says that it may be frozen.
	settled() bool
	freeze() ([]byte, error)
	// thaw forgets what it has folded, and goes on from what was frozen of it just now.
	thaw(state []byte) error
}

// again folds a log twice: once it is frozen and thawed where r draws it.
func again(of func() refolded, r *rand.Rand) (thaws int, err error) {
	undisturbed, disturbed := of(), of()
	var froze []int64
	for at := int64(0); undisturbed.step(); at++ {
		if !disturbed.step() || disturbed.settled() != undisturbed.settled() {
			return len(froze), fmt.Errorf("it does not go on at step %d, frozen at %d", at, froze)
		}
		if !disturbed.settled() || r.IntN(16) != 0 {
			continue
		}
		state := must(disturbed.freeze())
		if !bytes.Equal(state, must(undisturbed.freeze())) {
			return len(froze), errOtherState(at, froze)
		}
		froze = append(froze, at)
		if err := disturbed.thaw(state); err != nil {
			return len(froze), err
		}
	}
	if !bytes.Equal(must(disturbed.freeze()), must(undisturbed.freeze())) {
		return len(froze), errOtherState(-1, froze)
	}
	return len(froze), nil
}

// fresh hands on copies of what it reads.
type fresh struct{ journal.Cursor }

func (f fresh) TryNext() (journal.Entry, bool, error) {
	e, ok, err := f.Cursor.TryNext()
	if ok {
		e.Message = proto.Clone(e.Message)
	}
	return e, ok, err
}

// buildRefold folds as the builder does.
type buildRefold struct{ *buildFollower }

func refoldsBuilds(x *site) func() refolded {
	return func() refolded {
		b := buildRefold{newBuildFollower(x)}
		b.follow()
		return b
	}
}

func (b buildRefold) follow() {
	b.open(func(topic string, from int64) journal.Cursor { return fresh{b.x.m.follow(topic, b.x.partition, from)} })
}

func (b buildRefold) step() bool    { return b.buildFollower.step(false) }
func (b buildRefold) settled() bool { return b.order.Settled() }

func (b buildRefold) thaw(state []byte) error {
	b.close()
	queues, err := b.order.Thaw(state)
	if err == nil {
		b.queue = queues[b.x.queue]
		b.follow()
	}
	return err
}

// analysisRefold folds as the analyzer does.
type analysisRefold struct {
	*fold.Partition
	x      *site
	cursor journal.Cursor
}

func refoldsAnalyses(x *site) func() refolded {
	return func() refolded {
		return &analysisRefold{fold.NewPartition([]string{x.queue}), x, x.m.follow(events.TopicChanges, x.partition, 0)}
	}
}

func (a *analysisRefold) step() bool {
	e, ok := received(a.cursor)
	if ok {
		a.Read(e)
	}
	return ok
}

func (a *analysisRefold) settled() bool           { return true }
func (a *analysisRefold) freeze() ([]byte, error) { return a.Freeze() }

func (a *analysisRefold) thaw(state []byte) (err error) {
	a.cursor.Close()
	end := a.x.m.end(events.TopicChanges, a.x.partition)
	if a.Partition, err = fold.Thaw(state, []string{a.x.queue}, end); err == nil {
		a.cursor = a.x.m.follow(events.TopicChanges, a.x.partition, a.Next())
	}
	return err
}

// requestRefold folds as the gateway does, every topic but the dead letters, one record of each in turn.
type requestRefold struct {
	*state.Queue
	x       *site
	cursors []journal.Cursor
	terms   []*journal.Terms
}

func refoldsRequests(x *site) func() refolded {
	return func() refolded {
		q := &requestRefold{Queue: state.New(x.queue, view.DefaultLimits()), x: x}
		for _, topic := range []string{events.TopicChanges, events.TopicDecisions, events.TopicBuilds, events.TopicProfiles, events.TopicPriorities} {
			q.cursors, q.terms = append(q.cursors, x.m.follow(topic, x.partition, 0)), append(q.terms, journal.NewTerms(topic))
		}
		return q
	}
}

func (q *requestRefold) step() (did bool) {
	for i, c := range q.cursors {
		e, ok := received(c)
		did = did || ok
		if ok && q.terms[i].Counts(e) && e.Queue == q.x.queue && e.Message != nil {
			q.Fold(e, func(*eventsv1.RequestRefused) string { return "" })
		}
	}
	return did
}

func (q *requestRefold) settled() bool           { return true }
func (q *requestRefold) freeze() ([]byte, error) { return q.Freeze() }

func (q *requestRefold) thaw(frozen []byte) (err error) {
	q.Queue, err = state.Thaw(frozen, q.x.queue, view.DefaultLimits())
	return err
}
