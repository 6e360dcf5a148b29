// Package profiler is the stage that predicts: it reads landfall.speculations and writes
// landfall.profiles. Its core is package engine/profile.
package profiler

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/prediction"
	"landfall.build/engine/profile"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// Stage is the profiler.
func Stage() runner.Stage {
	return runner.Stage{
		Name: events.ServiceProfiler, Input: events.TopicSpeculations, Output: events.TopicProfiles,
		New: func(string) runner.QueueCore { return &core{profile: profile.New()} },
		Restore: func(_ string, state []byte) (runner.QueueCore, error) {
			m := &snapshotv1.ProfileState{}
			if err := proto.Unmarshal(state, m); err != nil {
				return nil, err
			}
			p, err := profile.Restore(m)
			return &core{profile: p}, err
		},
		Position:      func(m proto.Message) int64 { return m.(*eventsv1.Profile).Position },
		InputPosition: func(e journal.Entry) int64 { return e.Offset },
		Reports:       true,
		Warnings:      func(m proto.Message) []string { return warnings(m.(*eventsv1.Profile)) },
	}
}

// warnings name the models that were put into use and predict nothing.
func warnings(p *eventsv1.Profile) (out []string) {
	for _, m := range p.Models {
		if m.Trouble != "" {
			out = append(out, fmt.Sprintf("the model %s is not used, priors predict in its place: %s", prediction.Name(m.Kind, m.Version), m.Trouble))
		}
	}
	return out
}

type core struct {
	profile *profile.Profile
	// in is the input that is decided next, at its offset.
	at int64                 `snapshot:"-"`
	in *eventsv1.Speculation `snapshot:"-"`
}

func (c *core) Apply(m proto.Message, offset int64) {
	if s, ok := m.(*eventsv1.Speculation); ok {
		c.at, c.in = offset, s
		c.profile.Apply(s)
	}
}

func (c *core) Decide() proto.Message {
	p := c.profile.Decide()
	if p == nil {
		return nil
	}
	p.Position, p.StampUs, p.Positions = c.at, c.in.StampUs, c.in.Positions
	return p
}

func (c *core) Fold(m proto.Message) { c.profile.Fold(m.(*eventsv1.Profile)) }

func (c *core) Snapshot() proto.Message { return c.profile.Snapshot() }
