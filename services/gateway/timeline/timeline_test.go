package timeline

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/view"
)

var start = time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)

// s is a second of the tests; 0 is no time.
func s(second int) time.Time {
	if second == 0 {
		return time.Time{}
	}
	return start.Add(time.Duration(second) * time.Second)
}

// asks is a build that was scheduled, prepared and ended at these seconds, of targets with what running them takes: "a", "b gpu" (a
// label), "c !db" (to itself), "d <a" (waits for what a leaves).
func asks(scheduled, prepared, ended int, targets ...string) view.Asking {
	ask := view.Asking{Scheduled: s(scheduled), From: s(prepared), Until: s(ended)}
	if prepared == 0 {
		return ask
	}
	p := &eventsv1.BuildPrepared{}
	for i, text := range targets {
		name, takes, _ := strings.Cut(text, " ")
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: name, Hash: "h"})
		needs := &eventsv1.VersionNeeds{}
		switch {
		case strings.HasPrefix(takes, "!"):
			p.Claims = append(p.Claims, &eventsv1.StepClaims{Version: uint32(i), Exclusive: []string{takes[1:]}})
		case strings.HasPrefix(takes, "<"):
			of := slices.IndexFunc(p.Versions, func(v *eventsv1.TargetVersion) bool { return v.Target == takes[1:] })
			needs = &eventsv1.VersionNeeds{Versions: []uint32{uint32(of)}, Given: true}
		case takes != "":
			p.Claims = append(p.Claims, &eventsv1.StepClaims{Version: uint32(i), Labels: []string{takes}})
		}
		p.Needs = append(p.Needs, needs)
	}
	ask.Prepared = p
	return ask
}

// activity is of the queue shop, with runs "worker target state from to".
func activity(asks []view.Asking, runs ...string) view.Activity {
	a := view.Activity{Queue: "shop", Pool: "default", Seen: map[string]view.Span{}, Attempts: map[view.Version][]view.Span{}, Asks: asks}
	for _, text := range runs {
		var worker, target, state string
		var from, to int
		if _, err := fmt.Sscan(text, &worker, &target, &state, &from, &to); err != nil {
			panic(err)
		}
		a.Runs = append(a.Runs, view.WorkerRun{Worker: worker, Target: target, State: state, From: s(from), To: s(to), Change: "c"})
		v := view.Version{Target: target, Hash: "h"}
		a.Attempts[v] = append(a.Attempts[v], view.Span{From: s(from), To: s(to), Settled: state == "passed", Failed: state == "failed"})
		seen := a.Seen[worker]
		if seen.From.IsZero() {
			seen.From = s(from)
		}
		seen.To = view.Later(seen.To, view.Later(s(from), s(to)))
		a.Seen[worker] = seen
	}
	return a
}

// idle is when a worker was idle, and why.
func idle(t Timeline, worker string) (list []string) {
	for _, w := range t.Workers {
		for _, i := range w.Idle {
			if w.Worker == worker {
				text := fmt.Sprintf("%v-%v %s", i.From.Sub(start).Seconds(), i.To.Sub(start).Seconds(), i.Cause)
				if len(i.Needs) > 0 {
					text += " " + strings.Join(i.Needs, ",")
				}
				list = append(list, text)
			}
		}
	}
	return list
}

func TestIdleTimeHasTheCauseThatTheLogTells(t *testing.T) {
	machine := []Machine{{Instance: "m", Workers: 2, Started: s(-100)}}
	for _, c := range []struct {
		name     string
		machines []Machine
		of       view.Activity
		want     []string
	}{
		{"nothing is asked for", machine, activity(nil), []string{"1-60 no_open_step"}},
		{
			"a tree is made, and one step is there for two workers", machine,
			activity([]view.Asking{asks(10, 20, 50, "a")}, "m/2 a passed 20 40"),
			[]string{"1-10 no_open_step", "10-20 preparing", "20-60 no_open_step"},
		},
		{
			"a step is open that any worker can run", machine,
			activity([]view.Asking{asks(10, 10, 50, "a")}, "m/2 a passed 30 40"),
			[]string{"1-10 no_open_step", "10-30 not_known", "30-60 no_open_step"},
		},
		{
			"the tree cannot be made", machine,
			activity([]view.Asking{asks(10, 0, 30)}),
			[]string{"1-10 no_open_step", "10-30 preparing", "30-60 no_open_step"},
		},
		{
			"an open step needs a label", machine,
			activity([]view.Asking{asks(10, 10, 50, "a", "b gpu")}, "m/2 a passed 10 20"),
			[]string{"1-10 no_open_step", "10-50 needs gpu", "50-60 no_open_step"},
		},
		{
			"which the worker has", []Machine{{Instance: "m", Workers: 2, Started: s(-100), Labels: []string{"gpu"}}},
			activity([]view.Asking{asks(10, 10, 50, "a", "b gpu")}, "m/2 a passed 10 20"),
			[]string{"1-10 no_open_step", "10-50 not_known", "50-60 no_open_step"},
		},
		{
			"one of which the worker has", []Machine{{Instance: "m", Workers: 2, Started: s(-100), Labels: []string{"gpu"}}},
			activity([]view.Asking{asks(10, 10, 50, "a", "b gpu"), asks(10, 10, 30, "c arm")}, "m/2 a passed 10 20", "m/2 b passed 20 25"),
			[]string{"1-10 no_open_step", "10-20 not_known", "20-30 needs arm", "30-60 no_open_step"},
		},
		{
			"an open step waits for what another has to itself", machine,
			activity([]view.Asking{asks(10, 10, 50, "a !db", "b !db")}, "m/2 a passed 10 20", "m/2 b passed 20 30"),
			[]string{"1-10 no_open_step", "10-20 exclusive", "20-60 no_open_step"},
		},
		{
			"an open step waits for what another leaves", machine,
			activity([]view.Asking{asks(10, 10, 50, "a", "d <a")}, "m/2 a passed 10 20", "m/2 d passed 20 30"),
			[]string{"1-10 no_open_step", "10-20 dependencies", "20-60 no_open_step"},
		},
		{
			"a step that was aborted is open again until it runs", machine,
			activity([]view.Asking{asks(10, 10, 50, "a")}, "m/2 a aborted 10 20", "m/2 a passed 25 40"),
			[]string{"1-20 no_open_step", "20-25 not_known", "25-60 no_open_step"},
		},
		{
			"a step that failed and is not run again is not open", machine,
			activity([]view.Asking{asks(10, 10, 50, "a")}, "m/2 a failed 10 20"),
			[]string{"1-60 no_open_step"},
		},
		{
			"a version that has passed before is not open", machine,
			activity([]view.Asking{asks(10, 10, 20, "a"), asks(30, 30, 50, "a")}, "m/2 a passed 10 20"),
			[]string{"1-60 no_open_step"},
		},
		{
			"the queue's quota is used up", machine,
			func() view.Activity {
				a := activity([]view.Asking{asks(10, 10, 50, "a", "b")}, "m/2 a passed 10 30", "m/2 b passed 30 40")
				a.Limit = 1
				return a
			}(),
			[]string{"1-10 no_open_step", "10-30 quota", "30-60 no_open_step"},
		},
	} {
		made := Make("default", s(1), s(60), []Activity{{Activity: c.of}}, c.machines)
		if got := idle(made, "m/1"); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAWorkerIsIdleOnlyWhileItIsKnownToBeThere(t *testing.T) {
	of := activity(nil, "gone/1 a passed 10 20", "gone/1 b passed 30 40", "new/1 c running 35 0")
	made := Make("default", s(1), s(60), []Activity{{Activity: of}}, []Machine{{Instance: "new", Workers: 1, Started: s(30)}})
	if got, want := idle(made, "gone/1"), []string{"20-30 no_open_step"}; !reflect.DeepEqual(got, want) {
		t.Errorf("a worker whose builder is gone: %q, want %q", got, want)
	}
	if got, want := idle(made, "new/1"), []string{"30-35 no_open_step"}; !reflect.DeepEqual(got, want) {
		t.Errorf("a worker whose builder began later: %q, want %q", got, want)
	}
	// It ran before and runs after what is shown.
	of.Seen["gone/1"] = view.Span{From: s(-100), To: s(200)}
	made = Make("default", s(1), s(60), []Activity{{Activity: of}}, nil)
	if got, want := idle(made, "gone/1"), []string{"1-10 no_open_step", "20-30 no_open_step", "40-60 no_open_step"}; !reflect.DeepEqual(got, want) {
		t.Errorf("a worker that was there before and after: %q, want %q", got, want)
	}
}

func TestSumsAreOfTheTimeAndOverlapsCountOnce(t *testing.T) {
	of := activity(nil, "m/1 a passed 10 20", "m/1 b passed 12 20", "m/1 c aborted 20 25", "m/2 d running 50 0")
	made := Make("default", s(15), s(60), []Activity{{Activity: of}}, nil)
	if made.Workers[0].LostMS != 5000 || made.Workers[1].LostMS != 0 {
		t.Errorf("by worker %d and %d are lost", made.Workers[0].LostMS, made.Workers[1].LostMS)
	}
	if made.BusyMS != 20_000 || made.LostMS != 5000 || made.Workers[0].BusyMS != 10_000 || len(made.Idle) != 0 || !made.Since.IsZero() {
		t.Errorf("busy %d, lost %d, of the first %d, idle %v, since %v", made.BusyMS, made.LostMS, made.Workers[0].BusyMS, made.Idle, made.Since)
	}
}

func TestOfAQueueThatIsNotReadOnlyTheTimesAreTold(t *testing.T) {
	of := activity([]view.Asking{asks(5, 5, 50, "secret", "b secret-label")}, "m/1 secret failed 10 20")
	of.Runs[0].Reason, of.Runs[0].Title = "secret", "secret"
	made := Make("default", s(1), s(60), []Activity{{of, true}}, []Machine{{Instance: "m", Workers: 2, Started: s(-100)}})
	if text := fmt.Sprintf("%+v", made); strings.Contains(text, "secret") || strings.Contains(text, "shop") {
		t.Errorf("it tells %s", text)
	}
	if got := made.Workers[0].Steps; len(got) != 1 || got[0] != (StepRun{State: StateOther, From: s(10), To: s(20)}) {
		t.Errorf("the step is %+v", got)
	}
}

func TestNeedsOfAQueueThatIsNotReadAreComparedAndNotTold(t *testing.T) {
	of := activity([]view.Asking{asks(10, 10, 50, "b gpu")})
	for labels, want := range map[string]string{"arm": "10-50 needs", "gpu": "10-50 not_known"} {
		made := Make("default", s(1), s(60), []Activity{{of, true}}, []Machine{{Instance: "m", Workers: 1, Started: s(-100), Labels: []string{labels}}})
		if got := idle(made, "m/1"); len(got) != 3 || got[1] != want {
			t.Errorf("a worker with %s: %q, want %q", labels, got, want)
		}
	}
}

// TestStepsThatExcludeEachOtherAreToldInAsManyMoments, however many wait: 300 for the same, while 300 others have it one after the other.
func TestStepsThatExcludeEachOtherAreToldInAsManyMoments(t *testing.T) {
	var targets, runs []string
	for i := range 300 {
		targets = append(targets, fmt.Sprintf("w%d !db", i), fmt.Sprintf("r%d !db", i))
		runs = append(runs, fmt.Sprintf("m/2 r%d passed %d %d", i, 10+2*i, 11+2*i))
	}
	of := Activity{Activity: activity([]view.Asking{asks(5, 5, 5000, targets...)}, runs...)}
	if n := len(eventsOf(of)); n > 10*len(runs) {
		t.Errorf("%d runs make %d events", len(runs), n)
	}
	made := merge([]Activity{of}, s(1), s(700))
	for i, m := range made[1:] {
		if want := []Cause{NotKnown, Exclusive}[i%2]; m.cause != want {
			t.Fatalf("at %v it is %s, want %s", m.at.Sub(start), m.cause, want)
		}
	}
	if len(made) != 2+2*len(runs) {
		t.Errorf("there are %d moments", len(made))
	}
}

func TestOfTooManyWorkersThoseAreToldThatLiveOrRanLast(t *testing.T) {
	var runs []string
	for i := range MaxWorkers + 50 {
		runs = append(runs, fmt.Sprintf("a%04d/1 a%d passed %d %d", i, i, 10+i, 11+i))
	}
	made := Make("default", s(1), s(2000), []Activity{{Activity: activity(nil, runs...)}}, []Machine{{Instance: "z", Workers: 1, Started: s(5)}})
	if len(made.Workers) != MaxWorkers || made.Workers[0].Worker != "a0051/1" || made.Workers[MaxWorkers-1].Worker != "z/1" {
		t.Fatalf("%d workers, from %s to %s", len(made.Workers), made.Workers[0].Worker, made.Workers[len(made.Workers)-1].Worker)
	}
	if want := s(11 + 50); !made.Since.Equal(want) {
		t.Errorf("it begins at %v, want %v", made.Since, want)
	}
}

func TestATimelineWithTooMuchBeginsLater(t *testing.T) {
	var runs []string
	for i := range MaxSteps + 500 {
		runs = append(runs, fmt.Sprintf("m/1 a%d passed %d %d", i, 10+2*i, 11+2*i))
	}
	of := activity(nil, runs...)
	to := s(20 + 2*(MaxSteps+500))
	made := Make("default", s(1), to, []Activity{{Activity: of}}, nil)
	if n := len(made.Workers[0].Steps); n != MaxSteps || !made.Since.Equal(s(11+2*500)) {
		t.Errorf("%d steps since %v", n, made.Since)
	}
	// Of many workers that are idle between each two steps.
	runs = nil
	for w := range 30 {
		for i := range 166 {
			runs = append(runs, fmt.Sprintf("m/%d a%d.%d passed %d %d", w, w, i, 10+2*i, 11+2*i))
		}
	}
	var open []view.Asking
	for i := range 1000 {
		open = append(open, asks(5+i, 0, 5+i+i%2))
	}
	made = Make("default", s(1), s(2000), []Activity{{Activity: activity(open, runs...)}}, []Machine{{Instance: "m", Workers: 30, Started: s(-1)}})
	n := 0
	for _, w := range made.Workers {
		n += len(w.Idle)
		for _, x := range w.Idle {
			if x.From.Before(made.Since) {
				t.Fatalf("%v is idle since %v, before %v", w.Worker, x.From, made.Since)
			}
		}
	}
	if n > MaxIdle || made.Since.IsZero() {
		t.Errorf("%d idle times since %v", n, made.Since)
	}
	// What the gateway has forgotten.
	of = activity(nil, "m/1 a passed 10 20", "m/1 b passed 30 40")
	of.Since = s(25)
	if made := Make("default", s(1), s(60), []Activity{{Activity: of}}, nil); !made.Since.Equal(s(25)) || len(made.Workers[0].Steps) != 1 {
		t.Errorf("it begins at %v with %v", made.Since, made.Workers[0].Steps)
	}
}
