// Package selector is the stage that decides: it reads landfall.priorities and writes
// landfall.decisions. Its core is package decision.
package selector

import (
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/decision"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// Stage is the selector on a log with that id.
func Stage(logID string) runner.Stage {
	ids := func(parts ...string) string { return events.DeriveID(logID, parts...) }
	return runner.Stage{
		Name: events.ServiceSelector, Input: events.TopicPriorities, Output: events.TopicDecisions,
		New: func(queue string) runner.QueueCore { return &core{selection: decision.New(queue, ids)} },
		Restore: func(queue string, state []byte) (runner.QueueCore, error) {
			m := &snapshotv1.Selection{}
			if err := proto.Unmarshal(state, m); err != nil {
				return nil, err
			}
			s, err := decision.Restore(queue, ids, m)
			return &core{selection: s}, err
		},
		Position:      func(m proto.Message) int64 { return m.(*eventsv1.Decision).Position },
		InputPosition: func(e journal.Entry) int64 { return e.Message.(*eventsv1.Priority).GetPosition() },
	}
}

type core struct {
	selection *decision.Selection
	// in is the input that is decided next.
	in *eventsv1.Priority `snapshot:"-"`
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

func (c *core) Snapshot() proto.Message { return c.selection.Snapshot() }
