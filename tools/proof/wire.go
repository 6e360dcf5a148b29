package proof

import (
	"context"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
)

// wireState is what is under way between services and the log.
type wireState struct {
	claimed map[journal.ClaimedWriter]bool
	// terms are the claims in force.
	terms map[ownership]int64
	// late are the partitions with an append in flight.
	late []partitionOf
	// padded counts the records that were made large.
	padded int
	// buildsEnd is where landfall.builds ended when the lander answered a decision, by that and its term.
	buildsEnd map[answered]int64
}

// answered is a lander's answer to a decision.
type answered struct {
	decision string
	term     int64
}

type partitionOf struct {
	topic     string
	partition int32
}

type ownership struct {
	partitionOf
	service string
}

func newWireState() wireState {
	return wireState{claimed: journal.ClaimedWriters(), terms: map[ownership]int64{}, buildsEnd: map[answered]int64{}}
}

// wire is the log as a service sees it.
type wire struct {
	*memory.Log
	m       *machine
	service string
	// changes is where a lander reads its own records back, while it does not do so as it should.
	changes *jumping
}

func (m *machine) wire(service string) journal.Log { return &wire{Log: m.log, m: m, service: service} }

// Append implements journal.Log.
func (w *wire) Append(_ context.Context, topic string, partition int32, list ...events.Envelope) ([]int64, error) {
	var offsets []int64
	for _, e := range list {
		offset, err := w.m.send(topic, partition, e)
		if err != nil {
			return nil, err
		}
		offsets = append(offsets, offset)
		if _, is := e.Message.(*eventsv1.LandIntended); is && w.changes != nil {
			w.changes.jump(offset)
		}
	}
	return offsets, nil
}

// AppendAsync implements journal.Log.
func (w *wire) AppendAsync(ctx context.Context, topic string, partition int32, e events.Envelope, done func(int64, error)) {
	offset, err := w.m.send(topic, partition, e)
	done(offset, err)
}

// Follow implements journal.Log.
func (w *wire) Follow(_ context.Context, topic string, partition int32, from int64) (journal.Cursor, error) {
	own := ownership{partitionOf{topic, partition}, w.service}
	claimed := w.m.claimed[journal.ClaimedWriter{Topic: topic, Service: w.service}]
	if w.m.leaves == Positions && w.service == events.ServiceEnumerator && !claimed {
		from = max(0, from-w.m.r.Int64N(4))
	}
	c := w.m.read(w.service, topic, partition, from)
	if claimed && w.service != events.ServiceLander {
		c = w.m.owning(c, w.service, w.m.terms[own])
	}
	if w.m.leaves == ReadBack && w.service == events.ServiceLander && topic == events.TopicChanges {
		w.changes = &jumping{Cursor: c, to: -1}
		return w.changes, nil
	}
	return c, nil
}

// Bounds on what is written in parts: those records cost much.
const (
	maxPadded = 3
	padding   = 3 * events.MaxRecordBytes / 2
)

// unknownField is one that no version of a message has: readers step over it.
const unknownField = 16383

// send is an append on its way.
func (m *machine) send(topic string, partition int32, e events.Envelope) (int64, error) {
	at := ownership{partitionOf{topic, partition}, e.Source}
	claimed := m.claimed[journal.ClaimedWriter{Topic: topic, Service: e.Source}]
	switch f := e.Message.(type) {
	case *eventsv1.Speculation:
		e.Message = m.writing(f)
	case *eventsv1.LandIntended, *eventsv1.ChangeEjected:
		m.buildsEnd[answered{f.(interface{ GetDecision() string }).GetDecision(), e.Term}] = m.end(events.TopicBuilds, partition)
	}
	if i, is := e.Message.(*eventsv1.LandIntended); is && m.beforeIntention != nil {
		m.beforeIntention(e.Queue, i)
	}
	if m.large && m.padded < maxPadded && m.r.IntN(40) == 0 && !journal.BeginsTerm(e) {
		m.padded++
		m.tally[InParts]++
		e.Message = padded(e.Message)
	}
	if offset, left := m.sendLeaving(claimed, topic, partition, e); left {
		return offset, nil
	}
	offsets, err := m.log.Append(context.Background(), topic, partition, e)
	if err != nil {
		return 0, err
	}
	switch {
	case !claimed:
		often := 30
		if m.leaves == FirstOfAnID {
			often = 3
		}
		if m.repeats && m.r.IntN(often) == 0 {
			m.tally[Duplicates]++
			_, _ = m.log.Append(context.Background(), topic, partition, e)
		}
	case journal.BeginsTerm(e):
		m.terms[at] = offsets[0]
	case e.Term != m.terms[at]:
		m.tally[StaleWrites]++
	}
	return offsets[0], nil
}

// padded is a message with so much in it that it takes several records.
func padded(msg proto.Message) proto.Message {
	out := proto.Clone(msg)
	field := protowire.AppendTag(nil, unknownField, protowire.BytesType)
	out.ProtoReflect().SetUnknown(protowire.AppendBytes(field, make([]byte, padding)))
	return out
}

// fault decides what the broker does to an append.
func (m *machine) fault(topic string, partition int32, e events.Envelope) memory.Verdict {
	if topic == events.TopicOutcomes {
		return m.tellers[slices.IndexFunc(m.tellers, func(a *teller) bool { return a.partition == partition })].fault()
	}
	if m.claimed[journal.ClaimedWriter{Topic: topic, Service: e.Source}] && m.crashPoint() {
		return []memory.Verdict{memory.FailBefore, memory.FailAfter}[m.r.IntN(2)]
	}
	if m.large && len(e.Message.ProtoReflect().GetUnknown()) >= padding && m.r.IntN(2) == 0 {
		m.tally[Torn]++
		return memory.Torn
	}
	if !m.faults || m.r.IntN(60) != 0 {
		return memory.Deliver
	}
	m.tally[Faults]++
	switch m.r.IntN(3) {
	case 0:
		return memory.FailBefore
	case 1:
		return memory.FailAfter
	}
	m.late = append(m.late, partitionOf{topic, partition})
	return memory.Late
}

// deliverLate lets an append arrive whose writer was told long ago that it failed.
func (m *machine) deliverLate() {
	if len(m.late) > 0 {
		m.log.DeliverLate(m.late[0].topic, m.late[0].partition)
		m.late = m.late[1:]
	}
}

// sendLeaving is the send of a writer that leaves out a rule of writing; left says that it did.
func (m *machine) sendLeaving(claimed bool, topic string, partition int32, e events.Envelope) (offset int64, left bool) {
	if !claimed || m.healed || e.Source == events.ServiceLander || journal.BeginsTerm(e) {
		return 0, false
	}
	switch {
	case m.leaves == FailedAppend && m.r.IntN(60) == 0:
		return m.end(topic, partition), true // it is lost, and the writer does not mind
	case m.leaves == WholeRecords && m.r.IntN(40) == 0:
		e.Message = firstPart(e.Message)
		_, _ = m.log.Append(context.Background(), topic, partition, e)
		return m.end(topic, partition), true
	}
	return 0, false
}

// firstPart is what the first part of a record would say if it counted.
func firstPart(msg proto.Message) proto.Message {
	out := proto.Clone(msg)
	switch f := out.(type) {
	case *eventsv1.Speculation:
		f.Facts = f.Facts[:len(f.Facts)/2]
	case *eventsv1.Decision:
		f.Items = f.Items[:len(f.Items)/2]
	}
	return out
}
