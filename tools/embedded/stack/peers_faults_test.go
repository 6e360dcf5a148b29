package stack_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/embedded/stack"
)

// TestARetriggerIsNeverSilentlyDeduplicated: the same commits again, twice; each time the change is built anew,
// although nothing of it has changed and everything about it has been said before.
func TestARetriggerIsNeverSilentlyDeduplicated(t *testing.T) {
	together(t)
	r, mended := newRepository(t), newGate(t)
	r.step("f0", "[ ! -e f0/b.txt ] || "+mended.isOpen())
	r.branch("change", "f0/b.txt", "b\n")
	_, c := newPeerStack(t, r)
	land(t, c, "change", "change")
	expect(t, c, "change", "rejected")
	for revision := uint64(2); revision <= 3; revision++ {
		if revision == 3 {
			mended.open(t)
		}
		if got := retried(t, c, "change"); got != revision {
			t.Fatalf("the retry is revision %d, not %d", got, revision)
		}
		want := map[uint64]string{2: "rejected", 3: "landed"}[revision]
		if v := expect(t, c, "change", want); v.Revision != revision {
			t.Errorf("what was %s is revision %d, not %d", want, v.Revision, revision)
		}
	}
}

// TestOneChangeThatCannotBeScoredStopsNobody: numbers that no score can be made of, and records that nobody can
// read on every topic that is scored from.
func TestOneChangeThatCannotBeScoredStopsNobody(t *testing.T) {
	together(t)
	r := newRepository(t)
	s, c := newPeerStack(t, r)
	for i, benefit := range []string{"1e308", "-1e308", "1e-320", `"NaN"`, `"Infinity"`, `"-Infinity"`} {
		name := fmt.Sprint("odd-", i)
		r.branch(name, fmt.Sprintf("f0/odd%d.txt", i), "x\n")
		request(t, s, fmt.Sprintf(`{"queue":%q,"change":%q,"entries":[{"ref":%q}],"benefit":%s}`, queue, name, name, benefit))
	}
	for _, topic := range events.Topics() {
		nonsense(t, s, topic.Name)
	}
	for i := range 3 {
		name := fmt.Sprint("plain-", i)
		r.branch(name, fmt.Sprintf("f0/plain%d.txt", i), "x\n")
		land(t, c, name, name)
	}
	for i := range 3 {
		expect(t, c, fmt.Sprint("plain-", i), "landed")
	}
	list, err := c.Changes(t.Context(), queue, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range list.Changes {
		expect(t, c, other.Change, "landed")
	}
}

// TestADeadLetterIsNoErrorOfAChangeThatLanded: nor does it undo anything.
func TestADeadLetterIsNoErrorOfAChangeThatLanded(t *testing.T) {
	together(t)
	r := newRepository(t)
	config := configured(t, r, t.TempDir())
	s, c := start(t, config)
	r.branch("change", "f0/b.txt", "b\n")
	land(t, c, "change", "change")
	before := expect(t, c, "change", "landed")
	bury(t, s, "change")
	// A gateway that starts has read every dead letter before it answers.
	s.Close()
	s, c = start(t, config)
	t.Cleanup(func() { s.Close() })
	if after := expect(t, c, "change", "landed"); after.Why != before.Why || after.Rejection != nil {
		t.Errorf("before %q, after %q, %+v", before.Why, after.Why, after.Rejection)
	}
}

// TestNoStateStrandsAChange: one waits for another, one is being tested, one has passed in a queue that is
// paused, one is being pushed; everything ends and starts again.
func TestNoStateStrandsAChange(t *testing.T) {
	together(t)
	r, tests, pushes := newRepository(t), newGate(t), newGate(t)
	r.step("f0", tests.await())
	r.hook("pre-receive", "#!/bin/sh\ngrep -q refs/heads/main && "+pushes.await()+"; exit 0\n")
	config := configured(t, r, t.TempDir())
	for name, path := range map[string]string{"testing": "f0/b.txt", "landing": "f1/b.txt", "passed": "f2/b.txt"} {
		r.branch(name, path, "b\n")
	}
	r.git("checkout", "-q", "-b", "waiting", "testing")
	r.write("f3/b.txt", "b\n")
	r.commit("waiting")
	r.git("push", "-q", "origin", "waiting")
	s, c := start(t, config)
	land(t, c, "landing", "landing")
	until(t, c, "landing", func(v view.Change) bool { return strings.Contains(v.Why, "being pushed") })
	steer(t, s, "", "pause")
	land(t, c, "testing", "testing")
	if _, err := c.Land(t.Context(), queue, api.LandBody{Change: "waiting", Entries: []api.LandEntry{{Ref: "waiting"}}, Requires: []string{"testing"}}); err != nil {
		t.Fatal(err)
	}
	land(t, c, "passed", "passed")
	states := map[string]string{"testing": view.StateTesting, "passed": view.StatePassed}
	for name, state := range states {
		until(t, c, name, func(v view.Change) bool { return v.State == state })
	}
	s.Close()
	s, c = start(t, config)
	t.Cleanup(func() { s.Close() })
	for name, state := range states {
		until(t, c, name, func(v view.Change) bool { return v.State == state })
	}
	pushes.open(t)
	tests.open(t)
	steer(t, s, "", "resume")
	for _, name := range []string{"landing", "testing", "passed", "waiting"} {
		expect(t, c, name, "landed")
	}
	if got := r.mainline(); len(got) != 1+1+4 {
		t.Errorf("the mainline is %v", got)
	}
}

// TestNothingLandsOnAnAssumptionThatHasNotComeTrue: the second change is green with the first, and only so. The
// first has not landed yet, and never will.
func TestNothingLandsOnAnAssumptionThatHasNotComeTrue(t *testing.T) {
	together(t)
	r, verdict := newRepository(t), newGate(t)
	r.step("f0", "[ ! -e f0/second.txt ] || [ -e f0/first.txt ]")
	r.step("f1", "[ ! -e f1/first.txt ] || { "+verdict.await()+"; false; }")
	s, c := newPeerStack(t, r)
	r.git("checkout", "-q", "-B", "first", "main")
	r.write("f0/first.txt", "x\n")
	r.write("f1/first.txt", "x\n")
	r.commit("first")
	r.git("push", "-q", "origin", "first")
	r.git("checkout", "-q", "main")
	r.branch("second", "f0/second.txt", "x\n")
	land(t, c, "first", "first")
	land(t, c, "second", "second")
	await(t, "the second is green with the first", func() bool {
		onFirst := map[string]bool{}
		for _, d := range records[*eventsv1.Decision](t, s, events.TopicDecisions) {
			for _, item := range d.GetItems() {
				if b := item.GetBuildScheduled(); b.GetChange().GetChange().GetChange() == "second" && len(b.GetAssumed()) == 1 {
					onFirst[b.GetBuild()] = true
				}
			}
		}
		return slices.ContainsFunc(records[*eventsv1.StepFinished](t, s, events.TopicBuilds), func(f *eventsv1.StepFinished) bool {
			return onFirst[f.GetBuild()] && f.GetTarget() == "//f0" && f.GetOutcome() == eventsv1.StepOutcome_STEP_OUTCOME_PASSED
		})
	})
	verdict.open(t)
	expect(t, c, "first", "rejected")
	expect(t, c, "second", "rejected")
	if got := r.mainline(); slices.Contains(got, "second") {
		t.Errorf("the mainline is %v", got)
	}
}

// TestARequestLeftBehindAtItsCreationWedgesNobody: the gateway dies before it has answered; one of the requests
// can never become a change.
func TestARequestLeftBehindAtItsCreationWedgesNobody(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.branch("change", "f0/b.txt", "b\n")
	config := configured(t, r, t.TempDir())
	headless, err := stack.Start(context.Background(), stack.Options{Configuration: config, Logger: warnings(t), Version: "test", Services: []string{events.ServiceLander}})
	if err != nil {
		t.Fatal(err)
	}
	request(t, headless, fmt.Sprintf(`{"queue":%q,"change":"orphan","entries":[{"commit":"%040d"}]}`, queue, 7))
	request(t, headless, fmt.Sprintf(`{"queue":%q,"change":"change","entries":[{"ref":"change"}]}`, queue))
	headless.Close()
	s, c := start(t, config)
	t.Cleanup(func() { s.Close() })
	expect(t, c, "change", "landed")
	refused := records[*eventsv1.RequestRefused](t, s, events.TopicChanges)
	if len(refused) != 1 || refused[0].GetChange() != "orphan" || refused[0].GetMessage() == "" {
		t.Errorf("refused: %v", refused)
	}
	r.branch("next", "f0/c.txt", "c\n")
	land(t, c, "next", "next")
	expect(t, c, "next", "landed")
}

// TestWhatIsRedeliveredUnderLoadHasNoSecondEffect: every record of a service that may repeat itself is there
// twice, while changes land.
func TestWhatIsRedeliveredUnderLoadHasNoSecondEffect(t *testing.T) {
	together(t)
	const n = 4
	r := newRepository(t)
	s, c := newPeerStack(t, r)
	redelivered := map[string]bool{}
	for i := range n {
		name := fmt.Sprint("c", i)
		r.branch(name, fmt.Sprintf("f%d/c%d.txt", i%folders, i), "x\n")
	}
	for i := range n {
		name := fmt.Sprint("c", i)
		land(t, c, name, name)
		redeliver(t, s, redelivered)
	}
	for i := range n {
		expect(t, c, fmt.Sprint("c", i), "landed")
		redeliver(t, s, redelivered)
	}
	r.branch("last", "f0/last.txt", "x\n")
	land(t, c, "last", "last")
	expect(t, c, "last", "landed")
	got := r.mainline()
	slices.Sort(got)
	if want := []string{"c0", "c1", "c2", "c3", "first", "last"}; !slices.Equal(got, want) {
		t.Errorf("the mainline holds %v", got)
	}
}

// TestCancellingDuringLandingComesTooLateAndSaysSo.
func TestCancellingDuringLandingComesTooLateAndSaysSo(t *testing.T) {
	together(t)
	r, pushes := newRepository(t), newGate(t)
	r.hook("pre-receive", "#!/bin/sh\ngrep -q refs/heads/main && "+pushes.await()+"; exit 0\n")
	r.branch("change", "f0/b.txt", "b\n")
	_, c := newPeerStack(t, r)
	land(t, c, "change", "change")
	until(t, c, "change", func(v view.Change) bool { return strings.Contains(v.Why, "being pushed") })
	_, err := c.Steer(t.Context(), queue, "change", "cancel", api.SteerBody{Who: "tester", Why: "too late"})
	if err == nil || !strings.Contains(err.Error(), "being landed") {
		t.Errorf("the cancellation says %v", err)
	}
	pushes.open(t)
	expect(t, c, "change", "landed")
}

// TestADeadLetterDoesNotFailWhatAnotherOwnerStillDrives.
func TestADeadLetterDoesNotFailWhatAnotherOwnerStillDrives(t *testing.T) {
	together(t)
	r, tests := newRepository(t), newGate(t)
	r.step("f0", tests.await())
	r.branch("change", "f0/b.txt", "b\n")
	s, c := newPeerStack(t, r)
	land(t, c, "change", "change")
	until(t, c, "change", func(v view.Change) bool { return v.State == view.StateTesting })
	bury(t, s, "change")
	tests.open(t)
	expect(t, c, "change", "landed")
}

// TestADeadLetterDoesNotFailWhatHasBeenPushedAlready: the remote has the commit, and has not answered yet.
func TestADeadLetterDoesNotFailWhatHasBeenPushedAlready(t *testing.T) {
	together(t)
	r, answers := newRepository(t), newGate(t)
	r.branch("change", "f0/b.txt", "b\n")
	r.hook("post-receive", "#!/bin/sh\ngrep -q refs/heads/main && "+answers.await()+"; exit 0\n")
	s, c := newPeerStack(t, r)
	land(t, c, "change", "change")
	await(t, "the change is pushed", func() bool { return slices.Contains(r.mainline(), "change") })
	bury(t, s, "change")
	answers.open(t)
	expect(t, c, "change", "landed")
	if got := r.mainline(); len(got) != 2 {
		t.Errorf("the mainline is %v", got)
	}
}

func steer(t *testing.T, s *stack.Stack, change, verb string) {
	t.Helper()
	c := clientOf(t, s)
	if _, err := c.Steer(t.Context(), queue, change, verb, api.SteerBody{Who: "tester", Why: "a test"}); err != nil {
		t.Fatalf("%s: %v", verb, err)
	}
}

// request writes a land request as a program does that knows only Kafka.
func request(t *testing.T, s *stack.Stack, value string) {
	t.Helper()
	if err := s.Log().Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Value: []byte(value)}); err != nil {
		t.Fatal(err)
	}
}

// nonsense writes what nobody can read on every partition of a topic.
func nonsense(t *testing.T, s *stack.Stack, topic string) {
	t.Helper()
	for p := range s.Log().Partitions() {
		r := journal.Record{Topic: topic, Partition: p, Key: []byte(queue), Value: []byte{0xff, 0xff, 0xff}, Headers: []events.Header{
			{Key: "ce_type", Value: []byte("landfall.v1.Nonsense")}, {Key: "ce_source", Value: []byte("/landfall/peer/1")},
		}}
		if err := s.Log().Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// redeliver appends again, as they are, the records of services whose records need no term: each once.
func redeliver(t *testing.T, s *stack.Stack, done map[string]bool) {
	t.Helper()
	for _, topic := range events.Topics() {
		var again []events.Envelope
		each(t, s.Log(), topic.Name, func(e journal.Entry, counts bool) {
			if id := topic.Name + " " + e.ID; counts && !slices.Contains(topic.Claimed, e.Source) && !done[id] {
				done[id] = true
				again = append(again, events.Envelope{
					ID: e.ID, Source: e.Source, Instance: e.Instance, Queue: e.Queue, Subject: e.Subject, Time: e.Time, Term: e.Term,
					Trace: e.Trace, Message: e.Message,
				})
			}
		})
		if _, err := s.Log().Append(t.Context(), topic.Name, events.PartitionOf(queue, s.Log().Partitions()), again...); err != nil {
			t.Fatal(err)
		}
	}
}
