package agendas

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/agenda"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	"landfall.build/platform/journal"
)

// Marshal returns the bytes of a snapshot, the same ones for the same records.
func (p *Partition) Marshal() ([]byte, error) {
	m := &snapshotv1.AnalyzerPartition{Next: p.next, Terms: p.terms.Snapshot(), Configured: p.configured}
	for _, name := range slices.Sorted(maps.Keys(p.queues)) {
		m.Queues = append(m.Queues, &snapshotv1.AnalyzerQueue{Name: name, Agenda: p.queues[name].Snapshot(), Traces: p.traces[name]})
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

// Unmarshal returns the partition that a snapshot was taken of. Its error says why the snapshot is of no use: it is
// damaged, other queues are configured, or the partition of the log ends at an offset before it.
func Unmarshal(snapshot []byte, configured []string, end int64) (*Partition, error) {
	m := &snapshotv1.AnalyzerPartition{}
	if err := proto.Unmarshal(snapshot, m); err != nil {
		return nil, err
	}
	switch {
	case m.Next > end:
		return nil, errors.New("it holds more records than the log")
	case !slices.Equal(m.Configured, configured):
		return nil, errors.New("other queues are configured now")
	}
	p := NewPartition(configured)
	p.next, p.terms = m.Next, journal.RestoreTerms(events.TopicChanges, m.Terms)
	for _, q := range m.Queues {
		var err error
		if p.queues[q.Name], err = agenda.Restore(q.Agenda); err != nil {
			return nil, fmt.Errorf("queue %s: %w", q.Name, err)
		}
		p.traces[q.Name] = map[string]string{}
		maps.Copy(p.traces[q.Name], q.Traces)
	}
	return p, nil
}
