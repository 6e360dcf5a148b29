package bypass

import (
	"maps"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/profiler/prediction"
)

// models are those that were put into use, by kind.
type models map[eventsv1.ModelKind]*inUse

// inUse is the model of a kind that was put into use last.
type inUse struct {
	// source is nil where the version is not used: it was rolled back, or there is trouble with it.
	source           *eventsv1.Model
	opened           *prediction.Model `snapshot:"-"` // of source, once it is asked for
	version, trouble string
	// told is what the log was told of it.
	toldVersion, toldTrouble string
}

// of gives the model that predicts a kind, nil if priors do.
func (m models) of(k eventsv1.ModelKind) *prediction.Model {
	u := m[k]
	if u == nil || u.source == nil {
		return nil
	}
	if u.opened == nil {
		// It could be opened when it came.
		u.opened, _ = prediction.Open(u.source)
	}
	return u.opened
}

// use gives the entry of a kind. What is of no kind that this landfall knows shares one.
func (m models) use(k eventsv1.ModelKind) *inUse {
	if !slices.Contains(prediction.Kinds(), k) {
		k = eventsv1.ModelKind_MODEL_KIND_UNSPECIFIED
	}
	u := m[k]
	if u == nil {
		u = &inUse{}
		m[k] = u
	}
	return u
}

// use folds which models are in use. One that cannot be used is told in the next record, and nothing rests on it.
func (l *learned) use(facts []*eventsv1.Fact) {
	for _, f := range facts {
		switch x := f.GetFact().(type) {
		case *eventsv1.Fact_ModelPromoted:
			m := x.ModelPromoted.GetModel()
			opened, err := prediction.Open(m)
			u := l.models.use(m.GetKind())
			u.source, u.opened, u.version, u.trouble = m, opened, m.GetVersion(), ""
			if err != nil {
				u.source, u.trouble = nil, err.Error()
			}
			l.changeAll()
		case *eventsv1.Fact_ModelRolledBack:
			u := l.models.use(x.ModelRolledBack.GetKind())
			u.source, u.opened, u.version, u.trouble = nil, nil, "", ""
			l.changeAll()
		}
	}
	for k, u := range l.models {
		m := l.models.of(k)
		if m == nil {
			continue
		}
		if err := m.Old(l.stamp); err != nil {
			u.source, u.opened, u.trouble = nil, nil, err.Error()
			l.changeAll()
		}
	}
}

// troubles are what was found wrong with models while they were asked.
type troubles map[eventsv1.ModelKind]string

func (t troubles) note(k eventsv1.ModelKind, err error) {
	if err != nil && t[k] == "" {
		t[k] = err.Error()
	}
}

// toTell says of which kinds the log does not know yet by what they are predicted.
func (l *learned) toTell() (out []*eventsv1.ModelUse) {
	for _, k := range slices.Sorted(maps.Keys(l.models)) {
		u := l.models[k]
		trouble := u.trouble
		if trouble == "" {
			trouble = l.found[k]
		}
		if u.version != u.toldVersion || trouble != u.toldTrouble {
			out = append(out, &eventsv1.ModelUse{Kind: k, Version: u.version, Trouble: trouble, StampUs: l.stamp})
		}
	}
	return out
}

// told folds what the log was told. A model with which there is trouble is not asked again.
func (l *learned) told(m *eventsv1.ModelUse) {
	u := l.models.use(m.Kind)
	u.toldVersion, u.toldTrouble = m.Version, m.Trouble
	if m.Trouble != "" && m.Version == u.version && u.source != nil {
		u.source, u.opened, u.trouble = nil, nil, m.Trouble
		l.changeAll()
	}
}
