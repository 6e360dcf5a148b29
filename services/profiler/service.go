// Package profiler is the stage that predicts: it reads landfall.speculations and writes
// landfall.profiles. Its core is package bypass.
package profiler

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/profiler/bypass"
	"landfall.build/services/profiler/prediction"
	"landfall.build/services/stage"
)

// Stage is the profiler.
func Stage() stage.Stage {
	return stage.Stage{
		Service: events.ServiceProfiler, Input: events.TopicSpeculations, Output: events.TopicProfiles,
		New:           func(string) stage.Core { return &core{profile: bypass.New()} },
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
	profile *bypass.Profile
	at      int64
	in      *eventsv1.Speculation
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
