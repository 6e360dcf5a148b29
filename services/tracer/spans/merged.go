package spans

import (
	"context"
	"fmt"

	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
)

// Merged reads one partition of the topics up to where they end now, in the order of the records' times: a decision, say, comes before
// what the builder made of it.
type Merged struct {
	readings []*reading.Reading
	ends     map[string]int64
	inside   bool
}

// Open opens a partition of a log. Of each topic it reads the last records, at most as many as given, or all with 0.
func Open(ctx context.Context, log journal.Log, partition int32, last int64) (*Merged, error) {
	m := &Merged{ends: map[string]int64{}}
	for _, topic := range Topics() {
		end, err := log.End(ctx, topic, partition)
		if err != nil {
			m.Close()
			return nil, fmt.Errorf("end of %s/%d: %w", topic, partition, err)
		}
		o := reading.Options{}
		if last > 0 && end > last {
			o.From, m.inside = end-last, true
		}
		r, err := reading.To(ctx, log, topic, partition, end, o)
		if err != nil {
			m.Close()
			return nil, err
		}
		m.readings, m.ends[topic] = append(m.readings, r), end
	}
	return m, nil
}

// Inside reports whether the reading began behind the first record of a topic.
func (m *Merged) Inside() bool { return m.inside }

// Ends returns where the reading ends, by topic.
func (m *Merged) Ends() map[string]int64 { return m.ends }

// Close ends the reading.
func (m *Merged) Close() {
	for _, r := range m.readings {
		r.Close()
	}
}

// Take returns the next record, nil at the end.
func (m *Merged) Take(ctx context.Context) (*journal.Entry, error) {
	var first *reading.Reading
	var of *journal.Entry
	for _, r := range m.readings {
		e, err := r.Peek(ctx)
		if err != nil {
			return nil, err
		}
		if e != nil && (of == nil || e.Time.Before(of.Time)) {
			first, of = r, e
		}
	}
	if first == nil {
		return nil, nil
	}
	return first.Take(ctx)
}
