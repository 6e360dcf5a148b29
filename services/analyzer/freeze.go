package analyzer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"landfall.build/events"
	"landfall.build/services/analyzer/agenda"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// frozen is what a partition holds beside the states of its queues.
type frozen struct {
	seen  int64
	terms *journal.Terms
	// configured are the queues that were folded, others being left out; queues are those of them of which there was
	// something, in the order in which their states are frozen.
	configured, queues []string
	traces             []map[string]string
}

// freeze writes down what has been folded.
func (p *partition) freeze() ([]byte, error) {
	f := frozen{seen: p.seen, terms: p.terms, configured: p.configured(), queues: slices.Sorted(maps.Keys(p.queues))}
	roots := []any{}
	for _, name := range f.queues {
		roots = append(roots, p.queues[name].agenda)
		f.traces = append(f.traces, p.queues[name].traces)
	}
	head, err := snapshot.Freeze(&f)
	if err != nil {
		return nil, err
	}
	state, err := snapshot.Freeze(roots...)
	if err != nil {
		return nil, fmt.Errorf("freeze the %s: %w", events.ServiceAnalyzer, err)
	}
	return snapshot.Join(head, state), nil
}

func (p *partition) configured() []string { return slices.Sorted(maps.Keys(p.Analyzer.queues)) }

// thaw takes over what was frozen, before anything is read.
func (p *partition) thaw(state []byte) error {
	parts, err := snapshot.Split(state, 2)
	if err != nil {
		return err
	}
	var f frozen
	if err := snapshot.Thaw(parts[0], &f); err != nil {
		return err
	}
	switch {
	case f.seen > p.end:
		return errors.New("it has folded more than the log holds")
	case !slices.Equal(f.configured, p.configured()):
		return errors.New("other queues are configured by now")
	}
	roots := []any{}
	agendas := make([]*agenda.Queue, len(f.queues))
	for i := range f.queues {
		agendas[i] = agenda.New()
		roots = append(roots, agendas[i])
	}
	if err := snapshot.Thaw(parts[1], roots...); err != nil {
		return err
	}
	for i, name := range f.queues {
		p.queues[name] = &folded{name: name, agenda: agendas[i], jobs: map[string]*job{}, traces: f.traces[i], dirty: true}
	}
	p.seen, p.terms = f.seen, f.terms
	return nil
}

// keep counts records, and saves a snapshot when that is due.
func (p *partition) keep(records int) {
	if !p.keeper.Took(records) {
		return
	}
	if state, ok := p.keeper.Freeze(p.freeze); ok {
		p.keeper.Save(state)
	}
}
