package lander

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"landfall.build/events"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// frozen is what a partition holds beside the states of its queues. It is a fold of what counts, of nothing that the
// lander has not read back, so it is as true for the next owner.
type frozen struct {
	changes, decisions, builds                int64
	changesTerms, decisionsTerms, buildsTerms *journal.Terms
	// queues are named in the order in which their states are frozen.
	queues []string
}

// Freeze writes down what has been folded.
func (p *Partition) Freeze() ([]byte, error) {
	f := frozen{
		changes: p.changesRead, decisions: p.decisionsRead, builds: p.buildsRead,
		changesTerms: p.changesTerms, decisionsTerms: p.decisionsTerms, buildsTerms: p.buildsTerms,
		queues: slices.Sorted(maps.Keys(p.queues)),
	}
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
		return nil, fmt.Errorf("freeze the %s: %w", events.ServiceLander, err)
	}
	return snapshot.Join(head, state), nil
}

// thaw makes the partition that was frozen, for the owner under a term; its topics are still to be opened.
func thaw(ctx context.Context, o Options, partition int32, term int64, state []byte) (*Partition, error) {
	parts, err := snapshot.Split(state, 2)
	if err != nil {
		return nil, err
	}
	var f frozen
	if err := snapshot.Thaw(parts[0], &f); err != nil {
		return nil, err
	}
	if f.changes > term {
		return nil, fmt.Errorf("it ends at offset %d of %s, behind the claim at %d", f.changes, events.TopicChanges, term)
	}
	for topic, read := range map[string]int64{events.TopicDecisions: f.decisions, events.TopicBuilds: f.builds} {
		end, err := o.Log.End(ctx, topic, partition)
		if err != nil {
			return nil, fmt.Errorf("end of %s/%d: %w", topic, partition, err)
		}
		if read > end {
			return nil, fmt.Errorf("%s has %d records, and it has folded %d", topic, end, read)
		}
	}
	p := newPartition(o, partition, term)
	roots := []any{}
	for _, name := range f.queues {
		roots = append(roots, p.queue(name))
	}
	if err := snapshot.Thaw(parts[1], roots...); err != nil {
		return nil, err
	}
	p.changesRead, p.decisionsRead, p.buildsRead = f.changes, f.decisions, f.builds
	p.changesTerms, p.decisionsTerms, p.buildsTerms = f.changesTerms, f.decisionsTerms, f.buildsTerms
	return p, nil
}

// keep saves a snapshot when that is due.
func (p *Partition) keep() {
	due := p.keeper.Took(p.folded)
	if p.folded = 0; !due {
		return
	}
	if state, ok := p.keeper.Freeze(p.Freeze); ok {
		p.keeper.Save(state)
	}
}
