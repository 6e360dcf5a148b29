// Package plan is the engine alone: a queue in JSON in, the builds that are worth most and what may be decided
// out. It computes none of that itself: it puts the snapshot into the form that the stages get it in, and has
// the production cores (prioritizer/ranking, selector/decision) say what they propose and decide.
//
// By default it plans by the model as it stands (M14, M26). A running queue departs from it in two points, for
// which decision 0019 has the figures; planner.asRun plans as one does.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/memberset"
	"landfall.build/services/prioritizer/explanation"
	"landfall.build/services/prioritizer/ranking"
	"landfall.build/services/selector/decision"
)

// maxBuilds is how many builds are listed where the slots set no bound: a change of 40 members alone has 2^40.
const maxBuilds = 1 << 14

// Plan is what is to be done now. Lists are never nil.
type Plan struct {
	// Exact: the search stayed within its budget (M18), and the list of builds was not cut.
	Exact     bool       `json:"exact"`
	Decisions []Decision `json:"decisions"`
	Builds    []Build    `json:"builds"`
	Abort     []Abort    `json:"abort"`
}

// Decision is what may become of a change now: land, reject or wait.
type Decision struct {
	Change   string `json:"change"`
	Decision string `json:"decision"`
	// Bypasses are the pending members of A(c), in queue order.
	Bypasses []string `json:"bypasses"`
	// Why is one sentence, with --explain only.
	Why string `json:"why,omitempty"`
	// WaitsFor are paths that can come about and of which nothing is known, with --explain only.
	WaitsFor [][]string `json:"waits_for,omitempty"`
}

// Build is a path that is worth a build.
type Build struct {
	Change  string   `json:"change"`
	Assumed []string `json:"assumed"`
	Needed  float64  `json:"needed"` // M14
	Value   float64  `json:"value"`  // M15
	// Action is start, keep (it runs) or none.
	Action string `json:"action"`
	// Why is one sentence, with --explain only, as are the factors of Needed, in queue order, and what it is multiplied with for
	// Value; as a queue runs that is benefit and soon times the product of the factors' probabilities.
	Why     string               `json:"why,omitempty"`
	Benefit float64              `json:"benefit,omitempty"`
	Soon    float64              `json:"soon,omitempty"`
	Factors []explanation.Factor `json:"factors,omitempty"`
}

// Abort is a running build that is to end.
type Abort struct {
	Change  string   `json:"change"`
	Assumed []string `json:"assumed"`
	// Why is one sentence, with --explain only.
	Why string `json:"why,omitempty"`
}

// The actions.
const (
	actionStart = "start"
	actionKeep  = "keep"
	actionNone  = "none"
)

// planner says how to plan.
type planner struct {
	// explained: everything says why.
	explained bool
	// asRun: a bypass is funded where it takes few builds, and a worthless build goes on while nobody waits for
	// its slot.
	asRun bool
}

// plan has the cores plan the queue.
func (x planner) plan(q *queue) *Plan {
	d := q.delta()
	told := q.told(d)
	ranked := q.rank(told, x.asRun)
	best := ranked.GetRanking()
	r := q.read(q.decide(d, ranked))
	out := &Plan{Exact: best.GetExact() && (q.limited || len(best.GetBest()) < maxBuilds), Decisions: []Decision{}, Builds: []Build{}, Abort: []Abort{}}
	for place, c := range q.changes {
		v := Decision{Change: c.id, Decision: decision.Wait.String(), Bypasses: []string{}}
		if verdict := r.verdicts[place]; verdict != "" {
			v.Decision = verdict
			for _, m := range c.ahead {
				v.Bypasses = append(v.Bypasses, q.changes[m.at].id)
			}
		}
		out.Decisions = append(out.Decisions, v)
	}
	var e *explainer
	if x.explained {
		e = newExplainer(q, told, x.asRun)
		e.decisions(out.Decisions)
	}
	keys := map[pathKey]bool{}
	for _, b := range best.GetBest() {
		place := q.byID[b.Change.Change]
		if r.verdicts[place] != "" || len(out.Builds) == q.slots {
			continue
		}
		c := q.changes[place]
		set := q.set(c, b.Assumed)
		key := pathKey{place, set.Key()}
		keys[key] = true
		listed := Build{Change: c.id, Assumed: q.names(c, set), Needed: b.Needed, Value: b.Value, Action: actionNone}
		why, starts := r.started[key]
		i, runs := q.runs[key]
		switch {
		case runs && r.aborted[i] == "":
			listed.Action = actionKeep
		case starts:
			listed.Action = actionStart
		}
		if x.explained {
			e.build(&listed, b, why)
		}
		out.Builds = append(out.Builds, listed)
	}
	if !x.asRun {
		// The selector ends as many of these as builds wait for a slot, the model all of them (M26).
		for _, w := range ranked.GetWorthless() {
			if i, ok := indexOf(w.Build); ok && r.aborted[i] == "" && !keys[q.builds[i].key(q)] {
				r.aborted[i] = fmt.Sprintf("its path is hardly needed any more (%.2g); a running queue lets it go on while nobody waits for its slot", w.Needed)
			}
		}
	}
	for i, b := range q.builds {
		if why := r.aborted[i]; why != "" {
			a := Abort{Change: b.change.id, Assumed: q.names(b.change, b.assumed)}
			if x.explained {
				a.Why = why
			}
			out.Abort = append(out.Abort, a)
		}
	}
	return out
}

// nowStamp is the stamp at which the queue is planned. The ranking's clock stands still for parts of a second:
// on a multiple of a high power of two it is exact.
const nowStamp = 1 << 52

// told is what the profiler would have said of the queue, up to now: what runs has begun at stamps before.
func (q *queue) told(d *eventsv1.GraphDelta) []*eventsv1.Profile {
	p := &eventsv1.Profile{StampUs: nowStamp, Delta: d}
	p.Predictions, p.Pairs = q.predictions()
	var running []int
	for i, b := range q.builds {
		if b.state == stateRunning {
			running = append(running, i)
		}
	}
	slices.SortStableFunc(running, func(x, y int) int { return cmp.Compare(q.builds[y].elapsed, q.builds[x].elapsed) })
	if len(running) > 0 {
		p.StampUs = startOf(q.builds[running[0]])
	}
	told := []*eventsv1.Profile{p}
	for _, i := range running {
		b := q.builds[i]
		told = append(told, &eventsv1.Profile{StampUs: startOf(b), Delta: &eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{
			Build: buildID + strconv.Itoa(i), Change: q.ref(q.byID[b.change.id]), Assumed: q.refs(b), State: eventsv1.BuildState_BUILD_STATE_PREPARED}}}})
	}
	return append(told, &eventsv1.Profile{StampUs: nowStamp, Delta: &eventsv1.GraphDelta{}})
}

// rank has the prioritizer's core rank the builds.
func (q *queue) rank(told []*eventsv1.Profile, asRun bool) *eventsv1.Priority {
	r := ranking.NewFundingAll()
	if asRun {
		r = ranking.New()
	}
	for _, p := range told {
		r.Apply(p)
	}
	return r.Decide()
}

func startOf(b *build) int64 { return nowStamp - b.elapsed.Microseconds() }

// buildID names a running build of the snapshot to the cores.
const buildID = "builds/"

// decide has the selector's core compare the ranking with what runs, and decide.
func (q *queue) decide(d *eventsv1.GraphDelta, ranked *eventsv1.Priority) *eventsv1.Decision {
	s := decision.New("snapshot", func(parts ...string) string { return strings.Join(parts, "/") })
	s.Apply(&eventsv1.Priority{Position: 1, Delta: d})
	runs := &eventsv1.Decision{}
	for i, b := range q.builds {
		if b.state != stateRunning {
			continue
		}
		scheduled := &eventsv1.BuildScheduled{
			Build: buildID + strconv.Itoa(i), Change: &eventsv1.AssumedChange{Change: q.ref(q.byID[b.change.id])}, Steps: d.Settings.Steps,
		}
		for _, ref := range q.refs(b) {
			scheduled.Assumed = append(scheduled.Assumed, &eventsv1.AssumedChange{Change: ref})
		}
		for _, k := range d.Nodes[q.byID[b.change.id]].Classes {
			scheduled.Targets = append(scheduled.Targets, k.Targets...)
		}
		runs.Items = append(runs.Items, &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: scheduled}})
	}
	s.Fold(runs)
	// What is known is said again, now that builds run, so that the selector looks at what it means for them.
	ranked.Position, ranked.Delta = 2, &eventsv1.GraphDelta{Nodes: d.Nodes}
	s.Apply(ranked)
	return s.Decide()
}

// result is what a decision says: what becomes of changes, by place, which paths are to be built and why, and
// which builds of the snapshot are to end and why.
type result struct {
	verdicts map[int]string
	started  map[pathKey]string
	aborted  map[int]string
}

func (q *queue) read(d *eventsv1.Decision) result {
	r := result{map[int]string{}, map[pathKey]string{}, map[int]string{}}
	for _, item := range d.GetItems() {
		switch x := item.Item.(type) {
		case *eventsv1.DecisionItem_LandDecided:
			r.verdicts[q.byID[x.LandDecided.Change.Change]] = decision.Land.String()
		case *eventsv1.DecisionItem_RejectDecided:
			r.verdicts[q.byID[x.RejectDecided.Change.Change]] = decision.Reject.String()
		case *eventsv1.DecisionItem_BuildScheduled:
			place := q.byID[x.BuildScheduled.Change.Change.Change]
			var assumed []*eventsv1.ChangeRef
			for _, a := range x.BuildScheduled.Assumed {
				assumed = append(assumed, a.Change)
			}
			r.started[pathKey{place, q.set(q.changes[place], assumed).Key()}] = x.BuildScheduled.Why
		case *eventsv1.DecisionItem_BuildAborted:
			if i, ok := indexOf(x.BuildAborted.Build); ok {
				r.aborted[i] = x.BuildAborted.Why
			}
		}
	}
	return r
}

// indexOf is which build of the snapshot it is that the cores know by an id.
func indexOf(id string) (i int, ok bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(id, buildID))
	return i, err == nil
}

func (b *build) key(q *queue) pathKey { return pathKey{q.byID[b.change.id], b.assumed.Key()} }

// refs are the changes that a build assumes to land.
func (q *queue) refs(b *build) (list []*eventsv1.ChangeRef) {
	for j, m := range b.change.ahead {
		if b.assumed.Has(j) {
			list = append(list, q.ref(m.at))
		}
	}
	return list
}

func (q *queue) set(c *change, assumed []*eventsv1.ChangeRef) memberset.Set {
	set := memberset.New(len(c.ahead))
	for _, a := range assumed {
		if j := c.indexOf(q.byID[a.Change]); j >= 0 {
			set.Add(j)
		}
	}
	return set
}

func (q *queue) names(c *change, set memberset.Set) []string {
	names := []string{}
	for j, m := range c.ahead {
		if set.Has(j) {
			names = append(names, q.changes[m.at].id)
		}
	}
	return names
}
