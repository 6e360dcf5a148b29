package selector_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/enumerator/speculation"
	"landfall.build/services/prioritizer/ranking"
	"landfall.build/services/profiler/bypass"
	"landfall.build/services/selector/decision"
)

// chain is the four cores in a row, without a log: a fact goes in, what the selector does comes out.
type chain struct {
	t           *testing.T
	speculation *speculation.Queue
	profile     *bypass.Profile
	ranking     *ranking.Ranking
	selection   *decision.Selection
	position    int64
	stamp       int64
	scheduled   []*eventsv1.BuildScheduled
	decided     []string
}

func newChain(t *testing.T, settings *eventsv1.QueueSettings) *chain {
	c := &chain{
		t: t, speculation: speculation.New(), profile: bypass.New(), ranking: ranking.New(),
		selection: decision.New("main", func(parts ...string) string { return strings.Join(parts, "/") }), stamp: 1_000_000,
	}
	c.fact(&eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: settings}})
	c.say(&eventsv1.MainlineMoved{To: "m0", Initial: true})
	return c
}

func (c *chain) say(m proto.Message) {
	c.t.Helper()
	f, ok := speculation.FactOf(m)
	if !ok {
		c.t.Fatalf("%T is no fact", m)
	}
	c.fact(f)
}

func (c *chain) fact(f *eventsv1.Fact) {
	c.position++
	c.stamp += 1_000_000
	c.speculation.Apply(f, c.position)
	d := c.speculation.Decide()
	c.speculation.Fold(d)
	s := &eventsv1.Speculation{StampUs: c.stamp, Facts: []*eventsv1.Fact{f}, Delta: d, Positions: &eventsv1.Positions{}}
	c.profile.Apply(s)
	p := c.profile.Decide()
	if p == nil {
		return
	}
	c.profile.Fold(p)
	p.Position, p.StampUs = c.position, c.stamp
	c.ranking.Apply(p)
	r := c.ranking.Decide()
	c.ranking.Fold(r)
	r.Position, r.StampUs = c.position, c.stamp
	c.selection.Apply(r)
	out := c.selection.Decide()
	if out == nil {
		return
	}
	c.selection.Fold(out)
	for _, i := range out.Items {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			c.scheduled = append(c.scheduled, x.BuildScheduled)
		case *eventsv1.DecisionItem_LandDecided:
			c.decided = append(c.decided, "land "+x.LandDecided.Change.Change)
		case *eventsv1.DecisionItem_RejectDecided:
			c.decided = append(c.decided, "reject "+x.RejectDecided.Change.Change)
		case *eventsv1.DecisionItem_EjectDecided:
			c.decided = append(c.decided, "eject "+x.EjectDecided.Change.Change)
		}
	}
}

// admit admits a change and analyses it: it affects these targets.
func (c *chain) admit(id string, targets ...string) {
	c.say(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: "main", Change: id, Revision: 1, Benefit: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}})
	aff := &eventsv1.Affected{}
	for _, t := range targets {
		aff.Targets = append(aff.Targets, &eventsv1.TargetVersion{Target: t, Hash: t + "{" + id + "}", Part: 1})
	}
	c.say(&eventsv1.ChangeAnalyzed{Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Base: "m0",
		Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: aff})
}

func settings() *eventsv1.QueueSettings {
	return &eventsv1.QueueSettings{
		Hash: "s", Workers: 64, Best: 64, BypassThreshold: proto.Float64(0.5), Steps: &eventsv1.StepPolicy{},
		PriorSuccess: 0.9, PriorConflict: 0.05, PriorDurationMeanUs: 60_000_000, PriorDurationStdUs: 10_000_000,
	}
}

// TestM25FifteenMembersInFifteenTargetsCostTwoVersionsOfEach: a change that meets each of fifteen slow ones
// in a target of its own is decided past all of them by two versions of each, not by 2^15 builds.
func TestM25FifteenMembersInFifteenTargetsCostTwoVersionsOfEach(t *testing.T) {
	const n = 15
	c := newChain(t, settings())
	var all []string
	for i := range n {
		shared := fmt.Sprintf("//shared%d", i)
		all = append(all, shared)
		c.admit(fmt.Sprintf("slow%d", i), shared, fmt.Sprintf("//slow%d", i))
	}
	c.admit("quick", all...)
	steps, taken := 0, 0
	for len(c.decided) == 0 {
		if taken == len(c.scheduled) {
			t.Fatalf("nothing is scheduled and nothing decided after %d versions", steps)
		}
		b := c.scheduled[taken]
		taken++
		if b.Change.Change.Change != "quick" {
			continue // the slow ones take for ever
		}
		prepared := &eventsv1.BuildPrepared{Build: b.Build, Change: b.Change.Change, Base: b.Base, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		held := map[string]bool{}
		for _, a := range b.Assumed {
			prepared.Assumed = append(prepared.Assumed, a.Change)
			held[a.Change.Change] = true
		}
		for _, v := range b.Targets {
			hash := v.Target + "{quick}"
			if held["slow"+strings.TrimPrefix(v.Target, "//shared")] {
				hash = v.Target + "{slow,quick}"
			}
			prepared.Versions = append(prepared.Versions, &eventsv1.TargetVersion{Target: v.Target, Hash: hash, Part: v.Part})
		}
		c.say(prepared)
		for _, v := range prepared.Versions {
			steps++
			c.say(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
		}
	}
	if c.decided[0] != "land quick" {
		t.Errorf("decided: %v", c.decided)
	}
	if steps > 2*n {
		t.Errorf("%d versions were built, want at most %d", steps, 2*n)
	}
	t.Logf("decided past %d changes by %d versions in %d builds", n, steps, taken)
}
