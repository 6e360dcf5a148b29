package steps

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
)

// prepareGroup is a tree with one group; of is what some of its targets depend on.
func prepareGroup(q *Queue, build string, ordered bool, of map[string]string, targets ...string) {
	p := &eventsv1.BuildPrepared{Build: build, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	g := &eventsv1.StepGroup{Ordered: ordered}
	for i, t := range targets {
		n := &eventsv1.VersionNeeds{}
		if on := slices.Index(targets, of[t]); on >= 0 {
			n.Versions = append(n.Versions, uint32(on))
		}
		p.Versions, p.Needs, g.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: t, Hash: "h"}), append(p.Needs, n), append(g.Versions, uint32(i))
	}
	p.Groups = append(p.Groups, g)
	q.Apply(p, Origin{})
}

// group returns the first step that is next, and its companions.
func group(q *Queue, now int64, taken ...string) string {
	list := q.Next(now, 1, nil, nil)
	if len(list) == 0 {
		return ""
	}
	names := []string{list[0].Target}
	var versions []Version
	for _, t := range taken {
		versions = append(versions, Version{Target: t, Hash: "h"})
	}
	for _, c := range q.Companions(list[0], now, versions) {
		names = append(names, fmt.Sprintf("%s#%d", c.Target, c.Attempt))
	}
	return strings.Join(names, " ")
}

// learn has every target take so long.
func learn(q *Queue, us int64, targets ...string) {
	for _, t := range targets {
		q.Apply(&eventsv1.StepFinished{Target: t, Hash: "old", Attempt: 1, Outcome: passed, FinishedUs: us}, Origin{})
	}
}

func TestM27aTinyStepsGoTogetherThoughOtherWorkersAreFree(t *testing.T) {
	q := New()
	q.Workers = 64
	learn(q, 100_000, "a", "b", "c", "d")
	decide(q, scheduled("b1", 1))
	prepareGroup(q, "b1", false, nil, "a", "b", "c", "d")
	expect(t, "group", group(q, 1), "a b#1 c#1 d#1")
	expect(t, "group without what is taken", group(q, 1, "c"), "a b#1 d#1")
}

func TestM27aLongStepsAreSharedAmongTheWorkersOfThePool(t *testing.T) {
	for workers, want := range map[int]string{1: "a b#1 c#1 d#1", 2: "a b#1", 4: "a"} {
		q := New()
		q.Workers = workers
		learn(q, 12_000_000, "a", "b", "c", "d")
		decide(q, scheduled("b1", 1))
		prepareGroup(q, "b1", false, nil, "a", "b", "c", "d")
		expect(t, fmt.Sprint(workers, " workers"), group(q, 1), want)
	}
}

func TestM27aAGroupHasAtMostSoManyStepsAndSoMuchWork(t *testing.T) {
	var names []string
	for i := range 400 {
		names = append(names, fmt.Sprintf("t%03d", i))
	}
	for us, want := range map[int64]int{1000: mostGroup, 1_000_000: 60} {
		q := New()
		learn(q, us, names...)
		decide(q, scheduled("b1", 1))
		prepareGroup(q, "b1", false, nil, names...)
		if n := len(strings.Fields(group(q, 1))); n != want {
			t.Errorf("%d steps of %d µs", n, us)
		}
	}
}

func TestM27aADependentIsInAGroupOnlyIfTheToolOrdersThem(t *testing.T) {
	for ordered, want := range map[bool]string{true: "a b#1 c#1", false: "a c#1"} {
		q := New()
		learn(q, 1000, "a", "b", "c")
		decide(q, scheduled("b1", 1))
		prepareGroup(q, "b1", ordered, map[string]string{"b": "a"}, "a", "b", "c")
		expect(t, fmt.Sprint("ordered ", ordered), group(q, 1), want)
	}
}

func TestM27aOneLeaseHoldsForEachVersionByItself(t *testing.T) {
	q := New()
	decide(q, scheduled("b1", 1))
	prepareGroup(q, "b1", false, nil, "a", "b", "c")
	lease(q, "b", "other", 1, 100)
	together := func(id string, stamp, until int64) {
		q.Apply(&eventsv1.StepLeased{Target: "a", Hash: "h", Attempt: 1, Lease: id, StampUs: stamp, UntilUs: until, Group: []*eventsv1.LeasedVersion{
			{Target: "b", Hash: "h", Attempt: 1}, {Target: "c", Hash: "h", Attempt: 1}}}, Origin{})
	}
	holders := func() string {
		var list []string
		for _, l := range q.Leases() {
			list = append(list, fmt.Sprintf("%s:%s until %d", l.Target, l.ID, l.UntilUs))
		}
		return strings.Join(list, " ")
	}
	together("mine", 2, 50)
	expect(t, "held", holders(), "a:mine until 50 b:other until 100 c:mine until 50")
	finish(q, "a", 1, passed, 10)
	together("mine", 40, 90)
	expect(t, "extended, with a result of one", holders(), "b:other until 100 c:mine until 90")
	expect(t, "while it runs", next(q, 90), "")
	expect(t, "once the worker is lost, what has no result is open", next(q, 101), "b#1 c#1")
	together("late", 101, 200)
	expect(t, "taken over", holders(), "b:late until 200 c:late until 200")
}

func TestM27aWhatBreaksItsGroupTwiceRunsAloneAndHasNoAttemptAgainstIt(t *testing.T) {
	q := New()
	q.Workers = 1
	decide(q, scheduled("b1", 1))
	prepareGroup(q, "b1", false, nil, "a", "b", "c")
	unreported := func(target string, attempt uint32) {
		q.Apply(&eventsv1.StepFinished{Target: target, Hash: "h", Attempt: attempt, Outcome: wasEnded, Unreported: true}, Origin{})
	}
	unreported("b", 1)
	expect(t, "once", group(q, 1), "a b#2 c#1")
	unreported("b", 2)
	expect(t, "twice", group(q, 1), "a c#1")
	finish(q, "a", 1, passed, 10)
	finish(q, "c", 1, passed, 10)
	expect(t, "alone", group(q, 1), "b")
	unreported("b", 3)
	unreported("b", 4)
	expect(t, "it is open however often", next(q, 1), "b#5")
	if !q.Live("b1") {
		t.Error("the build is over, though nothing spoke against it")
	}
}

func TestM35AGroupIsEndedAsAWhole(t *testing.T) {
	q := New()
	decide(q, scheduled("large", 1), scheduled("small", 1))
	prepareGroup(q, "large", false, nil, "a", "b", "c")
	prepare(q, "small", "s")
	all := []Version{{Target: "a", Hash: "h"}, {Target: "b", Hash: "h"}, {Target: "c", Hash: "h"}}
	now := int64(10 * priorUs)
	for share, want := range map[float64]int{0.5: 1, 0.9: 0, 2: 1} {
		running := []Running{{Versions: all, SinceUs: now - int64(share*3*priorUs)}}
		if got := q.Preemptible(now, running); len(got) != want {
			t.Errorf("after %v of its time: %v", share, got)
		}
	}
}
