package lander_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/guard"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
	"landfall.build/platform/telemetry"
	"landfall.build/services/lander"
)

// remote is a mainline that ends as it is told to.
type remote struct {
	head    string
	history map[string][]string // of a head, what it contains beside itself
	read    error
	made    error
	pushed  error
	// refuses, if set, says how the push of a commit ends; fenced is how that of a commit without changes does.
	refuses  func(commit string) error
	fenced   error
	contains int // calls
	// versions are what changes make of the mainline.
	versions map[string][]*eventsv1.TargetVersion
}

func (r *remote) Head(context.Context) (string, error) { return r.head, r.read }

func (r *remote) Between(_ context.Context, from, to string) ([]lander.Move, bool, error) {
	for i, c := range r.history[to] {
		if c == from {
			var moves []lander.Move
			for _, m := range append(r.history[to][i+1:], to) {
				moves = append(moves, lander.Move{Commit: m})
			}
			return moves, false, nil
		}
	}
	return nil, true, nil
}

func (r *remote) Make(_ context.Context, base string, a *eventsv1.Admission, _ int64, _ []string) (*lander.Landing, error) {
	return &lander.Landing{
		Commits: []string{a.Change + "-on-" + base}, Tree: "tree", Candidate: guard.Candidate{Versions: r.versions[a.Change]},
	}, r.made
}

func (r *remote) Contains(_ context.Context, head, commit string) (bool, error) {
	r.contains++
	for _, c := range r.history[head] {
		if c == commit {
			return true, nil
		}
	}
	return head == commit, nil
}

func (r *remote) Push(_ context.Context, base, commit string) error {
	err := r.pushed
	if r.refuses != nil {
		err = r.refuses(commit)
	}
	if err == nil {
		r.move(commit, append(r.history[base], base)...)
	}
	return err
}

func (r *remote) MoveHeads(context.Context, []*eventsv1.ReviewHead) error     { return nil }
func (r *remote) TakeBackHeads(context.Context, []*eventsv1.ReviewHead) error { return nil }

func (r *remote) PushNothing(_ context.Context, base string, _ int64) error {
	if r.fenced == nil {
		r.move("nothing-on-"+base, append(r.history[base], base)...)
	}
	return r.fenced
}

// move sets the head, with what it contains.
func (r *remote) move(head string, contains ...string) {
	if r.history == nil {
		r.history = map[string][]string{}
	}
	r.head, r.history[head] = head, append([]string{}, contains...)
}

// harness is a lander on one queue, whose clock is set by hand.
type harness struct {
	*testing.T
	log      *memory.Log
	remote   *remote
	now      time.Time
	measured *telemetry.Telemetry
	lander   *runner.Owner
}

func newHarness(t *testing.T) *harness {
	o := &harness{T: t, log: memory.New(memory.Options{ID: "log", Partitions: 1}), remote: &remote{}, now: time.UnixMicro(1_000_000_000_000)}
	o.measured = telemetry.New(telemetry.Options{Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(o.log.Close)
	o.remote.move("m0")
	o.startLander()
	return o
}

// startLander starts a new instance, which replaces the one before.
func (o *harness) startLander() {
	o.Helper()
	options := runner.Options{Log: o.log, Instance: "i", Version: "test", Logger: slog.New(slog.DiscardHandler), Clock: func() time.Time { return o.now }}
	service := lander.Service(lander.Options{Options: options, Mainlines: map[string]lander.Mainline{"main": o.remote}, Measured: lander.NewMetrics(o.measured.Meter(events.ServiceLander))}, 0, 0)
	owner, err := runner.Take(o.Context(), options, service, 0)
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(owner.Close)
	o.lander = owner
}

var measuredRefusals = regexp.MustCompile(`landfall_push_refusals_total\{landfall_queue="main",landfall_refusal_concern="change",service_name="landfall-lander"\} (\d+)`)

const measuredPause = `landfall_landings_paused{landfall_queue="main",service_name="landfall-lander"} 1`

// measures returns what is measured now.
func (o *harness) measures() string {
	o.Helper()
	var out strings.Builder
	if err := o.measured.Write(&out); err != nil {
		o.Fatal(err)
	}
	return out.String()
}

// append writes a record of another service.
func (o *harness) append(topic, service string, term int64, m proto.Message) {
	o.Helper()
	if _, err := o.log.Append(o.Context(), topic, 0, events.Envelope{ID: fmt.Sprint(o.now.UnixNano(), topic, m), Source: service, Queue: "main", Term: term, Time: o.now, Message: m}); err != nil {
		o.Fatal(err)
	}
}

// poll lets the lander look at the mainline, and do all that it can do then.
func (o *harness) poll(after time.Duration) {
	o.Helper()
	o.now = o.now.Add(after)
	o.runUntilIdle()
	if err := o.lander.Tick(o.Context(), ""); err != nil {
		o.Fatal(err)
	}
	o.runUntilIdle()
}

// runUntilIdle lets the lander act until there is nothing to do.
func (o *harness) runUntilIdle() {
	o.Helper()
	for range 1000 {
		did, err := o.lander.Step(o.Context())
		if err != nil {
			o.Fatal(err)
		}
		if !did {
			return
		}
	}
	o.Fatal("the lander finds no rest")
}

// mainlineRecords returns the records that report trouble with the mainline.
func (o *harness) mainlineRecords() (list []string) {
	o.Helper()
	o.each(func(e journal.Entry) {
		switch f := e.Message.(type) {
		case *eventsv1.MainlineUnreachable:
			list = append(list, strings.ToLower(strings.TrimPrefix(f.Trouble.String(), "MAINLINE_TROUBLE_")))
		case *eventsv1.MainlineReachable:
			list = append(list, "reachable")
		}
	})
	return list
}

func (o *harness) each(f func(journal.Entry)) {
	o.Helper()
	c, err := o.log.Follow(o.Context(), events.TopicChanges, 0, 0)
	if err != nil {
		o.Fatal(err)
	}
	defer c.Close()
	for {
		e, ok, err := c.TryNext()
		if err != nil {
			o.Fatal(err)
		}
		if !ok {
			return
		}
		f(e)
	}
}

func (o *harness) wants(list ...string) {
	o.Helper()
	if got := o.mainlineRecords(); fmt.Sprint(got) != fmt.Sprint(list) {
		o.Fatalf("the log tells %v, want %v", got, list)
	}
}

// admit lets a change be admitted.
func (o *harness) admit(change string) {
	o.Helper()
	o.now = o.now.Add(time.Millisecond)
	o.append(events.TopicChanges, events.ServiceGateway, -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: "main", Change: change, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: change}},
	}})
}

// decide writes a decision of a selector that has read all of landfall.changes.
func (o *harness) decide(items ...*eventsv1.DecisionItem) {
	o.Helper()
	o.now = o.now.Add(time.Millisecond)
	if o.end(events.TopicDecisions) == 0 {
		o.append(events.TopicDecisions, events.ServiceSelector, -1, &eventsv1.Claim{Service: events.ServiceSelector})
	}
	o.append(events.TopicDecisions, events.ServiceSelector, 0, &eventsv1.Decision{
		StampUs: o.now.UnixMicro(), Positions: &eventsv1.Positions{Changes: o.end(events.TopicChanges), Builds: o.end(events.TopicBuilds)},
		Steps: &eventsv1.StepPolicy{}, Items: items,
	})
}

func (o *harness) end(topic string) int64 {
	o.Helper()
	end, err := o.log.End(o.Context(), topic, 0)
	if err != nil {
		o.Fatal(err)
	}
	return end
}

// land lets a change be admitted and decided to land; it affects nothing, so the guard lets it.
func (o *harness) land(change string) {
	o.Helper()
	o.admit(change)
	o.decide(&eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_LandDecided{LandDecided: &eventsv1.LandDecided{
		Change: &eventsv1.ChangeRef{Change: change, Revision: 1}, Decision: "land " + change,
	}}})
}

// TestAMainlineThatCannotBeReadIsToldOnceWhenItLastsAndOnceWhenItIsOver, however often it is looked at in between.
func TestAMainlineThatCannotBeReadIsToldOnceWhenItLastsAndOnceWhenItIsOver(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.remote.read = fmt.Errorf("%w (refs/heads/main)", lander.ErrNoBranch)
	o.poll(2 * time.Second)
	o.remote.read = nil
	o.poll(2 * time.Second)
	o.wants() // it passed
	o.remote.read = fmt.Errorf("%w (refs/heads/main)", lander.ErrNoBranch)
	for range 200 {
		o.poll(2 * time.Second)
	}
	o.wants("branch_missing")
	if got := o.measures(); !strings.Contains(got, `landfall_mainline_unreachable{landfall_mainline_trouble="branch_missing",landfall_queue="main",service_name="landfall-lander"} 1`) {
		t.Errorf("measured: %s", got)
	}
	o.remote.read = nil
	o.poll(2 * time.Second)
	o.wants("branch_missing", "reachable")
	o.poll(2 * time.Second)
	o.wants("branch_missing", "reachable")
	if got := o.measures(); strings.Contains(got, "landfall_mainline_unreachable{") {
		t.Errorf("measured: %s", got)
	}
}

// TestALanderMeasuresNothingOfAPartitionThatItGaveUp: the next owner may be another process, which sees for itself.
func TestALanderMeasuresNothingOfAPartitionThatItGaveUp(t *testing.T) {
	o := newHarness(t)
	o.remote.read = errors.New("no route to host")
	o.poll(0)
	if got := o.measures(); !strings.Contains(got, "landfall_mainline_unreachable{") {
		t.Fatalf("measured while it cannot be read: %s", got)
	}
	o.lander.Close()
	if got := o.measures(); strings.Contains(got, "landfall_mainline_unreachable{") {
		t.Errorf("measured of what is not owned any more: %s", got)
	}
}

// TestAnotherLanderSaysThatAMainlineIsBack: what was told is in the log, not in the one who told it.
func TestAnotherLanderSaysThatAMainlineIsBack(t *testing.T) {
	o := newHarness(t)
	o.remote.read = errors.New("no route to host")
	o.poll(0)
	o.poll(time.Minute)
	o.wants("unreadable")
	o.startLander()
	o.poll(time.Minute)
	o.poll(time.Minute)
	o.wants("unreadable")
	o.remote.read = nil
	o.startLander()
	o.poll(0)
	o.wants("unreadable", "reachable")
}

// TestAPushThatNeverArrivesIsTold, with git's words, and so are commits that cannot be made; that the branch can be
// read does not end it.
func TestAPushThatNeverArrivesIsTold(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.remote.pushed = errors.New("permission denied\n\xff " + strings.Repeat("ü", 1000))
	o.land("a")
	for range 20 {
		o.poll(2 * time.Second)
	}
	o.wants("push_unanswered")
	o.each(func(e journal.Entry) {
		if f, is := e.Message.(*eventsv1.MainlineUnreachable); is {
			if m := f.Message; !strings.Contains(m, "permission denied � ü") || len(m) > 600 || !utf8.ValidString(m) {
				t.Errorf("the message: %q", m)
			}
			if lasted := time.Duration(f.StampUs-f.SinceUs) * time.Microsecond; lasted < 10*time.Second || lasted > 13*time.Second {
				t.Errorf("told after %s", lasted)
			}
		}
	})
	o.remote.pushed = nil
	o.poll(2 * time.Second)
	o.wants("push_unanswered", "reachable")

	o.remote.made = errors.New("no space left on device")
	o.land("b")
	for range 20 {
		o.poll(2 * time.Second)
	}
	o.wants("push_unanswered", "reachable", "unmade")
	o.remote.made = nil
	o.poll(2 * time.Second)
	o.wants("push_unanswered", "reachable", "unmade", "reachable")
	if o.remote.head != "b-on-a-on-m0" {
		t.Errorf("the mainline is at %s", o.remote.head)
	}
}

// TestTroublesThatAlternateDoNotFillTheLog.
func TestTroublesThatAlternateDoNotFillTheLog(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	o.remote.made = errors.New("no space left on device")
	o.land("a")
	for i := range 300 { // ten minutes
		if o.remote.read = nil; i%2 == 1 {
			o.remote.read = errors.New("no route to host")
		}
		o.poll(2 * time.Second)
	}
	if n := len(o.mainlineRecords()); n < 1 || n > 3 {
		t.Errorf("told %v", o.mainlineRecords())
	}
}

// TestAForcedPushNamesTheLandingsThatItDrops: those that were on the mainline, and again when it is set back to them.
func TestAForcedPushNamesTheLandingsThatItDrops(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	for _, c := range []string{"a", "b", "c"} {
		o.land(c)
		o.poll(time.Second)
	}
	a, b, c := "a-on-m0", "b-on-a-on-m0", "c-on-b-on-a-on-m0"
	if o.remote.head != c {
		t.Fatalf("the mainline is at %s", o.remote.head)
	}
	drops := func(want string) {
		t.Helper()
		o.poll(time.Second)
		got := "none"
		o.each(func(e journal.Entry) {
			if f, is := e.Message.(*eventsv1.MainlineMoved); is && f.Forced {
				got = fmt.Sprintf("%s:", f.To)
				for _, c := range f.Dropped {
					got += fmt.Sprintf(" %s@%d", c.Change, c.Revision)
				}
			}
		})
		if got != want {
			t.Fatalf("the forced push is reported as %q, want %q", got, want)
		}
	}
	o.remote.move("x", a, "m0")
	drops("x: b@1 c@1")
	o.startLander() // the next one knows it from the log
	o.remote.move("y", b, a, "m0")
	drops("y: c@1")
	o.remote.move("z", "elsewhere")
	drops("z: a@1 b@1 c@1")
	o.remote.move(c, b, a, "m0")
	drops(c + ":")
	o.remote.move("z", "elsewhere")
	drops("z: a@1 b@1 c@1")
	o.remote.move(c, b, a, "m0")
	drops(c + ":")
	// The same move made twice is two records, also to who keeps records by their ids.
	seen := map[string]int64{}
	o.each(func(e journal.Entry) {
		if at, twice := seen[e.ID]; twice {
			t.Errorf("offsets %d and %d have one id: %T", at, e.Offset, e.Message)
		}
		seen[e.ID] = e.Offset
	})
}

// TestLandingsAreRememberedUpToABound, and who drops them is found out with few questions.
func TestLandingsAreRememberedUpToABound(t *testing.T) {
	o := newHarness(t)
	o.poll(0)
	for i := range 300 {
		o.land(fmt.Sprint("c", i))
		o.poll(time.Second)
	}
	kept := o.remote.history[o.remote.head][:290]
	o.remote.contains = 0
	o.remote.move("x", kept...)
	o.poll(time.Second)
	if o.remote.contains > 12 {
		t.Errorf("%d questions", o.remote.contains)
	}
	o.remote.move("y")
	o.poll(time.Second)
	var dropped []int
	o.each(func(e journal.Entry) {
		if f, is := e.Message.(*eventsv1.MainlineMoved); is && f.Forced {
			dropped = append(dropped, len(f.Dropped))
		}
	})
	if fmt.Sprint(dropped) != "[11 256]" {
		t.Errorf("dropped: %v", dropped)
	}
}
