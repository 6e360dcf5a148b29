package proof

import (
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/analyzer/agendas"
	"landfall.build/services/gateway/state"
	"landfall.build/services/gateway/view"
)

// refolded is a fold of a log that can be frozen.
type refolded interface {
	// step takes one record; false if there is none.
	step() bool
	// settled says that it may be frozen.
	settled() bool
	freeze() ([]byte, error)
	// state returns what is compared with that of another fold of the same records.
	state() any
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
		if difference := snapshottest.Difference(undisturbed.state(), disturbed.state()); difference != "" {
			return len(froze), errOtherState(at, difference, froze)
		}
		froze = append(froze, at)
		if err := disturbed.thaw(state); err != nil {
			return len(froze), err
		}
	}
	if difference := snapshottest.Difference(undisturbed.state(), disturbed.state()); difference != "" {
		return len(froze), errOtherState(-1, difference, froze)
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
func (b buildRefold) state() any    { return []any{b.queue, b.order.Snapshot(nil)} }

func (b buildRefold) thaw(state []byte) error {
	b.close()
	err := b.restore(state)
	if err == nil {
		b.follow()
	}
	return err
}

// analysisRefold folds as the analyzer does.
type analysisRefold struct {
	*agendas.Partition
	x      *site
	cursor journal.Cursor
}

func refoldsAnalyses(x *site) func() refolded {
	return func() refolded {
		return &analysisRefold{agendas.NewPartition([]string{x.queue}), x, x.m.follow(events.TopicChanges, x.partition, 0)}
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
func (a *analysisRefold) freeze() ([]byte, error) { return a.Marshal() }
func (a *analysisRefold) state() any              { return a.Partition }

func (a *analysisRefold) thaw(state []byte) (err error) {
	a.cursor.Close()
	end := a.x.m.end(events.TopicChanges, a.x.partition)
	if a.Partition, err = agendas.Unmarshal(state, []string{a.x.queue}, end); err == nil {
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

func (q *requestRefold) settled() bool { return true }
func (q *requestRefold) state() any    { return q.Queue }

func (q *requestRefold) freeze() ([]byte, error) { return proto.Marshal(q.Snapshot(q.x.queue)) }

func (q *requestRefold) thaw(frozen []byte) (err error) {
	m := &snapshotv1.GatewayQueue{}
	if err := proto.Unmarshal(frozen, m); err != nil {
		return err
	}
	q.Queue, err = state.Restore(m, view.DefaultLimits())
	return err
}
