package view

import (
	"time"

	"landfall.build/engine/lineup"
)

// Measures are the numbers of a queue as it is now.
type Measures struct {
	// Changes is the number of pending changes by state.
	Changes map[string]int
	// Oldest is when the change was admitted that has been pending longest, LastLanded when the last one landed; zero if there is none.
	Oldest, LastLanded time.Time
	Paused             bool
	RunningBuilds      int
	// MainlineRed counts targets that are red on the mainline, Inherited those of them that no direct push broke, and Unproven those
	// that have never been proven there and are not red.
	MainlineRed, Inherited, Unproven int
	// FlakyTargets counts targets that have flaked; FlakeRate is the share of their versions that did.
	FlakyTargets int
	FlakeRate    float64
	Quarantined  int
}

// Measures returns the numbers of the queue.
func (q *Queue) Measures() Measures {
	m := Measures{
		Changes: map[string]int{StateWaiting: 0, StateTesting: 0, StatePassed: 0}, Paused: q.lineup.Paused != nil, RunningBuilds: q.runningBuilds(),
		MainlineRed: len(q.mainlineRed()), Inherited: len(q.redUnproven()), Quarantined: len(q.quarantines.List()),
	}
	m.Unproven = len(q.check.GetInherited()) - m.Inherited + int(q.survey.GetUnproven())
	for _, entry := range q.lineup.Order() {
		c := q.changes[entry.ID()]
		m.Changes[q.standingOf(c, 0).state]++
		if m.Oldest.IsZero() || c.admittedAt.Before(m.Oldest) {
			m.Oldest = c.admittedAt
		}
	}
	for i := len(q.finished) - 1; i >= 0 && m.LastLanded.IsZero(); i-- {
		if c := q.stillFinished(q.finished[i]); c != nil && c.end.state == lineup.Landed {
			m.LastLanded = c.end.at
		}
	}
	var versions, flakes int64
	for _, t := range q.flakes.Targets() {
		m.FlakyTargets++
		versions, flakes = versions+t.Versions, flakes+t.Flakes
	}
	m.FlakeRate = float64(flakes) / float64(max(1, versions))
	return m
}

// Causes for which a change waits.
const (
	CauseAdmission  = "admission"
	CauseService    = "service"
	CauseAnalysis   = "analysis"
	CauseCapacity   = "capacity"
	CauseQuota      = "quota"
	CauseBuild      = "build"
	CauseDependency = "dependency"
	CauseMainline   = "mainline"
	CausePause      = "pause"
	CauseDecision   = "decision"
)

// Causes returns all causes.
func Causes() []string {
	return []string{CauseAdmission, CauseService, CauseAnalysis, CauseCapacity, CauseQuota, CauseBuild, CauseDependency, CauseMainline, CausePause, CauseDecision}
}

// Wait is what a pending change waits for.
type Wait struct {
	Change string
	Cause  string
	// Median is when it will be decided, as expected, and Lands the probability that it lands then; zero if there is no estimate.
	Median time.Time
	Lands  float64
}

// Waits calls f with what each pending change waits for now.
func (q *Queue) Waits(f func(Wait)) {
	for _, entry := range q.lineup.Order() {
		c := q.changes[entry.ID()]
		s := q.standingOf(c, 0)
		w := Wait{Change: c.admission.Change, Cause: q.causeOf(c, s)}
		if e := q.eta(c, s); e.Unknown == "" {
			w.Median, w.Lands = e.Median, e.Lands
		}
		f(w)
	}
}

// causeOf returns the one cause that has to go first.
func (q *Queue) causeOf(c *change, s standing) string {
	held := len(q.lineup.Pending(c.admission.Change).Holds) > 0
	quota, runs := q.overQuota(c.ref())
	switch {
	case len(q.serviceReasons(s)) > 0:
		return CauseService
	case quota != nil && !runs && s.awaitsSteps():
		return CauseQuota
	case s.state == StateTesting:
		return CauseBuild
	case s.node == nil || !s.node.Analyzed:
		return CauseAnalysis
	case q.unreachable != nil, c.pushRefused(), len(blockedTargets(s.node)) > 0:
		return CauseMainline
	case s.state == StatePassed && (held || q.lineup.Paused != nil):
		return CausePause
	case s.state == StateWaiting && q.inLine(c.ref()) > 0:
		return CauseCapacity
	case len(q.requirementReasons(c)) > 0, len(q.aheadReasons(c, s)) > 0:
		return CauseDependency
	case s.state == StateWaiting:
		return CauseCapacity
	}
	return CauseDecision
}

// BuildsOf returns how many builds were scheduled for the present revision of a change.
func (q *Queue) BuildsOf(id string) int {
	if c := q.changes[id]; c != nil {
		return len(q.builds.ofChange[c.ref()])
	}
	return 0
}
