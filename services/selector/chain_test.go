package selector_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/decision"
	"landfall.build/engine/profile"
	"landfall.build/engine/ranking"
	"landfall.build/engine/speculation"
	eventsv1 "landfall.build/events/v1"
)

// chain is the four cores in a row, without a log: a fact goes in, what the selector does comes out.
type chain struct {
	t           *testing.T
	speculation *speculation.Queue
	profile     *profile.Profile
	ranking     *ranking.Ranking
	selection   *decision.Selection
	position    int64
	stamp       int64
	scheduled   []*eventsv1.BuildScheduled
	// decided and decisions are what was decided and the ids, ejected is why something was ejected last.
	decided   []string
	decisions []string
	ejected   *eventsv1.Reason
}

func newChain(t *testing.T, settings *eventsv1.QueueSettings) *chain {
	c := &chain{
		t: t, speculation: speculation.New(), profile: profile.New(), ranking: ranking.New(),
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
			c.noteDecision("land", x.LandDecided.Change, x.LandDecided.Decision)
		case *eventsv1.DecisionItem_RejectDecided:
			c.noteDecision("reject", x.RejectDecided.Change, x.RejectDecided.Decision)
		case *eventsv1.DecisionItem_EjectDecided:
			c.noteDecision("eject", x.EjectDecided.Change, x.EjectDecided.Decision)
			c.ejected = x.EjectDecided.Reason
		}
	}
}

func (c *chain) noteDecision(kind string, of *eventsv1.ChangeRef, id string) {
	c.decided, c.decisions = append(c.decided, kind+" "+of.Change), append(c.decisions, id)
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
	affects := map[string][]string{}
	for i := range n {
		shared := fmt.Sprintf("//shared%d", i)
		all = append(all, shared)
		affects[shared] = []string{fmt.Sprintf("slow%d", i), "quick"}
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
		for _, v := range c.prepare(b, affects).Versions {
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

// prepare says that a build is prepared: each target has a hash that names who of the tree affects it.
func (c *chain) prepare(b *eventsv1.BuildScheduled, affects map[string][]string) *eventsv1.BuildPrepared {
	out := &eventsv1.BuildPrepared{Build: b.Build, Change: b.Change.Change, Base: b.Base, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	in := map[string]bool{b.Change.Change.Change: true}
	for _, a := range b.Assumed {
		out.Assumed = append(out.Assumed, a.Change)
		in[a.Change.Change] = true
	}
	for _, v := range b.Targets {
		var held []string
		for _, id := range affects[v.Target] {
			if in[id] {
				held = append(held, id)
			}
		}
		out.Versions = append(out.Versions, &eventsv1.TargetVersion{Target: v.Target, Hash: v.Target + "{" + strings.Join(held, ",") + "}", Part: v.Part})
	}
	c.say(out)
	return out
}

// TestM20WhatIsBypassedIsNotBuiltAgain: quick lands past slow, which it meets in one target. What slow makes of its own
// target is green already, what the two make of the shared one was shown by quick's build on top of slow: slow lands too,
// and no version is built that was not outstanding before (theorem 1 of BLRD).
func TestM20WhatIsBypassedIsNotBuiltAgain(t *testing.T) {
	c := newChain(t, settings())
	affects := map[string][]string{"//shared": {"slow", "quick"}, "//slow": {"slow"}}
	c.admit("slow", "//shared", "//slow")
	c.admit("quick", "//shared")
	passed := map[string]bool{}
	taken := 0
	build := func() {
		for ; taken < len(c.scheduled); taken++ {
			b := c.scheduled[taken]
			for _, v := range c.prepare(b, affects).Versions {
				if v.Hash == "//shared{slow}" || passed[v.Hash] {
					continue // the one takes for ever, the others are not run again
				}
				passed[v.Hash] = true
				c.say(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
			}
		}
	}
	build()
	if len(c.decided) != 1 || c.decided[0] != "land quick" {
		t.Fatalf("decided: %v, after %v", c.decided, passed)
	}
	before := len(passed)
	quick := &eventsv1.ChangeRef{Change: "quick", Revision: 1}
	c.say(&eventsv1.LandIntended{Change: quick, Base: "m0", Commits: []string{"m1"}})
	c.say(&eventsv1.ChangeLanded{Change: quick, Base: "m0", Commits: []string{"m1"}})
	build()
	if len(c.decided) != 2 || c.decided[1] != "land slow" {
		t.Errorf("decided: %v, after %v", c.decided, passed)
	}
	if len(passed) != before {
		t.Errorf("versions were built after the landing: %v, %d before", passed, before)
	}
}
