package gateway

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"landfall.build/events"
	"landfall.build/services/gateway/state"
	"landfall.build/services/gateway/view"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// partition is what is folded of one partition of every topic: its queues, and how far each topic is read. A snapshot
// takes them at one moment.
type partition struct {
	gateway *Gateway
	number  int32
	keeper  *snapshot.Keeper
	// behind is the number of topics that are not folded up to where they ended at the start.
	behind atomic.Int32

	// mu is held while a record is folded, and while a snapshot is taken.
	mu      sync.Mutex
	sources map[string]*source
}

// source is a topic, as far as it is folded.
type source struct {
	next  int64
	terms *journal.Terms
}

// frozenTopics are those whose folds are kept. Dead letters are few, and read from their beginning.
var frozenTopics = []string{
	events.TopicChanges, events.TopicDecisions, events.TopicBuilds, events.TopicProfiles, events.TopicPriorities,
}

func (g *Gateway) newPartition(number int32) *partition {
	p := &partition{
		gateway: g, number: number, sources: map[string]*source{},
		keeper: snapshot.NewKeeper(g.Snapshots, snapshot.Key{Log: g.Log.ID(), Service: events.ServiceGateway, Partition: number}, g.Logger),
	}
	for _, topic := range append([]string{events.TopicDeadLetters}, frozenTopics...) {
		p.sources[topic] = &source{terms: journal.NewTerms(topic)}
		p.behind.Add(1)
	}
	return p
}

func (p *partition) source(topic string) *source { return p.sources[topic] }

// fold folds one record, up to the offset next, and keeps a snapshot when that is due.
func (p *partition) fold(s *source, next int64, record func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	record()
	s.next = next
	p.keep(1)
}

// caughtUp is called when a topic is folded up to where it ended at the start.
func (p *partition) caughtUp() {
	if p.behind.Add(-1) > 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeper.CaughtUp()
	p.keep(0)
}

// keep counts records, and saves a snapshot when that is due. The lock must be held.
func (p *partition) keep(records int) {
	if p.keeper.Took(records) {
		if state, ok := p.keeper.Freeze(p.freeze); ok {
			p.keeper.Save(state)
		}
	}
}

// frozen is what a partition holds beside its queues.
type frozen struct {
	sources map[string]*source
	// view are the limits under which the queues' views were folded, queues their names, in the order in which their
	// states are frozen.
	view   view.Limits
	queues []string
}

// queues are those of the partition, by name.
func (p *partition) queues() map[string]*queue {
	of := map[string]*queue{}
	for name, q := range p.gateway.queues {
		if events.PartitionOf(name, p.gateway.Log.Partitions()) == p.number {
			of[name] = q
		}
	}
	return of
}

func (p *partition) freeze() ([]byte, error) {
	queues := p.queues()
	f := frozen{sources: map[string]*source{}, view: p.gateway.View, queues: slices.Sorted(maps.Keys(queues))}
	for _, topic := range frozenTopics {
		f.sources[topic] = p.sources[topic]
	}
	head, err := snapshot.Freeze(&f)
	if err != nil {
		return nil, err
	}
	states := [][]byte{head}
	for _, name := range f.queues {
		q := queues[name]
		q.mu.Lock()
		state, err := q.state.Freeze() // who waits for what is the process's own
		q.mu.Unlock()
		if err != nil {
			return nil, err
		}
		states = append(states, state)
	}
	return snapshot.Join(states...), nil
}

// thaw takes over what was frozen, if it fits, before anything is read.
func (p *partition) thaw(ctx context.Context) error {
	kept, ok := p.keeper.Load()
	if !ok {
		return nil
	}
	queues := p.queues()
	names := slices.Sorted(maps.Keys(queues))
	var f frozen
	states, err := snapshot.Split(kept, 1+len(names))
	if err == nil {
		err = snapshot.Thaw(states[0], &f)
	}
	switch {
	case err != nil:
	case !slices.Equal(f.queues, names) || f.view != p.gateway.View:
		err = errors.New("other queues, or other limits, are configured by now")
	default:
		for _, topic := range frozenTopics {
			end, failed := p.gateway.Log.End(ctx, topic, p.number)
			if failed != nil {
				return failed
			}
			if f.sources[topic] == nil || f.sources[topic].next > end {
				err = errors.New("it has folded more than the log holds")
			}
		}
	}
	thawed := map[string]*state.Queue{}
	for i, name := range names {
		if err != nil {
			break
		}
		thawed[name], err = state.Thaw(states[1+i], name, p.gateway.View)
	}
	if err != nil {
		p.keeper.Drop(err)
		return nil
	}
	for name, of := range thawed {
		q := queues[name]
		q.mu.Lock()
		q.state = of
		q.mu.Unlock()
	}
	for topic, s := range f.sources {
		p.sources[topic] = s
	}
	return nil
}
