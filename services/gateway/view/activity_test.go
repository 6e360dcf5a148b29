package view_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

// us is a second of the tests in microseconds since 1970.
func us(second int) int64 { return time.Date(2026, 1, 5, 10, 0, second, 0, time.UTC).UnixMicro() }

func second(s int) time.Time { return time.UnixMicro(us(s)).UTC() }

// busy has a change whose build wants //a, //b and //c: worker m/1 has run //a, was ended at //b for another change, and runs //c.
func busy() *view.Queue {
	q := view.New(main, view.DefaultLimits())
	put(q, events.TopicSpeculations, &eventsv1.Profile{Delta: &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Pool: "default", PoolWorkers: 4, Quotas: &eventsv1.Quotas{Queue: 3, Author: 1}}}})
	a := admissionOf("k")
	a.Title = "Round up"
	put(q, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: a})
	d := scheduled("b", "k")
	d.StampUs = us(1)
	put(q, events.TopicDecisions, d)
	put(q, events.TopicBuilds, &eventsv1.BuildPrepared{Build: "b", Change: refOf("k"), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, FinishedUs: us(3), Versions: []*eventsv1.TargetVersion{
		{Target: "//a", Hash: "h"}, {Target: "//b", Hash: "h"}, {Target: "//c", Hash: "h"}, {Target: "//d", Trivial: true}}})
	lease := func(target string, at int) {
		for range 2 { // it is extended
			put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: target, Hash: "h", Attempt: 1, Lease: target, Worker: "m/1", Build: "b", StampUs: us(at), UntilUs: us(at + 30)})
			at += 3
		}
	}
	lease("//a", 4)
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//a", Hash: "h", Attempt: 1, Worker: "m/1", Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: us(5), FinishedUs: us(10), Log: "x"})
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//b", Hash: "h", Attempt: 1, Worker: "m/1", Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, StartedUs: us(11), FinishedUs: us(12),
		Reason: "The step was ended, and is run again: a change that was moved to the front needs its worker."})
	lease("//c", 20)
	return q
}

func TestAnActivityHasWhoRanWhatFromTheLeaseOn(t *testing.T) {
	a := busy().Activity(second(0), second(40))
	want := []view.WorkerRun{
		{Worker: "m/1", Target: "//a", Hash: "h", Build: "b", Attempt: 1, State: view.StepPassed, HasLog: true, Change: "k", Title: "Round up", From: second(4), To: second(10)},
		{Worker: "m/1", Target: "//b", Hash: "h", Build: "b", Attempt: 1, State: view.StepAborted, Preempted: true, Reason: "The step was ended, and is run again: a change that was moved to the front needs its worker.", Change: "k", Title: "Round up", From: second(11), To: second(12)},
		{Worker: "m/1", Target: "//c", Hash: "h", Build: "b", Attempt: 1, State: view.StepRunning, Change: "k", Title: "Round up", From: second(20)},
	}
	if fmt.Sprintf("%+v", a.Runs) != fmt.Sprintf("%+v", want) {
		t.Errorf("runs %+v\nwant %+v", a.Runs, want)
	}
	if a.Pool != "default" || a.Workers != 4 || a.Limit != 3 || !a.OtherLimits || !a.Since.IsZero() || a.Paused || a.Seen["m/1"] != (view.Span{From: second(4), To: second(20)}) {
		t.Errorf("the activity is %+v", a)
	}
	if len(a.Asks) != 1 || !a.Asks[0].Scheduled.Equal(second(1)) || !a.Asks[0].From.Equal(second(3)) || !a.Asks[0].Until.IsZero() || len(a.Attempts) != 3 || len(a.Attempts[view.Version{Target: "//a", Hash: "h"}]) != 1 {
		t.Errorf("asks %+v, attempts %+v", a.Asks, a.Attempts)
	}
	if a := busy().Activity(second(13), second(19)); len(a.Runs) != 0 || a.Seen["m/1"].From != second(4) {
		t.Errorf("in between there are the runs %+v", a.Runs)
	}
	if a := busy().Activity(second(30), second(100)); len(a.Runs) != 1 || a.Runs[0].State != view.StepLost || !a.Runs[0].To.Equal(second(53)) {
		t.Errorf("once the lease has lapsed there are the runs %+v", a.Runs)
	}
	c := view.Version{Target: "//c", Hash: "h"}
	for to, want := range map[int]view.Span{40: {From: second(20)}, 100: {From: second(20), To: second(53)}} {
		if spans := busy().Activity(second(30), second(to)).Attempts[c]; len(spans) != 1 || spans[0] != want {
			t.Errorf("at %d //c ran for %+v, want %+v", to, spans, want)
		}
	}
}

// TestALostRunIsToldOnceAnotherWorkerHasItsStep, until its worker says after all how it ended; through a snapshot too. A lease that is
// extended is no other one.
func TestALostRunIsToldOnceAnotherWorkerHasItsStep(t *testing.T) {
	q := busy()
	lease := func(worker string, from, until int) {
		put(q, events.TopicBuilds, &eventsv1.StepLeased{Target: "//c", Hash: "h", Attempt: 1, Lease: "by " + worker, Worker: worker, Build: "b", StampUs: us(from), UntilUs: us(until)})
	}
	runs := func(q *view.Queue) (out []string) {
		for _, r := range q.Activity(second(30), second(200)).Runs {
			out = append(out, fmt.Sprint(r.Worker, " ", r.Target, " ", r.State, " ", r.From.Sub(second(0)), " ", r.To.Sub(second(0))))
		}
		slices.Sort(out)
		return out
	}
	before := runs(q)
	lease("m/8", 60, 100)
	lease("m/8", 80, 120)
	lease("m/9", 130, 500)
	restored, err := view.Restore(q.Snapshot(), main, view.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]*view.Queue{"folded": q, "restored": restored} {
		got := runs(q)
		if len(before) != 1 || len(got) != 3 || !slices.Contains(got, before[0]) || !slices.Contains(got, "m/8 //c lost 1m0s 2m0s") || !strings.HasPrefix(got[2], "m/9 //c running 2m10s") {
			t.Errorf("%s: %q, before %q", name, got, before)
		}
		want := []view.Span{{From: second(20), To: second(53)}, {From: second(60), To: second(120)}, {From: second(130)}}
		if spans := q.Activity(second(30), second(200)).Attempts[view.Version{Target: "//c", Hash: "h"}]; !slices.Equal(spans, want) {
			t.Errorf("%s: //c ran for %+v", name, spans)
		}
	}
	put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//c", Hash: "h", Attempt: 1, Worker: "m/8", Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: us(61), FinishedUs: us(140)})
	if got := runs(q); len(got) != 2 || !slices.ContainsFunc(got, func(r string) bool { return strings.HasPrefix(r, "m/8 //c passed ") }) {
		t.Errorf("once it has ended: %q", got)
	}
}

func TestABuildAsksUntilItIsAbortedOrRedOrItsChangeLeaves(t *testing.T) {
	for name, f := range map[string]func(*view.Queue){
		"aborted": func(q *view.Queue) {
			put(q, events.TopicDecisions, &eventsv1.Decision{StampUs: us(30), Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_BuildAborted{BuildAborted: &eventsv1.BuildAborted{Build: "b"}}}}})
		},
		"red": func(q *view.Queue) {
			put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//c", Hash: "h", Attempt: 1, Worker: "m/1", Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED, StartedUs: us(21), FinishedUs: us(30)})
		},
		"passed": func(q *view.Queue) {
			for i, target := range []string{"//b", "//c"} {
				put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: target, Hash: "h", Attempt: uint32(2 - i), Worker: "m/1", Build: "b", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: us(21), FinishedUs: us(29 + i)})
			}
		},
		"cancelled": func(q *view.Queue) {
			put(q, events.TopicChanges, &eventsv1.ChangeCancelled{Change: "k", StampUs: us(30)})
		},
	} {
		q := busy()
		f(q)
		if a := q.Activity(second(0), second(40)); len(a.Asks) != 1 || !a.Asks[0].Until.Equal(second(30)) {
			t.Errorf("%s: %+v", name, a.Asks)
		}
		if a := q.Activity(second(35), second(40)); len(a.Asks) != 0 {
			t.Errorf("%s: afterwards there is %+v", name, a.Asks)
		}
	}
}

func TestAnActivityIsKnownSinceWhatIsForgotten(t *testing.T) {
	limits := view.DefaultLimits()
	limits.Attempts = 2
	q := view.New(main, limits)
	for i := range 5 {
		put(q, events.TopicBuilds, &eventsv1.StepFinished{Target: "//a", Hash: fmt.Sprint(i), Attempt: 1, Worker: "m/1", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: us(10 * i), FinishedUs: us(10*i + 5)})
	}
	if a := q.Activity(second(0), second(100)); !a.Since.Equal(second(35)) || len(a.Runs) != 2 {
		t.Errorf("since %v: %v", a.Since, a.Runs)
	}
}
