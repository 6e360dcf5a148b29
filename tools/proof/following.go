package proof

import (
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/steps"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	buildorder "landfall.build/services/builder/order"
)

// buildFollower folds the topics in the builder's own order.
type buildFollower struct {
	x     *site
	order *buildorder.Order
	queue *steps.Queue
	// built is how far landfall.builds is read.
	built int64
}

// newBuildFollower is at the beginning.
func newBuildFollower(x *site) *buildFollower {
	f := &buildFollower{x: x, queue: steps.New()}
	f.order = must(buildorder.New(f, func() (buildorder.Ends, error) {
		return buildorder.Ask(func(topic string) (int64, error) { return x.m.end(topic, x.partition), nil })
	}))
	return f
}

func (f *buildFollower) open(read func(topic string, from int64) journal.Cursor) {
	must(0, f.order.Open(func(topic string, from int64) (journal.Cursor, error) { return read(topic, from), nil }))
}

// startBuildFollower reads the log, from the beginning or from a snapshot, up to where it ended.
func (a *builderActor) startBuildFollower() *buildFollower {
	m, x, f := a.m, a.x, newBuildFollower(a.x)
	if k, ok := m.kept(a.dir); ok {
		must(0, f.restore(k))
		m.tally[Thaws]++
	}
	f.open(func(topic string, from int64) journal.Cursor {
		return m.read(events.ServiceBuilder, topic, x.partition, max(from, m.resume(a.starts, topic, x.partition)))
	})
	for !f.order.CaughtUp() && (f.step(false) || f.step(true)) {
	}
	f.order.Begin()
	return f
}

func (f *buildFollower) close() { f.order.Close() }

// step takes one record if there is one that may be taken; silent: nothing has come for long, so what is
// waited for never comes.
func (f *buildFollower) step(silent bool) bool { return must(f.order.Step(silent)) }

// freeze returns a snapshot of what has been folded.
func (f *buildFollower) freeze() ([]byte, error) {
	return proto.Marshal(f.order.Snapshot(map[string]*steps.Queue{f.x.queue: f.queue}))
}

// restore goes on from a snapshot.
func (f *buildFollower) restore(state []byte) error {
	m := &snapshotv1.Builder{}
	if err := proto.Unmarshal(state, m); err != nil {
		return err
	}
	queues, err := f.order.Restore(m)
	if err == nil {
		f.queue = queues[f.x.queue]
	}
	return err
}

// Fold implements order.Into.
func (f *buildFollower) Fold(e journal.Entry) {
	if e.Queue != f.x.queue {
		return
	}
	if _, forgets := e.Message.(*eventsv1.EvidenceForgotten); forgets && f.x.m.leaves == ForgottenByAll {
		return
	}
	f.queue.Apply(e.Message, steps.Origin{Offset: e.Offset})
}

// ReadBuilds implements order.Into.
func (f *buildFollower) ReadBuilds(next int64) { f.built = next }

// HasEarly implements order.Into.
func (f *buildFollower) HasEarly() bool { return f.queue.Early() > 0 }

// ForgetEarly implements order.Into.
func (f *buildFollower) ForgetEarly() { f.queue.ForgetEarly() }
