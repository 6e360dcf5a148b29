// Package trainer trains the models that predict: once a week, for each queue, from what the history in ClickHouse has of
// the last three months. What is better than the model in use and than a rolling baseline is put into use by a record of
// landfall.models; of what is not, the card is written. It keeps nothing: when it last trained stands in the topic.
package trainer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/journal/ownership"
	"landfall.build/services/journal/reading"
	"landfall.build/services/profiler/prediction"
	"landfall.build/services/trainer/book"
	"landfall.build/services/trainer/dataset"
	"landfall.build/services/trainer/fitting"
)

// Source is where the rows are. *dataset.Source is one.
type Source interface {
	Read(ctx context.Context, queue string, kind eventsv1.ModelKind, from time.Time) (*dataset.Set, error)
	Close() error
}

// Options of a trainer.
type Options struct {
	Log journal.Log
	// Open connects to the history; it is asked again after it failed.
	Open func() (Source, error)
	// Queues are those that it trains for.
	Queues []string
	// Every is the time between two trainings; a week if 0.
	Every time.Duration
	// History is how far back it looks; 90 days if 0.
	History  time.Duration
	Instance string
	Version  string
	Logger   *slog.Logger
}

// Defaults of Options.
const (
	Weekly     = 7 * 24 * time.Hour
	Quarter    = 90 * 24 * time.Hour
	checkEvery = 10 * time.Minute
	firstPause = 10 * time.Second
	// settling is how long after the start it looks first: on a new machine the history is only just being made.
	settling = time.Minute
	// again is when it is tried again of what nothing came.
	again = 24 * time.Hour
)

// Trainer trains.
type Trainer struct {
	o Options
	// one training at a time: it takes two processors.
	one sync.Mutex
	// tried is when a kind of a queue was tried of which nothing came: that leaves no record.
	tried sync.Map

	// What is measured: metrics.go.
	mu          sync.Mutex
	known       map[attempt]*known
	unreachable bool
}

type attempt struct {
	queue string
	kind  eventsv1.ModelKind
}

// New makes a trainer; Run runs it.
func New(o Options) *Trainer {
	if o.Every == 0 {
		o.Every = Weekly
	}
	if o.History == 0 {
		o.History = Quarter
	}
	return &Trainer{o: o}
}

// Outcome is what came of one training.
type Outcome struct {
	Queue string
	Kind  eventsv1.ModelKind
	// Report is nil where nothing could be trained; then Why says what is wrong with the rows, mostly fitting.ErrTooLittle.
	Report *fitting.Report
	Why    error
}

// Run trains what is due in the partitions that this process owns, until ctx ends. While the history cannot be asked it says
// so, and tries again.
func (t *Trainer) Run(ctx context.Context, owner ownership.Owner) error {
	return owner.Run(ctx, events.ServiceTrainer, events.TopicModels, t.partition)
}

func (t *Trainer) partition(ctx context.Context, partition int32) error {
	pause, backoff, told := settling, time.Duration(0), ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, t.o.Every)):
		}
		err := t.due(ctx, partition)
		t.noteReachable(err == nil || ctx.Err() != nil)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			if told != err.Error() {
				told = err.Error()
				t.o.Logger.Warn("no models are trained now; it is tried again, and the queue goes on", "err", err)
			}
			pause = min(max(2*backoff, firstPause), checkEvery)
			backoff = pause
		default:
			pause, backoff, told = checkEvery, 0, ""
		}
	}
}

// due trains what is due in a partition.
func (t *Trainer) due(ctx context.Context, partition int32) error {
	for _, queue := range t.o.Queues {
		if events.PartitionOf(queue, t.o.Log.Partitions()) != partition {
			continue
		}
		of, err := Read(ctx, t.o.Log, queue)
		if err != nil {
			return err
		}
		now := time.Now()
		t.noteBook(queue, of, now)
		for _, kind := range prediction.Kinds() {
			if now.Sub(time.UnixMicro(of.TrainedAt(kind, now.UnixMicro()))) < t.o.Every {
				continue
			}
			if tried, is := t.tried.Load(attempt{queue, kind}); is && time.Since(tried.(time.Time)) < min(t.o.Every, again) {
				continue
			}
			if _, err := t.train(ctx, queue, kind, of, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// Once trains kinds of all queues now, whenever they were trained last. With publish, what came of it is written to
// landfall.models. The error is of the history or the log; why a kind was not trained stands in its outcome.
func (t *Trainer) Once(ctx context.Context, kinds []eventsv1.ModelKind, publish bool) (out []Outcome, err error) {
	for _, queue := range t.o.Queues {
		of, err := Read(ctx, t.o.Log, queue)
		if err != nil {
			return out, err
		}
		for _, kind := range kinds {
			o, err := t.train(ctx, queue, kind, of, publish)
			if err != nil {
				return out, err
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// train trains one kind for one queue. The error is of the history or the log, and worth another try soon.
func (t *Trainer) train(ctx context.Context, queue string, kind eventsv1.ModelKind, of *book.Book, publish bool) (Outcome, error) {
	t.one.Lock()
	defer t.one.Unlock()
	out := Outcome{Queue: queue, Kind: kind}
	now := time.Now()
	set, err := t.read(ctx, queue, kind, now)
	if err != nil {
		return out, err
	}
	logger := t.o.Logger.With("queue", queue, "kind", prediction.KindName(kind))
	if set.OtherSchema > 0 {
		logger.Info("rows were left out: another version of the features made their vectors", "rows", set.OtherSchema)
	}
	report, err := fitting.Train(ctx, set, fitting.Options{InUse: of.InUse(kind), Now: now.UnixMicro(), Version: t.o.Version})
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case err != nil:
		// The same rows would give the same error: no other kind or queue is kept waiting by it.
		t.tried.Store(attempt{queue, kind}, now)
		out.Why = err
		t.noteResult(queue, kind, out, false, now)
		level := slog.LevelWarn
		if errors.Is(err, fitting.ErrTooLittle) {
			level = slog.LevelInfo
		}
		logger.Log(ctx, level, "no model was trained", "why", err)
		return out, nil
	}
	out.Report = report
	logger.Info("a model was trained", "version", prediction.ShortVersion(report.Model.Version), "better", report.Better, "verdict", report.Model.Card.Verdict)
	if !publish {
		t.noteResult(queue, kind, out, false, now)
		return out, nil
	}
	if err := Publish(ctx, t.o.Log, t.o.Instance, queue, Verdict(report, "trainer", now)); err != nil {
		return out, err
	}
	t.noteResult(queue, kind, out, true, now)
	return out, nil
}

func (t *Trainer) read(ctx context.Context, queue string, kind eventsv1.ModelKind, now time.Time) (*dataset.Set, error) {
	source, err := t.o.Open()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	return source.Read(ctx, queue, kind, now.Add(-t.o.History))
}

// Verdict is the record of a training: a promotion if it is better, else its card alone.
func Verdict(r *fitting.Report, who string, now time.Time) proto.Message {
	if r.Better {
		return &eventsv1.ModelPromoted{Model: r.Model, Who: who, Why: r.Model.Card.Verdict, StampUs: now.UnixMicro()}
	}
	m := proto.CloneOf(r.Model)
	m.Predictor, m.Calibration = nil, nil
	return &eventsv1.ModelTrained{Model: m, Who: who, StampUs: now.UnixMicro()}
}

// Publish writes a record of landfall.models for a queue.
func Publish(ctx context.Context, log journal.Log, instance, queue string, m proto.Message) error {
	now := time.Now()
	partition := events.PartitionOf(queue, log.Partitions())
	if n := proto.Size(m); n > events.MaxModelBytes {
		return fmt.Errorf("a model of %d bytes is not published: at most %d are taken", n, events.MaxModelBytes)
	}
	_, err := log.Append(ctx, events.TopicModels, partition, events.Envelope{
		ID:     events.DeriveID(log.ID(), events.TypeOf(m), queue, instance, strconv.FormatInt(now.UnixNano(), 10)),
		Source: events.ServiceTrainer, Instance: instance, Queue: queue, Time: now, Term: -1, Message: m,
	})
	if err != nil {
		return fmt.Errorf("write to %s: %w", events.TopicModels, err)
	}
	return nil
}

// Read folds what landfall.models holds of a queue now.
func Read(ctx context.Context, log journal.Log, queue string) (*book.Book, error) {
	partition := events.PartitionOf(queue, log.Partitions())
	end, err := log.End(ctx, events.TopicModels, partition)
	if err != nil {
		return nil, fmt.Errorf("end of %s/%d: %w", events.TopicModels, partition, err)
	}
	r, err := reading.To(ctx, log, events.TopicModels, partition, end, reading.Options{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := book.New()
	for {
		e, err := r.Take(ctx)
		if err != nil || e == nil {
			return b, err
		}
		if e.Queue == queue && e.Message != nil {
			b.Fold(e.Message)
		}
	}
}
