package proof

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"landfall.build/engine/speculation"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/enumerator"
)

// order holds the log against itself: what claimed services wrote is one account of what they read, in
// which nothing is left out and nothing comes twice (ARCHITECTURE.md, Stages).
type order struct {
	m         *machine
	partition int32
	wrong     []string
}

func (m *machine) checkOrder(partition int32) []string {
	o := &order{m: m, partition: partition}
	o.stages(o.speculations())
	return o.wrong
}

func (o *order) bad(format string, args ...any) {
	o.m.tally[Disordered]++
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

// counted are the records of a topic that count.
func (o *order) counted(topic string) (list []journal.Entry) {
	c, terms := o.m.follow(topic, o.partition, 0), journal.NewTerms(topic)
	defer c.Close()
	for e, ok := next(c); ok; e, ok = next(c) {
		if terms.Counts(e) {
			list = append(list, e)
		}
	}
	return list
}

// source gives the facts of one of the enumerator's topics in their order.
type source struct {
	facts []journal.Entry
	taken int64
}

// facts are the messages that a speculation takes in.
var facts = func() map[protoreflect.FullName]bool {
	names := map[protoreflect.FullName]bool{}
	fields := (&eventsv1.Fact{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		names[fields.Get(i).Message().FullName()] = true
	}
	return names
}()

func (o *order) source(topic string) *source {
	s := &source{}
	for _, e := range o.counted(topic) {
		if facts[e.Message.ProtoReflect().Descriptor().FullName()] && e.Queue != "" {
			// Facts have less of a preparation.
			if _, is := e.Message.(*eventsv1.BuildPrepared); is {
				e.Message = speculation.Message(enumerator.FactOf(e))
			}
			s.facts = append(s.facts, e)
		}
	}
	return s
}

// upTo takes the facts before an offset.
func (s *source) upTo(offset int64) (list []journal.Entry) {
	for len(s.facts) > 0 && s.facts[0].Offset < offset {
		list = append(list, s.facts[0])
		s.facts = s.facts[1:]
	}
	s.taken = offset
	return list
}

// speculations checks that each fact was taken once, in order, and that stamps never run backwards. It gives
// the queue of each record, by offset.
func (o *order) speculations() map[int64]string {
	changes, builds := o.source(events.TopicChanges), o.source(events.TopicBuilds)
	queues := map[int64]string{}
	stamp := int64(0)
	for _, e := range o.counted(events.TopicSpeculations) {
		s := e.Message.(*eventsv1.Speculation)
		queues[e.Offset] = e.Queue
		if s.StampUs < stamp {
			o.bad("speculation %d is stamped before the one before it", e.Offset)
		}
		stamp = s.StampUs
		if s.Positions.Changes < changes.taken || s.Positions.Builds < builds.taken {
			o.bad("speculation %d goes back to what was read before it", e.Offset)
			continue
		}
		read := append(changes.upTo(s.Positions.Changes), builds.upTo(s.Positions.Builds)...)
		for _, f := range s.Facts {
			if f.GetSettings() != nil || f.GetTick() != nil {
				continue // its own
			}
			m := speculation.Message(f)
			if read = taken(read, m, e.Queue); read == nil {
				o.bad("speculation %d has a %s that was not read for it", e.Offset, events.TypeOf(m))
				break
			}
			read = read[1:]
		}
		if len(read) > 0 {
			o.bad("speculation %d leaves out a %s", e.Offset, events.TypeOf(read[0].Message))
		}
	}
	return queues
}

// taken puts the record of a fact first, nil if there is none. Two topics have no order between them.
func taken(read []journal.Entry, m proto.Message, queue string) []journal.Entry {
	for i, e := range read {
		if e.Queue == queue && (e.Message == m || proto.Equal(e.Message, m)) {
			copy(read[1:i+1], read[:i])
			read[0] = e
			return read
		}
	}
	return nil
}

// stages checks that no speculation is answered twice by a stage, that answers keep the order, and that each
// is for a speculation that counts.
func (o *order) stages(queues map[int64]string) {
	for _, topic := range []string{events.TopicProfiles, events.TopicPriorities, events.TopicDecisions} {
		last := int64(-1)
		for _, e := range o.counted(topic) {
			position := e.Message.(interface{ GetPosition() int64 }).GetPosition()
			if position <= last {
				o.bad("%s/%d answers speculation %d behind an answer to %d", topic, e.Offset, position, last)
			}
			last = position
			if queues[position] != e.Queue {
				o.bad("%s/%d of %s answers speculation %d of %q", topic, e.Offset, e.Queue, position, queues[position])
			}
		}
	}
}
