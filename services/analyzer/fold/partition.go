// Package fold is what the analyzer holds of a partition of landfall.changes: the agendas of its queues.
package fold

import (
	"errors"
	"fmt"
	"slices"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/agenda"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// Partition folds a partition of landfall.changes: the agendas of those of its queues that are configured.
type Partition struct {
	terms *journal.Terms
	// next is the offset after the last record that was read.
	next int64
	// configured are the queues that are folded, others being left out.
	configured []string
	queues     map[string]*agenda.Queue
	// traces are those of the admissions, by queue and change.
	traces map[string]map[string]string
}

// NewPartition has read nothing; configured is sorted.
func NewPartition(configured []string) *Partition {
	return &Partition{
		terms: journal.NewTerms(events.TopicChanges), configured: configured,
		queues: map[string]*agenda.Queue{}, traces: map[string]map[string]string{},
	}
}

// Next is the offset after the last record that was read.
func (p *Partition) Next() int64 { return p.next }

// Queue gives a queue's agenda; nil if nothing of it was read.
func (p *Partition) Queue(name string) *agenda.Queue { return p.queues[name] }

// Traces gives the traces of a queue's admissions, by change; whoever asks for them drops those that are not wanted.
func (p *Partition) Traces(queue string) map[string]string { return p.traces[queue] }

// Read takes the next record, and says whether it counts for a queue that is configured.
func (p *Partition) Read(e journal.Entry) bool {
	p.next = e.Offset + 1
	if !p.terms.Counts(e) {
		return false
	}
	if _, is := slices.BinarySearch(p.configured, e.Queue); !is {
		return false
	}
	if p.queues[e.Queue] == nil {
		p.queues[e.Queue], p.traces[e.Queue] = agenda.New(), map[string]string{}
	}
	p.queues[e.Queue].Apply(e.Message, e.Offset)
	switch e.Message.(type) {
	case *eventsv1.ChangeAdmitted, *eventsv1.ChangeRevised:
		p.traces[e.Queue][e.Subject] = e.Trace
	}
	return true
}

// Freeze writes down what has been folded.
func (p *Partition) Freeze() ([]byte, error) {
	state, err := snapshot.Freeze(p)
	if err != nil {
		return nil, fmt.Errorf("freeze the %s: %w", events.ServiceAnalyzer, err)
	}
	return state, nil
}

// Thaw gives what was frozen, for the same queues of a log whose partition ends at an offset.
func Thaw(state []byte, configured []string, end int64) (*Partition, error) {
	p := &Partition{}
	if err := snapshot.Thaw(state, p); err != nil {
		return nil, err
	}
	switch {
	case p.next > end:
		return nil, errors.New("it has folded more than the log holds")
	case !slices.Equal(p.configured, configured):
		return nil, errors.New("other queues are configured by now")
	}
	return p, nil
}
