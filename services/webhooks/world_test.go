package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
)

const testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// world is a log with outcomes, and receivers.
type world struct {
	t         testing.TB
	log       *memory.Log
	clock     time.Time
	logged    strings.Builder
	endpoints map[string]Endpoint
	store     *snapshot.Store
	sequence  map[string]int64
	owners    int
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, log: memory.New(memory.Options{ID: "log", Partitions: 1}), clock: time.Unix(100_000, 0), endpoints: map[string]Endpoint{}, sequence: map[string]int64{}}
	return w
}

// receiver is a server that remembers what it has taken.
type receiver struct {
	*httptest.Server
	mu sync.Mutex
	// taken are id and state of what it has taken, in order; tried counts the requests by id.
	taken []string
	tried map[string]int
	// answer returns the status for a request, by its id.
	answer func(id string) int
	heads  []http.Header
	bodies []string
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{tried: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		content, _ := io.ReadAll(in.Body)
		id := in.Header.Get("webhook-id")
		r.mu.Lock()
		answer := r.answer
		r.mu.Unlock()
		status := 200
		if answer != nil {
			status = answer(id)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tried[id]++
		if status == 200 {
			r.taken = append(r.taken, id)
			r.heads, r.bodies = append(r.heads, in.Header), append(r.bodies, string(content))
		}
		out.WriteHeader(status)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.taken...)
}

func (r *receiver) tries(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tried[id]
}

func (w *world) endpoint(name, url string, states ...string) {
	w.endpoints[name] = Endpoint{URL: url, AllowPrivate: true, Wants: Wants{States: states}, Secret: func(context.Context) ([]byte, error) { return []byte(testSecret), nil }}
}

// outcome writes the next outcome of a change, and returns its id.
func (w *world) outcome(change, state string) string {
	w.t.Helper()
	w.sequence[""] += 2
	id := fmt.Sprintf("main/%d", w.sequence[""])
	w.write(id, &eventsv1.ChangeOutcome{Queue: "main", Subject: change, Change: change, State: state, Sequence: w.sequence[""], Time: w.clock.UTC().Format(time.RFC3339)})
	return id
}

func (w *world) write(id string, m *eventsv1.ChangeOutcome) {
	w.t.Helper()
	if _, err := w.log.Append(w.t.Context(), events.TopicOutcomes, 0, events.Envelope{ID: id, Source: events.ServiceOutcomes, Queue: "main", Subject: m.Subject, Time: w.clock, Term: -1, Message: m, JSON: true}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) start() *runner.Owner {
	w.t.Helper()
	w.owners++
	o := Options{Endpoints: w.endpoints, Options: runner.Options{Log: w.log, Instance: fmt.Sprint(w.owners), Version: "test", Snapshots: w.store,
		Logger: slog.New(slog.NewTextHandler(&w.logged, nil)), Clock: func() time.Time { return w.clock }}}
	owner, err := runner.Take(w.t.Context(), o.Options, Service(o, 0), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return owner
}

// step lets an owner do what there is to do now.
func (w *world) step(o *runner.Owner) {
	w.t.Helper()
	if err := o.Tick(w.t.Context(), ""); err != nil {
		w.t.Fatal(err)
	}
	for {
		did, err := o.Step(w.t.Context())
		if err != nil && !errors.Is(err, runner.ErrSuperseded) {
			w.t.Fatal(err)
		}
		if err != nil || !did {
			return
		}
	}
}

// until steps until something holds.
func (w *world) until(o *runner.Owner, what string, holds func() bool) {
	w.t.Helper()
	for until := time.Now().Add(2 * time.Minute); !holds(); {
		if time.Now().After(until) {
			w.t.Fatalf("it does not come to it that %s; the log says\n%s", what, w.logged.String())
		}
		w.step(o)
		time.Sleep(time.Millisecond)
	}
}

// records returns the counted records of landfall.deliveries.
func (w *world) records() (list []proto.Message) {
	c, err := w.log.Follow(w.t.Context(), events.TopicDeliveries, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	terms := journal.NewTerms(events.TopicDeliveries)
	for e, ok, err := c.TryNext(); ok; e, ok, err = c.TryNext() {
		if err != nil {
			w.t.Fatal(err)
		}
		if terms.Counts(e) {
			list = append(list, e.Message)
		}
	}
	return list
}

// ended counts the deliveries that have ended in a state, by endpoint and id.
func (w *world) ended(state eventsv1.DeliveryState) map[string]int {
	out := map[string]int{}
	for _, m := range w.records() {
		if d, is := m.(*eventsv1.WebhookDelivery); is && d.State == state {
			out[d.Endpoint+" "+d.Id]++
		}
	}
	return out
}

func (w *world) delivered(o *runner.Owner, n int) {
	w.t.Helper()
	w.until(o, fmt.Sprint(n, " deliveries are made"), func() bool { return len(w.ended(eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED)) >= n })
}

func decode(t testing.TB, text string) (b body) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

func entry(offset int64, m proto.Message) journal.Entry {
	return journal.Entry{Topic: events.TopicOutcomes, Offset: offset, Envelope: events.Envelope{ID: fmt.Sprint("main/", offset), Queue: "main", Source: events.ServiceOutcomes, Term: -1, Time: time.Unix(1, 0), Message: m}}
}
