// Package policy holds the published ways to choose builds. A policy takes the prioritizer's place: it sees what is pending
// and what is known of it, and proposes builds, best first. The same rule decides for all of them what lands, and the same
// guard checks it; see package course.
package policy

import (
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/graph"
	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/tools/simulate/dispatch"
	"landfall.build/tools/simulate/forecast"
	"landfall.build/tools/simulate/trace"
)

// Policy chooses builds. Its methods are called by one goroutine.
type Policy interface {
	// Plan takes what is new, and returns the builds that should run, best first. Without a ranking the previous one
	// stays.
	Plan(p *eventsv1.Profile) *eventsv1.Priority
}

// Estimating is a policy that can say when each pending change will be decided if the best builds are these.
type Estimating interface {
	Estimates(best *eventsv1.Ranking, queue string, stampUS int64) []*eventsv1.Estimate
}

// Traits are the other differences between a policy and landfall.
type Traits struct {
	// Passes: a change may be decided while one ahead of it is pending (BLRD). Otherwise it waits until
	// all of A(c) are decided.
	Passes bool
	// Exclusive: running builds that are not among the best, as many as there are workers, are aborted. Otherwise
	// the production selector decides (M26).
	Exclusive bool
	// Batches is how many changes one build may verify together, 0 for one each. A policy that has
	// batches is a Batching.
	Batches int
	// Sees changes the forecast as the policy sees it; nil leaves it as it is.
	Sees func(forecast.Forecast) forecast.Forecast
}

// Settings of a policy. All are optional: a policy uses those that its source knows.
type Settings struct {
	Workers int
	// Threshold and Bypass are τ of M16 and θ of M13; a Bypass above 1 means no bypass.
	Threshold, Bypass float64
	// Lookup returns a pending change, nil if there is none. Truth is for the oracle alone.
	Lookup func(id string) *trace.Change
	Truth  *trace.Truth
}

// Kind is a policy that can be chosen.
type Kind struct {
	Name string
	// Source is where it is described, and Says a line about what it does.
	Source, Says string
	Traits       Traits
	// Threshold and Bypass are its defaults; Tunes reports whether it uses them.
	Threshold, Bypass float64
	Tunes             bool
	// Pool: it differs from the others on a pool of workers alone.
	Pool bool
	// Budget: on a pool its builds hold no slots, but what is scheduled follows the workers (M26a).
	Budget bool
	// Dispatch returns what chooses the steps on a pool; nil: by whole builds, the most valuable first. The truth is for the oracle.
	Dispatch func(dispatch.Truth) dispatch.Dispatch
	// Make returns a policy for one simulation.
	Make func(Settings) Policy
}

// Dispatched returns what chooses the steps on a pool.
func (k Kind) Dispatched(truth dispatch.Truth) dispatch.Dispatch {
	if k.Dispatch == nil {
		return dispatch.New(dispatch.ByBuild, nil)
	}
	return k.Dispatch(truth)
}

// production is the core of production's builder.
func production(dispatch.Truth) dispatch.Dispatch { return steps.New() }

// knowing is the order of the oracle.
func knowing(truth dispatch.Truth) dispatch.Dispatch { return dispatch.New(dispatch.ByWorth, truth) }

// never is a bypass threshold that nothing reaches.
const never = 2

// kinds are all policies, in the order in which they are shown.
var kinds = []Kind{
	{
		Name: "oracle", Source: "Keeping Master Green at Scale (EuroSys 2019), section 8",
		Says: "knows every outcome: one build for each change, on the path that comes about, in queue order",
		Make: newOracle, Bypass: never, Dispatch: knowing, Budget: true,
	},
	{
		Name: "single-queue", Source: "bors; Keeping Master Green at Scale, section 8",
		Says: "conflicting changes one after the other, independent ones side by side",
		Make: newSingleQueue, Bypass: never,
	},
	{
		Name: "optimistic", Source: "Zuul, dependent pipelines; Keeping Master Green at Scale, section 8",
		Says: "one path: all ahead land; a failure restarts what is behind it", Make: newOptimistic, Bypass: never,
	},
	{
		Name: "batch-bisect", Source: "bors-ng, and GitHub's merge queue for the size of a batch",
		Says: "batches in queue order, halved when they fail", Make: newBisecting, Bypass: never,
		Traits: Traits{Batches: BatchSize},
	},
	{
		Name: "speculate-all", Source: "Keeping Master Green at Scale, sections 4.1 and 8",
		Says: "every path at 50 %, breadth first", Make: newRanked, Bypass: never,
		Traits: Traits{Exclusive: true, Sees: evenly},
	},
	{
		Name: "submitqueue-2019", Source: "Keeping Master Green at Scale, section 4",
		Says: "the paths most likely to be needed; no threshold, no bypass",
		Make: newRanked, Bypass: never, Traits: Traits{Exclusive: true},
	},
	{
		Name: "blrd-2023", Source: "Bypassing Large Diffs in SubmitQueue (2023)",
		Says: "submitqueue-2019, but a change whose paths all agree does not wait for those ahead of it",
		Make: newRanked, Bypass: never, Traits: Traits{Exclusive: true, Passes: true},
	},
	{
		Name: "ci-at-scale-2025", Source: "CI at Scale: Lean, Green, and Fast (2025), sections V to VIII",
		Says: "blrd-2023 with a threshold, and with builds for paths past changes that will likely finish later",
		Make: newRanked, Threshold: 0.3, Bypass: 0.9, Tunes: true,
		Traits: Traits{Exclusive: true, Passes: true, Sees: fromArrival},
	},
	{
		Name: "landfall", Source: "the prioritizer and selector of this repository",
		Says: "production's ranking and decision rule, with the default settings; on a pool, production's order of steps",
		Make: newLandfall, Threshold: 0.05, Bypass: 0.5, Tunes: true, Traits: Traits{Passes: true}, Dispatch: production, Budget: true,
	},
	{
		Name: "landfall-by-build", Source: "the builder of this repository, whole builds first",
		Says: "landfall, but builds hold slots, and all steps of the most valuable one start before those of any other",
		Make: newLandfall, Threshold: 0.05, Bypass: 0.5, Tunes: true, Traits: Traits{Passes: true}, Pool: true,
	},
}

// Names lists the policies that do not need a pool.
func Names() []string { return namesOf(false) }

// PoolNames lists all, for a pool.
func PoolNames() []string { return namesOf(true) }

func namesOf(pool bool) (names []string) {
	for _, k := range kinds {
		if pool || !k.Pool {
			names = append(names, k.Name)
		}
	}
	return names
}

// Named returns the policy of that name.
func Named(name string) (Kind, error) {
	for _, k := range kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("there is no policy %q; choose among %s", name, strings.Join(PoolNames(), ", "))
}

// direct is a policy without a search: it goes through the pending changes in queue order.
type direct struct {
	graph *graph.Graph
	// propose returns the builds, best first.
	propose func(g *graph.Graph) []*eventsv1.RankedBuild
	// before are the builds that were proposed last, by change: of one that is proposed again the selector knows what it
	// concluded, if it is given the same.
	before map[string]*eventsv1.RankedBuild
}

// inOrder is a policy that proposes, at most, one build for each change.
func inOrder(propose func(g *graph.Graph) []*eventsv1.RankedBuild) direct {
	return direct{graph: graph.New(), propose: propose, before: map[string]*eventsv1.RankedBuild{}}
}

func (d *direct) Plan(p *eventsv1.Profile) *eventsv1.Priority {
	d.graph.Fold(p.Delta)
	best := d.propose(d.graph)
	now := make(map[string]*eventsv1.RankedBuild, len(best))
	for i, b := range best {
		id := b.Change.Change
		if old := d.before[id]; old != nil && sameBuild(old, b) {
			best[i] = old
		}
		b.Needed, b.Value = 1, 1 // only their order matters
		now[id] = best[i]
	}
	d.before = now
	return &eventsv1.Priority{Delta: p.Delta, Ranking: &eventsv1.Ranking{Best: best, Exact: true}}
}

func sameBuild(a, b *eventsv1.RankedBuild) bool {
	return a == b || graph.SameRef(a.Change, b.Change) && slices.EqualFunc(a.Assumed, b.Assumed, graph.SameRef)
}
