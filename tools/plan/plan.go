// Package plan runs the engine alone: it reads a queue in JSON, and prints the builds that are worth most and what may be decided. It
// computes none of that itself, but turns the snapshot into the events of production and gives them to the cores of production
// (engine/ranking, engine/decision).
//
// By default it plans by the model (M14, M26). A running queue differs from it in some points (engine/README.md, Production, at M14 to M17
// and M26); planner.asRun plans like a running queue.
package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/decision"
	"landfall.build/engine/explanation"
	"landfall.build/engine/memberset"
	"landfall.build/engine/ranking"
	eventsv1 "landfall.build/events/v1"
)

// maxBuilds bounds the builds that are listed if the snapshot has no slots: a change with 40 members alone has 2^40 paths.
const maxBuilds = 1 << 14

// Plan is what is to be done now. Lists are never nil.
type Plan struct {
	// Exact reports whether the search stayed within its budget (M18) and all builds are listed.
	Exact     bool       `json:"exact"`
	Decisions []Decision `json:"decisions"`
	Builds    []Build    `json:"builds"`
	Abort     []Abort    `json:"abort"`
}

// Decision is the decision about a change as things stand: land, reject or wait.
type Decision struct {
	Change   string `json:"change"`
	Decision string `json:"decision"`
	// Bypasses are the pending members of A(c), in queue order.
	Bypasses []string `json:"bypasses"`
	// Why is one sentence, with --explain only.
	Why string `json:"why,omitempty"`
	// WaitsFor are paths that can come about and have no result yet, with --explain only.
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
	// Why is one sentence. Factors are those of Needed, in queue order; Benefit times Needed is Value. With --as-run, Value is Benefit times
	// Soon times the product of the factors' probabilities. All of these are set with --explain only.
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

// planner configures a plan.
type planner struct {
	// explained adds why to everything.
	explained bool
	// asRun plans like a running queue: a bypass is funded if it takes few builds, and a worthless build goes on until another build waits
	// for its slot.
	asRun bool
}

// plan lets the cores plan the queue.
func (x planner) plan(q *queue) *Plan {
	d := q.delta()
	profiles := q.profiles(d)
	ranked := q.rank(profiles, x.asRun)
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
		e = newExplainer(q, profiles, x.asRun)
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
			if i, ok := buildIndex(w.Build); ok && r.aborted[i] == "" && !keys[q.builds[i].key(q)] {
				r.aborted[i] = fmt.Sprintf("its path is needed with a probability of %.2g only; a running queue lets it go on until another build waits for its slot", w.Needed)
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

// nowStamp is the log time at which the queue is planned. The ranking rounds its clock down to a multiple of ranking.Instant, which
// this is.
const nowStamp = 1 << 52

// profiles returns what the profiler would have written about the queue up to now: running builds have begun before.
func (q *queue) profiles(d *eventsv1.GraphDelta) []*eventsv1.Profile {
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
	list := []*eventsv1.Profile{p}
	for _, i := range running {
		b := q.builds[i]
		list = append(list, &eventsv1.Profile{StampUs: startOf(b), Delta: &eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{
			Build: buildID + strconv.Itoa(i), Change: q.ref(q.byID[b.change.id]), Assumed: q.refs(b), State: eventsv1.BuildState_BUILD_STATE_PREPARED}}}})
	}
	return append(list, &eventsv1.Profile{StampUs: nowStamp, Delta: &eventsv1.GraphDelta{}})
}

// rank lets the prioritizer's core rank the builds.
func (q *queue) rank(profiles []*eventsv1.Profile, asRun bool) *eventsv1.Priority {
	r := ranking.NewFundingAll()
	if asRun {
		r = ranking.New()
	}
	for _, p := range profiles {
		r.Apply(p)
	}
	return r.Decide()
}

func startOf(b *build) int64 { return nowStamp - b.elapsed.Microseconds() }

// buildID is the prefix of the ids that running builds of the snapshot have in the cores.
const buildID = "builds/"

// decide lets the selector's core compare the ranking with the running builds, and decide.
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
	// The nodes are written again, now that builds run, so that the selector looks at what they mean for the builds.
	ranked.Position, ranked.Delta = 2, &eventsv1.GraphDelta{Nodes: d.Nodes}
	s.Apply(ranked)
	return s.Decide()
}

// result is the content of a decision.
type result struct {
	verdicts map[int]string     // land or reject, by the change's place in the queue
	started  map[pathKey]string // why a path is built
	aborted  map[int]string     // why a build is aborted, by its index in the snapshot
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
			if i, ok := buildIndex(x.BuildAborted.Build); ok {
				r.aborted[i] = x.BuildAborted.Why
			}
		}
	}
	return r
}

// buildIndex returns the index in the snapshot of the build that has an id in the cores.
func buildIndex(id string) (i int, ok bool) {
	i, err := strconv.Atoi(strings.TrimPrefix(id, buildID))
	return i, err == nil
}

func (b *build) key(q *queue) pathKey { return pathKey{q.byID[b.change.id], b.assumed.Key()} }

// refs returns the changes that a build assumes to land.
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
