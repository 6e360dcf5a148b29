package builder

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"landfall.build/events"
	"landfall.build/services/builder/work"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// frozen is what a follower holds beside the states of its queues.
type frozen struct {
	decisions, changes, builds frozenSource
	// queues are named in the order in which their states are frozen.
	queues []string
}

type frozenSource struct {
	next  int64
	terms *journal.Terms
}

// freeze writes down what has been folded of the partition.
func (f *follower) freeze() ([]byte, error) {
	var queues map[string]*work.Queue
	f.floor.look(func() { queues = f.ofPartition() })
	h := frozen{
		decisions: frozenSource{f.decisions.next, f.decisions.terms}, changes: frozenSource{f.changes.next, f.changes.terms},
		builds: frozenSource{f.builds.next, f.builds.terms}, queues: slices.Sorted(maps.Keys(queues)),
	}
	head, err := snapshot.Freeze(&h)
	if err != nil {
		return nil, err
	}
	roots := []any{}
	for _, name := range h.queues {
		roots = append(roots, queues[name])
	}
	var state []byte
	f.floor.look(func() { state, err = snapshot.Freeze(roots...) })
	if err != nil {
		return nil, fmt.Errorf("freeze the %s: %w", events.ServiceBuilder, err)
	}
	return snapshot.Join(head, state), nil
}

// ofPartition are the queues of the follower's partition. The floor's lock must be held.
func (f *follower) ofPartition() map[string]*work.Queue {
	queues := map[string]*work.Queue{}
	for _, name := range f.floor.names {
		if events.PartitionOf(name, f.Log.Partitions()) == f.partition {
			queues[name] = f.floor.queues[name]
		}
	}
	return queues
}

// thaw takes over what was frozen, before anything is read.
func (f *follower) thaw(state []byte) error {
	parts, err := snapshot.Split(state, 2)
	if err != nil {
		return err
	}
	var h frozen
	if err := snapshot.Thaw(parts[0], &h); err != nil {
		return err
	}
	if h.decisions.next > f.start.decisions || h.changes.next > f.start.changes || h.builds.next > f.start.builds {
		return errors.New("it has folded more than the log holds")
	}
	roots := []any{}
	queues := map[string]*work.Queue{}
	for _, name := range h.queues {
		queues[name] = work.New()
		roots = append(roots, queues[name])
	}
	if err := snapshot.Thaw(parts[1], roots...); err != nil {
		return err
	}
	for of, into := range map[*frozenSource]*source{&h.decisions: &f.decisions, &h.changes: &f.changes, &h.builds: &f.builds} {
		into.next, into.terms = of.next, of.terms
	}
	f.floor.change(func() {
		for _, name := range h.queues {
			f.floor.queues[name] = queues[name]
			f.floor.names = append(f.floor.names, name)
		}
		f.floor.builds[f.partition] = f.builds.next
	})
	return nil
}

// keep counts records, and saves a snapshot when that is due and nothing that was read waits for what was not.
func (f *follower) keep(records int) {
	if !f.keeper.Took(records) || !f.live || f.decision != nil || f.change != nil || f.early > 0 {
		return
	}
	if state, ok := f.keeper.Freeze(f.freeze); ok {
		f.keeper.Save(state)
	}
}
