package explanation

import (
	"errors"

	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Snapshot returns the state as a message. It shares the messages of events, which nobody changes.
func (s *State) Snapshot() *snapshotv1.ExplanationState {
	texts := snapshotv1.Texts{}
	m := &snapshotv1.ExplanationState{Position: s.position, Stamp: s.stamp, Settings: s.settings, Mainline: s.mainline, Moments: s.moments}
	for _, n := range s.nodes {
		m.Nodes = append(m.Nodes, n)
	}
	for _, p := range s.predictions {
		m.Predictions = append(m.Predictions, p)
	}
	for behind, pairs := range s.pairs {
		p := &snapshotv1.ExplanationPairs{Behind: texts.Number(behind)}
		for ahead, q := range pairs {
			p.Ahead, p.Source = append(p.Ahead, texts.Number(ahead)), append(p.Source, texts.Number(q.source))
			p.BehindRevision, p.AheadRevision, p.Conflict = append(p.BehindRevision, q.behind), append(p.AheadRevision, q.ahead), append(p.Conflict, q.conflict)
		}
		m.Pairs = append(m.Pairs, p)
	}
	for id, builds := range s.ofChange {
		for _, x := range builds {
			b := &snapshotv1.ExplanationBuild{
				Build: x.build, Change: texts.Number(id), Revision: x.change.GetRevision(),
				Since: x.since, Position: x.position, Prepared: x.prepared, Over: x.over,
			}
			for id, a := range x.assumed {
				b.Assumed, b.AssumedRevision, b.AssumedLanded = append(b.Assumed, texts.Number(id)), append(b.AssumedRevision, a.revision), append(b.AssumedLanded, a.landed)
			}
			m.Builds = append(m.Builds, b)
		}
	}
	m.Texts = texts.List
	return m
}

// errLists is returned for a message whose lists do not belong together.
var errLists = errors.New("lists of one length have different lengths in the snapshot")

// Restore returns the state that a message was made of.
func Restore(m *snapshotv1.ExplanationState) (*State, error) {
	s, texts := New(m.GetSettings(), m.GetMainline()), snapshotv1.TextsOf{List: m.GetTexts()}
	s.position, s.stamp, s.moments = m.GetPosition(), m.GetStamp(), m.GetMoments()
	for _, n := range m.GetNodes() {
		s.nodes[n.GetChange().GetChange()] = n
	}
	for _, p := range m.GetPredictions() {
		p.SuccessSource, p.DurationSource = s.source(p.SuccessSource), s.source(p.DurationSource)
		s.predictions[p.GetChange().GetChange()] = p
	}
	for _, p := range m.GetPairs() {
		n := len(p.Ahead)
		if len(p.Source) != n || len(p.BehindRevision) != n || len(p.AheadRevision) != n || len(p.Conflict) != n {
			return nil, errLists
		}
		of := make(map[string]pair, n)
		for i, ahead := range p.Ahead {
			of[texts.At(ahead)] = pair{p.BehindRevision[i], p.AheadRevision[i], p.Conflict[i], texts.At(p.Source[i])}
		}
		s.pairs[texts.At(p.Behind)] = of
	}
	for _, b := range m.GetBuilds() {
		if len(b.AssumedRevision) != len(b.Assumed) || len(b.AssumedLanded) != len(b.Assumed) {
			return nil, errLists
		}
		id := texts.At(b.Change)
		x := &run{
			build: b.Build, change: &eventsv1.ChangeRef{Change: id, Revision: b.Revision}, assumed: make(map[string]*assumption, len(b.Assumed)),
			since: b.Since, position: b.Position, prepared: b.Prepared, over: b.Over,
		}
		for i, a := range b.Assumed {
			x.assumed[texts.At(a)] = &assumption{b.AssumedRevision[i], b.AssumedLanded[i]}
		}
		s.runs[x.build], s.ofChange[id] = x, append(s.ofChange[id], x)
	}
	return s, texts.Err
}
