package speculation

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/engine/affected"
	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

func (q *testQueue) setSettings(hash string, hubs ...string) {
	q.offset++
	q.Apply(&eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: &eventsv1.QueueSettings{
		Hash: hash, Steps: &eventsv1.StepPolicy{}, Hubs: hubs}}}, q.offset)
	q.Fold(q.Decide())
}

func (q *testQueue) land(c *eventsv1.ChangeRef, head string) {
	q.say(&eventsv1.LandIntended{Change: c, Commits: []string{head}})
	q.say(&eventsv1.ChangeLanded{Change: c, Commits: []string{head}})
}

func (q *testQueue) pass(target, hash string) {
	q.say(&eventsv1.StepFinished{Target: target, Hash: hash, Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
}

// outcomes are what the graph says of a change's only class.
func (q *testQueue) outcomes(id string) []*eventsv1.Outcome {
	return q.published.nodes[id].Classes[0].Outcomes
}

// TestChangesThatMeetInAHubAloneDoNotWait, and each is proven there on the mainline that it lands on.
func TestChangesThatMeetInAHubAloneDoNotWait(t *testing.T) {
	q := newTestQueue(t)
	q.setSettings("with hubs", "//e2e:*")
	c1 := q.enter("c1", "m0", "//e2e:all", "m0+c1")
	c2 := q.enter("c2", "m0", "//e2e:all", "m0+c2")
	if ahead := q.published.nodes["c2"].Ahead; len(ahead) != 0 {
		t.Fatalf("c2 waits for %v", ahead)
	}
	q.pass("//e2e:all", "m0+c2")
	if o := q.outcomes("c2"); len(o) != 1 || o[0].State != eventsv1.OutcomeState_OUTCOME_STATE_GREEN {
		t.Fatalf("c2 is green on m0, and told %v", o)
	}
	before := q.published.nodes["c2"].Epoch
	q.land(c1, "m1")
	if o := q.outcomes("c2"); len(o) != 0 {
		t.Fatalf("c1 landed in the hub, and of c2 the graph still says %v", o)
	}
	if q.published.nodes["c2"].Epoch == before {
		t.Error("builds of c2 that were made without c1 are not told that the mainline moved under them")
	}
	q.prepare(c2, "m1", "//e2e:all", "m1+c2", false)
	q.pass("//e2e:all", "m1+c2")
	if o := q.outcomes("c2"); len(o) != 1 || o[0].State != eventsv1.OutcomeState_OUTCOME_STATE_GREEN {
		t.Fatalf("c2 is green on m1, and told %v", o)
	}
}

// TestHubsTakeEffectInTheOrderOfTheLog: who conflicts with whom changes with the record that says so.
func TestHubsTakeEffectInTheOrderOfTheLog(t *testing.T) {
	q := newTestQueue(t)
	q.enter("c1", "m0", "//e2e:all", "m0+c1")
	q.enter("c2", "m0", "//e2e:all", "m0+c2")
	for i, step := range []struct {
		hubs  []string
		ahead int
	}{{nil, 1}, {[]string{"//e2e:all"}, 0}, {[]string{"//e2e:none"}, 1}, {[]string{"*"}, 0}, {nil, 1}} {
		q.setSettings(fmt.Sprint("settings ", i), step.hubs...)
		if ahead := q.published.nodes["c2"].Ahead; len(ahead) != step.ahead {
			t.Errorf("with the hubs %q c2 has %v ahead, want %d", step.hubs, ahead, step.ahead)
		}
	}
}

// TestWhoIsOvertakenInAHubTooOftenIsOvertakenNoMore: a stream of quick changes behind it would void its proof
// again and again.
func TestWhoIsOvertakenInAHubTooOftenIsOvertakenNoMore(t *testing.T) {
	q := newTestQueue(t)
	q.setSettings("with hubs", "//hub")
	q.enter("ahead", "m0", "//hub", "m0+ahead")
	slow := q.enter("slow", "m0", "//hub", "m0+slow")
	head := "m0"
	for i := range maxOvertaken {
		id := fmt.Sprint("quick", i)
		c := q.enter(id, head, "//hub", head+"+"+id)
		if ahead := q.published.nodes[id].Ahead; len(ahead) != 0 {
			t.Fatalf("%s waits for %v after %d changes overtook", id, ahead, i)
		}
		head = fmt.Sprint("m", i+1)
		q.land(c, head)
	}
	q.enter("late", head, "//hub", head+"+late")
	if ahead := q.published.nodes["late"].Ahead; len(ahead) != 2 || ahead[1].Change.Change != "slow" || !slices.Equal(ahead[1].Targets, []string{"//hub"}) {
		t.Errorf("late has %v ahead, want those that were overtaken %d times", ahead, maxOvertaken)
	}
	if ahead := q.published.nodes["slow"].Ahead; len(ahead) != 1 {
		t.Errorf("slow has %v ahead", ahead)
	}
	// A new revision starts anew.
	q.say(&eventsv1.ChangeRevised{Admission: &eventsv1.Admission{Change: slow.Change, Revision: 2, LandingCommits: []*eventsv1.LandingCommit{{Head: "r2"}}}})
	if q.conflicts.insisting[slow.Change] {
		t.Error("a revision inherits what its predecessor waited for")
	}
}

// TestTheConflictGraphIsM1OfEveryPair: what the indexes find is what the one conflict test says of each two pending
// changes, whatever happened before.
func TestTheConflictGraphIsM1OfEveryPair(t *testing.T) {
	r := seedtest.Random(t)
	pairs, conflicts, inHubs := 0, 0, 0
	for range 150 {
		q := newTestQueue(t)
		some := func(prefix string, n, atMost int) (list []string) {
			for range r.IntN(atMost + 1) {
				list = append(list, fmt.Sprint(prefix, r.IntN(n)))
			}
			return list
		}
		sets := map[string]*eventsv1.Affected{}
		known := map[string]bool{}
		var hubs []string
		for step := range 60 {
			id := fmt.Sprint("c", r.IntN(12))
			c := q.Lineup.Pending(id)
			switch {
			case r.IntN(12) == 0:
				hubs = some("//t", 8, 3)
				q.setSettings(fmt.Sprint("s", step), hubs...)
			case c == nil:
				q.say(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
					Change: id, Revision: q.Lineup.Known(id) + 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}})
			case q.analyses.pending[id] == nil || r.IntN(4) == 0:
				set := &eventsv1.Affected{
					All: r.IntN(15) == 0, Deleted: some("//t", 8, 1), AddedEdges: append(some("//t", 8, 1), some("file:f", 6, 1)...),
					Leaves: some("file:f", 6, 2),
				}
				for _, name := range some("//t", 8, 2) {
					set.Targets = append(set.Targets, &eventsv1.TargetVersion{Target: name, Hash: "h", Part: 1})
				}
				f := &eventsv1.ChangeAnalyzed{Change: c.Ref(), Base: q.Lineup.Head, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: set}
				if r.IntN(10) == 0 {
					f.Outcome, f.Affected, set = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID, nil, nil
				}
				fresh := q.analyses.pending[id] == nil || q.analyses.pending[id].base != f.Base
				q.say(f)
				if fresh {
					sets[id], known[id] = set, f.Affected != nil
				}
			case r.IntN(3) == 0:
				q.land(c.Ref(), fmt.Sprint("m", q.offset))
			case r.IntN(3) == 0:
				q.say(&eventsv1.ChangeCancelled{Change: id})
			}
			order := q.Lineup.Order()
			for i, a := range order {
				for _, b := range order[:i] {
					if q.analyses.pending[a.ID()] == nil || q.analyses.pending[b.ID()] == nil {
						continue
					}
					pairs++
					var between *targets.Hubs
					if q.changes[a.ID()].overtaken < maxOvertaken && q.changes[b.ID()].overtaken < maxOvertaken {
						between = targets.NewHubs(hubs)
					}
					why := affected.Footprint(sets[a.ID()]).Meets(affected.Footprint(sets[b.ID()]), between)
					if why.Conflict() {
						conflicts++
					} else if len(why.Hubs) > 0 {
						inHubs++
					}
					if edge := q.conflicts.edges[a.ID()][b.ID()] != nil; edge != why.Conflict() {
						t.Fatalf("step %d: %s and %s: an edge %v, M1 %+v\n%v\n%v", step, a.ID(), b.ID(), edge, why, sets[a.ID()], sets[b.ID()])
					}
				}
			}
		}
	}
	t.Logf("%d pairs, of which %d conflict and %d meet in hubs alone", pairs, conflicts, inHubs)
	if conflicts < pairs/10 || inHubs == 0 {
		t.Error("the random changes are too much alike for the test to mean anything")
	}
}
