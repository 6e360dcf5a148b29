package agenda

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"landfall.build/engine/lineup"
	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/targets"
)

// Snapshot returns the queue as a message, the same one for the same history.
func (q *Queue) Snapshot() *snapshotv1.Agenda {
	texts := &snapshotv1.Texts{}
	m := &snapshotv1.Agenda{Lineup: q.Lineup.Snapshot(), Surveyed: q.surveyed, Reading: q.reading}
	for _, change := range slices.Sorted(maps.Keys(q.analyses)) {
		a := q.analyses[change]
		m.Analyses = append(m.Analyses, &snapshotv1.AgendaAnalysis{
			Effect: a.message(texts), Base: texts.Number(a.base), Since: a.since, Outdated: a.outdated,
		})
	}
	for _, move := range q.moves {
		m.Moves = append(m.Moves, &snapshotv1.AgendaMove{Sequence: move.sequence, To: texts.Number(move.to), Effect: move.effect.message(texts)})
	}
	for _, p := range q.pushes {
		m.Pushes = append(m.Pushes, &snapshotv1.AgendaPush{From: p.From, To: p.To, Forced: p.Forced, Offset: p.Offset, Sequence: p.sequence})
	}
	m.Texts = texts.List
	return m
}

// Restore returns the queue that a message was made of.
func Restore(m *snapshotv1.Agenda) (*Queue, error) {
	q, texts := New(), &snapshotv1.TextsOf{List: m.GetTexts()}
	var err error
	if q.Lineup, err = lineup.Restore(m.GetLineup()); err != nil {
		return nil, err
	}
	q.surveyed, q.reading = m.GetSurveyed(), m.GetReading()
	for _, a := range m.GetAnalyses() {
		e, err := restoreEffect(a.Effect, texts)
		if err != nil {
			return nil, err
		}
		if e == nil || e.ref.GetChange() == "" {
			return nil, errors.New("an analysis is of no change")
		}
		q.analyses[e.ref.Change] = &analysis{effect: *e, base: texts.At(a.Base), since: a.Since, outdated: a.Outdated}
	}
	for _, move := range m.GetMoves() {
		e, err := restoreEffect(move.Effect, texts)
		if err != nil {
			return nil, err
		}
		q.addMove(move.Sequence, texts.At(move.To), e)
	}
	for _, p := range m.GetPushes() {
		q.pushes = append(q.pushes, &Push{From: p.From, To: p.To, Forced: p.Forced, Offset: p.Offset, sequence: p.Sequence})
	}
	return q, texts.Err
}

// message returns the effect as a message, nil for none.
func (e *effect) message(texts *snapshotv1.Texts) *snapshotv1.AgendaEffect {
	if e == nil {
		return nil
	}
	m := &snapshotv1.AgendaEffect{
		Change: e.ref, Outcome: e.outcome, All: e.footprint.All,
		Touched: texts.Numbers(e.footprint.Touched), Leaves: texts.Numbers(e.footprint.Leaves), Added: texts.Numbers(e.footprint.Added),
	}
	for _, k := range slices.SortedFunc(maps.Keys(e.neighbours), Key.compare) {
		m.Neighbours = append(m.Neighbours, texts.Number(k.Change))
		m.NeighbourRevisions = append(m.NeighbourRevisions, k.Revision)
	}
	return m
}

func restoreEffect(m *snapshotv1.AgendaEffect, texts *snapshotv1.TextsOf) (*effect, error) {
	if m == nil {
		return nil, nil
	}
	if len(m.Neighbours) != len(m.NeighbourRevisions) {
		return nil, fmt.Errorf("%d neighbours have %d revisions", len(m.Neighbours), len(m.NeighbourRevisions))
	}
	e := &effect{ref: m.Change, outcome: m.Outcome, footprint: targets.Footprint{
		Touched: texts.All(m.Touched), Leaves: texts.All(m.Leaves), Added: texts.All(m.Added), All: m.All,
	}}
	if len(m.Neighbours) > 0 {
		e.neighbours = make(map[Key]bool, len(m.Neighbours))
	}
	for i, n := range m.Neighbours {
		e.neighbours[Key{texts.At(n), m.NeighbourRevisions[i]}] = true
	}
	return e, nil
}
