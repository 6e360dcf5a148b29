package profile

import (
	"maps"
	"slices"

	"landfall.build/engine/features"
	"landfall.build/engine/graph"
	"landfall.build/engine/prediction"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
)

// Snapshot returns a profile that New made as a message. It shares the messages of events, which nobody changes.
func (p *Profile) Snapshot() *snapshotv1.ProfileState {
	texts := &snapshotv1.Texts{}
	m := &snapshotv1.ProfileState{Graph: p.graph.Snapshot(), Delta: p.delta, Changed: slices.Sorted(maps.Keys(p.changed)), Trained: p.trained.snapshot(texts)}
	m.Steps = &snapshotv1.ProfileDuration{Mean: p.steps.mean, Variance: p.steps.variance, Runs: uint32(p.steps.runs)}
	for name, d := range p.durations.All() {
		m.Durations = append(m.Durations, &snapshotv1.ProfileDuration{Target: texts.Number(name), Mean: d.mean, Variance: d.variance, Runs: uint32(d.runs)})
	}
	for _, r := range p.revisions {
		m.Revisions = append(m.Revisions, r.snapshot(texts))
	}
	m.Texts = texts.List
	return m
}

// Restore returns the profile that a message was made of.
func Restore(m *snapshotv1.ProfileState) (*Profile, error) {
	texts := &snapshotv1.TextsOf{List: m.GetTexts()}
	p := New()
	var err error
	if p.graph, err = graph.Restore(m.GetGraph()); err != nil {
		return nil, err
	}
	if err := p.trained.restore(m.GetTrained(), texts); err != nil {
		return nil, err
	}
	p.delta = m.GetDelta()
	for _, id := range m.GetChanged() {
		p.changed[id] = true
	}
	for _, d := range m.GetDurations() {
		*p.durations.Touch(texts.At(d.Target)) = rollingMean{d.Mean, d.Variance, int(d.Runs)}
	}
	p.steps = rollingMean{m.GetSteps().GetMean(), m.GetSteps().GetVariance(), int(m.GetSteps().GetRuns())}
	for _, x := range m.GetRevisions() {
		r := restoreRevision(x, texts)
		p.revisions[r.ref.change] = r
	}
	return p, texts.Err
}

func (r *revision) snapshot(texts *snapshotv1.Texts) *snapshotv1.ProfileRevision {
	m := &snapshotv1.ProfileRevision{
		Ref: r.ref.snapshot(texts), Sound: r.builds.sound, PassedWith: snapshotSet(r.builds.passedWith, texts), Observed: snapshotSet(r.published.observed, texts),
		Prediction: r.published.prediction,
	}
	for _, l := range r.builds.landed {
		m.Landed = append(m.Landed, &snapshotv1.ProfileLanded{Ref: l.refKey.snapshot(texts), Conflict: l.conflict})
	}
	for _, suspects := range r.builds.failures {
		refs := &snapshotv1.ProfileRefs{}
		for _, k := range suspects {
			refs.Refs = append(refs.Refs, k.snapshot(texts))
		}
		m.Failures = append(m.Failures, refs)
	}
	for id, assumed := range r.builds.running {
		b := &snapshotv1.ProfileBuild{Build: id}
		for _, a := range assumed {
			b.Assumed = append(b.Assumed, keyOf(a).snapshot(texts))
		}
		m.Running = append(m.Running, b)
	}
	for _, q := range r.published.pairs {
		m.Pairs = append(m.Pairs, &snapshotv1.ProfilePair{
			Ahead: keyOf(q.Ahead).snapshot(texts), Conflict: q.Conflict, Source: texts.Number(q.Source), Features: q.Features, Schema: q.Schema,
		})
	}
	return m
}

func restoreRevision(m *snapshotv1.ProfileRevision, texts *snapshotv1.TextsOf) *revision {
	r := &revision{ref: restoreRef(m.Ref, texts)}
	r.published.prediction, r.published.observed = m.Prediction, restoreSet(m.Observed, texts)
	r.published.pairs = make(map[string]*eventsv1.PairPrediction, len(m.Pairs))
	behind := r.ref.message()
	for _, q := range m.Pairs {
		ahead := restoreRef(q.Ahead, texts)
		r.published.pairs[ahead.change] = &eventsv1.PairPrediction{
			Behind: behind, Ahead: ahead.message(), Conflict: q.Conflict, Source: texts.At(q.Source), Features: q.Features, Schema: q.Schema,
		}
	}
	r.builds.sound, r.builds.passedWith = m.Sound, restoreSet(m.PassedWith, texts)
	for _, l := range m.Landed {
		r.builds.landed = append(r.builds.landed, landedMember{restoreRef(l.Ref, texts), l.Conflict})
	}
	for _, f := range m.Failures {
		var suspects []refKey
		for _, k := range f.Refs {
			suspects = append(suspects, restoreRef(k, texts))
		}
		r.builds.failures = append(r.builds.failures, suspects)
	}
	for _, b := range m.Running {
		assumed := make([]*eventsv1.ChangeRef, len(b.Assumed))
		for i, a := range b.Assumed {
			assumed[i] = restoreRef(a, texts).message()
		}
		if r.builds.running == nil {
			r.builds.running = map[string][]*eventsv1.ChangeRef{}
		}
		r.builds.running[b.Build] = assumed
	}
	return r
}

func (t *trained) snapshot(texts *snapshotv1.Texts) *snapshotv1.ProfileTrained {
	m := &snapshotv1.ProfileTrained{History: t.history.Snapshot(texts), Stamp: t.stamp, Reanalysed: slices.Sorted(maps.Keys(t.reanalysed))}
	for _, k := range slices.Sorted(maps.Keys(t.models)) {
		u := t.models[k]
		m.Models = append(m.Models, &snapshotv1.ProfileModel{
			Kind: k, Version: u.version, Trouble: u.trouble, Source: u.source, PublishedVersion: u.publishedVersion, PublishedTrouble: u.publishedTrouble,
			Failure: t.failed[k],
		})
	}
	return m
}

// restore fills a new predictor. A model that this release cannot open any more is out of use, as it would be had it been put into use
// now.
func (t *trained) restore(m *snapshotv1.ProfileTrained, texts *snapshotv1.TextsOf) (err error) {
	if t.history, err = features.Restore(m.GetHistory(), texts); err != nil {
		return err
	}
	t.stamp = m.GetStamp()
	for _, id := range m.GetReanalysed() {
		t.reanalysed[id] = true
	}
	for _, x := range m.GetModels() {
		u := &modelUse{version: x.Version, trouble: x.Trouble, source: x.Source, publishedVersion: x.PublishedVersion, publishedTrouble: x.PublishedTrouble}
		if u.source != nil {
			if u.opened, err = prediction.Open(u.source); err != nil {
				u.stop(err.Error())
			}
		}
		t.models[x.Kind] = u
		if x.Failure != "" {
			t.failed[x.Kind] = x.Failure
		}
	}
	return nil
}

func (k refKey) snapshot(texts *snapshotv1.Texts) *snapshotv1.ProfileRef {
	return &snapshotv1.ProfileRef{Change: texts.Number(k.change), Revision: k.revision}
}

func (k refKey) message() *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: k.change, Revision: k.revision}
}

func restoreRef(m *snapshotv1.ProfileRef, texts *snapshotv1.TextsOf) refKey {
	return refKey{texts.At(m.GetChange()), m.GetRevision()}
}

func snapshotSet(set map[refKey]bool, texts *snapshotv1.Texts) (out []*snapshotv1.ProfileRef) {
	for k := range set {
		out = append(out, k.snapshot(texts))
	}
	return out
}

func restoreSet(list []*snapshotv1.ProfileRef, texts *snapshotv1.TextsOf) map[refKey]bool {
	if len(list) == 0 {
		return nil
	}
	set := make(map[refKey]bool, len(list))
	for _, k := range list {
		set[restoreRef(k, texts)] = true
	}
	return set
}
