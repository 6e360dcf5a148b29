package gateway

import (
	"sync"
	"sync/atomic"

	"landfall.build/events"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/snapshot"
)

// partition is what is folded of one partition of every topic: its queues, and how far each topic is folded. A snapshot
// takes them at one moment.
type partition struct {
	gateway *Gateway
	number  int32
	keeper  *snapshot.Keeper
	// behind is the number of topics that are not folded up to where they ended at the start.
	behind atomic.Int32

	// mu is held while a record is folded, and while a snapshot is taken.
	mu sync.Mutex
	// folds are by topic.
	folds map[string]*topicFold

	health *health.Partition
}

// topicFold is how far a topic is folded: up to the offset next, under the terms in force there.
type topicFold struct {
	next  int64
	terms *journal.Terms
}

func (g *Gateway) newPartition(number int32) *partition {
	p := &partition{
		gateway: g, number: number, folds: map[string]*topicFold{},
		keeper: snapshot.NewKeeper(g.Snapshots, snapshot.Key{Log: g.Log.ID(), Service: events.ServiceGateway, Partition: number}, g.Logger.With("service", events.ServiceGateway)),
	}
	for _, topic := range append([]string{events.TopicDeadLetters, events.TopicAccess}, keptTopics...) {
		p.folds[topic] = &topicFold{terms: journal.NewTerms(topic)}
		p.behind.Add(1)
	}
	return p
}

// fold folds one record of a topic, up to the offset next, and keeps a snapshot when that is due.
func (p *partition) fold(topic string, next int64, record func(*journal.Terms)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.folds[topic]
	record(f.terms)
	f.next = next
	p.keep(1)
	p.health.Read(topic, next)
}

// caughtUp is called when a topic is folded up to where it ended at the start.
func (p *partition) caughtUp() {
	if p.behind.Add(-1) > 0 {
		return
	}
	p.health.CaughtUp()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeper.MakeDue()
	p.keep(0)
}

// queues returns the queues of the partition, by name.
func (p *partition) queues() map[string]*queue {
	of := map[string]*queue{}
	for name, q := range p.gateway.queues {
		if events.PartitionOf(name, p.gateway.Log.Partitions()) == p.number {
			of[name] = q
		}
	}
	return of
}
