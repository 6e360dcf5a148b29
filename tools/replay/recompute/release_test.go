package recompute_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/steps"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/services/analyzer/agendas"
	"landfall.build/services/builder/order"
	"landfall.build/services/enumerator"
	"landfall.build/services/gateway/state"
	"landfall.build/services/gateway/view"
	"landfall.build/services/lander"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
	"landfall.build/tools/replay/replaytest"
)

// The snapshots of release 0.1 were taken in the middle of one of the recorded logs.
const (
	releasedSnapshots = "testdata/snapshots-0.1"
	releasedLog       = "testdata/recorded/live.bz2"
	releasedPartition = int32(1)
)

// takeSnapshots is needed for the gateway's when the text of an event changes: its snapshot keeps texts.
var takeSnapshots = flag.Bool("take-snapshots", false, "write the snapshots of "+releasedSnapshots+" anew; only before the release is tagged")

// keeper is a service's state on the partition, with how far it has read: it can be kept, and opened again.
type keeper interface {
	// read takes every record that is there.
	read(t *testing.T, log journal.Log)
	keep(t *testing.T) []byte
	open(t *testing.T, log journal.Log, kept []byte)
	// state is what is compared.
	state() any
}

// TestSnapshotsOfRelease01Open: each service opens what release 0.1 has kept, reads the rest of the log, and holds what a service
// holds that has read the log from its beginning.
func TestSnapshotsOfRelease01Open(t *testing.T) {
	recorded := replaytest.ReadRecordings(t, releasedLog)[0]
	whole := recorded.Open(t)
	first := recorded
	first.Records = nil
	for _, r := range recorded.Records {
		if end, err := whole.End(t.Context(), r.Topic, r.Partition); err != nil || r.Offset < end/2 {
			first.Records = append(first.Records, r)
		}
	}
	half := first.Open(t)
	for name, make := range map[string]func() keeper{
		events.ServiceEnumerator: func() keeper {
			return &served{s: enumerator.Service(enumerator.Options{Options: runner.Options{Log: whole}}, releasedPartition)}
		},
		events.ServiceProfiler:    func() keeper { return &served{s: profiler.Stage().Service()} },
		events.ServicePrioritizer: func() keeper { return &served{s: prioritizer.Stage().Service()} },
		events.ServiceSelector:    func() keeper { return &served{s: selector.Stage(whole.ID()).Service()} },
		events.ServiceLander: func() keeper {
			return &served{s: lander.Service(lander.Options{Options: runner.Options{Log: whole}}, releasedPartition, 0)}
		},
		events.ServiceBuilder:  func() keeper { return &ordered{} },
		events.ServiceAnalyzer: func() keeper { return &analyzed{} },
		events.ServiceGateway:  func() keeper { return &shown{} },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(releasedSnapshots, name)
			if *takeSnapshots {
				k := make()
				k.read(t, half)
				if err := os.WriteFile(file, k.keep(t), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			opened, fresh := make(), make()
			opened.open(t, whole, kept)
			opened.read(t, whole)
			if name == events.ServiceGateway { // what it holds depends on which of two topics it read first
				fresh.read(t, half)
			}
			fresh.read(t, whole)
			if difference := snapshottest.Difference(fresh.state(), opened.state()); difference != "" {
				t.Errorf("opened, it holds something else: %s", difference)
			}
			if len(kept) < 1000 {
				t.Errorf("the snapshot has %d bytes: it shows nothing", len(kept))
			}
		})
	}
}

func follow(t *testing.T, log journal.Log, topic string, from int64) journal.Cursor {
	t.Helper()
	c, err := log.Follow(t.Context(), topic, releasedPartition, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// served is a service that the runner runs.
type served struct {
	s    runner.Service
	core runner.Core
	// own is the offset of the next record of its own topic, term that of its last claim.
	own, term int64
}

func (k *served) state() any { return k.core }

func (k *served) read(t *testing.T, log journal.Log) {
	if k.core == nil {
		k.core = k.s.New()
	}
	own := follow(t, log, k.s.Output, k.own)
	var sources []journal.Cursor
	if k.s.ReadsBack || len(k.s.Sources) == 1 {
		for _, topic := range k.s.Sources {
			sources = append(sources, follow(t, log, topic, k.core.Next(topic)))
		}
	}
	for {
		for !k.s.ReadsBack && (sources == nil || k.core.NeedsOwn()) {
			e, ok := next(own)
			if !ok {
				return
			}
			if k.own = e.Offset + 1; journal.BeginsTerm(e.Envelope) && e.Source == k.s.Name {
				k.term = e.Offset
			}
			k.core.Fold(runner.Append{Queue: e.Queue, Message: e.Message, Own: &e})
		}
		took := false
		for _, c := range sources {
			for e, ok := next(c); ok; e, ok = next(c) {
				took = true
				k.core.Apply(runner.Input{Record: &e})
				if k.core.NeedsOwn() && !k.s.ReadsBack {
					break
				}
			}
		}
		if !took {
			return
		}
	}
}

func (k *served) keep(t *testing.T) []byte {
	state, err := proto.Marshal(k.core.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := proto.Marshal(&snapshotv1.Kept{Term: k.term, Own: k.own, State: state})
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func (k *served) open(t *testing.T, _ journal.Log, kept []byte) {
	m := &snapshotv1.Kept{}
	err := proto.Unmarshal(kept, m)
	if err == nil {
		k.core, err = k.s.Restore(m.State, m.Term)
	}
	if err != nil {
		t.Fatal(err)
	}
	k.own, k.term = m.Own, m.Term
}

// ordered is the builder's fold.
type ordered struct {
	order   *order.Order
	queues  map[string]*steps.Queue
	settled []byte
}

func (k *ordered) state() any { return k.queues }

// Fold, ReadBuilds, HasEarly and ForgetEarly implement order.Into.
func (k *ordered) Fold(e journal.Entry) {
	if k.queues[e.Queue] == nil {
		k.queues[e.Queue] = steps.New()
	}
	k.queues[e.Queue].Apply(e.Message, steps.Origin{Offset: e.Offset})
}

func (k *ordered) ReadBuilds(int64) {}

func (k *ordered) HasEarly() bool {
	for _, q := range k.queues {
		if q.Early() > 0 {
			return true
		}
	}
	return false
}

func (k *ordered) ForgetEarly() {
	for _, q := range k.queues {
		q.ForgetEarly()
	}
}

func (k *ordered) make(t *testing.T, log journal.Log) {
	t.Helper()
	if k.queues == nil {
		k.queues = map[string]*steps.Queue{}
	}
	var err error
	if k.order, err = order.New(k, func() (order.Ends, error) {
		return order.Ask(func(topic string) (int64, error) { return log.End(t.Context(), topic, releasedPartition) })
	}); err != nil {
		t.Fatal(err)
	}
}

func (k *ordered) read(t *testing.T, log journal.Log) {
	if k.order == nil {
		k.make(t, log)
	}
	if err := k.order.Open(func(topic string, from int64) (journal.Cursor, error) {
		return log.Follow(t.Context(), topic, releasedPartition, from)
	}); err != nil {
		t.Fatal(err)
	}
	defer k.order.Close()
	for did := true; did; {
		var err error
		if did, err = k.order.Step(false); err != nil {
			t.Fatal(err)
		}
		if *takeSnapshots && k.order.Settled() { // it is kept at no other moment
			if k.settled, err = proto.Marshal(k.order.Snapshot(k.queues)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (k *ordered) keep(*testing.T) []byte { return k.settled }

func (k *ordered) open(t *testing.T, log journal.Log, kept []byte) {
	k.make(t, log)
	m := &snapshotv1.Builder{}
	err := proto.Unmarshal(kept, m)
	if err == nil {
		k.queues, err = k.order.Restore(m)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// analyzed is the analyzer's fold.
type analyzed struct{ *agendas.Partition }

func (k *analyzed) state() any { return k.Partition }

func (k *analyzed) read(t *testing.T, log journal.Log) {
	if k.Partition == nil {
		k.Partition = agendas.NewPartition(queuesOf(t, log))
	}
	c := follow(t, log, events.TopicChanges, k.Next())
	for e, ok := next(c); ok; e, ok = next(c) {
		k.Read(e)
	}
}

func (k *analyzed) keep(t *testing.T) []byte {
	bytes, err := k.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func (k *analyzed) open(t *testing.T, log journal.Log, kept []byte) {
	end, err := log.End(t.Context(), events.TopicChanges, releasedPartition)
	if err == nil {
		k.Partition, err = agendas.Unmarshal(kept, queuesOf(t, log), end)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// queuesOf lists the queues of the partition.
func queuesOf(t *testing.T, log journal.Log) (names []string) {
	c := follow(t, log, events.TopicChanges, 0)
	seen := map[string]bool{}
	for e, ok := next(c); ok; e, ok = next(c) {
		if e.Queue != "" && !seen[e.Queue] {
			seen[e.Queue], names = true, append(names, e.Queue)
		}
	}
	return names
}

// shown is what the gateway holds of the partition's first queue.
type shown struct {
	*state.Queue
	name string
	next map[string]int64
}

func (k *shown) state() any { return k.Queue }

func (k *shown) read(t *testing.T, log journal.Log) {
	if k.Queue == nil {
		k.name, k.next = queuesOf(t, log)[0], map[string]int64{}
		k.Queue = state.New(k.name, view.DefaultLimits())
	}
	for _, topic := range []string{events.TopicChanges, events.TopicDecisions, events.TopicBuilds, events.TopicProfiles, events.TopicPriorities} {
		terms := journal.NewTerms(topic)
		c := follow(t, log, topic, 0)
		for e, ok := next(c); ok; e, ok = next(c) {
			if counts := terms.Counts(e); counts && e.Queue == k.name && e.Offset >= k.next[topic] {
				k.Fold(e, func(*eventsv1.RequestRefused) string { return "" })
			}
			k.next[topic] = max(k.next[topic], e.Offset+1)
		}
	}
}

// keep puts the offsets in front of the message, which the gateway keeps beside it.
func (k *shown) keep(t *testing.T) []byte {
	bytes, err := proto.Marshal(k.Snapshot(k.name))
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

func (k *shown) open(t *testing.T, log journal.Log, kept []byte) {
	m := &snapshotv1.GatewayQueue{}
	err := proto.Unmarshal(kept, m)
	if err == nil {
		k.Queue, err = state.Restore(m, view.DefaultLimits())
	}
	if err != nil {
		t.Fatal(err)
	}
	k.name, k.next = queuesOf(t, log)[0], map[string]int64{}
	for _, topic := range []string{events.TopicChanges, events.TopicDecisions, events.TopicBuilds, events.TopicProfiles, events.TopicPriorities} {
		end, err := log.End(t.Context(), topic, releasedPartition)
		if err != nil {
			t.Fatal(err)
		}
		k.next[topic] = end / 2
	}
}
