package outcomes

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// story has every state of an outcome, and what makes none. pause is called once a change is being tested.
func story(w *world, pause func()) {
	w.gateway(&eventsv1.ChangeAdmitted{Admission: admission("a", 1)})
	w.gateway(&eventsv1.ChangeAdmitted{Admission: admission("a", 1)}) // by another gateway
	w.gateway(&eventsv1.RequestRefused{RequestId: "r", Change: "z", Code: "no_such_ref", Message: "there is no such ref", Place: &eventsv1.RequestPlace{Partition: 2, Offset: 7}})
	w.gateway(&eventsv1.RequestRefused{RequestId: "r", Change: "z", Code: "no_such_ref", Message: "there is no such ref", Place: &eventsv1.RequestPlace{Partition: 2, Offset: 7}})
	w.gateway(&eventsv1.RequestRefused{RequestId: "a-1", Change: "a", Revision: 1, Code: "unchanged", Message: "it is pending", State: "pending", Place: &eventsv1.RequestPlace{Offset: 9}})
	w.builder(&eventsv1.BuildPrepared{Build: "b0", Base: "m0"})
	w.builder(&eventsv1.StepLeased{Build: "b0", Target: "//t"})
	w.builder(&eventsv1.BuildPrepared{Build: "b1", Change: refTo("a", 1)})
	w.builder(&eventsv1.BuildPrepared{Build: "b2", Change: refTo("a", 1)})
	w.builder(&eventsv1.StepLeased{Build: "b2", Target: "//t"})
	w.builder(&eventsv1.StepLeased{Build: "b1", Target: "//u"})
	pause()
	w.gateway(&eventsv1.ChangeHeld{Change: "a", Hold: "freeze", Who: "Grace", Why: "a freeze"})
	w.gateway(&eventsv1.ChangeReleased{Change: "a", Hold: "freeze", Who: "Grace"})
	w.gateway(&eventsv1.ChangeRevised{Admission: admission("a", 2)})
	w.lander(&eventsv1.LandIntended{Change: refTo("a", 2), Commits: []string{"t1"}})
	w.gateway(&eventsv1.ChangeCancelled{Change: "a", Who: "Ada"}) // too late
	w.lander(&eventsv1.ChangeLanded{Change: refTo("a", 2), Commits: []string{"t1"}})
	w.lander(&eventsv1.ChangeLanded{Change: refTo("a", 2), Commits: []string{"t1"}})
	for _, change := range []string{"b", "c", "d"} {
		w.gateway(&eventsv1.ChangeAdmitted{Admission: admission(change, 1)})
	}
	w.lander(&eventsv1.ChangeRejected{Change: refTo("b", 1), Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: "TestSum failed",
		Failed: []*eventsv1.Proof{{Version: &eventsv1.TargetVersion{Target: "//sum:test", Hash: "h1"}, Build: "b9", Attempt: 2, Step: "test"}}}})
	w.lander(&eventsv1.ChangeEjected{Change: refTo("c", 1), Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_TIMED_OUT, Message: "it ran past its limit"}})
	w.gateway(&eventsv1.ChangeCancelled{Change: "d", Who: "Ada", Why: "not needed"})
	w.lander(&eventsv1.MainlineMoved{From: "t1", To: "m2", Forced: true, Dropped: []*eventsv1.ChangeRef{refTo("a", 2), refTo("o", 1)}})
	w.lander(&eventsv1.MainlineMoved{From: "m2", To: "t1", Forced: true, Dropped: []*eventsv1.ChangeRef{refTo("o", 1)}})
	old := w.term
	w.term = w.claim()
	w.gateway(&eventsv1.ChangeAdmitted{Admission: admission("e", 1)})
	w.put(events.TopicChanges, events.ServiceLander, old, &eventsv1.ChangeRejected{Change: refTo("e", 1)}) // by a lander that was replaced
}

// TestTheOutcomesOfAStory compares ids and values with those that were reviewed; programs of others read them.
func TestTheOutcomesOfAStory(t *testing.T) {
	w := newWorld(t)
	o := w.start()
	defer o.Close()
	story(w, func() { w.work(o) })
	w.work(o)
	var b strings.Builder
	states := map[string]bool{}
	for _, e := range w.written() {
		value, err := events.OutcomeJSON(e.Message.(*eventsv1.ChangeOutcome))
		if err != nil {
			t.Fatal(err)
		}
		if e.Term != -1 || e.Source != events.ServiceOutcomes || e.Instance != "log" {
			t.Errorf("%s has the term %d and the source %s/%s", e.ID, e.Term, e.Source, e.Instance)
		}
		fmt.Fprintf(&b, "%s %s\n", e.ID, value)
		states[e.Message.(*eventsv1.ChangeOutcome).State] = true
	}
	for _, s := range events.OutcomeStates() {
		if !states[s] {
			t.Errorf("nothing is %s", s)
		}
	}
	const file = "testdata/story.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the outcomes are\n%s\nand were\n%s", b.String(), want)
	}
}

// TestTheAnswersOfAQueueThatAreRememberedAreBounded: of the oldest a second refusal is written again, under the same id.
func TestTheAnswersOfAQueueThatAreRememberedAreBounded(t *testing.T) {
	q := newQueue("main", "")
	refuse := func(i int64) []*eventsv1.ChangeOutcome {
		return q.foldChange(&eventsv1.RequestRefused{RequestId: "r", Code: "empty", Place: &eventsv1.RequestPlace{Offset: i}}, i, timeOf(i))
	}
	first := refuse(0)[0]
	for i := range int64(maxAnswered) {
		if len(refuse(i+1)) != 1 {
			t.Fatalf("refusal %d is not written", i+1)
		}
	}
	if len(q.answered) != maxAnswered || len(q.isAnswered) != maxAnswered {
		t.Errorf("%d and %d answers are remembered, want %d", len(q.answered), len(q.isAnswered), maxAnswered)
	}
	if len(refuse(maxAnswered)) != 0 {
		t.Error("the newest is forgotten")
	}
	if again := refuse(0); len(again) != 1 || idOf(again[0], 0) != idOf(first, 0) {
		t.Errorf("the oldest is written again as %v", again)
	}
}

// TestASnapshotHoldsTheWholeCore restores a core in the middle of the story.
func TestASnapshotHoldsTheWholeCore(t *testing.T) {
	w := newWorld(t)
	story(w, func() {})
	w.builder(&eventsv1.BuildPrepared{Build: "b5", Change: refTo("e", 1)})
	w.builder(&eventsv1.BuildPrepared{Build: "b6", Change: refTo("later", 1)})
	w.builder(&eventsv1.BuildPrepared{Build: "b7", Change: refTo("later2", 1)})
	w.builder(&eventsv1.StepLeased{Build: "b6"})
	w.gateway(&eventsv1.ChangeHeld{Change: "e", Hold: "h", Who: "Grace", Why: "a freeze"})
	w.gateway(&eventsv1.ChangeMoved{Change: "e"})
	w.gateway(&eventsv1.QueuePaused{Who: "Grace", Why: "a release", StampUs: 7})
	w.lander(&eventsv1.LandingsPaused{Message: "frozen"})
	w.lander(&eventsv1.LandIntended{Change: refTo("e", 1), Commits: []string{"t5"}})
	f := form{links: "x", json: true, logID: "log"}
	c := newCore(f)
	for _, topic := range []string{events.TopicChanges, events.TopicBuilds} {
		cursor, err := w.log.Follow(t.Context(), topic, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for e, ok, err := cursor.TryNext(); ok; e, ok, err = cursor.TryNext() {
			if err != nil {
				t.Fatal(err)
			}
			c.Apply(runner.Input{Record: &e})
		}
		cursor.Close()
	}
	state, err := proto.Marshal(c.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	restored, err := restore(f, state)
	if err != nil {
		t.Fatal(err)
	}
	fields := snapshottest.New(t)
	fields.Same(c, restored)
	fields.Done()
}

// TestWhateverOwnersAReaderHandlesTheSame: owners are replaced at random, go on for a while, lose appends, and start from snapshots.
// A record of one id is always the same, and a reader handles what it would handle of one owner that nothing happens to.
func TestWhateverOwnersAReaderHandlesTheSame(t *testing.T) {
	r := seedtest.Random(t)
	repeats, tested, faults := 0, 0, 0
	for range 400 {
		w, calm := newWorld(t), newWorld(t)
		w.store = snapshot.InMemory(snapshot.Pace{After: 1 + r.IntN(20)})
		var live, zombie *runner.Owner
		for range 120 {
			step := randomStep(r)
			step(w)
			step(calm)
			if r.IntN(30) == 0 {
				faults++
				w.fault = []memory.Verdict{memory.FailBefore, memory.FailAfter, memory.Late}[r.IntN(3)]
			}
			if zombie != nil && r.IntN(3) == 0 && !w.work(zombie) {
				zombie.Close()
				zombie = nil
			}
			if live == nil {
				live = w.start()
			}
			if live != nil && r.IntN(3) == 0 && !w.work(live) {
				live.Close()
				live = nil
			}
			if live != nil && r.IntN(12) == 0 {
				if zombie != nil {
					zombie.Close()
				}
				zombie, live = live, nil
			}
			if r.IntN(10) == 0 {
				w.log.DeliverLate(events.TopicOutcomes, 0)
			}
		}
		w.fault = memory.Deliver
		for w.log.DeliverLate(events.TopicOutcomes, 0) {
		}
		if zombie != nil {
			zombie.Close()
		}
		if live != nil {
			live.Close()
		}
		last, one := w.start(), calm.start()
		w.work(last)
		calm.work(one)
		last.Close()
		one.Close()
		byID := map[string]string{}
		for _, e := range w.written() {
			text := fmt.Sprintf("%s %s %s %v %v", e.Source, e.Instance, e.Subject, e.Time, e.Message)
			if before, had := byID[e.ID]; had {
				repeats++
				if before != text {
					t.Fatalf("the id %s is of\n%s\nand of\n%s", e.ID, before, text)
				}
			}
			byID[e.ID] = text
		}
		got, want := stories(handled(w.written())), stories(handled(calm.written()))
		for subject, states := range want {
			withoutTesting := slices.DeleteFunc(slices.Clone(got[subject]), isTesting)
			if !slices.Equal(withoutTesting, slices.DeleteFunc(slices.Clone(states), isTesting)) {
				t.Fatalf("of %s a reader handles\n%v\nand of one owner\n%v", subject, got[subject], states)
			}
			tested += len(got[subject]) - len(withoutTesting)
			for i, s := range got[subject] {
				if isTesting(s) && (i == 0 || !strings.HasPrefix(got[subject][i-1], StateAdmitted) && !strings.HasPrefix(got[subject][i-1], StateRevised)) {
					t.Fatalf("%s is tested behind something else: %v", subject, got[subject])
				}
			}
		}
		if len(got) != len(want) {
			t.Fatalf("a reader handles %d subjects, and of one owner %d", len(got), len(want))
		}
	}
	t.Logf("%d records repeat one, %d tests, %d faults", repeats, tested, faults)
	if repeats == 0 || tested == 0 || faults == 0 {
		t.Error("nothing was tried")
	}
}

func isTesting(s string) bool { return strings.HasPrefix(s, StateTesting) }

// stories returns what is handled of each subject, in order.
func stories(list []*eventsv1.ChangeOutcome) map[string][]string {
	out := map[string][]string{}
	for _, m := range list {
		out[m.Subject] = append(out[m.Subject], fmt.Sprintf("%s@%d %d", m.State, m.Revision, m.Sequence))
	}
	return out
}

// randomStep draws what another service writes.
func randomStep(r *rand.Rand) func(w *world) {
	change := string(rune('a' + r.IntN(5)))
	revision := uint64(1 + r.IntN(4))
	build := fmt.Sprint(r.IntN(30))
	kind, place, other := r.IntN(16), int64(r.IntN(20)), r.IntN(2)
	return func(w *world) {
		switch kind {
		case 0, 1, 2, 3:
			w.gateway(&eventsv1.ChangeAdmitted{Admission: admission(change, revision)})
		case 4:
			w.gateway(&eventsv1.ChangeCancelled{Change: change})
		case 5:
			w.gateway(&eventsv1.ChangeHeld{Change: change, Hold: "h"})
		case 6:
			w.gateway(&eventsv1.ChangeReleased{Change: change, Hold: "h"})
		case 7:
			w.lander(&eventsv1.LandIntended{Change: refTo(change, revision), Commits: []string{change}})
		case 8:
			w.lander(&eventsv1.ChangeLanded{Change: refTo(change, revision), Commits: []string{change}})
		case 9:
			w.lander(&eventsv1.LandVoid{Commit: change})
			w.lander(&eventsv1.ChangeRejected{Change: refTo(change, revision)})
		case 10:
			w.gateway(&eventsv1.RequestRefused{Code: "empty", Place: &eventsv1.RequestPlace{Offset: place}})
		case 11:
			var dropped []*eventsv1.ChangeRef
			for i := range place % 4 {
				dropped = append(dropped, refTo(string(rune('a'+i+int64(other))), 1))
			}
			w.lander(&eventsv1.MainlineMoved{To: build, Forced: true, Dropped: dropped})
		case 12, 13:
			w.builder(&eventsv1.BuildPrepared{Build: build, Change: refTo(change, revision)})
		default:
			w.builder(&eventsv1.StepLeased{Build: build})
		}
	}
}
