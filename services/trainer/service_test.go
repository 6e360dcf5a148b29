package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/features"
	"landfall.build/engine/prediction"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/journal/ownership"
	"landfall.build/platform/registry"
	"landfall.build/platform/telemetry"
	"landfall.build/services/trainer"
	"landfall.build/services/trainer/dataset"
)

const success = eventsv1.ModelKind_MODEL_KIND_SUCCESS

// past is a history that is made up: of success there is something to learn, of all else nothing.
type past struct {
	mu    sync.Mutex
	asked map[string]int
	// fails is what reading a kind of a queue gives.
	fails map[string]error
	// spoilt kinds of queues have rows that no learner takes.
	spoilt map[string]bool
	opened int
}

func (p *past) open() (trainer.Source, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened++
	return p, nil
}

func (p *past) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened--
	return nil
}

func (p *past) Read(_ context.Context, queue string, kind eventsv1.ModelKind, from time.Time) (*dataset.Set, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := queue + " " + prediction.KindName(kind)
	p.asked[name]++
	if err := p.fails[name]; err != nil {
		return nil, err
	}
	set := &dataset.Set{Queue: queue, Kind: kind}
	if kind != success {
		return set, nil
	}
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 900 {
		v := make([]float32, len(features.OfChange()))
		for k := range v {
			v[k] = float32(math.NaN())
		}
		targets := r.IntN(30)
		v[features.IndexOfChange("targets")] = float32(targets)
		if p.spoilt[name] {
			v[features.IndexOfChange("targets")] = float32(math.Inf(1 - 2*r.IntN(2)))
		}
		at := from.Add(time.Duration(i) * time.Minute).UnixMicro()
		row := dataset.Row{At: at, Ended: at + 1, Vector: v, Predicted: 0.5, Source: "prior"}
		if r.Float64() < 1/(1+math.Exp(2*(math.Log1p(float64(targets))-2))) {
			row.Target = 1
		}
		set.Rows = append(set.Rows, row)
	}
	return set, nil
}

// asks is how often a kind of a queue was asked for.
func (p *past) asks(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[name]
}

// lines is what was logged, by whatever goroutine.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestM31WhatIsDueIsTrainedPromotedAndTriedAgainAWeekLater: by the clock of a bubble. The second week brings the same rows, and so
// nothing better: only the card is written, and the model in use stays.
func TestM31WhatIsDueIsTrainedPromotedAndTriedAgainAWeekLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := memory.New(memory.Options{Partitions: 2})
		history := &past{asked: map[string]int{}}
		var said lines
		// A machine whose clock was a year ahead keeps nobody from training.
		ahead := &eventsv1.Model{Kind: success, Version: "ahead", Card: &eventsv1.ModelCard{TrainedUs: time.Now().AddDate(1, 0, 0).UnixMicro()}}
		if err := registry.Publish(ctx, log, events.ServiceTrainer, "ahead", "b", &eventsv1.ModelTrained{Model: ahead, Who: "trainer"}); err != nil {
			t.Fatal(err)
		}
		measured := telemetry.New(telemetry.Options{Logger: slog.New(slog.DiscardHandler)})
		teach := trainer.New(trainer.Options{
			Meter: measured.Meter(events.ServiceTrainer),
			Log:   log, Open: history.open, Queues: []string{"a", "b"}, Instance: "test", Version: "test",
			Logger: slog.New(slog.NewTextHandler(&said, nil)),
		})
		done := make(chan error, 1)
		go func() {
			done <- teach.Run(ctx, ownership.Static{Log: slog.New(slog.DiscardHandler), Partitions: 2})
		}()
		time.Sleep(time.Hour)
		first := read(t, log, "a")
		if len(first.Entries) != 1 || first.Entries[0].Event != registry.Promoted || !first.Entries[0].HasPredictor() || first.Entries[0].Who != "trainer" {
			t.Fatalf("after an hour: %v\n%s", first.Entries, said.String())
		}
		if _, err := prediction.Open(first.InUse(success)); err != nil {
			t.Error(err)
		}
		if a, b, c := history.asks("a success"), history.asks("b success"), history.asks("a duration"); a != 1 || b != 1 || c != 1 {
			t.Errorf("asked within an hour: %d, %d, %d", a, b, c)
		}
		measures(t, measured, true, trainings("a", "success", "published", 1), "\nlandfall_trainer_failing{service_name=\"landfall-trainer\"} 0\n", trainings("b", "success", "published", 1),
			`landfall_trainer_model_data_until_timestamp_seconds{landfall_model_kind="success",landfall_queue="a",service_name="landfall-trainer"} `)
		measures(t, measured, false, trainings("a", "duration", "none", 0))
		measures(t, measured, false, `timestamp_seconds{landfall_model_kind="duration",landfall_queue="a"`)
		time.Sleep(6*24*time.Hour + 12*time.Hour)
		if a, b := history.asks("a success"), history.asks("a duration"); a != 1 || b != 7 {
			t.Errorf("what there is too little of is tried daily, the rest weekly: %d, %d", b, a)
		}
		time.Sleep(24 * time.Hour)
		second := read(t, log, "a")
		if len(second.Entries) != 2 || second.Entries[1].Event != registry.Declined || second.Entries[1].HasPredictor() || second.InUse(success).GetVersion() != first.InUse(success).GetVersion() {
			t.Fatalf("after a week: %v\n%s", second.Entries, said.String())
		}
		if !strings.Contains(second.Entries[1].Why, "in_use") || !strings.Contains(second.Entries[1].Why, "not better") {
			t.Errorf("why: %q", second.Entries[1].Why)
		}
		measures(t, measured, true, trainings("a", "success", "refused", 1),
			fmt.Sprintf("landfall_trainer_last_training_timestamp_seconds{landfall_model_kind=\"success\",landfall_queue=\"a\",service_name=\"landfall-trainer\"} %s", strconv.FormatFloat(float64(second.TrainedAt(success, time.Now().UnixMicro()))/1e6, 'g', -1, 64)))
		cancel()
		<-done
		if history.opened != 0 {
			t.Errorf("%d connections were left open", history.opened)
		}
	})
}

// TestAHistoryThatCannotBeAskedIsSaidOnceAndAskedAgain, and rows that no learner takes keep nobody else waiting.
func TestAHistoryThatCannotBeAskedIsSaidOnceAndAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log := memory.New(memory.Options{Partitions: 1})
		gone := fmt.Errorf("%w: connection refused", dataset.ErrNoHistory)
		history := &past{asked: map[string]int{}, fails: map[string]error{"a success": gone}, spoilt: map[string]bool{"a success": true}}
		var said lines
		measured := telemetry.New(telemetry.Options{Logger: slog.New(slog.DiscardHandler)})
		teach := trainer.New(trainer.Options{
			Meter: measured.Meter(events.ServiceTrainer),
			Log:   log, Open: history.open, Queues: []string{"a", "b"}, Instance: "test", Version: "test",
			Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		done := make(chan error, 1)
		go func() {
			done <- teach.Run(ctx, ownership.Static{Log: slog.New(slog.DiscardHandler), Partitions: 1})
		}()
		time.Sleep(5 * time.Hour)
		if n := strings.Count(said.String(), "connection refused"); n != 1 || history.asks("a success") < 25 || history.asks("b success") != 0 {
			t.Errorf("said %d times, asked %d", n, history.asks("a success"))
		}
		measures(t, measured, true, "\nlandfall_trainer_failing{service_name=\"landfall-trainer\"} 1\n")
		history.mu.Lock()
		delete(history.fails, "a success")
		history.mu.Unlock()
		time.Sleep(time.Hour)
		if b := read(t, log, "b"); b.InUse(success) == nil {
			t.Errorf("no model of b, though its rows are good\n%s", said.String())
		}
		measures(t, measured, true, "\nlandfall_trainer_failing{service_name=\"landfall-trainer\"} 0\n", trainings("a", "success", "none", 1))
		if a := read(t, log, "a"); len(a.Entries) != 0 || !strings.Contains(said.String(), "no model was trained") {
			t.Errorf("of what no learner takes: %v\n%s", a.Entries, said.String())
		}
		cancel()
		<-done
	})
}

func TestOnceWritesOnlyIfToldToAndOnlyWhatIsTaken(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	history := &past{asked: map[string]int{}}
	teach := trainer.New(trainer.Options{Log: log, Open: history.open, Queues: []string{"a"}, Instance: "test", Version: "test", Logger: slog.New(slog.DiscardHandler)})
	for i, publish := range []bool{false, true, true} {
		outcomes, err := teach.Once(t.Context(), prediction.Kinds(), publish)
		if err != nil || len(outcomes) != 3 || outcomes[0].Report == nil || outcomes[1].Why == nil || outcomes[2].Why == nil {
			t.Fatalf("%v, %v", outcomes, err)
		}
		if got := read(t, log, "a").Entries; len(got) != i {
			t.Errorf("%d records after %d trainings", len(got), i+1)
		}
	}
	history.fails = map[string]error{"a conflict": dataset.ErrNoHistory}
	if outcomes, err := teach.Once(t.Context(), prediction.Kinds(), false); !errors.Is(err, dataset.ErrNoHistory) || len(outcomes) != 1 {
		t.Errorf("%v, %v", outcomes, err)
	}
	large := &eventsv1.ModelPromoted{Model: &eventsv1.Model{Kind: success, Predictor: make([]byte, events.MaxModelBytes)}}
	if err := registry.Publish(t.Context(), log, events.ServiceTrainer, "test", "a", large); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a model that nobody takes: %v", err)
	}
	if got := read(t, log, "b").Entries; len(got) != 0 {
		t.Errorf("another queue has %d records", len(got))
	}
}

// trainings is the line of the trainings of a kind for a queue with a result.
func trainings(queue, kind, result string, n int) string {
	return fmt.Sprintf("landfall_trainer_trainings_total{landfall_model_kind=%q,landfall_outcome=%q,landfall_queue=%q,service_name=\"landfall-trainer\"} %d\n", kind, result, queue, n)
}

// measures fails the test unless texts are in the metrics, or are not, as expected.
func measures(t *testing.T, measured *telemetry.Telemetry, are bool, texts ...string) {
	t.Helper()
	var out strings.Builder
	if err := measured.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if strings.Contains(out.String(), text) != are {
			t.Errorf("%q, expected %v, in\n%s", text, are, out.String())
		}
	}
}

func read(t *testing.T, log *memory.Log, queue string) *registry.Registry {
	t.Helper()
	b, err := registry.Read(t.Context(), log, queue)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range b.Entries {
		if proto.Size(e.Model) == 0 {
			t.Error("an entry without a model")
		}
	}
	return b
}
