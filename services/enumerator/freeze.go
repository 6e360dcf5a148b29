package enumerator

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/enumerator/speculation"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
	"landfall.build/services/stage"
)

// frozen is what a partition holds beside the states of its queues.
type frozen struct {
	changes      *journal.Terms
	positions    *eventsv1.Positions
	stamp, count int64
	// queues are named in the order in which their states are frozen.
	queues []string
}

// Freeze writes a partition down that has nothing gathered.
func (p *Partition) Freeze() ([]byte, error) {
	if p.Gathered() {
		return nil, errors.New("what is gathered is written before a partition is frozen")
	}
	f := frozen{changes: p.changes, positions: p.positions, stamp: p.stamp, count: p.count, queues: slices.Sorted(maps.Keys(p.queues))}
	head, err := snapshot.Freeze(&f)
	if err != nil {
		return nil, err
	}
	roots := []any{}
	for _, name := range f.queues {
		roots = append(roots, p.queues[name])
	}
	state, err := snapshot.Freeze(roots...)
	if err != nil {
		return nil, fmt.Errorf("freeze the %s: %w", events.ServiceEnumerator, err)
	}
	return snapshot.Join(head, state), nil
}

// Thaw makes the partition that was frozen. It has to read its own topic from kept.Own on.
func Thaw(kept stage.Kept) (*Partition, error) {
	parts, err := snapshot.Split(kept.State, 2)
	if err != nil {
		return nil, err
	}
	var f frozen
	if err := snapshot.Thaw(parts[0], &f); err != nil {
		return nil, err
	}
	p := NewPartition()
	roots := []any{}
	for _, name := range f.queues {
		p.queues[name] = speculation.New()
		roots = append(roots, p.queues[name])
	}
	if err := snapshot.Thaw(parts[1], roots...); err != nil {
		return nil, err
	}
	p.changes, p.positions, p.stamp, p.count, p.thawed = f.changes, f.positions, f.stamp, f.count, true
	p.own.Restore(events.ServiceEnumerator, kept.Term)
	return p, nil
}

// Stale says that a thawed partition has found an own record for less than it has taken: it holds outputs that do not
// count, and has to start from the log's beginning.
func (p *Partition) Stale() bool { return p.stale }

func before(a, b *eventsv1.Positions) bool {
	return a.GetChanges() < b.GetChanges() || a.GetBuilds() < b.GetBuilds() || a.GetModels() < b.GetModels()
}
