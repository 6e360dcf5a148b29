package lander_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/lander"
)

// pushes lets a change be decided to land again, as the selector does whenever it is pending.
func (o *harness) pushes(changes ...string) {
	o.Helper()
	for _, change := range changes {
		o.decide(&eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{
			Change: &eventsv1.ChangeRef{Change: change, Revision: 1}, Decision: fmt.Sprint("land ", change, " ", o.now.UnixNano()),
		}}})
	}
}

// endings are what became of the changes that left the queue.
func (o *harness) endings() (list []string) {
	o.Helper()
	o.each(func(e journal.Entry) {
		switch f := e.Message.(type) {
		case *eventsv1.ChangeLanded:
			list = append(list, f.Change.Change+" landed")
		case *eventsv1.ChangeEjected:
			list = append(list, f.Change.Change+" ejected: "+f.Reason.Message)
		}
	})
	return list
}

func (o *harness) ended(list ...string) {
	o.Helper()
	if got := o.endings(); fmt.Sprint(got) != fmt.Sprint(list) {
		o.Fatalf("in the end %q, want %q", got, list)
	}
}

// TestAFreezeOfTheRemoteEjectsNobody: what it refused while it took nothing says nothing about any change.
func TestAFreezeOfTheRemoteEjectsNobody(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	changes := []string{"z1", "z2", "z3", "z4"}
	o.remote.pushed = &lander.PushRefusal{Sentence: "come back later", Err: errors.New("git push …")}
	for _, c := range changes {
		o.land(c)
	}
	for range 300 {
		o.poll(2 * time.Second)
		o.pushes(changes...)
	}
	o.ended()
	o.remote.pushed = nil
	for range 60 {
		o.poll(2 * time.Second)
		o.pushes(changes...)
	}
	if got := o.endings(); len(got) != 4 || strings.Contains(fmt.Sprint(got), "ejected") {
		t.Errorf("in the end %q", got)
	}
}

// TestAPauseBeginsWithTheRefusalThatItIsFor: the remote refused a change for itself before.
func TestAPauseBeginsWithTheRefusalThatItIsFor(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses("your commit message has no ticket", false)
	o.land("own")
	for range 20 {
		o.poll(2 * time.Second)
		o.pushes("own")
	}
	o.refuses(notAllowed, true)
	began := o.now
	o.land("other")
	for range 60 {
		o.poll(2 * time.Second)
		o.pushes("own", "other")
	}
	paused := 0
	o.each(func(e journal.Entry) {
		if f, is := e.Message.(*eventsv1.LandingsPaused); is {
			if paused++; f.SinceUs < began.UnixMicro() {
				t.Errorf("paused since %s, and refused since %s", time.UnixMicro(f.SinceUs), began)
			}
		}
	})
	if paused == 0 {
		t.Error("the landings are not paused")
	}
}

// TestARefusedChangeIsEjectedOnAQuietQueue after a bounded number of refusals, with the remote's own sentence; the next one is not,
// for the remote may take nothing.
func TestARefusedChangeIsEjectedOnAQuietQueue(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	refuse := func(sentence, change string) {
		o.remote.pushed = &lander.PushRefusal{Sentence: sentence, Err: errors.New("git push …")}
		o.land(change)
		for range 600 {
			o.poll(2 * time.Second)
			o.pushes(change)
		}
	}
	refuse("big.bin is too large", "a")
	o.ended("a ejected: big.bin is too large")
	refuse("big.bin is too large", "b")
	o.ended("a ejected: big.bin is too large")
	refused := 0
	o.each(func(e journal.Entry) {
		if f, is := e.Message.(*eventsv1.LandVoid); is && f.Refused && f.Change.Change == "a" {
			refused++
			if f.Reason != "big.bin is too large" {
				t.Errorf("the log has %q", f.Reason)
			}
		}
	})
	if refused != 8 {
		t.Errorf("%d refusals of a", refused)
	}
	if n := measuredRefusals.FindStringSubmatch(o.measures()); len(n) != 2 || len(n[1]) == 1 && n[1] < "9" {
		t.Errorf("measured: %v", n)
	}
}

// refuses makes the remote refuse every push.
func (o *harness) refuses(sentence string, everybody bool) {
	o.remote.pushed = &lander.PushRefusal{Sentence: sentence, Everybody: everybody, Err: errors.New("git push …")}
}

// pauses are the records of pauses by the remote and of their ends, in order.
func (o *harness) pauses() (list []string) {
	o.Helper()
	o.each(func(e journal.Entry) {
		switch f := e.Message.(type) {
		case *eventsv1.LandingsPaused:
			list = append(list, f.Message)
		case *eventsv1.LandingsResumed:
			list = append(list, "resumed")
		}
	})
	return list
}

func (o *harness) wantsPauses(list ...string) {
	o.Helper()
	if got := o.pauses(); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", list) {
		o.Fatalf("the log tells %q, want %q", got, list)
	}
}

// tried counts the intentions.
func (o *harness) tried() (n int) {
	o.Helper()
	o.each(func(e journal.Entry) {
		if _, is := e.Message.(*eventsv1.LandIntended); is {
			n++
		}
	})
	return n
}

const notAllowed = "You are not allowed to push code to protected branches on this project."

// TestALanderThatMayNotPushEjectsNobody, however quiet the queue is. The first refusal pauses the landings; they are tried ever more
// rarely, and go on by themselves.
func TestALanderThatMayNotPushEjectsNobody(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses(notAllowed, true)
	began := o.now
	o.land("a")
	o.poll(2 * time.Second)
	o.wantsPauses(notAllowed)
	if got := o.measures(); !strings.Contains(got, measuredPause) {
		t.Errorf("measured: %s", got)
	}
	for range 600 { // twenty minutes
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	o.ended()
	o.wantsPauses(notAllowed)
	if n := o.tried(); n < 15 || n > 30 {
		t.Errorf("tried %d times in twenty minutes", n)
	}
	o.each(func(e journal.Entry) {
		if f, is := e.Message.(*eventsv1.LandingsPaused); is && (f.SinceUs < began.UnixMicro() || f.SinceUs > began.Add(3*time.Second).UnixMicro()) {
			t.Errorf("paused since %s, and refused since %s", time.UnixMicro(f.SinceUs), began)
		}
	})
	o.wants() // it is no mainline that cannot be reached
	o.remote.pushed = nil
	for range 35 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	o.ended("a landed")
	o.wantsPauses(notAllowed, "resumed")
	if got := o.measures(); strings.Contains(got, "landfall_landings_paused{") {
		t.Errorf("measured: %s", got)
	}
}

// TestAPersonWhoResumesHasTheRemoteTriedAtOnce.
func TestAPersonWhoResumesHasTheRemoteTriedAtOnce(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses(notAllowed, true)
	o.land("a")
	for range 120 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	o.remote.pushed = nil
	o.append(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.QueueResumed{Who: "sre"})
	o.poll(time.Millisecond)
	o.ended("a landed")
	o.wantsPauses(notAllowed, "resumed")
}

// TestUnknownWordsPauseLandingsOnceTheyRefuseEveryChange: two changes twice each, whatever ids the words have.
func TestUnknownWordsPauseLandingsOnceTheyRefuseEveryChange(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses("come back later (request 1)", false)
	o.land("a")
	for range 10 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	o.wantsPauses()
	o.land("b")
	o.refuses("come back later (request 2)", false)
	for range 300 {
		o.poll(2 * time.Second)
		o.pushes("a", "b")
	}
	o.wantsPauses("come back later (request 2)")
	o.ended()
	o.refuses("the mainline is archived", true)
	for range 60 {
		o.poll(2 * time.Second)
		o.pushes("a", "b")
	}
	o.wantsPauses("come back later (request 2)", "the mainline is archived")
	o.remote.pushed = nil
	for range 60 {
		o.poll(2 * time.Second)
		o.pushes("a", "b")
	}
	o.wantsPauses("come back later (request 2)", "the mainline is archived", "resumed")
	if got := o.endings(); len(got) != 2 || strings.Contains(fmt.Sprint(got), "ejected") {
		t.Errorf("in the end %q", got)
	}
}

// refuseOnly makes the remote refuse the commits of one change alone.
func (o *harness) refuseOnly(change, sentence string, everybody bool) {
	o.remote.refuses = func(commit string) error {
		if strings.HasPrefix(commit, change+"-on-") {
			return &lander.PushRefusal{Sentence: sentence, Everybody: everybody, Err: errors.New("git push …")}
		}
		return nil
	}
}

// TestWordsOfEverybodyThatHitOneChangeEjectItInTheEnd: others land in between, three times. Once they do, it takes more of those words
// to pause the landings.
func TestWordsOfEverybodyThatHitOneChangeEjectItInTheEnd(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	const said = "permission denied: docs are not yours"
	o.refuseOnly("a", said, true)
	o.land("a")
	o.poll(2 * time.Second)
	o.wantsPauses(said)
	for i := range 4 {
		o.land(fmt.Sprint("b", i))
		for range 60 {
			o.poll(2 * time.Second)
			o.pushes("a")
		}
	}
	o.ended("b0 landed", "b1 landed", "b2 landed", "a ejected: "+said, "b3 landed")
	o.wantsPauses(said, "resumed", said, "resumed")
}

// TestAFreezeThatComesBackEjectsNobody, even who was refused, and passed, before.
func TestAFreezeThatComesBackEjectsNobody(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses(notAllowed, true)
	o.land("a")
	o.poll(2 * time.Second)
	o.remote.pushed = nil
	o.land("b")
	o.append(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.QueueResumed{})
	o.poll(2 * time.Second)
	o.ended("b landed")
	o.refuses(notAllowed, true)
	for range 600 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	o.ended("b landed")
	o.wantsPauses(notAllowed, "resumed", notAllowed)
}

// TestARefusalOfOneChangeEndsAPauseOfAll: the remote speaks of that change, so it takes others.
func TestARefusalOfOneChangeEndsAPauseOfAll(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses(notAllowed, true)
	o.land("a")
	o.poll(2 * time.Second)
	o.refuses("big.bin is too large", false)
	for range 300 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	o.wantsPauses(notAllowed, "resumed")
	o.ended("a ejected: big.bin is too large")
}

// TestAnotherLanderKnowsOfThePause, tries at once, and says when it is over.
func TestAnotherLanderKnowsOfThePause(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses(notAllowed, true)
	o.land("a")
	for range 120 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	tried := o.tried()
	o.startLander()
	o.poll(time.Second)
	if o.tried() != tried+1 {
		t.Errorf("a new lander has tried %d times", o.tried()-tried)
	}
	o.wantsPauses(notAllowed)
	if got := o.measures(); !strings.Contains(got, measuredPause) {
		t.Errorf("measured: %s", got)
	}
	o.remote.pushed = nil
	o.pushes("a")
	o.startLander()
	o.poll(time.Second)
	o.ended("a landed")
	o.wantsPauses(notAllowed, "resumed")
}

// landsWithoutAnswer has the push of a change get no answer, and the right to push be lost after it.
func (o *harness) landsWithoutAnswer(change string) {
	o.remote.pushed = errors.New("connection reset")
	o.land(change)
	o.poll(time.Second)
	o.refuses(notAllowed, true)
	o.remote.fenced = o.remote.pushed
}

// TestALossOfTheRightToPushAfterAnUnansweredPushIsRecorded: that push may still arrive, so the intention stays open.
func TestALossOfTheRightToPushAfterAnUnansweredPushIsRecorded(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.landsWithoutAnswer("a")
	for range 300 {
		o.poll(2 * time.Second)
	}
	o.wantsPauses(notAllowed)
	o.wants()
	o.remote.pushed, o.remote.fenced = nil, nil
	for range 35 {
		o.poll(2 * time.Second)
	}
	o.ended("a landed")
	o.wantsPauses(notAllowed, "resumed")
}

// TestAnIntentionThatWaitsForTheRemoteLetsOtherDecisionsWait: a decision about another change, which needs no push, is answered once
// the intention is closed. In between, the lander must come to rest.
func TestAnIntentionThatWaitsForTheRemoteLetsOtherDecisionsWait(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.landsWithoutAnswer("a")
	for range 10 {
		o.poll(2 * time.Second)
	}
	o.wantsPauses(notAllowed)
	o.admit("b")
	o.decide(&eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_EjectDecided{EjectDecided: &eventsv1.EjectDecided{
		Change: &eventsv1.ChangeRef{Change: "b", Revision: 1}, Decision: "eject b", Reason: &eventsv1.Reason{},
	}}})
	answered := func() (is bool) {
		o.each(func(e journal.Entry) {
			f, refused := e.Message.(*eventsv1.Refused)
			is = is || refused && f.Decision == "eject b"
		})
		return is
	}
	o.poll(time.Millisecond)
	if answered() {
		t.Error("a decision is answered while an intention is open")
	}
	o.remote.pushed, o.remote.fenced = nil, nil
	for range 35 {
		o.poll(2 * time.Second)
	}
	o.ended("a landed")
	if !answered() {
		t.Error("a decision is not answered once the intention is closed")
	}
}

// TestAPushThatWasUnderWayWhenTheRightWasLostCountsOnce: until it has arrived nothing else is tried, so what is refused behind it, in
// that freeze, is not passed by it.
func TestAPushThatWasUnderWayWhenTheRightWasLostCountsOnce(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	for i := range 2 { // one landing in each of two freezes, and three past a change eject it
		o.refuses(notAllowed, true)
		if i == 0 {
			o.land("a")
		} else {
			o.pushes("a")
		}
		o.poll(90 * time.Second)
		late := fmt.Sprint("late", i)
		o.remote.pushed = errors.New("connection reset")
		o.land(late)
		o.poll(90 * time.Second)
		o.refuses(notAllowed, true)
		o.remote.fenced = o.remote.pushed
		before := o.tried()
		for range 60 {
			o.poll(2 * time.Second)
			o.pushes("a")
		}
		if o.tried() != before {
			t.Errorf("others are tried %d times while the push of %s may arrive", o.tried()-before, late)
		}
		var pushed string
		o.each(func(e journal.Entry) {
			if f, is := e.Message.(*eventsv1.LandIntended); is && f.Change.Change == late {
				pushed = f.Commits[len(f.Commits)-1]
			}
		})
		o.remote.move(pushed, append(o.remote.history[o.remote.head], o.remote.head)...)
		for range 60 {
			o.poll(2 * time.Second)
			o.pushes("a")
		}
	}
	o.ended("late0 landed", "late1 landed")
	o.remote.pushed, o.remote.fenced = nil, nil
	for range 60 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	o.ended("late0 landed", "late1 landed", "a landed")
}

// TestAChangeThatTheRemoteRefusesStopsNobody: what is ready beside it is tried before anybody says that the remote refuses every
// push, even though its words are those of a freeze.
func TestAChangeThatTheRemoteRefusesStopsNobody(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	const said = "frozen/ is frozen until Monday"
	o.refuseOnly("a", said, true)
	o.admit("a")
	o.admit("b")
	o.pushes("a", "b")
	o.poll(time.Millisecond)
	o.ended("b landed")
	for i := range 5 {
		o.admit(fmt.Sprint("c", i))
		for range 4 {
			o.poll(time.Second)
			o.pushes("a")
		}
		o.pushes(fmt.Sprint("c", i))
		o.poll(time.Millisecond)
	}
	o.wantsPauses()
	if got := fmt.Sprint(o.endings()); strings.Count(got, "landed") != 6 || !strings.Contains(got, "a ejected: "+said) {
		t.Errorf("in the end %s", got)
	}
}

// TestWhatTheRemoteHasNotSeenIsTriedAtOnce: the only change of a queue was refused and paused its landings, and its next try is far.
// Whoever comes next is not told that they are paused.
func TestWhatTheRemoteHasNotSeenIsTriedAtOnce(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	const said = "frozen/ is frozen until Monday"
	o.refuseOnly("a", said, true)
	o.land("a")
	for range 120 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	o.wantsPauses(said)
	o.admit("b")
	o.poll(time.Millisecond)
	o.wantsPauses(said, "resumed")
	o.pushes("b")
	o.poll(time.Millisecond)
	o.ended("b landed")
	o.wantsPauses(said, "resumed")
}

// TestAFreezeIsTriedOnceByOneMore: two changes that were refused alike tell that the remote takes nothing, and all others wait.
func TestAFreezeIsTriedOnceByOneMore(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses(notAllowed, true)
	o.land("a")
	for range 120 {
		o.poll(2 * time.Second)
		o.pushes("a")
	}
	tried := o.tried()
	for i := range 5 {
		o.admit(fmt.Sprint("b", i))
		o.pushes(fmt.Sprint("b", i))
		o.poll(time.Millisecond)
	}
	if n := o.tried() - tried; n != 1 {
		t.Errorf("%d of five new changes were tried at once", n)
	}
	o.ended()
	o.wantsPauses(notAllowed, "resumed", notAllowed)
}

// TestOneChangeIsLetPastWhatWordsOfEverybodyRefuse: whether they are the change's own shows only if another one is tried.
func TestOneChangeIsLetPastWhatWordsOfEverybodyRefuse(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.refuses(notAllowed, true)
	o.land("a")
	for i := range 3 {
		o.admit(fmt.Sprint("b", i)) // behind it, and not decided: they meet it
	}
	for range 10 {
		o.poll(time.Second)
		o.pushes("a")
	}
	if got := fmt.Sprint(o.moves()); got != "[b0 before a]" {
		t.Fatalf("after ten seconds: %s", got)
	}
	for range 20 {
		o.poll(time.Second)
		o.pushes("b0", "a")
	}
	if got := fmt.Sprint(o.moves()); got != "[b0 before a]" {
		t.Errorf("once it is refused too: %s", got)
	}
}

// TestWhoComesBehindARefusedChangeIsMovedPastItAtOnce: nothing would be built without that one, whose next try may be a minute away.
func TestWhoComesBehindARefusedChangeIsMovedPastItAtOnce(t *testing.T) {
	for _, everybody := range []bool{false, true} {
		o := newHarness(t)
		o.poll(0)
		o.refuseOnly("a", "needs a sign-off", everybody)
		o.land("a")
		for range 40 {
			o.poll(2 * time.Second)
			o.pushes("a")
		}
		tried := o.tried()
		o.admit("b")
		o.admit("c")
		o.poll(time.Millisecond)
		if got := fmt.Sprint(o.moves()); got != "[b before a]" || o.tried() != tried {
			t.Fatalf("everybody %v: moved %s, and %d tries", everybody, got, o.tried()-tried)
		}
		o.pushes("b")
		o.poll(time.Millisecond)
		o.ended("b landed")
		// Another has landed past it: it is tried at once, and again soon.
		for range 6 {
			o.poll(time.Second)
			o.pushes("a")
		}
		if !everybody {
			o.ended("b landed", "a ejected: needs a sign-off")
			continue
		}
		for _, next := range []string{"c", "d"} {
			if next == "d" {
				o.admit("d")
			}
			o.poll(time.Second)
			o.pushes(next)
			o.poll(time.Second)
			o.pushes("a")
		}
		o.poll(time.Second)
		o.ended("b landed", "c landed", "d landed", "a ejected: needs a sign-off")
	}
}

// moves are the moves of changes, in order.
func (o *harness) moves() (list []string) {
	o.each(func(e journal.Entry) {
		if f, is := e.Message.(*eventsv1.ChangeMoved); is {
			list = append(list, f.Change+" before "+f.Before)
		}
	})
	return list
}

// TestSeveralChangesOfAFrozenFolderStopNobodyElse: once another has landed past one of them, a second one that is refused alike tells no
// more of the remote than that one did.
func TestSeveralChangesOfAFrozenFolderStopNobodyElse(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	const said = "frozen/ is frozen until Monday"
	o.remote.refuses = func(commit string) error {
		if strings.HasPrefix(commit, "a") {
			return &lander.PushRefusal{Sentence: said, Everybody: true, Err: errors.New("git push …")}
		}
		return nil
	}
	o.admit("a1")
	o.admit("b1")
	o.pushes("a1", "b1")
	o.poll(time.Millisecond)
	o.admit("a2")
	o.admit("b2")
	o.pushes("a1", "a2")
	o.poll(time.Second)
	o.pushes("a1", "a2")
	o.poll(time.Second)
	o.pushes("b2")
	o.poll(time.Millisecond)
	o.ended("b1 landed", "b2 landed")
	o.wantsPauses()
}

// TestAnAdmissionEndsNoPauseOfAnOpenIntention: no refusal of a change stands for it, so another change tells nothing.
func TestAnAdmissionEndsNoPauseOfAnOpenIntention(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.landsWithoutAnswer("a")
	for i := 0; i < 60 && len(o.pauses()) == 0; i++ {
		o.poll(time.Second)
	}
	o.wantsPauses(notAllowed)
	o.admit("b")
	o.poll(time.Millisecond)
	o.wantsPauses(notAllowed)
}

// TestWhoIsLetPastIsTheSameEveryTime, though several changes are refused: the first in the queue is passed.
func TestWhoIsLetPastIsTheSameEveryTime(t *testing.T) {
	for range 50 {
		o := newHarness(t)
		o.poll(0)
		o.remote.refuses = func(commit string) error {
			if strings.HasPrefix(commit, "a") {
				return &lander.PushRefusal{Sentence: "frozen/ is frozen", Everybody: true, Err: errors.New("git push …")}
			}
			return nil
		}
		o.land("a1")
		o.land("a2")
		for _, other := range []string{"b1", "b2"} {
			o.land(other)
			for range 4 {
				o.poll(time.Second)
				o.pushes("a1", "a2")
			}
		}
		for range 2 {
			o.poll(4 * time.Second)
			o.pushes("a1", "a2")
		}
		before := len(o.moves())
		o.admit("c")
		o.poll(time.Millisecond)
		if got := fmt.Sprint(o.moves()[before:]); got != "[c before a1]" {
			t.Fatalf("moved %s", got)
		}
	}
}
