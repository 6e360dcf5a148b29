// Package agendas holds what the analyzer knows of a partition of landfall.changes: the agendas of its queues.
package agendas

import (
	"slices"

	"landfall.build/engine/agenda"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// Partition folds a partition of landfall.changes into the agendas of its configured queues.
type Partition struct {
	terms *journal.Terms
	// next is the offset after the last record that was read.
	next int64
	// configured holds the queues that are folded, sorted.
	configured []string
	queues     map[string]*agenda.Queue
	// traces holds those of the admissions, by queue and change.
	traces map[string]map[string]string
}

// NewPartition returns a partition of which nothing was read. It keeps configured, which is sorted.
func NewPartition(configured []string) *Partition {
	return &Partition{
		terms: journal.NewTerms(events.TopicChanges), configured: configured,
		queues: map[string]*agenda.Queue{}, traces: map[string]map[string]string{},
	}
}

// Next returns the offset after the last record that was read.
func (p *Partition) Next() int64 { return p.next }

// Queue returns a queue's agenda, nil if no record of it was read.
func (p *Partition) Queue(name string) *agenda.Queue { return p.queues[name] }

// Traces returns the traces of a queue's admissions, by change. The caller deletes those that it no longer needs.
func (p *Partition) Traces(queue string) map[string]string { return p.traces[queue] }

// Read takes the next record, and reports whether it counts for a configured queue.
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
