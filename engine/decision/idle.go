package decision

import (
	"strconv"

	eventsv1 "landfall.build/events/v1"
)

// idleSubject is that of the builds that prove, while workers are idle, what the mainline had before the queue (M23b).
var idleSubject = subject{mainline: true, idle: true}

// proveWhileIdle schedules such a build while all others have fewer open steps that may run (M33b) than the pool has workers, and
// aborts it once they have not: a change that comes waits for none of its steps. There is one at a time, and it takes no other
// build's place.
func (a *assignment) proveWhileIdle() {
	idle, running := a.openWithin(1, func(load) bool { return true }) < a.workers, false
	for _, r := range a.s.runningOf[idleSubject] {
		switch {
		case r.end.over || a.aborts[r] != "":
		case !idle:
			a.end(r, "changes need the workers")
		default:
			running = true
		}
	}
	if targets := a.s.graph.Survey.GetTargets(); idle && !running && len(targets) > 0 {
		a.schedules = append(a.schedules, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: a.s.idleBuild(targets)}})
	}
}

// idleBuild returns the schedule of a build that proves targets of the mainline. It is worth nothing to any change.
func (s *Selection) idleBuild(targets []*eventsv1.TargetVersion) *eventsv1.BuildScheduled {
	return &eventsv1.BuildScheduled{
		Build:  s.ids("idle build", s.queue, s.graph.Mainline.Head, strconv.FormatInt(s.position, 10)),
		Change: &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{}}, Base: s.graph.Mainline.Head, Targets: targets, Idle: true,
		Steps: s.graph.Settings.Steps, Repository: s.graph.Settings.Repository, Branch: s.graph.Settings.Branch,
		Why: "workers are idle, and nothing has proven these targets of the mainline",
	}
}
