package lander

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/runner"
)

var review = &eventsv1.Review{Branch: "refs/heads/ada/a", Shown: "refs/pull/7/head"}

// TestABranchUnderReviewIsMovedBeforeThePushAndBackBeforeTheVoid has a row for each state and input in which that matters.
func TestABranchUnderReviewIsMovedBeforeThePushAndBackBeforeTheVoid(t *testing.T) {
	outcome := func(o Outcome) func(*harness) { return func(d *harness) { d.outcome(o) } }
	written := func(d *harness) { d.written(d.next().(runner.Append).Message) }
	pushed := func(err error) func(*harness) {
		return func(d *harness) { d.outcome(Outcome{}); d.next(); d.outcome(Outcome{Err: err}) }
	}
	for _, c := range []row{
		{movingHeads, "MoveHeads", "it is moved", outcome(Outcome{}), pushing, "PushLanding"},
		{movingHeads, "MoveHeads", "somebody has pushed to it", outcome(Outcome{Err: ErrMoved}), pushing, "PushLanding"},
		{movingHeads, "MoveHeads", "this mirror lacks T", outcome(Outcome{Err: ErrUnknownCommit}), remaking, "MakeLanding"},
		{movingHeads, "MoveHeads", "T is made again", func(d *harness) {
			d.outcome(Outcome{Err: ErrUnknownCommit})
			d.next()
			d.outcome(Outcome{Landing: &Landing{Commits: []string{"t1"}}})
		}, movingHeads, "MoveHeads"},
		{movingHeads, "MoveHeads", "the push arrives", pushed(nil), closing, "ChangeLanded"},
		{movingHeads, "MoveHeads", "the push is refused", pushed(ErrPushRefused), takingBack, "TakeBackHeads"},
		{takingBack, "TakeBackHeads", "it is back", outcome(Outcome{}), closing, "LandVoid"},
		{takingBack, "TakeBackHeads", "it is not known", outcome(Outcome{Err: errors.New("no route to host")}), takingBack, "TakeBackHeads"},
		{takingBack, "TakeBackHeads", "the void is in the log", func(d *harness) { d.outcome(Outcome{}); d.next(); written(d) }, idle, "nothing"},
	} {
		t.Run(c.state.String()+": "+c.what, func(t *testing.T) { c.run(t, newHarnessOf(t, review)) })
	}
}

// TestAHeadThatCannotBeTakenBackIsTriedFiveTimes, and the refusal that it is taken back for stays what it is: nothing is pushed again.
func TestAHeadThatCannotBeTakenBackIsTriedFiveTimes(t *testing.T) {
	d := newHarnessOf(t, review)
	d.at(movingHeads)
	d.next()
	d.outcome(Outcome{})
	d.next()
	d.outcome(Outcome{Err: ErrPushRefused})
	for tries := range takeBackTries {
		if got := name(d.next()); got != "TakeBackHeads" {
			t.Fatalf("after %d tries it asks for %s", tries, got)
		}
		d.outcome(Outcome{Err: errors.New("no route to host")})
	}
	if got := name(d.next()); got != "LandVoid refused" {
		t.Errorf("in the end it asks for %s", got)
	}
}

// TestTheHeadOfAReviewIsMovedToItsOwnLastCommit, unless that has the review's head as a parent.
func TestTheHeadOfAReviewIsMovedToItsOwnLastCommit(t *testing.T) {
	other := &eventsv1.Review{Branch: "refs/heads/ada/b", Shown: "refs/pull/8/head"}
	a := &eventsv1.Admission{
		Entries:        []*eventsv1.Entry{{Commit: "a2", Review: review}, {Commit: "b", Review: other}, {Commit: "c"}},
		LandingCommits: []*eventsv1.LandingCommit{{Head: "a1"}, {Head: "a2"}, {Head: "b", Entry: 1, Merge: true}, {Head: "c", Entry: 2}},
	}
	heads := HeadsOf(a, []string{"t1", "t2", "t3", "t4"})
	if len(heads) != 1 || !proto.Equal(heads[0], &eventsv1.ReviewHead{Review: review, From: "a2", To: "t2"}) {
		t.Errorf("moved are %v", heads)
	}
}
