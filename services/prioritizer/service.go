// Package prioritizer is the stage that ranks: it reads landfall.profiles and writes landfall.priorities.
// Its core is package ranking.
package prioritizer

import (
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/ranking"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// Stage is the prioritizer.
func Stage() runner.Stage {
	return runner.Stage{
		Name: events.ServicePrioritizer, Input: events.TopicProfiles, Output: events.TopicPriorities,
		New: func(queue string) runner.QueueCore {
			r := ranking.New()
			r.EnableEstimates(queue)
			return &core{ranking: r}
		},
		Restore: func(queue string, state []byte) (runner.QueueCore, error) {
			m := &snapshotv1.Ranking{}
			if err := proto.Unmarshal(state, m); err != nil {
				return nil, err
			}
			r, err := ranking.Restore(m, queue)
			return &core{ranking: r}, err
		},
		Position:      func(m proto.Message) int64 { return m.(*eventsv1.Priority).Position },
		InputPosition: func(e journal.Entry) int64 { return e.Message.(*eventsv1.Profile).GetPosition() },
	}
}

type core struct {
	ranking *ranking.Ranking
	// in is the input that is decided next.
	in *eventsv1.Profile `snapshot:"-"`
}

func (c *core) Apply(m proto.Message, _ int64) {
	if p, ok := m.(*eventsv1.Profile); ok {
		c.in = p
		c.ranking.Apply(p)
	}
}

func (c *core) Decide() proto.Message {
	p := c.ranking.Decide()
	if p == nil {
		return nil
	}
	p.Position, p.StampUs, p.Positions, p.Models = c.in.Position, c.in.StampUs, c.in.Positions, c.in.Models
	return p
}

func (c *core) Fold(m proto.Message) { c.ranking.Fold(m.(*eventsv1.Priority)) }

func (c *core) Snapshot() proto.Message { return c.ranking.Snapshot() }
