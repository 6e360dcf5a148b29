package stage

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// ErrStale says that a snapshot is of no use: it holds outputs that do not count, or is of another log.
var ErrStale = errors.New("the snapshot does not fit the log")

// frozen is what a partition holds beside the states of its queues.
type frozen struct {
	// input is the offset of the next input, position the highest that was taken.
	input, position int64
	// terms are the claims in force in the input topic.
	terms *journal.Terms
	// queues are named in the order in which their states are frozen.
	queues []string
}

// Freeze writes a partition down that holds all own records that it has read.
func (p *Partition) Freeze() ([]byte, error) {
	if p.Behind() {
		return nil, errors.New("a partition is not frozen while own records wait for their inputs")
	}
	f := frozen{input: p.inputNext, position: p.position, terms: p.input, queues: slices.Sorted(maps.Keys(p.queues))}
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
		return nil, fmt.Errorf("freeze the %s: %w", p.stage.Service, err)
	}
	return snapshot.Join(head, state), nil
}

// Thaw makes the partition that was frozen. It has to read its own topic from kept.Own on, and its input from Next on.
func Thaw(of Stage, kept Kept) (*Partition, error) {
	parts, err := snapshot.Split(kept.State, 2)
	if err != nil {
		return nil, err
	}
	var f frozen
	if err := snapshot.Thaw(parts[0], &f); err != nil {
		return nil, err
	}
	p := NewPartition(of)
	roots := []any{}
	for _, name := range f.queues {
		roots = append(roots, p.core(name))
	}
	if err := snapshot.Thaw(parts[1], roots...); err != nil {
		return nil, err
	}
	p.input, p.inputNext, p.position, p.thawed = f.terms, f.input, f.position, true
	p.output.Restore(of.Service, kept.Term)
	return p, nil
}

// Next is the offset of the input that the partition takes next.
func (p *Partition) Next() int64 { return p.inputNext }

// Stale says that a thawed partition has found an own record, behind those that it holds, for an input that it has
// taken: it holds outputs that do not count, and has to start from the log's beginning.
func (p *Partition) Stale() bool { return p.stale }
