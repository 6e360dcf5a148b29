package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/health"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/timeline"
	"landfall.build/services/gateway/view"
)

// serveTimelines serves main and tools, each with a step of ten seconds in the pool default. It is an hour later.
func serveTimelines(t *testing.T) *guarded {
	g := serveGuarded(t, func(o *api.Options) { o.Clock = func() time.Time { return apitest.Start.Add(time.Hour) } })
	for _, queue := range []string{"main", "tools"} {
		g.Graph(queue, &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Pool: "default", PoolWorkers: 2}})
		g.Fold(queue, events.TopicBuilds, &eventsv1.StepFinished{Target: "//of:" + queue, Hash: "h", Attempt: 1, Build: "b", Worker: "m/1", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED,
			StartedUs: apitest.Start.Add(30 * time.Minute).UnixMicro(), FinishedUs: apitest.Start.Add(30*time.Minute + 10*time.Second).UnixMicro()})
	}
	g.SetServices(health.Report{Instances: []health.Instance{
		{Service: events.ServiceBuilder, Instance: "m", Alive: true, Started: apitest.Start, Workers: 2, Capacity: health.Capacity{Pool: "default"}},
		{Service: events.ServiceBuilder, Instance: "other", Alive: true, Workers: 2, Capacity: health.Capacity{Pool: "large"}},
	}})
	return g
}

func TestATimelineHasThePoolsQueuesThatTheCallerMayRead(t *testing.T) {
	g := serveTimelines(t)
	from := url.QueryEscape(apitest.Start.Add(29 * time.Minute).Format(time.RFC3339))
	to := url.QueryEscape(apitest.Start.Add(31 * time.Minute).Format(time.RFC3339))
	token := g.token(access.Viewer, "main")
	answer, text := g.do("GET", "/v1/pools/default/timeline?from="+from+"&to="+to, "", "Authorization", token)
	var made timeline.Timeline
	if err := json.Unmarshal([]byte(text), &made); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status, text, err)
	}
	if len(made.Queues) != 1 || made.Queues[0] != (timeline.PoolQueue{Name: "main", Workers: 2}) || len(made.Workers) != 2 || len(made.Workers[0].Steps) != 2 || made.BusyMS != 10_000 {
		t.Errorf("the timeline is %s", text)
	}
	if strings.Contains(text, "tools") || !strings.Contains(text, "//of:main") || !strings.Contains(text, `"state":"other"`) {
		t.Errorf("it tells %s", text)
	}
	if len(made.Idle) != 1 || made.Idle[0] != (timeline.IdleSum{Cause: timeline.NoStep, MS: 230_000}) {
		t.Errorf("idle %v", made.Idle)
	}
	// An hour up to now, if nothing is said.
	_, text = g.do("GET", "/v1/pools/default/timeline", "", "Authorization", token)
	if made = (timeline.Timeline{}); json.Unmarshal([]byte(text), &made) != nil || !made.From.Equal(apitest.Start) || !made.To.Equal(apitest.Start.Add(time.Hour)) {
		t.Errorf("without times it is %s", text)
	}
}

func TestATimelineOfNothingOrOfTooMuchIsRefused(t *testing.T) {
	g := serveTimelines(t)
	at := func(d time.Duration) string { return url.QueryEscape(apitest.Start.Add(d).Format(time.RFC3339)) }
	for path, want := range map[string]string{
		"/v1/pools/large/timeline":                                                     `404 No queue has the pool \"large\". The pools are: default.`,
		"/v1/pools/default/timeline?from=yesterday":                                    "400 from=yesterday is not a time.",
		"/v1/pools/default/timeline?to=x":                                              "400 to=x is not a time.",
		"/v1/pools/default/timeline?to=0000-01-01T00:00:00Z":                           "400 to=0000-01-01T00:00:00Z is before 1970.",
		"/v1/pools/default/timeline?from=" + at(time.Minute) + "&to=" + at(0):          "400 from is not before to",
		"/v1/pools/default/timeline?from=" + at(2*time.Hour):                           "400 from is not before to, or not in the past.",
		"/v1/pools/default/timeline?from=" + at(-8*24*time.Hour) + "&to=" + at(0):      "400 A timeline is 7 days long at most.",
		"/v1/pools/default/timeline?from=" + at(-time.Hour) + "&to=" + at(time.Hour*9): "200 ",
	} {
		answer, text := g.do("GET", path, "", "Authorization", g.token(access.Viewer, "main"))
		status, message, _ := strings.Cut(want, " ")
		message, advice, _ := strings.Cut(message, `. The`)
		if !strings.HasPrefix(answer.Status, status) || !strings.Contains(text, message) || !strings.Contains(text, advice) {
			t.Errorf("%s: %s %s, want %s", path, answer.Status, text, want)
		}
	}
	// Who may read no queue of the pool is not told that it is there.
	g.Graph("tools", &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Pool: "large", PoolWorkers: 2}})
	if answer, text := g.do("GET", "/v1/pools/large/timeline", "", "Authorization", g.token(access.Viewer, "main")); answer.StatusCode != http.StatusNotFound || !strings.Contains(text, "The pools are: default.") {
		t.Errorf("%s %s", answer.Status, text)
	}
	g.SetReady(false)
	if answer, _ := g.do("GET", "/v1/pools/default/timeline", "", "Authorization", g.token(access.Viewer, "main")); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("before the log is read: %s", answer.Status)
	}
}

// TestNothingIsTakenOfQueuesOfOtherPools: an answer costs the same, whatever they keep.
func TestNothingIsTakenOfQueuesOfOtherPools(t *testing.T) {
	b := apitest.New("main", "tools")
	h, err := api.NewHandler(api.Options{Backend: b, Clock: func() time.Time { return apitest.Start.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	b.Graph("main", &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Pool: "default", PoolWorkers: 2}})
	b.Graph("tools", &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Pool: "large", PoolWorkers: 2}})
	allocations := func() float64 {
		return testing.AllocsPerRun(20, func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/pools/default/timeline", nil))
			if w.Code != http.StatusOK {
				t.Fatal(w.Code, w.Body)
			}
		})
	}
	before := allocations()
	for i := range 5000 {
		at := apitest.Start.Add(time.Duration(i) * 100 * time.Millisecond)
		b.Fold("tools", events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: strconv.Itoa(i), Attempt: 1, Worker: "m/" + strconv.Itoa(i), Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: at.UnixMicro(), FinishedUs: at.UnixMicro() + 500_000})
	}
	if after := allocations(); after > before+30 {
		t.Errorf("with 5,000 steps of another pool an answer takes %v allocations, without %v", after, before)
	}
}

// slow is a backend whose first two reports on services wait until they may go on.
type slow struct {
	*apitest.Backend
	asked   atomic.Int32
	waiting chan struct{}
	goOn    chan struct{}
}

func (s *slow) Services() health.Report {
	if s.asked.Add(1) <= 2 {
		s.waiting <- struct{}{}
		<-s.goOn
	}
	return s.Backend.Services()
}

func TestTwoTimelinesAreMadeAtATime(t *testing.T) {
	b := &slow{Backend: apitest.New("main"), waiting: make(chan struct{}), goOn: make(chan struct{})}
	b.Graph("main", &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Pool: "default", PoolWorkers: 2}})
	h, err := api.NewHandler(api.Options{Backend: b, Clock: func() time.Time { return apitest.Start.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost/v1/pools/default/timeline", nil))
		return w.Code
	}
	codes := make(chan int, 2)
	for range 2 {
		go func() { codes <- ask(context.Background()) }()
		<-b.waiting
	}
	gone, stop := context.WithCancel(t.Context())
	stop()
	if code := ask(gone); code == http.StatusOK || b.asked.Load() != 2 {
		t.Errorf("a third one is answered with %d", code)
	}
	close(b.goOn)
	for range 2 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("one of two is answered with %d", code)
		}
	}
	if code := ask(t.Context()); code != http.StatusOK {
		t.Errorf("one after them is answered with %d", code)
	}
}

// TestATimelineOfWhatIsForgottenIsReadFromTheLog: more steps have run since than the gateway keeps.
func TestATimelineOfWhatIsForgottenIsReadFromTheLog(t *testing.T) {
	b := apitest.New("main")
	b.Graph("main", &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{Pool: "default", PoolWorkers: 2}})
	step := func(i int) {
		at := apitest.Start.Add(time.Duration(i+1) * time.Second)
		b.Fold("main", events.TopicBuilds, &eventsv1.StepFinished{Target: "//t", Hash: strconv.Itoa(i), Attempt: 1, Worker: "m/1", Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED, StartedUs: at.UnixMicro(), FinishedUs: at.UnixMicro() + 500_000})
	}
	kept := view.DefaultLimits().Attempts
	for i := range kept + 100 {
		step(i)
	}
	now := apitest.Start.Add(time.Duration(kept+1000) * time.Second)
	h, err := api.NewHandler(api.Options{Backend: b, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(from, to int) (made timeline.Timeline) {
		t.Helper()
		at := func(second int) string {
			return url.QueryEscape(apitest.Start.Add(time.Duration(second) * time.Second).Format(time.RFC3339))
		}
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "http://localhost/v1/pools/default/timeline?from="+at(from)+"&to="+at(to), nil)
		h.ServeHTTP(w, r)
		if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
		return made
	}
	for _, from := range []int{2, kept} { // what is forgotten, and what is kept
		made := ask(from, from+60)
		if len(made.Workers) != 1 || len(made.Workers[0].Steps) < 59 || !made.Since.IsZero() || made.BusyMS < 29_000 {
			t.Errorf("from the second %d on there are %d workers, %+v since %v", from, len(made.Workers), made.BusyMS, made.Since)
		}
	}
}
