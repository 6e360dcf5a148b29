// Package trainer trains the models that predict: for each queue once a week, from the last three months of the history in ClickHouse.
// A model that is better than the one in use and than a rolling baseline is put into use by a record of landfall.models; of another one
// the card is written. The trainer has no state: the topic records when it last trained.
package trainer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/engine/prediction"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/ownership"
	"landfall.build/platform/registry"
	"landfall.build/services/trainer/dataset"
	"landfall.build/services/trainer/fitting"
)

// Source reads the rows to train on. *dataset.Source is one.
type Source interface {
	Read(ctx context.Context, queue string, kind eventsv1.ModelKind, from time.Time) (*dataset.Set, error)
	Close() error
}

// Options of a trainer.
type Options struct {
	Log journal.Log
	// Open connects to the history. It is called for each training.
	Open func() (Source, error)
	// Queues are the queues to train for.
	Queues []string
	// Every is the time between two trainings; a week if 0.
	Every time.Duration
	// History is the age of the oldest rows; 90 days if 0.
	History  time.Duration
	Instance string
	Version  string
	Logger   *slog.Logger
	// Health, if set, is told what keeps the trainer from training.
	Health *health.Service
	// Meter, if set, measures.
	Meter metric.Meter
}

// Defaults of Options.
const (
	Weekly     = 7 * 24 * time.Hour
	Quarter    = 90 * 24 * time.Hour
	checkEvery = 10 * time.Minute
	firstPause = 10 * time.Second
	// startDelay is the time before the first check: on a new installation the tables of the history are being made.
	startDelay = time.Minute
	// retryAfter is the time after a training without a result.
	retryAfter = 24 * time.Hour
)

// Trainer trains models.
type Trainer struct {
	o Options
	// training is held by the one training that runs: it takes two processors.
	training sync.Mutex
	// failed has the times of trainings without a result, by queueKind: they leave no record.
	failed sync.Map

	// mu guards what is measured (metrics.go).
	mu           sync.Mutex
	measurements map[queueKind]*measurement
	unreachable  bool
}

// queueKind is a kind of models of one queue.
type queueKind struct {
	queue string
	kind  eventsv1.ModelKind
}

// New returns a trainer. Run runs it.
func New(o Options) *Trainer {
	if o.Every == 0 {
		o.Every = Weekly
	}
	if o.History == 0 {
		o.History = Quarter
	}
	t := &Trainer{o: o}
	newMetrics(o.Meter, t)
	return t
}

// Outcome is the result of one training.
type Outcome struct {
	Queue string
	Kind  eventsv1.ModelKind
	// Report is nil if nothing could be trained. Why then says what is wrong with the rows, mostly fitting.ErrTooLittle.
	Report *fitting.Report
	Why    error
}

// Run trains what is due in the partitions that this process owns, until ctx ends. While the history cannot be read it logs that once
// and tries again.
func (t *Trainer) Run(ctx context.Context, owner ownership.Owner) error {
	return owner.Run(ctx, events.ServiceTrainer, events.TopicModels, t.runPartition)
}

// runPartition trains what is due in a partition until ctx ends.
func (t *Trainer) runPartition(ctx context.Context, partition int32) error {
	working := t.o.Health.Begin(partition, health.NoTerm)
	defer working.End()
	working.Read(events.TopicModels, 0)
	working.CaughtUp()
	pause, backoff, logged := startDelay, time.Duration(0), ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(pause, t.o.Every)):
		}
		end, err := t.o.Log.End(ctx, events.TopicModels, partition)
		if err == nil {
			err = t.trainDue(ctx, partition)
		}
		t.noteReachable(err == nil || ctx.Err() != nil)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			t.o.Health.SetTrouble("no models are trained: " + err.Error())
			if logged != err.Error() {
				logged = err.Error()
				t.o.Logger.Warn("no models are trained now; it is tried again, and the queue goes on", "error", err)
			}
			pause = min(max(2*backoff, firstPause), checkEvery)
			backoff = pause
		default:
			pause, backoff, logged = checkEvery, 0, ""
			working.Read(events.TopicModels, end)
			t.o.Health.SetTrouble("")
		}
	}
}

// trainDue trains what is due in a partition.
func (t *Trainer) trainDue(ctx context.Context, partition int32) error {
	for _, queue := range t.o.Queues {
		if events.PartitionOf(queue, t.o.Log.Partitions()) != partition {
			continue
		}
		models, err := registry.Read(ctx, t.o.Log, queue)
		if err != nil {
			return err
		}
		now := time.Now()
		t.noteRegistry(queue, models, now)
		for _, kind := range prediction.Kinds() {
			if now.Sub(time.UnixMicro(models.TrainedAt(kind, now.UnixMicro()))) < t.o.Every {
				continue
			}
			if at, known := t.failed.Load(queueKind{queue, kind}); known && time.Since(at.(time.Time)) < min(t.o.Every, retryAfter) {
				continue
			}
			if _, err := t.train(ctx, queue, kind, models, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// Once trains some kinds of models for all queues now, whether they are due or not. With publish it writes the results to
// landfall.models. The error is one of the history or the log; an outcome says why nothing could be trained.
func (t *Trainer) Once(ctx context.Context, kinds []eventsv1.ModelKind, publish bool) (out []Outcome, err error) {
	for _, queue := range t.o.Queues {
		models, err := registry.Read(ctx, t.o.Log, queue)
		if err != nil {
			return out, err
		}
		for _, kind := range kinds {
			o, err := t.train(ctx, queue, kind, models, publish)
			if err != nil {
				return out, err
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// train trains one kind for one queue. The error is one of the history or the log, and worth a retry soon.
func (t *Trainer) train(ctx context.Context, queue string, kind eventsv1.ModelKind, models *registry.Registry, publish bool) (Outcome, error) {
	t.training.Lock()
	defer t.training.Unlock()
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
	report, err := fitting.Train(ctx, set, fitting.Options{InUse: models.InUse(kind), Now: now.UnixMicro(), Version: t.o.Version})
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case err != nil:
		// The same rows would give the same error, so it is not returned: that would hold up other kinds and queues.
		t.failed.Store(queueKind{queue, kind}, now)
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
	if err := registry.Publish(ctx, t.o.Log, events.ServiceTrainer, t.o.Instance, queue, Verdict(report, "trainer", now)); err != nil {
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

// Verdict returns the record of a training: a promotion if the model is better, else its card alone.
func Verdict(r *fitting.Report, who string, now time.Time) proto.Message {
	if r.Better {
		return &eventsv1.ModelPromoted{Model: r.Model, Who: who, Why: r.Model.Card.Verdict, StampUs: now.UnixMicro()}
	}
	m := proto.CloneOf(r.Model)
	m.Predictor, m.Calibration = nil, nil
	return &eventsv1.ModelTrained{Model: m, Who: who, StampUs: now.UnixMicro()}
}
