package historian_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/journal/ownership"
	"landfall.build/platform/telemetry"
	"landfall.build/services/historian"
	"landfall.build/services/historian/rows"
	"landfall.build/services/historian/warehouse"
)

// tables is a store that may fail between any two of the inserts of a batch, as a server that is killed does.
type tables struct {
	mu     sync.Mutex
	random *rand.Rand
	// failing is the probability that an insert fails, before or after it was done; after mostFailed writes that failed, the
	// next one is well: each wait is twice the one before, and ten are more than a minute.
	failing    float64
	failed     int
	partitions map[historian.TopicPartition]*stored
	writes     int
	largest    int // batch, in records
	// unanswered is how many of the next calls of Position fail.
	unanswered int
}

type stored struct {
	next   int64
	events map[int64]bool
	counts map[int64]bool
	// tokens are the bounds of the batches that facts were written for, with how many.
	tokens map[string]int
	// overlapping is set when a batch of facts had other bounds than one before it that it overlaps.
	overlapping bool
	covered     int64
	claim       int64
}

func newTables(seed uint64, failing float64) *tables {
	return &tables{random: rand.New(rand.NewPCG(seed, 2)), failing: failing, partitions: map[historian.TopicPartition]*stored{}}
}

func (s *tables) of(topic string, partition int32) *stored {
	at := historian.TopicPartition{Topic: topic, Partition: partition}
	if s.partitions[at] == nil {
		s.partitions[at] = &stored{events: map[int64]bool{}, counts: map[int64]bool{}, tokens: map[string]int{}, claim: -1}
	}
	return s.partitions[at]
}

const mostFailed = 6

var errGone = errors.New("the server is gone")

// insert does something or not, and fails or not.
func (s *tables) insert(do func()) error {
	if s.failed >= mostFailed {
		do()
		return nil
	}
	before := s.random.Float64() < s.failing/2
	if !before {
		do()
	}
	if before || s.random.Float64() < s.failing/2 {
		return errGone
	}
	return nil
}

func (s *tables) Position(_ context.Context, topic string, partition int32) (warehouse.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unanswered > 0 {
		s.unanswered--
		return warehouse.Position{}, errGone
	}
	l := s.of(topic, partition)
	p := warehouse.Position{Next: l.next, Open: l.next - 1, Claims: map[string]int64{}}
	for offset := range l.events {
		p.Open = max(p.Open, offset)
	}
	if l.claim >= 0 && l.claim < l.next {
		p.Claims[events.ServiceSelector] = l.claim
	}
	return p, nil
}

func (s *tables) Write(_ context.Context, topic string, partition int32, from int64, set *rows.Set) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	l := s.of(topic, partition)
	first, last := set.First(), set.Last()
	for _, step := range []func(){
		func() {
			for i, offset := range set.Events.Offset {
				l.events[int64(offset)] = true
				l.counts[int64(offset)] = set.Events.Counts[i]
				if set.Events.Type[i] == "Claim" {
					l.claim = max(l.claim, int64(offset))
				}
			}
		},
		func() {
			token := fmt.Sprint(first, "-", last)
			if l.tokens[token] == 0 && first < l.covered {
				l.overlapping = true
			}
			l.tokens[token]++
			l.covered = max(l.covered, last+1)
		},
		func() {
			if l.next >= from {
				l.next = max(l.next, last+1)
			}
		},
	} {
		if err := s.insert(step); err != nil {
			s.failed++
			return err
		}
	}
	if l.next < last+1 {
		return warehouse.ErrForgotten
	}
	s.failed = 0
	s.largest = max(s.largest, set.Len())
	return nil
}

// run runs a historian until stop is called, or the test ends.
func run(t *testing.T, h *historian.Historian) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.Run(ctx, ownership.Static{Log: slog.New(slog.DiscardHandler), Partitions: 1})
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// reach waits until the history of decisions is at an offset.
func (s *tables) reach(t *testing.T, want int64) {
	t.Helper()
	for n := 0; ; n++ {
		s.mu.Lock()
		next := s.of(events.TopicDecisions, 0).next
		s.mu.Unlock()
		if next == want {
			return
		}
		if n > 6000 {
			t.Fatalf("after a minute the history is at %d of %d", next, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// fill appends decisions of a selector that is replaced now and then, and says which of them count.
func fill(t *testing.T, log *memory.Log, random *rand.Rand, n int) (counting map[int64]bool) {
	t.Helper()
	counting = map[int64]bool{}
	last, before := int64(-1), int64(-1)
	for range n {
		e := events.Envelope{Source: events.ServiceSelector, Instance: "s", Queue: "main", Term: last, Message: &eventsv1.Decision{}}
		claim := last < 0 || random.IntN(40) == 0
		if claim {
			e.Message, e.Term = &eventsv1.Claim{Service: events.ServiceSelector}, -1
		} else if random.IntN(4) == 0 {
			e.Term = before // an instance that was replaced
		}
		offsets, err := log.Append(t.Context(), events.TopicDecisions, 0, e)
		if err != nil {
			t.Fatal(err)
		}
		if claim {
			before, last = last, offsets[0]
		}
		counting[offsets[0]] = !claim && e.Term == last
	}
	return counting
}

// TestABatchIsRepeatedWithItsBoundsHoweverItsWriteFailed: what counts is what counted, nothing is missing, and no
// facts are written with bounds that cut through a batch of before.
func TestABatchIsRepeatedWithItsBoundsHoweverItsWriteFailed(t *testing.T) {
	seed := seedtest.Of(t)
	random := rand.New(rand.NewPCG(seed, 0))
	log := memory.New(memory.Options{Partitions: 1})
	store := newTables(seed, 0.3)
	counting := fill(t, log, random, 400)
	stop := run(t, historian.New(historian.Options{Log: log, Logger: slog.New(slog.DiscardHandler), Interval: time.Millisecond, Topics: []string{events.TopicDecisions},
		Open: func(context.Context) (historian.Store, error) { return store, nil }}))
	repeated := func() bool {
		store.mu.Lock()
		defer store.mu.Unlock()
		return store.writes > len(store.of(events.TopicDecisions, 0).tokens)
	}
	// On a busy machine a few batches take everything, and may well all be written at once.
	for round := 0; round < 6 || round < 100 && !repeated(); round++ {
		for offset, counts := range fill(t, log, random, 40) {
			// A later fill begins without knowing the claims before it, and claims first.
			counting[offset] = counts
		}
		time.Sleep(time.Duration(random.IntN(20*(min(round, 5)+1))) * time.Millisecond)
	}
	end, err := log.End(t.Context(), events.TopicDecisions, 0)
	if err != nil {
		t.Fatal(err)
	}
	store.reach(t, end)
	stop()
	l := store.of(events.TopicDecisions, 0)
	if l.overlapping {
		t.Error("facts were written with bounds that cut through a batch of before")
	}
	for offset, counts := range counting {
		if !l.events[offset] || l.counts[offset] != counts {
			t.Errorf("record %d: there %v, counts %v; it should be there, and count %v", offset, l.events[offset], l.counts[offset], counts)
		}
	}
	if !repeated() {
		t.Error("nothing was ever repeated: the test shows nothing")
	}
}

// TestAStoreThatIsMadeAnewIsFilledFromTheFirstRecord: another historian has made the database again while this one was at its end,
// which writes one batch and then all that is missing, in batches of the usual bounds.
func TestAStoreThatIsMadeAnewIsFilledFromTheFirstRecord(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	random := rand.New(rand.NewPCG(seedtest.Or(t, 1), 1))
	counting := fill(t, log, random, warehouse.MaxRecords+1000)
	store := newTables(1, 0)
	var out bytes.Buffer
	var mu sync.Mutex
	h := historian.New(historian.Options{
		Log: log, Logger: slog.New(slog.NewTextHandler(locked{&mu, &out}, nil)), Interval: time.Millisecond, Topics: []string{events.TopicDecisions},
		Open: func(context.Context) (historian.Store, error) { return store, nil },
	})
	stop := run(t, h)
	store.reach(t, int64(len(counting)))
	store.mu.Lock()
	clear(store.partitions)
	store.mu.Unlock()
	for offset, counts := range fill(t, log, random, 10) {
		counting[offset] = counts
	}
	store.reach(t, int64(len(counting)))
	stop()
	l := store.of(events.TopicDecisions, 0)
	for offset, counts := range counting {
		if !l.events[offset] || l.counts[offset] != counts {
			t.Fatalf("record %d: there %v, counts %v; it should be there, and count %v", offset, l.events[offset], l.counts[offset], counts)
		}
	}
	if store.largest > warehouse.MaxRecords {
		t.Errorf("a batch had %d records", store.largest)
	}
	if text := out.String(); strings.Count(text, warehouse.ErrForgotten.Error()) != 1 {
		t.Errorf("people read:\n%s", text)
	}
}

// TestTroublesAreToldOnceAndThatTheyAreOver: a store that cannot be reached for a while is two lines for people.
func TestTroublesAreToldOnceAndThatTheyAreOver(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	fill(t, log, rand.New(rand.NewPCG(seedtest.Or(t, 1), 1)), 50)
	store := newTables(1, 0)
	var out bytes.Buffer
	var mu sync.Mutex
	tries := 0
	measured := telemetry.New(telemetry.Options{Logger: slog.New(slog.DiscardHandler)})
	h := historian.New(historian.Options{
		Log: log, Logger: slog.New(slog.NewTextHandler(locked{&mu, &out}, &slog.HandlerOptions{Level: slog.LevelWarn})), Interval: time.Millisecond,
		Meter: measured.Meter(events.ServiceHistorian),
		Open: func(context.Context) (historian.Store, error) {
			if tries++; tries < 4 {
				return nil, errGone
			}
			return store, nil
		},
	})
	stop := run(t, h)
	for n := 0; n < 3000; n++ {
		if lag, known := h.Lag()[historian.TopicPartition{Topic: events.TopicDecisions}]; known && lag == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	var shown strings.Builder
	if err := measured.Write(&shown); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nlandfall_historian_failing{service_name=\"landfall-historian\"} 0\n"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("the metrics lack %q:\n%s", want, shown.String())
		}
	}
	if !strings.Contains(shown.String(), "\nlandfall_historian_written_total{service_name=\"landfall-historian\"} 50\n") {
		t.Errorf("50 records were written, and the metrics say otherwise:\n%s", shown.String())
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	if text := out.String(); strings.Count(text, "cannot be written now") != 1 || strings.Count(text, "written again") != 1 || strings.Count(text, "\n") != 2 {
		t.Errorf("people read:\n%s", text)
	}
	if store.of(events.TopicDecisions, 0).next != 50 {
		t.Errorf("the history is at %d", store.of(events.TopicDecisions, 0).next)
	}
}

// TestALaneWithoutRecordsIsNotFailingForEver: what could not be asked of once and has nothing to write is well as soon as it is
// answered, and what a process writes no more is none of its failures.
func TestALaneWithoutRecordsIsNotFailingForEver(t *testing.T) {
	for _, x := range []struct {
		name       string
		unanswered int
		shown      []string // what is measured, in turn, before the end and after
	}{
		{"answered later", 2, []string{"landfall_historian_failing{service_name=\"landfall-historian\"} 1", "landfall_historian_failing{service_name=\"landfall-historian\"} 0"}},
		{"never answered", 1 << 30, []string{"landfall_historian_failing{service_name=\"landfall-historian\"} 1"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			store := newTables(1, 0)
			store.unanswered = x.unanswered
			var out bytes.Buffer
			var mu sync.Mutex
			measured := telemetry.New(telemetry.Options{Logger: slog.New(slog.DiscardHandler)})
			h := historian.New(historian.Options{
				Meter: measured.Meter(events.ServiceHistorian),
				Log:   memory.New(memory.Options{Partitions: 1}), Logger: slog.New(slog.NewTextHandler(locked{&mu, &out}, nil)), Topics: []string{events.TopicDecisions},
				Open: func(context.Context) (historian.Store, error) { return store, nil },
			})
			stop := run(t, h)
			shows := func(want string) bool {
				var shown strings.Builder
				if err := measured.Write(&shown); err != nil {
					t.Fatal(err)
				}
				return strings.Contains(shown.String(), "\n"+want+"\n")
			}
			for _, want := range x.shown {
				for n := 0; !shows(want); n++ {
					if n > 20_000 {
						t.Fatalf("it never showed %s", want)
					}
					time.Sleep(time.Millisecond)
				}
			}
			stop()
			if !shows("landfall_historian_failing{service_name=\"landfall-historian\"} 0") {
				t.Error("what it writes no more is failing still")
			}
			mu.Lock()
			defer mu.Unlock()
			if over := strings.Count(out.String(), "written again"); over != len(x.shown)-1 {
				t.Errorf("%d times it was over:\n%s", over, out.String())
			}
		})
	}
}

type locked struct {
	mu  *sync.Mutex
	out *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
