package order

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

// frozen is what is kept beside the states of the queues.
type frozen struct {
	decisions, changes, builds frozenTopic
	// queues are named in the order in which their states are frozen.
	queues []string
}

type frozenTopic struct {
	next  int64
	terms *journal.Terms
}

func (t *topic) frozen() frozenTopic { return frozenTopic{t.next, t.terms} }

// Settled says that nothing which was read waits for what was not: only then may it be frozen.
func (o *Order) Settled() bool { return !o.Waits() && o.early == 0 }

// Freeze writes down how far the topics are read, and the states of the partition's queues, by name. It does not
// look at the queues any more once it has returned.
func (o *Order) Freeze(queues map[string]*work.Queue) ([]byte, error) {
	f := frozen{o.decisions.frozen(), o.changes.frozen(), o.builds.frozen(), slices.Sorted(maps.Keys(queues))}
	head, err := snapshot.Freeze(&f)
	if err != nil {
		return nil, err
	}
	roots := []any{}
	for _, name := range f.queues {
		roots = append(roots, queues[name])
	}
	state, err := snapshot.Freeze(roots...)
	if err != nil {
		return nil, fmt.Errorf("freeze the %s: %w", events.ServiceBuilder, err)
	}
	return snapshot.Join(head, state), nil
}

// Thaw takes over what was frozen, before Open, and gives the queues. An Order that refuses it is as it was.
func (o *Order) Thaw(state []byte) (map[string]*work.Queue, error) {
	parts, err := snapshot.Split(state, 2)
	if err != nil {
		return nil, err
	}
	var f frozen
	if err := snapshot.Thaw(parts[0], &f); err != nil {
		return nil, err
	}
	if f.decisions.next > o.start.Decisions || f.changes.next > o.start.Changes || f.builds.next > o.start.Builds {
		return nil, errors.New("it has folded more than the log holds")
	}
	roots := []any{}
	queues := map[string]*work.Queue{}
	for _, name := range f.queues {
		queues[name] = work.New()
		roots = append(roots, queues[name])
	}
	if err := snapshot.Thaw(parts[1], roots...); err != nil {
		return nil, err
	}
	for of, into := range map[*frozenTopic]*topic{&f.decisions: &o.decisions, &f.changes: &o.changes, &f.builds: &o.builds} {
		into.next, into.terms = of.next, of.terms
	}
	o.into.ReadBuilds(o.builds.next)
	return queues, nil
}
