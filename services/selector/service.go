// Package selector is the stage that decides: it reads landfall.priorities and writes
// landfall.decisions. Its core is package decision.
package selector

import (
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/selector/decision"
	"landfall.build/services/stage"
)

// Stage is the selector on a log with that id.
func Stage(logID string) stage.Stage {
	return stage.Stage{
		Service: events.ServiceSelector, Input: events.TopicPriorities, Output: events.TopicDecisions,
		New: func(queue string) stage.Core {
			return &core{selection: decision.New(queue, func(parts ...string) string { return events.DeriveID(logID, parts...) })}
		},
		Position:      func(m proto.Message) int64 { return m.(*eventsv1.Decision).Position },
		InputPosition: func(e journal.Entry) int64 { return e.Message.(*eventsv1.Priority).GetPosition() },
	}
}

type core struct {
	selection *decision.Selection
	in        *eventsv1.Priority
}

func (c *core) Apply(m proto.Message, _ int64) {
	if p, ok := m.(*eventsv1.Priority); ok {
		c.in = p
		c.selection.Apply(p)
	}
}

func (c *core) Decide() proto.Message {
	d := c.selection.Decide()
	if d == nil {
		return nil
	}
	d.Position, d.StampUs, d.Positions = c.in.Position, c.in.StampUs, c.in.Positions
	return d
}

func (c *core) Fold(m proto.Message) { c.selection.Fold(m.(*eventsv1.Decision)) }
