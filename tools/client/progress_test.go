package client

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// quick has slow answers told of at once, and states printed as soon as they are seen.
func quick(t *testing.T) {
	before := [...]time.Duration{slowAnswer, settled, tick}
	slowAnswer, settled, tick = time.Millisecond, 0, time.Millisecond
	t.Cleanup(func() { slowAnswer, settled, tick = before[0], before[1], before[2] })
}

// TestLinesSayEachStateThatLastsAndNowAndThenHowFarTheStepsAre: an author who waits for an hour does not look at nothing.
func TestLinesSayEachStateThatLastsAndNowAndThenHowFarTheStepsAre(t *testing.T) {
	var out bytes.Buffer
	w := newWatcher(&session{out: &out}, []string{"a"})
	now := clock()
	said := func() string {
		defer out.Reset()
		return out.String()
	}
	seen := func(state, why string, steps int, events ...view.Event) {
		u := view.Update{Summary: view.Summary{Change: "a", State: state, Why: why, StepsDone: steps}, Events: events}
		before, known := w.last["a"]
		w.last["a"] = u
		w.printEvents(u, before, known)
	}
	after := func(d time.Duration) string {
		w.printStates(now.Add(d))
		return said()
	}
	seen("waiting", "It is being analysed.", 0)
	if got := said(); !strings.Contains(got, "waiting: It is being analysed.\n") {
		t.Errorf("at once it says %q", got)
	}
	if got := after(time.Hour); got != "" {
		t.Errorf("the same state again: %q", got)
	}
	seen("testing", "A build is running: 0 of 9 steps done.", 0, view.Event{Kind: "build_scheduled", Text: "Build b scheduled."})
	said()
	if got := after(settled / 2); got != "" {
		t.Errorf("a state that has not lasted: %q", got)
	}
	if got := after(2 * settled); !strings.Contains(got, "testing: A build is running: 0 of 9 steps done.\n") {
		t.Errorf("a state that lasts: %q", got)
	}
	seen("testing", "A build is running: 4 of 9 steps done.", 4)
	if got := said() + after(stepsPause); got != "" {
		t.Errorf("soon after it says %q", got)
	}
	if got := after(3 * stepsPause); !strings.Contains(got, "4 of 9 steps done.\n") {
		t.Errorf("later it says %q", got)
	}
	seen("landed", "Landed as 1.", 9)
	said()
	if got := after(time.Hour); got != "" {
		t.Errorf("of what has landed it says %q", got)
	}
}

// TestARejectionIsToldOnceWithItsDecisiveLines to whoever waits for the change.
func TestARejectionIsToldOnceWithItsDecisiveLines(t *testing.T) {
	t.Chdir(t.TempDir())
	quick(t)
	f := serve(t)
	f.run("land", "a")
	output := make(chan string)
	go func() {
		out, _, _ := f.run("land", "a", "--wait")
		output <- out
	}()
	f.Schedule("main", "b1", "a", nil, "//x")
	f.Prepare("main", "b1", "a", "//x")
	for attempt := range uint32(2) {
		f.Finish("main", "b1", "//x", attempt+1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "x.go:3: boom\nx.go:4: bang\n", "")
	}
	reason := &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: "Command \"test\" ended with exit code 1."}
	f.Fold("main", events.TopicDecisions, &eventsv1.Decision{Items: []*eventsv1.DecisionItem{{Item: &eventsv1.DecisionItem_RejectDecided{
		RejectDecided: &eventsv1.RejectDecided{Change: apitest.Ref("a"), Decision: "d", Reason: reason}}}}})
	f.Reject("main", "a", "b1", "//x", 2)
	out := <-output
	for _, once := range []string{"your change breaks //x", "boom", "bang", "Rejected"} {
		if strings.Count(out, once) != 1 {
			t.Errorf("%q is %d times in\n%s", once, strings.Count(out, once), out)
		}
	}
	if out, _, _ := f.run("watch", "a"); strings.Count(out, "your change breaks //x") != 1 || strings.Count(out, "Rejected") != 1 {
		t.Errorf("watched when it is over:\n%s", out)
	}
}

func TestAnAnswerThatTakesLongIsToldOfOnce(t *testing.T) {
	quick(t)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		w.Write([]byte(`{}`))
	}))
	defer slow.Close()
	var progress bytes.Buffer
	c, err := New(slow.URL, "ada")
	if err != nil {
		t.Fatal(err)
	}
	c.progress = &progress
	for range 2 {
		if _, err := c.Land(t.Context(), "main", api.LandBody{}); err != nil {
			t.Fatal(err)
		}
	}
	if want := "waiting for " + slow.URL + ", which has not answered yet\n"; progress.String() != want {
		t.Errorf("it says %q, not %q", progress.String(), want)
	}
}
