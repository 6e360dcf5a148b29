package lander

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/guard"
	"landfall.build/engine/snapshottest"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// harness is a core with one queue, "main", fed by hand: the mainline is at m0, and change a is decided to land.
type harness struct {
	*testing.T
	core    *Core
	offsets map[string]int64
	now     time.Time
}

func newHarness(t *testing.T) *harness { return newHarnessOf(t, nil) }

// newHarnessOf is newHarness with a change that is under review.
func newHarnessOf(t *testing.T, review *eventsv1.Review) *harness {
	d := &harness{T: t, core: NewCore([]string{"main"}, nil), offsets: map[string]int64{}, now: time.UnixMicro(1_000_000_000_000)}
	d.record(events.TopicDecisions, events.ServiceSelector, &eventsv1.Claim{Service: events.ServiceSelector})
	d.record(events.TopicChanges, events.ServiceLander, &eventsv1.Claim{Service: events.ServiceLander})
	d.core.GoLive(d.now)
	d.core.queue("main").attempt.mustReadHead = false
	d.written(&eventsv1.MainlineMoved{To: "m0", Initial: true})
	d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: "main", Change: "a", Revision: 1, Entries: []*eventsv1.Entry{{Commit: "a", Review: review}}, LandingCommits: []*eventsv1.LandingCommit{{Head: "a"}},
	}})
	return d
}

// record lets the core read a record.
func (d *harness) record(topic, source string, m proto.Message) {
	e := &journal.Entry{Topic: topic, Offset: d.offsets[topic], Envelope: events.Envelope{Source: source, Queue: "main", Term: -1, Message: m}}
	if source != events.ServiceGateway && source != events.ServiceBuilder {
		e.Term = 0
	}
	d.offsets[topic]++
	d.core.Apply(runner.Input{Record: e, Now: d.now})
}

// written lets the core read a record of its own, and learn that it is there.
func (d *harness) written(m proto.Message) {
	d.record(events.TopicChanges, events.ServiceLander, m)
	d.core.Fold(runner.Append{Queue: "main", Message: m})
}

func (d *harness) decide() {
	d.record(events.TopicDecisions, events.ServiceSelector, &eventsv1.Decision{
		StampUs: 7, Positions: &eventsv1.Positions{}, Steps: &eventsv1.StepPolicy{},
		Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{
			Change: &eventsv1.ChangeRef{Change: "a", Revision: 1}, Decision: "d1"}}}},
	})
}

func (d *harness) outcome(o Outcome) {
	o.Queue = "main"
	d.core.Apply(runner.Input{Outcome: o, Now: d.now})
}

// next carries out what needs nobody, and returns what the core asks for then. It checks that asking changes nothing.
func (d *harness) next() runner.Effect {
	d.Helper()
	for {
		before := d.core.Snapshot()
		attempt := d.core.queue("main").attempt
		effects := d.core.Decide()
		if again := d.core.Decide(); len(again) != len(effects) || fmt.Sprint(name(first(again))) != fmt.Sprint(name(first(effects))) {
			d.Fatalf("asked twice the core decides %v and %v", effects, again)
		}
		if !proto.Equal(before, d.core.Snapshot()) || snapshottest.Difference(&attempt, &d.core.queue("main").attempt) != "" {
			d.Fatal("deciding changes the core")
		}
		if len(effects) == 0 {
			return nil
		}
		switch effects[0].(type) {
		case runner.Log, Measure, CountRefusal:
			d.core.Fold(effects[0])
			continue
		}
		return effects[0]
	}
}

func first(effects []runner.Effect) runner.Effect {
	if len(effects) == 0 {
		return nil
	}
	return effects[0]
}

// name is an effect, shortly: the type of a record, or the question to the mainline.
func name(e runner.Effect) string {
	switch e := e.(type) {
	case nil:
		return "nothing"
	case runner.Append:
		text := strings.TrimPrefix(fmt.Sprintf("%T", e.Message), "*eventsv1.")
		if v, is := e.Message.(*eventsv1.LandVoid); is && v.Refused {
			text += " refused"
		}
		return text
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", e), "lander.")
}

// at brings the desk into a state.
func (d *harness) at(s state) {
	d.Helper()
	made := Outcome{Landing: &Landing{Commits: []string{"t1"}, Tree: "tree", Candidate: guard.Candidate{}}}
	steps := map[state][]func(){
		idle:           {d.decide},
		listing:        {d.decide, func() { d.outcome(Outcome{Head: "m1"}) }},
		dropping:       {d.decide, func() { d.outcome(Outcome{Head: "m1"}) }, func() { d.outcome(Outcome{Forced: true}) }},
		reportingMoves: {d.decide, func() { d.outcome(Outcome{Head: "m1"}) }, func() { d.outcome(Outcome{Moves: []Move{{Commit: "m1"}}}) }},
		making:         {d.decide, func() { d.outcome(Outcome{Head: "m0"}) }},
		answering:      {d.decide, func() { d.outcome(Outcome{Head: "m0"}) }, func() { d.outcome(made) }},
	}
	intend := append(append([]func(){}, steps[answering]...), func() {
		d.written(d.next().(runner.Append).Message)
	})
	pushing_ := append(append([]func(){}, intend...), func() { d.outcome(Outcome{Head: "m0"}) })
	steps[pushing] = pushing_
	steps[remaking] = append(append([]func(){}, pushing_...), func() { d.outcome(Outcome{Err: ErrUnknownCommit}) })
	steps[fencing] = append(append([]func(){}, pushing_...), func() { d.outcome(Outcome{Err: ErrMoved}) }, func() { d.outcome(Outcome{Head: "m0"}) }, func() {
		d.now = d.now.Add(troubleGrace)
		d.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: d.now})
		d.next()
		d.outcome(Outcome{Head: "m0"})
		d.next()
		d.outcome(Outcome{Err: ErrPushRefused})
	})
	steps[rereadingHead] = append(append([]func(){}, pushing_...), func() { d.outcome(Outcome{Err: ErrMoved}) })
	steps[searchingHead] = append(append([]func(){}, intend...), func() { d.outcome(Outcome{Head: "m2"}) })
	steps[closing] = append(append([]func(){}, pushing_...), func() { d.outcome(Outcome{}) })
	// Those of a change under review.
	steps[movingHeads] = pushing_
	steps[takingBack] = append(append([]func(){}, intend...), func() { d.outcome(Outcome{Head: "m2"}) }, func() { d.outcome(Outcome{}) })
	for _, step := range steps[s] {
		d.next()
		step()
	}
	if got := d.core.queue("main").attempt.state; got != s {
		d.Fatalf("the attempt is %v, not %v", got, s)
	}
}

// row is a state of an attempt, and an input.
type row struct {
	state state
	// asks is the effect that the state asks for.
	asks string
	what string
	in   func(*harness)
	// leads is the state after the input, and then the effect that is asked for next.
	leads state
	then  string
}

func (c row) run(t *testing.T, d *harness) {
	d.at(c.state)
	if got := name(d.next()); got != c.asks {
		t.Fatalf("%v asks for %s, want %s", c.state, got, c.asks)
	}
	c.in(d)
	if got := d.core.queue("main").attempt.state; got != c.leads {
		t.Errorf("it leads to %v, want %v", got, c.leads)
	}
	if got := name(d.next()); got != c.then {
		t.Errorf("then it asks for %s, want %s", got, c.then)
	}
}

// TestEachStateOfAnAttemptLeadsWhereItHasTo has a row for each state and each input that it can get.
func TestEachStateOfAnAttemptLeadsWhereItHasTo(t *testing.T) {
	broken := errors.New("no route to host")
	outcome := func(o Outcome) func(*harness) { return func(d *harness) { d.outcome(o) } }
	cancelled := func(d *harness) {
		d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeCancelled{Change: "a"})
	}
	written := func(d *harness) { d.written(d.next().(runner.Append).Message) }
	for _, c := range []row{
		{idle, "ReadHead", "the head is the lineup's", outcome(Outcome{Head: "m0"}), making, "MakeLanding"},
		{idle, "ReadHead", "the head moved", outcome(Outcome{Head: "m1"}), listing, "ListMoves"},
		{idle, "ReadHead", "the head cannot be read", outcome(Outcome{Err: broken}), idle, "nothing"},
		{idle, "ReadHead", "the change is cancelled", cancelled, idle, "nothing"},

		{listing, "ListMoves", "commits came past the queue", outcome(Outcome{Moves: []Move{{Commit: "x"}, {Commit: "m1"}}}), reportingMoves, "MainlineMoved"},
		{listing, "ListMoves", "the mainline was rewritten", outcome(Outcome{Forced: true}), dropping, "FindDropped"},
		{listing, "ListMoves", "the commits cannot be read", outcome(Outcome{Err: broken}), idle, "nothing"},
		{listing, "ListMoves", "there are none", outcome(Outcome{}), idle, "nothing"},

		{dropping, "FindDropped", "the dropped landings are known", outcome(Outcome{}), reportingMoves, "MainlineMoved"},
		{dropping, "FindDropped", "they cannot be known", outcome(Outcome{Err: broken}), idle, "nothing"},

		{reportingMoves, "MainlineMoved", "the last of them is in the log", written, making, "MakeLanding"},

		{making, "MakeLanding", "T is made", outcome(Outcome{Landing: &Landing{Commits: []string{"t"}}}), answering, "LandIntended"},
		{making, "MakeLanding", "T does not merge", outcome(Outcome{Landing: &Landing{Candidate: guard.Candidate{Obstacle: &eventsv1.Reason{}}}}), answering, "Refused"},
		{making, "MakeLanding", "a version of T is not proven", outcome(Outcome{Landing: &Landing{Candidate: guard.Candidate{Versions: []*eventsv1.TargetVersion{{Target: "//a", Hash: "h"}}}}}), answering, "Refused"},
		{making, "MakeLanding", "its commits are gone", outcome(Outcome{Err: ErrGone}), answering, "Refused"},
		{making, "MakeLanding", "T cannot be made of this change", outcome(Outcome{Err: ErrUnmakeable}), idle, "nothing"},
		{making, "MakeLanding", "T cannot be made", outcome(Outcome{Err: broken}), idle, "nothing"},
		{making, "MakeLanding", "the change is cancelled", cancelled, idle, "nothing"},

		{answering, "LandIntended", "the intention is in the log", written, idle, "ReadHead"},
		{answering, "LandIntended", "the change is cancelled before it", cancelled, idle, "nothing"},

		{pushing, "PushLanding", "it arrived", outcome(Outcome{}), closing, "ChangeLanded"},
		{pushing, "PushLanding", "the remote refuses it", outcome(Outcome{Err: ErrPushRefused}), closing, "LandVoid refused"},
		{pushing, "PushLanding", "the mainline moved", outcome(Outcome{Err: ErrMoved}), rereadingHead, "ReadHead"},
		{pushing, "PushLanding", "there is no answer", outcome(Outcome{Err: broken}), rereadingHead, "ReadHead"},
		{pushing, "PushLanding", "this mirror lacks T", outcome(Outcome{Err: ErrUnknownCommit}), remaking, "MakeLanding"},
		{pushing, "PushLanding", "the change is cancelled too late", cancelled, pushing, "PushLanding"},

		{remaking, "MakeLanding", "T is what it was", outcome(Outcome{Landing: &Landing{Commits: []string{"t1"}}}), pushing, "PushLanding"},
		{remaking, "MakeLanding", "T comes out otherwise", outcome(Outcome{Landing: &Landing{Commits: []string{"t2"}}}), rereadingHead, "ReadHead"},
		{remaking, "MakeLanding", "T cannot be made", outcome(Outcome{Err: broken}), rereadingHead, "ReadHead"},

		{fencing, "PushNothing", "it arrived", outcome(Outcome{}), rereadingHead, "ReadHead"},
		{fencing, "PushNothing", "it is refused too", outcome(Outcome{Err: ErrPushRefused}), rereadingHead, "ReadHead"},

		{rereadingHead, "ReadHead", "somebody else's head", outcome(Outcome{Head: "m2"}), searchingHead, "FindCommit"},
		{rereadingHead, "ReadHead", "the head is still the base", outcome(Outcome{Head: "m0"}), idle, "nothing"},
		{rereadingHead, "ReadHead", "the head cannot be read", outcome(Outcome{Err: broken}), idle, "nothing"},

		{searchingHead, "FindCommit", "T is in the head", outcome(Outcome{There: true}), closing, "ChangeLanded"},
		{searchingHead, "FindCommit", "T is not in the head", outcome(Outcome{}), closing, "LandVoid"},
		{searchingHead, "FindCommit", "it cannot be known", outcome(Outcome{Err: broken}), idle, "nothing"},

		{closing, "ChangeLanded", "it is in the log", written, idle, "nothing"},
	} {
		t.Run(c.state.String()+": "+c.what, func(t *testing.T) {
			c.run(t, newHarness(t))
		})
	}
}

// TestAnEffectThatFailedIsTriedAgainAtTheNextTick, from the beginning.
func TestAnEffectThatFailedIsTriedAgainAtTheNextTick(t *testing.T) {
	for _, s := range []state{idle, listing, dropping, making, pushing, rereadingHead, searchingHead} {
		d := newHarness(t)
		d.at(s)
		d.outcome(Outcome{Err: errors.New("no route to host")})
		if s == pushing { // the head is looked at first
			d.outcome(Outcome{Err: errors.New("no route to host")})
		}
		if got := d.next(); got != nil {
			t.Fatalf("%v failed, and %s is tried at once", s, name(got))
		}
		d.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: d.now.Add(time.Second)})
		if got := name(d.next()); got != "ReadHead" {
			t.Errorf("%v failed, and %s is tried at the next tick", s, got)
		}
	}
}

// TestAChangeThatCannotBeMadeDelaysNoOtherAndIsEjectedInTheEnd, whatever was decided of it.
func TestAChangeThatCannotBeMadeDelaysNoOtherAndIsEjectedInTheEnd(t *testing.T) {
	d := newHarness(t)
	d.record(events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: "main", Change: "b", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: "b"}},
	}})
	d.decide()
	d.record(events.TopicDecisions, events.ServiceSelector, &eventsv1.Decision{
		StampUs: 8, Positions: &eventsv1.Positions{}, Steps: &eventsv1.StepPolicy{},
		Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{
			Change: &eventsv1.ChangeRef{Change: "b", Revision: 1}, Decision: "d2"}}}},
	})
	unmakeable := Outcome{Err: fmt.Errorf("%w: git breaks off", ErrUnmakeable)}
	make := func(want string) {
		t.Helper()
		d.next()
		d.outcome(Outcome{Head: d.core.queue("main").lineup.Head})
		if e, is := d.next().(MakeLanding); !is || e.Admission.Change != want {
			t.Fatalf("%v is made, want %s", d.next(), want)
		}
	}
	make("a")
	d.outcome(unmakeable)
	make("b")
	d.outcome(Outcome{Landing: &Landing{Commits: []string{"t1"}, Tree: "tree"}})
	d.written(d.next().(runner.Append).Message)
	d.next()
	d.outcome(Outcome{Head: "m0"})
	d.next()
	d.outcome(Outcome{})
	d.written(d.next().(runner.Append).Message) // b has landed
	begin, tries := d.now, 0
	for d.next() == nil {
		d.now = d.now.Add(10 * time.Second)
		d.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: d.now})
		d.next()
		d.outcome(Outcome{Head: "t1"})
		if _, is := d.next().(MakeLanding); is {
			tries++
			d.outcome(unmakeable)
		}
	}
	e, is := d.next().(runner.Append)
	if !is {
		t.Fatalf("it ends in %v", d.next())
	}
	f, is := e.Message.(*eventsv1.ChangeEjected)
	if !is || f.Reason.Class != eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE || !strings.Contains(f.Reason.Message, "git breaks off") {
		t.Errorf("it ends in %v", e.Message)
	}
	if after := d.now.Sub(begin); after < makingPatience-time.Minute || after > makingPatience+time.Minute || tries > 20 {
		t.Errorf("it is ejected after %v and %d tries", after, tries)
	}
	if d.core.queue("main").attempt.trouble.failingSince != (time.Time{}) {
		t.Error("the mainline is said to be in trouble")
	}
}

// TestAnIntentionIsGivenUpForARefusalOnlyIfNoPushOfItCanStillArrive: an earlier push without an answer, or of an owner before,
// may be under way. A commit without changes goes ahead of it.
func TestAnIntentionIsGivenUpForARefusalOnlyIfNoPushOfItCanStillArrive(t *testing.T) {
	for _, there := range []bool{false, true} {
		d := newHarness(t)
		d.at(fencing)
		d.outcome(Outcome{})
		d.next()
		d.outcome(Outcome{Head: "n1"})
		if got := name(d.next()); got != "FindCommit" {
			t.Fatalf("then it asks for %s", got)
		}
		d.outcome(Outcome{There: there})
		want := map[bool]string{false: "LandVoid refused", true: "ChangeLanded"}[there]
		if got := name(d.next()); got != want {
			t.Errorf("T is in the head: %v, and it writes %s, want %s", there, got, want)
		}
	}
	d := newHarness(t)
	d.at(pushing)
	d.core.queue("main").attempt.unpushed = "" // as of an intention that another owner opened
	d.outcome(Outcome{Err: ErrPushRefused})
	if got := d.core.queue("main").attempt.state; got != rereadingHead {
		t.Errorf("another owner's intention is refused, and leads to %v", got)
	}
}
