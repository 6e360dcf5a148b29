package decision

import (
	"math"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// Builds of a pool hold no slots (M26a): its workers run the steps of all builds by their index (M33). The selection schedules
// enough builds that no worker idles, and no more than the workers soon come to.
const (
	// stepsPerWorker bounds the open steps of better builds, for each worker, behind which a build is still scheduled.
	stepsPerWorker = 12
	// revalueFactor is by how much the worth of a running build has to change before a BuildRevalued is written.
	revalueFactor = 1.5
)

// load is a build that is scheduled: its open steps, and its worth for each of them.
type load struct {
	steps int
	share float64
	payer *payer
}

// shareOf returns what a build is worth for each of its steps.
func shareOf(value float64, steps int) float64 { return value / float64(max(1, steps)) }

// weigh adds the running builds that go on to the loads, with what they are worth now, and lists those whose worth has changed.
func (a *assignment) weigh() {
	value := map[*running]float64{}
	for _, p := range a.best {
		if r := p.conclusion.running; r != nil {
			value[r] = a.s.inPool(p.ranked)
		}
	}
	for _, r := range a.s.running {
		if r.end.over || a.aborts[r] != "" || r.subject.idle {
			continue
		}
		now, ranked := value[r]
		switch {
		case !ranked && r.worthless != nil:
			now = r.worthless.Needed
		case !ranked:
			now = r.value
		}
		if math.Max(now, r.value) >= revalueFactor*math.Min(now, r.value) && now != r.value {
			a.revaluations = append(a.revaluations, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildRevalued{
				BuildRevalued: &eventsv1.BuildRevalued{Build: r.id, Value: now}}})
		}
		a.addLoad(r.change, now, a.s.openSteps(r))
	}
}

func (a *assignment) addLoad(c *eventsv1.ChangeRef, value float64, steps int) {
	a.budget.loads = append(a.budget.loads, load{steps, shareOf(value, steps), a.payer(c)})
}

// soon reports whether the workers would soon come to a change's build of so many steps: better builds have few open steps. Of an
// author's no more count than the workers come to by its quotas, and a build waits if theirs are enough (M33b).
func (a *assignment) soon(c *eventsv1.ChangeRef, value float64, steps int) bool {
	share := shareOf(value, steps)
	before := a.openWithin(stepsPerWorker, func(l load) bool { return l.share >= share })
	for _, of := range a.payer(c).accounts() {
		if of.steps >= stepsPerWorker*of.limit {
			return false
		}
	}
	return before < stepsPerWorker*a.workers
}

// openSteps returns how many targets of a running build have no result yet. All targets of a class count until the class has a
// result.
func (s *Selection) openSteps(r *running) int {
	if r.openKnown {
		return r.open
	}
	r.openKnown, r.open = true, len(r.targets)
	n := s.graph.NodeAt(r.change)
	if n == nil || r.guard || r.subject.mainline {
		return r.open
	}
	if path, ok := r.pathOf(n); ok {
		_, outstanding := n.Outstanding(path)
		open := slices.DeleteFunc(slices.Clone(outstanding), func(t *eventsv1.TargetVersion) bool { return !r.targets[targetPart{t.Target, t.Part}] })
		r.open = len(open)
	}
	return r.open
}
