package api_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

// heldUp is a backend that reads views only after goOn is closed.
type heldUp struct {
	*apitest.Backend
	begun atomic.Int64
	goOn  chan struct{}
}

func (s *heldUp) Read(name string, f func(*view.Queue)) bool {
	s.begun.Add(1)
	<-s.goOn
	return s.Backend.Read(name, f)
}

// TestOneCallerHasFewRequestsWorkedOnAtATime: hundreds of costly ones at once kept all others from a queue for minutes.
func TestOneCallerHasFewRequestsWorkedOnAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &heldUp{Backend: apitest.New("main"), goOn: make(chan struct{})}
		ask := askerOf(t, backend)
		var statuses [41]int
		for i := range 40 {
			go func() { statuses[i] = ask(t.Context(), "one", "GET", "/v1/queues/main/changes", "") }()
		}
		synctest.Wait()
		if got := backend.begun.Load(); got != 8 {
			t.Errorf("%d requests of one caller are worked on", got)
		}
		before := backend.begun.Load()
		go func() { statuses[40] = ask(t.Context(), "other", "GET", "/v1/queues/main/changes", "") }()
		synctest.Wait()
		if got := backend.begun.Load() - before; got != 1 {
			t.Errorf("%d of another one", got)
		}
		close(backend.goOn)
		synctest.Wait()
		for i, status := range statuses {
			if status != 200 {
				t.Errorf("request %d: %d", i, status)
			}
		}
	})
}

// TestWhoeverWaitsForTheLogOrWatchesIsNotWorkedOn asks for more at once than one caller has worked on.
func TestWhoeverWaitsForTheLogOrWatchesIsNotWorkedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := apitest.New("main")
		backend.SetSilent(true)
		ask := askerOf(t, backend)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 20 {
			go ask(ctx, "one", "POST", "/v1/queues/main/changes?wait=25s", fmt.Sprintf(`{"entries":[{"ref":"f%d"}]}`, i))
			go ask(ctx, "one", "GET", "/v1/queues/main/events", "")
			go ask(ctx, "one", "GET", "/v1/watch", "")
		}
		synctest.Wait()
		if status := ask(t.Context(), "one", "GET", "/v1/queues/main", ""); status != 200 {
			t.Errorf("one more: %d", status)
		}
		cancel()
		time.Sleep(time.Minute) // until what serves those who watch has ended
	})
}

// unread is a client that reads nothing.
type unread struct {
	*httptest.ResponseRecorder
	writes *atomic.Int64
	goOn   chan struct{}
}

func (u unread) Write(text []byte) (int, error) {
	u.writes.Add(1)
	<-u.goOn
	return 0, io.ErrClosedPipe
}

// TestWhoReadsNothingHasFewStatesKept: each stream that nobody reads has the state of a queue in memory until it is given up.
func TestWhoReadsNothingHasFewStatesKept(t *testing.T) {
	for _, path := range []string{"/v1/watch?changes=main", "/v1/queues/main/events"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var writes atomic.Int64
			goOn := make(chan struct{})
			serve := servedTo(t, apitest.New("main"))
			for range 20 {
				go serve(ctx, unread{httptest.NewRecorder(), &writes, goOn}, "one", "GET", path, "")
			}
			synctest.Wait()
			if got := writes.Load(); got != 8 {
				t.Errorf("%s: %d states are in memory", path, got)
			}
			close(goOn)
			cancel()
			time.Sleep(time.Minute)
		})
	}
}

// stalled is a client that reads the first part of a stream, and nothing more.
type stalled struct {
	unread
	begun bool
}

func (s *stalled) Write(text []byte) (int, error) {
	if !s.begun {
		s.begun = true
		return len(text), nil
	}
	return s.unread.Write(text)
}

// TestWhoStopsReadingHasFewChangesKept: what is new of a queue while a stream is not read was in memory once for each.
func TestWhoStopsReadingHasFewChangesKept(t *testing.T) {
	for _, path := range []string{"/v1/watch?changes=main", "/v1/queues/main/events"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var writes atomic.Int64
			goOn := make(chan struct{})
			backend := apitest.New("main")
			serve := servedTo(t, backend)
			for range 20 {
				go serve(ctx, &stalled{unread: unread{httptest.NewRecorder(), &writes, goOn}}, "one", "GET", path, "")
			}
			synctest.Wait()
			backend.Fold("main", events.TopicChanges, &eventsv1.QueuePaused{Who: "ada"})
			time.Sleep(time.Second) // until those who watch are told
			synctest.Wait()
			if got := writes.Load(); got != 8 {
				t.Errorf("%s: what is new is in memory %d times", path, got)
			}
			close(goOn)
			cancel()
			time.Sleep(time.Minute)
		})
	}
}

// TestAStreamKeepsLittleOfWhatItHasSent: all that a queue has was in memory once for each stream.
func TestAStreamKeepsLittleOfWhatItHasSent(t *testing.T) {
	const changes, clients, mostBytes, measurements = 300, 40, 250, 3
	least := int64(math.MaxInt64) // the heap is that of the whole process
	for range measurements {
		var held [2]runtime.MemStats
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			backend := apitest.New("main")
			for i := range changes {
				if _, err := backend.Land(ctx, &eventsv1.LandRequest{Queue: "main", Change: fmt.Sprint(i), Title: strings.Repeat("title ", 100), Entries: []*eventsv1.Entry{{Ref: fmt.Sprint(i)}}}); err != nil {
					t.Fatal(err)
				}
			}
			serve := servedTo(t, backend)
			for i := range held {
				for range i * clients {
					go serve(ctx, unkept{httptest.NewRecorder()}, "one", "GET", "/v1/queues/main/events", "")
				}
				synctest.Wait()
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&held[i])
			}
			cancel()
			synctest.Wait()
			runtime.KeepAlive(backend)
		})
		least = min(least, int64(held[1].HeapAlloc)-int64(held[0].HeapAlloc))
	}
	if each := least / changes / clients; each > mostBytes {
		t.Errorf("a stream keeps %d bytes of each change", each)
	}
}

// unkept is a client that keeps nothing of what it reads.
type unkept struct{ *httptest.ResponseRecorder }

func (unkept) Write(text []byte) (int, error) { return len(text), nil }

const finishedLog = "/v1/queues/main/changes/a/logs"

// withFinishedLog returns a backend that has finishedLog.
func withFinishedLog(t *testing.T) *apitest.Backend {
	t.Helper()
	backend := apitest.New("main")
	if _, err := backend.Land(t.Context(), &eventsv1.LandRequest{Queue: "main", Change: "a", Entries: []*eventsv1.Entry{{Ref: "a"}}}); err != nil {
		t.Fatal(err)
	}
	backend.Schedule("main", "b1", "a", nil, "//x")
	backend.Prepare("main", "b1", "a", "//x")
	backend.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "the end\n", "")
	return backend
}

// TestOneCallerIsSentFewLogsAtATime: each keeps a file open, and memory, for as long as its reader takes.
func TestOneCallerIsSentFewLogsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var writes atomic.Int64
		goOn := make(chan struct{})
		serve := servedTo(t, withFinishedLog(t))
		for range 500 {
			go serve(ctx, unread{httptest.NewRecorder(), &writes, goOn}, "one", "GET", finishedLog, "")
		}
		synctest.Wait()
		if got := writes.Load(); got != 500 {
			t.Errorf("%d logs are being sent", got)
		}
		one, other := httptest.NewRecorder(), httptest.NewRecorder()
		if serve(ctx, one, "one", "GET", finishedLog, ""); one.Code != 503 || !strings.Contains(one.Body.String(), "You are sent 500 logs, the most at a time.") {
			t.Errorf("one more: %d %s", one.Code, one.Body)
		}
		if serve(ctx, other, "other", "GET", finishedLog, ""); other.Code != 200 {
			t.Errorf("somebody else's: %d %s", other.Code, other.Body)
		}
		close(goOn)
		cancel()
		time.Sleep(time.Minute)
	})
}

// TestStreamsKeepNobodyFromLogs: while there are as many as there may be, everybody can read why a step has failed.
func TestStreamsKeepNobodyFromLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		serve := servedTo(t, withFinishedLog(t))
		for range 500 {
			for _, user := range []string{"one", "other"} {
				go serve(ctx, unkept{httptest.NewRecorder()}, user, "GET", "/v1/watch", "")
			}
		}
		synctest.Wait()
		for path, want := range map[string]int{"/v1/watch": 503, finishedLog: 200} {
			w := httptest.NewRecorder()
			if serve(ctx, w, "one", "GET", path, ""); w.Code != want {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		cancel()
		time.Sleep(time.Minute)
	})
}

// askerOf returns a function that sends a request as a user with proof, without a network.
func askerOf(t *testing.T, backend api.Backend) func(ctx context.Context, user, method, path, body string) (status int) {
	serve := servedTo(t, backend)
	return func(ctx context.Context, user, method, path, body string) int {
		w := httptest.NewRecorder()
		serve(ctx, w, user, method, path, body)
		return w.Code
	}
}

// servedTo is askerOf for one who takes the answer otherwise.
func servedTo(t *testing.T, backend api.Backend) func(ctx context.Context, w http.ResponseWriter, user, method, path, body string) {
	tokens := &apitest.Tokens{}
	h, err := api.NewHandler(api.Options{Backend: backend, Tokens: tokens, Access: configuration.Access{Mode: configuration.AccessRequired, Logs: "viewer", Rate: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	proofs := map[string]string{}
	for _, user := range []string{"one", "other"} {
		_, token := tokens.Make(user, access.Grant{Role: access.Admin, Queues: []string{"*"}}, time.Time{})
		proofs[user] = "Bearer " + token
	}
	return func(ctx context.Context, w http.ResponseWriter, user, method, path, body string) {
		request := httptest.NewRequest(method, path, strings.NewReader(body)).WithContext(ctx)
		request.Host = "localhost"
		request.Header.Set("Authorization", proofs[user])
		request.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, request)
	}
}
