package profile

import (
	"maps"
	"slices"

	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
)

// models has, by kind, the model that was put into use last.
type models map[eventsv1.ModelKind]*modelUse

// modelUse is the use of the models of one kind.
type modelUse struct {
	// version is that of the model that was put into use last, "" after a rollback. trouble says why it does not predict, "" if it does.
	version, trouble string
	// source is the model that predicts, nil if priors do. opened is made of it when it is asked first.
	source *eventsv1.Model
	opened *prediction.Model `snapshot:"-"`
	// publishedVersion and publishedTrouble are what the profiles last said of version and trouble.
	publishedVersion, publishedTrouble string
}

// stop takes the model out of use.
func (u *modelUse) stop(trouble string) { u.source, u.opened, u.trouble = nil, nil, trouble }

// inUse returns the model that predicts a kind, nil if priors do.
func (m models) inUse(k eventsv1.ModelKind) *prediction.Model {
	u := m[k]
	if u == nil || u.source == nil {
		return nil
	}
	if u.opened == nil {
		// The same bytes were opened when the model was put into use.
		u.opened, _ = prediction.Open(u.source)
	}
	return u.opened
}

// at returns the entry of a kind. Kinds that this release does not know share one.
func (m models) at(k eventsv1.ModelKind) *modelUse {
	if !slices.Contains(prediction.Kinds(), k) {
		k = eventsv1.ModelKind_MODEL_KIND_UNSPECIFIED
	}
	u := m[k]
	if u == nil {
		u = &modelUse{}
		m[k] = u
	}
	return u
}

// applyModels takes which models are put into use, and takes out of use those that have become too old.
func (t *trained) applyModels(facts []*eventsv1.Fact) {
	for _, f := range facts {
		switch x := f.GetFact().(type) {
		case *eventsv1.Fact_ModelPromoted:
			m := x.ModelPromoted.GetModel()
			u := t.models.at(m.GetKind())
			u.version = m.GetVersion()
			if opened, err := prediction.Open(m); err != nil {
				u.stop(err.Error())
			} else {
				u.source, u.opened, u.trouble = m, opened, ""
			}
			t.profile.changeAll()
		case *eventsv1.Fact_ModelRolledBack:
			u := t.models.at(x.ModelRolledBack.GetKind())
			u.version = ""
			u.stop("")
			t.profile.changeAll()
		}
	}
	for k, u := range t.models {
		m := t.models.inUse(k)
		if m == nil {
			continue
		}
		if err := m.CheckAge(t.stamp); err != nil {
			u.stop(err.Error())
			t.profile.changeAll()
		}
	}
}

// failures has, by kind, how a model failed when it was asked.
type failures map[eventsv1.ModelKind]string

func (f failures) note(k eventsv1.ModelKind, err error) {
	if err != nil && f[k] == "" {
		f[k] = err.Error()
	}
}

// unpublishedUses returns the kinds of which the profiles have not yet said what predicts them.
func (t *trained) unpublishedUses() (out []*eventsv1.ModelUse) {
	for _, k := range slices.Sorted(maps.Keys(t.models)) {
		u := t.models[k]
		trouble := u.trouble
		if trouble == "" {
			trouble = t.failed[k]
		}
		if u.version != u.publishedVersion || trouble != u.publishedTrouble {
			out = append(out, &eventsv1.ModelUse{Kind: k, Version: u.version, Trouble: trouble, StampUs: t.stamp})
		}
	}
	return out
}

// foldUse takes what a profile said of a kind. A model that failed is out of use from then on.
func (t *trained) foldUse(m *eventsv1.ModelUse) {
	u := t.models.at(m.Kind)
	u.publishedVersion, u.publishedTrouble = m.Version, m.Trouble
	if m.Trouble != "" && m.Version == u.version && u.source != nil {
		u.stop(m.Trouble)
		t.profile.changeAll()
	}
}
