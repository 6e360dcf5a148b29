package lander

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

// FlakyPolicy is a queue's configuration for targets that fail by chance (M24a).
type FlakyPolicy struct {
	// Named are the quarantines that the configuration asks for.
	Named []Quarantine
	// Above is the rate of flakes above which a target is quarantined for the time For, once so many versions of it have
	// passed; 0: never.
	Above    float64
	Versions int64
	For      time.Duration
}

// Quarantine is one that the configuration asks for. Target is a name or, with *, several.
type Quarantine struct {
	Target, Why string
	Until       time.Time
}

// nextQuarantine returns the next fact about quarantines that is due, nil if none is. One at a time: each is folded before the next is
// looked for.
func (q *queue) nextQuarantine(policy FlakyPolicy, now time.Time) proto.Message {
	named := func(target string) *Quarantine {
		i := slices.IndexFunc(policy.Named, func(n Quarantine) bool { return n.Target == target })
		if i < 0 || !now.Before(policy.Named[i].Until) {
			return nil
		}
		return &policy.Named[i]
	}
	end := func(f *eventsv1.TargetQuarantined, why string) proto.Message {
		return &eventsv1.QuarantineEnded{Target: f.Target, Who: events.ServiceLander, Why: why, StampUs: now.UnixMicro()}
	}
	inForce := map[string]*eventsv1.TargetQuarantined{}
	for _, f := range q.ledger.Quarantines() {
		inForce[f.Target] = f
		switch n := named(f.Target); {
		case f.Source == eventsv1.QuarantineSource_QUARANTINE_SOURCE_CONFIGURATION && n == nil:
			return end(f, "the configuration does not name it any more, or its time is over")
		case f.UntilUs <= now.UnixMicro():
			return end(f, "its time is over")
		}
	}
	full := len(inForce) >= evidence.MaxQuarantines // one more would not be folded, and be written again and again
	for _, n := range policy.Named {
		f := inForce[n.Target]
		switch {
		case named(n.Target) == nil: // its time is over
			continue
		case f == nil && full:
			continue
		case f != nil && f.Source != eventsv1.QuarantineSource_QUARANTINE_SOURCE_CONFIGURATION: // another quarantine has the target
			continue
		case f != nil && f.UntilUs == n.Until.UnixMicro() && f.Why == n.Why: // it is in force
			continue
		}
		return &eventsv1.TargetQuarantined{
			Target: n.Target, UntilUs: n.Until.UnixMicro(), Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_CONFIGURATION,
			Who: "configuration", Why: n.Why, StampUs: now.UnixMicro(),
		}
	}
	if policy.Above <= 0 || full {
		return nil
	}
	for _, t := range q.flakes.Above(policy.Above, policy.Versions) {
		if q.ledger.Quarantined(t.Name) {
			continue
		}
		return &eventsv1.TargetQuarantined{
			Target: t.Name, UntilUs: now.Add(policy.For).UnixMicro(), Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_RATE,
			Who: events.ServiceLander, StampUs: now.UnixMicro(),
			Why: fmt.Sprintf("%d of its last %d versions passed only after a failure", t.Flakes, t.Versions),
		}
	}
	return nil
}

// foldQuarantine folds a TargetQuarantined or QuarantineEnded. T that is being made is made again: its commits name the
// quarantines that were in force.
func (q *queue) foldQuarantine(m proto.Message) {
	q.ledger.Quarantine(m)
	if a := &q.attempt; a.state == making || a.state == answering {
		a.restart()
	}
	switch f := m.(type) {
	case *eventsv1.TargetQuarantined:
		q.flakes.Restart(f.Target)
	case *eventsv1.QuarantineEnded:
		if f.Who != events.ServiceLander { // a person wants it to block: what it did until now is no reason for another
			q.flakes.Restart(f.Target)
		}
	}
}

// quarantined returns the names of the quarantines in force.
func (q *queue) quarantined() []string {
	var names []string
	for _, f := range q.ledger.Quarantines() {
		names = append(names, f.Target)
	}
	return names
}

// recordQuarantine returns the effect that writes a fact about a quarantine.
func (q *queue) recordQuarantine(name string, m proto.Message, now time.Time) runner.Effect {
	target := ""
	switch f := m.(type) {
	case *eventsv1.TargetQuarantined:
		target = f.Target
	case *eventsv1.QuarantineEnded:
		target = f.Target
	}
	return q.append(name, "", m, target, strconv.FormatInt(now.UnixMicro(), 10))
}
