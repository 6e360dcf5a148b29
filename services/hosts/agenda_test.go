package hosts

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
)

// bench drives a core as the runner does, with its own topic in memory, and answers what it asks by functions.
type bench struct {
	t    testing.TB
	core *Core
	now  time.Time
	// next is the offset of the next record of the own topic, outcomes that of the other.
	next, outcomes int64
	// records are those of pull requests.
	records []proto.Message
	facts   []proto.Message
	looks   []int64
	lists   []List
	pulls   map[int64]Pull
	listed  []Listed
	// stubborn leaves open what is marked as merged. merges counts reports.
	stubborn bool
	merges   int
	// refuse returns why a report is not taken; it may be nil.
	refuse func(Report) error
}

func newBench(t testing.TB) *bench {
	b := &bench{t: t, now: time.Unix(1_000_000, 0), pulls: map[int64]Pull{}}
	b.restart()
	return b
}

// restart makes a new core from the log.
func (b *bench) restart() {
	b.core = newCore(map[string]Settings{"main": setting}, access.NewRules(configuration.Access{Mode: configuration.AccessRequired}), 30*time.Second)
	b.next = 0
	b.apply(&eventsv1.Claim{Service: events.ServiceHosts})
	for _, m := range b.records {
		b.apply(m)
	}
	b.core.GoLive(b.now)
}

func (b *bench) apply(m proto.Message) {
	e := journal.Entry{Offset: b.next, Topic: events.TopicHosts}
	e.Source, e.Term, e.Message = events.ServiceHosts, 0, m
	b.next++
	b.core.Apply(runner.Input{Record: &e, Now: b.now})
}

func (b *bench) outcome(m *eventsv1.ChangeOutcome) {
	e := journal.Entry{Offset: b.outcomes, Topic: events.TopicOutcomes}
	b.outcomes++
	m.Queue, m.Subject = "main", m.Change
	m.Sequence = b.outcomes
	e.Source, e.Term, e.Message = events.ServiceOutcomes, -1, m
	b.core.Apply(runner.Input{Record: &e, Now: b.now})
}

// run carries out what the core decides until it decides nothing.
func (b *bench) run() {
	b.t.Helper()
	for range 100_000 {
		effects := b.core.Decide()
		if len(effects) == 0 {
			return
		}
		for _, e := range effects {
			b.core.Fold(e)
			switch e := e.(type) {
			case runner.Append:
				b.records = append(b.records, e.Message)
				b.apply(e.Message)
			case Tell:
				b.facts = append(b.facts, e.Message)
			case List:
				b.lists = append(b.lists, e)
				b.answer(Listing{List: e, Pulls: b.listed})
			case Look:
				b.looks = append(b.looks, e.Key.number)
				p := b.pulls[e.Key.number]
				p.Events = slices.DeleteFunc(slices.Clone(p.Events), func(event Event) bool { return event.ID <= e.After })
				p.Last = max(p.Last, e.After)
				b.answer(Looked{Key: e.Key, Pull: p})
			case Places:
				b.answer(Placed{Queue: e.Queue})
			case Report:
				p := b.pulls[e.key.number]
				if b.refuse != nil {
					if err := b.refuse(e); err != nil {
						b.answer(Reported{Report: e, Err: err})
						continue
					}
				}
				if e.Status != nil {
					p.Status = *e.Status
				}
				if b.merges++; e.Merged != "" && !b.stubborn {
					p.Open, p.Merged = false, true
				}
				b.pulls[e.key.number] = p
				b.answer(Reported{Report: e, Done: e, Comment: 100 + e.key.number})
			}
		}
	}
	b.t.Fatal("it does not come to an end")
}

func (b *bench) answer(result any) {
	b.core.Apply(runner.Input{Outcome: Results{result}, Now: b.now})
}

// pass lets time pass, and runs.
func (b *bench) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: b.now})
	b.run()
}

// open adds an open pull request that was changed at a time.
func (b *bench) open(number int64, updated time.Time, events ...Event) {
	p := Pull{Number: number, UpdatedUS: updated.UnixMicro(), Head: fmt.Sprint("a", number), Ref: fmt.Sprintf("refs/pull/%d/head", number), Fits: true, Open: true, Events: events}
	for _, e := range events {
		p.Last = max(p.Last, e.ID)
	}
	b.pulls[number] = p
	b.list(p)
}

func (b *bench) list(p Pull) {
	b.listed = slices.DeleteFunc(b.listed, func(l Listed) bool { return l.Number == p.Number })
	b.listed = append(b.listed, Listed{Number: p.Number, UpdatedUS: p.UpdatedUS, Head: p.Head, Open: p.Open, Fits: p.Fits})
}

func TestPullRequestsThatNobodyAsksForAreLookedAtOnceAndForgotten(t *testing.T) {
	b := newBench(t)
	for i := range 100 {
		b.open(int64(i+1), b.now.Add(-48*time.Hour))
	}
	b.open(200, b.now.Add(-time.Minute))
	b.run()
	for range 5 {
		b.pass(time.Minute)
	}
	if want := []int64{200}; !slices.Equal(b.looks, want) || len(b.lists) != 6 {
		t.Errorf("looked at are %v in %d lists", b.looks, len(b.lists))
	}
	if len(b.core.reviews) != 0 || len(b.records) != 0 {
		t.Errorf("%d are remembered, %d written", len(b.core.reviews), len(b.records))
	}
	if b.lists[0].SinceUS != 0 || b.lists[1].SinceUS != b.now.Add(-6*time.Minute).UnixMicro() {
		t.Errorf("lists are %v", b.lists)
	}
	b.pass(fullEvery)
	if last := b.lists[len(b.lists)-1]; last.SinceUS != 0 {
		t.Errorf("after an hour it lists %v", last)
	}
}

// TestAStartLooksOnlyAtWhatChanged: of a thousand changes in the queue as many are looked at as a list allows, and those that changed.
func TestAStartLooksOnlyAtWhatChanged(t *testing.T) {
	b := newBench(t)
	for i := range int64(1000) {
		b.open(i+1, b.now.Add(-time.Minute), Event{ID: 5000 + i, Kind: Labelled, Permission: WritePermission, By: User{ID: 3, Login: "ada"}})
	}
	b.run()
	if len(b.facts) != 1000 {
		t.Fatalf("%d are asked for", len(b.facts))
	}
	for _, m := range b.facts {
		r := m.(*eventsv1.LandRequest)
		b.outcome(&eventsv1.ChangeOutcome{Change: r.Change, State: "admitted", Revision: 1, RequestId: r.RequestId, Head: r.Entries[0].Commit})
		b.run()
	}
	p := b.pulls[77]
	p.UpdatedUS = b.now.Add(10 * time.Second).UnixMicro()
	b.pulls[77] = p
	b.list(p)
	gone := b.pulls[78]
	gone.Open = false
	b.pulls[78] = gone
	b.listed = slices.DeleteFunc(b.listed, func(l Listed) bool { return l.Number == 78 })
	b.looks, b.facts = nil, nil
	b.now = b.now.Add(time.Minute)
	b.restart()
	for _, r := range b.core.reviews {
		b.outcome(&eventsv1.ChangeOutcome{Change: r.kept.Change, State: "admitted", Revision: 1, RequestId: r.kept.RequestId, Head: r.kept.Head})
		r.noticed = false // outcomes are folded before the first record of the host
	}
	for k := range b.core.reviews {
		b.core.touch(k)
	}
	b.run()
	if len(b.looks) > refreshes+2 || !slices.Contains(b.looks, 77) || !slices.Contains(b.looks, 78) {
		t.Errorf("%d are looked at: %v", len(b.looks), b.looks)
	}
	if len(b.facts) != 1 || b.facts[0].(*eventsv1.ChangeCancelled).Change != "pr-78" {
		t.Errorf("facts are %v", b.facts)
	}
}

// TestWhatIsOverIsForgottenAndAsksNoMore: one that is opened again after it was forgotten does not ask by its old events.
func TestWhatIsOverIsForgottenAndAsksNoMore(t *testing.T) {
	b := newBench(t)
	land := Event{ID: 10, Kind: Commented, Text: "/landfall land", Permission: WritePermission, By: User{ID: 3, Login: "ada"}}
	b.open(7, b.now.Add(-time.Minute), land)
	b.run()
	b.outcome(&eventsv1.ChangeOutcome{Change: "pr-7", State: "cancelled", Revision: 1, RequestId: setting.requestID(7, 10), Head: "a7"})
	b.run()
	p := b.pulls[7]
	p.Open = false
	b.pulls[7] = p
	b.listed = nil
	b.pass(2 * fullEvery)
	if r := b.core.reviews[key{"main", 7}]; r == nil || !r.kept.Over {
		t.Fatalf("it is %+v", r)
	}
	b.pass(keptFor + time.Minute)
	if len(b.core.reviews) != 0 || b.core.floors["main"] != 10 {
		t.Fatalf("remembered are %d, the floor is %v", len(b.core.reviews), b.core.floors)
	}
	b.facts = nil
	b.open(7, b.now, land)
	b.pass(time.Minute)
	if len(b.facts) != 0 {
		t.Fatalf("it asks again: %v", b.facts)
	}
	b.open(7, b.now, land, Event{ID: 20, Kind: Commented, Text: "/landfall land", Permission: WritePermission, By: User{ID: 3, Login: "ada"}})
	b.pass(time.Minute)
	if len(b.facts) != 1 || b.facts[0].(*eventsv1.LandRequest).RequestId != setting.requestID(7, 20) {
		t.Errorf("facts are %v", b.facts)
	}
	// The change is known to the queue, which says so: the host is told.
	b.outcomes++
	e := journal.Entry{Offset: b.outcomes, Topic: events.TopicOutcomes}
	e.Message = &eventsv1.ChangeOutcome{Queue: "main", Subject: "-request/0/1", Change: "pr-7", State: "unchanged", Revision: 1, RequestId: setting.requestID(7, 20), Sequence: 900, Reason: &eventsv1.OutcomeReason{Now: "cancelled"}}
	b.core.Apply(runner.Input{Record: &e, Now: b.now})
	b.run()
	if got := b.pulls[7].Status; got.State != StatusError {
		t.Errorf("the status is %+v", got)
	}
}

func TestAHostThatDoesNotCloseWhatIsMergedIsAskedMoreRarely(t *testing.T) {
	b := newBench(t)
	b.stubborn = true
	b.open(7, b.now.Add(-time.Minute), Event{ID: 10, Kind: Commented, Text: "/landfall land", Permission: WritePermission, By: User{ID: 3, Login: "ada"}})
	b.run()
	b.outcome(&eventsv1.ChangeOutcome{Change: "pr-7", State: "landed", Commits: []string{"c"}, Revision: 1, RequestId: setting.requestID(7, 10), Head: "a7"})
	for range 600 {
		b.pass(time.Second)
	}
	if b.merges < 5 || b.merges > 20 {
		t.Errorf("it is reported %d times in ten minutes", b.merges)
	}
}

// queued has a pull request asked for and admitted.
func (b *bench) queued(number int64) {
	b.open(number, b.now.Add(-time.Minute), Event{ID: 10, Kind: Commented, Text: "/landfall land", Permission: WritePermission, By: User{ID: 3, Login: "ada"}})
	b.pass(time.Minute)
	b.outcome(&eventsv1.ChangeOutcome{Change: ChangeOf(number), State: "admitted", Revision: 1, RequestId: setting.requestID(number, 10), Head: fmt.Sprint("a", number)})
	b.run()
}

// lack has something missing of a pull request, of which no list tells.
func (b *bench) lack(number int64, missing ...string) {
	p := b.pulls[number]
	p.Missing = missing
	b.pulls[number] = p
}

// TestACheckThatFailsHoldsWhatIsInTheQueueUntilItPasses, though the pull request itself does not change: by the news of its commit, or by a
// list if no news came.
func TestACheckThatFailsHoldsWhatIsInTheQueueUntilItPasses(t *testing.T) {
	for _, lost := range []bool{false, true} {
		b := newBench(t)
		b.queued(7)
		b.queued(8)
		b.facts, b.looks = nil, nil
		b.lack(7, "the check ci, which is failed")
		b.apply(&eventsv1.HostNoticed{Queue: "main", Commit: "a7"})
		b.run()
		if len(b.facts) != 1 || b.facts[0].(*eventsv1.ChangeHeld).Hold != readyHold || slices.Contains(b.looks, 8) {
			t.Fatalf("facts are %v, after looks at %v", b.facts, b.looks)
		}
		b.outcome(&eventsv1.ChangeOutcome{Change: "pr-7", State: "held", Revision: 1, RequestId: setting.requestID(7, 10), Head: "a7"})
		b.run()
		b.lack(7)
		b.facts, b.looks = nil, nil
		if lost {
			b.pass(31 * time.Second)
		} else {
			b.apply(&eventsv1.HostNoticed{Queue: "main"}) // a host that does not say of which commit
			b.run()
		}
		if len(b.facts) != 1 || b.facts[0].(*eventsv1.ChangeReleased).Hold != readyHold || slices.Contains(b.looks, 8) {
			t.Errorf("facts are %v, after looks at %v", b.facts, b.looks)
		}
	}
}

// merge closes a pull request as merged, as a host does that sees the push of its commits.
func (b *bench) merge(number int64) {
	p := b.pulls[number]
	p.Open, p.Merged = false, true
	p.Events, p.Last = append(p.Events, Event{ID: 20, Kind: Closed, Permission: WritePermission, By: User{ID: 4, Login: "key"}}), 20
	b.pulls[number] = p
	b.apply(&eventsv1.HostNoticed{Queue: "main", Number: number})
	b.run()
}

// TestAPullRequestThatTheHostClosesAsMergedBeforeTheLogSaysSoIsNotCancelled: the push is seen there first.
func TestAPullRequestThatTheHostClosesAsMergedBeforeTheLogSaysSoIsNotCancelled(t *testing.T) {
	b := newBench(t)
	b.queued(7)
	b.facts = nil
	b.merge(7)
	b.pass(5 * time.Second)
	if len(b.facts) != 0 {
		t.Fatalf("facts are %v", b.facts)
	}
	b.outcome(&eventsv1.ChangeOutcome{Change: "pr-7", State: "landed", Commits: []string{"a7"}, Revision: 1, RequestId: setting.requestID(7, 10), Head: "a7"})
	b.pass(2 * mergedPause)
	if got := b.pulls[7].Status; len(b.facts) != 0 || got.State != StatusSuccess {
		t.Errorf("facts are %v, the status %+v", b.facts, got)
	}
}

func TestAPullRequestThatSomebodyMergesByHandLeavesTheQueue(t *testing.T) {
	b := newBench(t)
	b.queued(7)
	b.facts = nil
	b.merge(7)
	b.pass(mergedPause + time.Second)
	if len(b.facts) != 1 || b.facts[0].(*eventsv1.ChangeCancelled).Why != "the pull request was merged by hand" {
		t.Errorf("facts are %v", b.facts)
	}
}

// TestAHostAtItsLimitsIsLeftAloneAndTakesWhatEndedFirst: a status that was refused waits as long as the host said; what has ended does not.
func TestAHostAtItsLimitsIsLeftAloneAndTakesWhatEndedFirst(t *testing.T) {
	b := newBench(t)
	until, refused := b.now.Add(time.Hour), 0
	b.refuse = func(r Report) error {
		if r.Status.State == StatusPending && b.now.Before(until) {
			refused++
			return &Later{Until: until}
		}
		return nil
	}
	b.queued(7)
	refused = 0
	for range 60 {
		b.pass(30 * time.Second)
	}
	if refused > 1 {
		t.Errorf("it is asked %d times in half an hour", refused)
	}
	b.outcome(&eventsv1.ChangeOutcome{Change: "pr-7", State: "landed", Commits: []string{"c"}, Revision: 1, RequestId: setting.requestID(7, 10), Head: "a7"})
	b.run()
	if got := b.pulls[7].Status; got.State != StatusSuccess {
		t.Errorf("the status is %+v", got)
	}
	b.queued(8)
	b.pass(time.Hour)
	if got := b.pulls[8].Status; got.State != StatusPending {
		t.Errorf("after the host takes reports again the status is %+v", got)
	}
}

// TestAReportThatHasToWaitHoldsUpNoLook: somebody cancels while a status is refused for an hour.
func TestAReportThatHasToWaitHoldsUpNoLook(t *testing.T) {
	b := newBench(t)
	b.queued(7)
	b.refuse = func(r Report) error {
		if b.refuse = nil; r.Status.State == StatusPending {
			p := b.pulls[7]
			p.Events, p.Last = append(p.Events, Event{ID: 20, Kind: Commented, Text: "/landfall cancel", Permission: WritePermission, By: User{ID: 3, Login: "ada"}}), 20
			b.pulls[7] = p
			b.apply(&eventsv1.HostNoticed{Queue: "main", Number: 7})
		}
		return &Later{Until: b.now.Add(time.Hour)}
	}
	b.facts = nil
	b.answer(Placed{Queue: "main", Places: map[string]Place{"pr-7": {Position: 2, State: "testing"}}})
	b.core.agendaOf("main").flying++ // the answer is one to no question
	b.pass(statusEvery)
	if b.refuse != nil || len(b.facts) != 1 {
		t.Errorf("facts are %v", b.facts)
	}
}

// TestAHostThatDoesNotAnswerHoldsUpNoOther: as many pull requests as you like wait for a host that is silent, and one at another host is
// looked at as soon as there is news of it.
func TestAHostThatDoesNotAnswerHoldsUpNoOther(t *testing.T) {
	other := setting
	other.Queue, other.Host = "other", "silent"
	c := newCore(map[string]Settings{"main": setting, "other": other}, access.NewRules(configuration.Access{}), time.Hour)
	now, offset := time.Unix(1_000_000, 0), int64(0)
	notice := func(queue string, number int64) {
		e := journal.Entry{Offset: offset, Topic: events.TopicHosts}
		e.Source, e.Term, e.Message = receiverSource, -1, &eventsv1.HostNoticed{Queue: queue, Number: number}
		offset++
		c.Apply(runner.Input{Record: &e, Now: now})
	}
	c.GoLive(now)
	begin := func() (looks []Look) {
		for _, e := range c.Decide() {
			if c.Fold(e); len(c.todo) > 0 {
				t.Fatal("there is something to be written")
			}
			if look, is := e.(Look); is {
				looks = append(looks, look)
			}
		}
		return looks
	}
	for number := range int64(100) {
		notice("other", number+1)
	}
	if looks := begin(); len(looks) != maxFlying-1 { // and a list
		t.Fatalf("%d looks are under way", len(looks))
	}
	notice("main", 500)
	if looks := begin(); len(looks) != 1 || looks[0].Key != (key{"main", 500}) {
		t.Errorf("with a host that does not answer, the looks at another are %v", looks)
	}
}

// TestStrangersHaveFewAnswers: a code host takes so many comments an hour and no more, and whoever can comment there would use them up.
func TestStrangersHaveFewAnswers(t *testing.T) {
	b := newBench(t)
	b.open(7, b.now)
	b.run()
	answers, event := 0, int64(0)
	b.refuse = func(r Report) error {
		if r.Text != "" {
			answers++
		}
		return nil
	}
	ask := func(text string, p Permission) {
		event++
		pull := b.pulls[7]
		pull.Events, pull.Last = append(pull.Events, Event{ID: event, Kind: Commented, Text: text, Permission: p, By: User{ID: 3 + int64(p), Login: "ada"}}), event
		b.pulls[7] = pull
		b.apply(&eventsv1.HostNoticed{Queue: "main", Number: 7})
		b.run()
	}
	const most = strangersAtOnce + 5
	for i := range 20 * 5 {
		ask([]string{"/landfall land", "/landfall hold", "/landfall x", "/landfall explain"}[i%4], Permission(i/4%2))
		b.pass(3 * time.Second)
	}
	if answers < strangersAtOnce || answers > most {
		t.Errorf("within five minutes strangers have %d answers, want %d to %d", answers, strangersAtOnce, most)
	}
	before := answers
	ask("/landfall x", WritePermission)
	if answers != before+1 {
		t.Error("whoever may land is not answered")
	}
	ask("/landfall land", WritePermission)
	if len(b.facts) != 1 {
		t.Errorf("whoever may land has asked, and facts are %v", b.facts)
	}
}

// dueOf is the simple twin of the agenda: it walks all reviews.
func dueOf(c *Core) (due []key) {
	for k, r := range c.reviews {
		if r.busy || r.nextUS > c.now {
			continue
		}
		if r.mustLook() || r.waitUS <= c.now && !r.report(c.settings[k.queue], c.now).empty() {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(a, b key) int { return int(a.number - b.number) })
	return due
}

func TestTheAgendaHoldsWhatAWalkFinds(t *testing.T) {
	r := seedtest.Random(t)
	b := newBench(t)
	for i := range int64(30) {
		b.open(i+1, b.now.Add(-time.Duration(r.IntN(100))*time.Minute))
	}
	event := int64(0)
	compare := func() {
		t.Helper()
		var got []key
		for _, s := range b.core.agendaOf("main").ready {
			got = append(got, s.key)
		}
		slices.SortFunc(got, func(a, b key) int { return int(a.number - b.number) })
		if want := dueOf(b.core); !slices.Equal(got, want) {
			t.Fatalf("the agenda has %v, a walk finds %v", got, want)
		}
		asking, waits := 0, 0
		for _, r := range b.core.reviews {
			if r.kept.RequestId != "" && !r.kept.Over && !r.isShown() {
				asking++
			}
			if r.state() == waiting || r.state().pending() {
				waits++
			}
		}
		if asking != b.core.asking["main"] || waits != len(b.core.checked["main"]) {
			t.Fatalf("%d ask and %d wait or are in the queue, and are counted as %d and %d", asking, waits, b.core.asking["main"], len(b.core.checked["main"]))
		}
	}
	states := []string{"admitted", "testing", "held", "rejected", "landed", "cancelled", "ejected"}
	for range 4000 {
		number := int64(r.IntN(30) + 1)
		p := b.pulls[number]
		k := key{"main", number}
		switch r.IntN(9) {
		case 0:
			event++
			p.Events = append(p.Events, Event{ID: event, Kind: Commented, By: User{ID: 3, Login: "ada"}, Permission: Permission(r.IntN(4)),
				Text: "/landfall " + []string{"land", "cancel", "retry", "hold", "release", "explain"}[r.IntN(6)]})
			p.Last, p.UpdatedUS = event, b.now.UnixMicro()
			b.pulls[number] = p
			if b.list(p); r.IntN(2) == 0 {
				b.apply(&eventsv1.HostNoticed{Queue: "main", Number: number})
			}
		case 1:
			p.Open, p.UpdatedUS = r.IntN(3) > 0, b.now.UnixMicro()
			b.pulls[number] = p
			b.list(p)
		case 2:
			p.Head, p.UpdatedUS = fmt.Sprint("h", r.IntN(5)), b.now.UnixMicro()
			b.pulls[number] = p
			b.list(p)
		case 3:
			p.Missing = []string{"an approval"}[:r.IntN(2)]
			b.pulls[number] = p
			b.apply(&eventsv1.HostNoticed{Queue: "main", Commit: p.Head})
		case 4, 5:
			if review := b.core.reviews[k]; review != nil && review.kept.RequestId != "" {
				b.outcome(&eventsv1.ChangeOutcome{Change: ChangeOf(number), State: states[r.IntN(len(states))], Revision: 1, RequestId: review.kept.RequestId, Head: review.kept.Head, Commits: []string{"c"}})
			}
		case 6:
			b.answer(Placed{Queue: "main", Places: map[string]Place{ChangeOf(number): {Position: r.IntN(9), State: states[r.IntN(len(states))]}}})
			b.core.agendaOf("main").flying++ // the answer is one to no question
		case 7:
			if effects := b.core.Decide(); len(effects) > 0 {
				if look, is := effects[len(effects)-1].(Look); is {
					b.core.Fold(look)
					b.answer(Looked{Key: look.Key, Err: fmt.Errorf("away")})
				}
			}
		default:
			b.pass(time.Duration(r.IntN(40)) * time.Second)
		}
		if compare(); r.IntN(3) == 0 {
			b.run()
			compare()
		}
	}
	if len(b.records) < 100 {
		t.Errorf("only %d records", len(b.records))
	}
}

// BenchmarkTick measures a look at what is due among ten thousand open pull requests in the queue, and the fold of a record.
func BenchmarkTick(b *testing.B) {
	w := newBench(b)
	for i := range int64(10_000) {
		w.records = append(w.records, &eventsv1.HostedChange{Host: "forge", Queue: "main", Number: i + 1, Change: ChangeOf(i + 1), Head: "a", RequestId: fmt.Sprint("r", i), StampUs: 1, Asker: &eventsv1.Actor{Name: "ada"}})
	}
	w.restart()
	for i := range int64(10_000) {
		w.outcome(&eventsv1.ChangeOutcome{Change: ChangeOf(i + 1), State: "admitted", RequestId: fmt.Sprint("r", i), Revision: 1})
	}
	for k, r := range w.core.reviews {
		r.noticed, r.pull = false, &Pull{Number: k.number, Open: true, Fits: true, Head: "a"}
		r.pull.Status = r.status(setting, queued, w.core.now)
		w.core.touch(k)
	}
	w.run()
	numbers := slices.Collect(maps.Keys(w.core.reviews))
	b.Run("nothing due", func(b *testing.B) {
		for range b.N {
			w.core.Apply(runner.Input{Tick: &runner.Tick{}, Now: w.now})
			w.core.Decide()
		}
	})
	b.Run("a webhook", func(b *testing.B) {
		for range b.N {
			w.apply(&eventsv1.HostNoticed{Queue: "main", Number: numbers[rand.IntN(len(numbers))].number})
			w.core.Decide()
		}
	})
}
