package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/state"
	"landfall.build/services/gateway/view"
)

// keptTopics are those whose folds are in snapshots. Dead letters and tokens are few, and read from their beginning.
var keptTopics = []string{
	events.TopicChanges, events.TopicDecisions, events.TopicBuilds, events.TopicProfiles, events.TopicPriorities,
}

// keep counts records, and saves a snapshot when that is due. The lock must be held.
func (p *partition) keep(records int) {
	if p.keeper.Count(records) {
		if state, ok := p.keeper.Freeze(p.freeze); ok {
			p.keeper.Save(state)
		}
	}
}

// freeze returns what is folded of the partition, as bytes. Who waits for what is the process's own.
func (p *partition) freeze() ([]byte, error) {
	m := &snapshotv1.GatewayPartition{Limits: limitsMessage(p.gateway.View)}
	for _, topic := range keptTopics {
		f := p.folds[topic]
		m.Topics = append(m.Topics, &snapshotv1.GatewayTopic{Topic: topic, Next: f.next, Terms: f.terms.Snapshot()})
	}
	queues := p.queues()
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		q := queues[name]
		q.mu.Lock()
		m.Queues = append(m.Queues, q.state.Snapshot(name))
		q.mu.Unlock()
	}
	return proto.Marshal(m)
}

// thaw takes over the snapshot that was kept last, if it fits, before anything is read. One that does not is dropped, and
// the log is folded from its beginning.
func (p *partition) thaw(ctx context.Context) error {
	kept, ok := p.keeper.Load()
	if !ok {
		return nil
	}
	ends := map[string]int64{}
	for _, topic := range keptTopics {
		end, err := p.gateway.Log.End(ctx, topic, p.number)
		if err != nil {
			return fmt.Errorf("end of %s/%d: %w", topic, p.number, err)
		}
		ends[topic] = end
	}
	if err := p.restore(kept, ends); err != nil {
		p.keeper.Drop(err)
	}
	return nil
}

// restore takes over a snapshot of a log whose topics end at ends, or nothing of it.
func (p *partition) restore(kept []byte, ends map[string]int64) error {
	m := &snapshotv1.GatewayPartition{}
	if err := proto.Unmarshal(kept, m); err != nil {
		return err
	}
	folds := map[string]*topicFold{}
	for _, t := range m.Topics {
		if t.Next > ends[t.Topic] {
			return fmt.Errorf("it has folded more of %s than the log holds", t.Topic)
		}
		folds[t.Topic] = &topicFold{next: t.Next, terms: journal.RestoreTerms(t.Topic, t.Terms)}
	}
	if len(folds) != len(ends) {
		return fmt.Errorf("it holds folds of %d topics, not of %d", len(folds), len(ends))
	}
	queues := p.queues()
	if !proto.Equal(m.Limits, limitsMessage(p.gateway.View)) || len(m.Queues) != len(queues) {
		return errors.New("other queues, or other limits, are configured by now")
	}
	states := map[string]*state.Queue{}
	for _, q := range m.Queues {
		if queues[q.Name] == nil {
			return fmt.Errorf("no queue %q is configured any more", q.Name)
		}
		s, err := state.Restore(q, p.gateway.View)
		if err != nil {
			return err
		}
		states[q.Name] = s
	}
	for name, s := range states {
		q := queues[name]
		q.mu.Lock()
		q.state = s
		q.mu.Unlock()
	}
	maps.Copy(p.folds, folds)
	return nil
}

func limitsMessage(l view.Limits) *snapshotv1.GatewayLimits {
	return &snapshotv1.GatewayLimits{Finished: int64(l.Finished), Builds: int64(l.Builds), Attempts: int64(l.Attempts), TailBytes: int64(l.TailBytes)}
}
