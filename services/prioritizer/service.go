// Package prioritizer is the stage that ranks: it reads landfall.profiles and writes landfall.priorities.
// Its core is package ranking.
package prioritizer

import (
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/prioritizer/ranking"
	"landfall.build/services/stage"
)

// Stage is the prioritizer.
func Stage() stage.Stage {
	return stage.Stage{
		Service: events.ServicePrioritizer, Input: events.TopicProfiles, Output: events.TopicPriorities,
		New: func(queue string) stage.Core {
			r := ranking.New()
			r.Estimate(queue)
			return &core{ranking: r}
		},
		Position:      func(m proto.Message) int64 { return m.(*eventsv1.Priority).Position },
		InputPosition: func(e journal.Entry) int64 { return e.Message.(*eventsv1.Profile).GetPosition() },
	}
}

type core struct {
	ranking *ranking.Ranking
	in      *eventsv1.Profile
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
