package rows

import (
	"time"

	eventsv1 "landfall.build/events/v1"
)

var decisionColumns = []string{
	"queue", "offset", "item", "kind", "position", "at", "change", "revision", "build", "decision", "base", "assumed", "targets", "needed", "value",
	"bypasses", "reason_class", "why",
}

// decisionRow is one item of a decision.
type decisionRow struct {
	kind, change, build, decision, base, reasonClass, why string
	revision                                              uint64
	assumed, targets, bypasses                            []string
	needed, value                                         float64
}

func (s *Set) addDecision(r Record, m *eventsv1.Decision) {
	stamped := stampOr(m.StampUs, r)
	for i, item := range m.Items {
		var d decisionRow
		switch item := item.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			b := item.BuildScheduled
			d = scheduled(b)
			s.addBuild(buildRow{
				queue: r.Queue, build: b.Build, change: d.change, revision: d.revision, base: b.Base, assumed: d.assumed, targets: number(len(b.Targets)),
				needed: &b.Needed, value: &b.Value, why: b.Why, scheduled: stamped,
			})
		case *eventsv1.DecisionItem_BuildAborted:
			b := item.BuildAborted
			d = decisionRow{kind: "abort", build: b.Build, why: b.Why}
			s.addBuild(buildRow{queue: r.Queue, build: b.Build, aborted: stamped, abortWhy: b.Why})
		case *eventsv1.DecisionItem_LandDecided:
			l := item.LandDecided
			d = s.verdict(r, stamped, "land", l.Change, l.Decision, nil)
			d.bypasses, d.why = refs(l.Bypasses), l.Why
		case *eventsv1.DecisionItem_RejectDecided:
			d = s.verdict(r, stamped, "reject", item.RejectDecided.Change, item.RejectDecided.Decision, item.RejectDecided.Reason)
		case *eventsv1.DecisionItem_EjectDecided:
			d = s.verdict(r, stamped, "eject", item.EjectDecided.Change, item.EjectDecided.Decision, item.EjectDecided.Reason)
		default:
			continue // an item of a newer release
		}
		s.add(Decisions, r.Queue, uint64(r.Offset), uint32(i), d.kind, position(m.Position), *stamped, d.change, d.revision, d.build, d.decision, d.base,
			filled(d.assumed), filled(d.targets), d.needed, d.value, filled(d.bypasses), d.reasonClass, d.why)
	}
}

func scheduled(b *eventsv1.BuildScheduled) decisionRow {
	d := decisionRow{kind: "schedule", build: b.Build, base: b.Base, needed: b.Needed, value: b.Value, why: b.Why,
		change: b.Change.GetChange().GetChange(), revision: b.Change.GetChange().GetRevision()}
	for _, a := range b.Assumed {
		d.assumed = append(d.assumed, refs([]*eventsv1.ChangeRef{a.GetChange()})...)
	}
	for _, t := range b.Targets {
		d.targets = append(d.targets, t.GetTarget())
	}
	return d
}

// verdict returns the row of a decision to land, reject or eject a change, and adds the time to the row of the change.
func (s *Set) verdict(r Record, stamped *time.Time, kind string, c *eventsv1.ChangeRef, decision string, reason *eventsv1.Reason) decisionRow {
	s.addChange(changeRow{queue: r.Queue, change: c.GetChange(), revision: c.GetRevision(), decided: stamped})
	d := decisionRow{kind: kind, change: c.GetChange(), revision: c.GetRevision(), decision: decision, why: reason.GetMessage()}
	if reason != nil {
		d.reasonClass = reasonClass(reason.Class)
	}
	return d
}

var predictionColumns = []string{
	"queue", "offset", "item", "kind", "position", "at", "change", "revision", "other", "other_revision", "value", "std", "source", "features", "schema",
}

var observationColumns = []string{"queue", "offset", "item", "position", "at", "change", "revision", "other", "other_revision", "conflict"}

func (s *Set) addProfile(r Record, m *eventsv1.Profile) {
	stamped := *stampOr(m.StampUs, r)
	item := uint32(0)
	add := func(kind string, c, other *eventsv1.ChangeRef, value, std float64, source string, features []float32, schema uint32) {
		s.add(Predictions, r.Queue, uint64(r.Offset), item, kind, position(m.Position), stamped, c.GetChange(), c.GetRevision(),
			other.GetChange(), other.GetRevision(), value, std, source, filled(features), schema)
		item++
	}
	for _, p := range m.Predictions {
		add("success", p.Change, nil, p.Success, 0, p.SuccessSource, p.Features, p.Schema)
		add("duration", p.Change, nil, p.DurationMeanUs/1e6, p.DurationStdUs/1e6, p.DurationSource, p.Features, p.Schema)
	}
	for _, p := range m.Pairs {
		add("conflict", p.Behind, p.Ahead, p.Conflict, 0, p.Source, p.Features, p.Schema)
	}
	for i, o := range m.Observed {
		s.add(Observations, r.Queue, uint64(r.Offset), uint32(i), position(m.Position), stamped, o.GetBehind().GetChange(), o.GetBehind().GetRevision(),
			o.GetAhead().GetChange(), o.GetAhead().GetRevision(), o.Conflict)
	}
}

func position(p int64) uint64 { return uint64(max(0, p)) }
