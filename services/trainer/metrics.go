package trainer

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/registry"
	"landfall.build/platform/telemetry"
)

// Results of a training.
const (
	resultPublished = "published" // better: put into use
	resultRefused   = "refused"   // not better by more than chance, or not published
	resultNone      = "none"      // nothing could be trained
)

// measurement is what is measured of a kind of models of one queue.
type measurement struct {
	// trained is when a model was last trained by any process, dataUntil when the data of the model in use ends; in microseconds since
	// 1970, 0 for never and for none.
	trained, dataUntil int64
	// counts are the trainings by this process, by their result.
	counts map[string]int
}

// noteRegistry takes the models of a queue.
func (t *Trainer) noteRegistry(queue string, models *registry.Registry, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kind := range prediction.Kinds() {
		k := t.measurementOf(queueKind{queue, kind})
		k.trained, k.dataUntil = models.TrainedAt(kind, now.UnixMicro()), models.InUse(kind).GetCard().GetDataUntilUs()
	}
}

// noteResult takes the result of a training.
func (t *Trainer) noteResult(queue string, kind eventsv1.ModelKind, o Outcome, published bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.measurementOf(queueKind{queue, kind})
	result := resultNone
	if o.Report != nil {
		result, k.trained = resultRefused, now.UnixMicro()
		if o.Report.Better && published {
			result, k.dataUntil = resultPublished, o.Report.Model.GetCard().GetDataUntilUs()
		}
	}
	k.counts[result]++
}

// measurementOf requires mu.
func (t *Trainer) measurementOf(a queueKind) *measurement {
	if t.measurements == nil {
		t.measurements = map[queueKind]*measurement{}
	}
	if t.measurements[a] == nil {
		t.measurements[a] = &measurement{counts: map[string]int{resultPublished: 0, resultRefused: 0, resultNone: 0}}
	}
	return t.measurements[a]
}

func (t *Trainer) noteReachable(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unreachable = !is
}

// newMetrics registers what the trainer measures.
func newMetrics(m metric.Meter, t *Trainer) {
	each := func(f func(k *measurement, attributes []attribute.KeyValue)) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for a, k := range t.measurements {
			f(k, []attribute.KeyValue{telemetry.Queue.String(a.queue), kindKey.String(prediction.KindName(a.kind))})
		}
	}
	telemetry.Gauge(m, "landfall.trainer.last_training.timestamp", "s", "When a model was last trained, published or not, by this process or another one, in seconds since 1970; absent if never.",
		func(observe telemetry.Observe) {
			each(func(k *measurement, attributes []attribute.KeyValue) {
				if k.trained > 0 {
					observe(float64(k.trained)/1e6, attributes...)
				}
			})
		})
	telemetry.Gauge(m, "landfall.trainer.model.data_until.timestamp", "s", "When the data of the model in use ends, in seconds since 1970; absent where priors predict. 180 days later it is used no more.",
		func(observe telemetry.Observe) {
			each(func(k *measurement, attributes []attribute.KeyValue) {
				if k.dataUntil > 0 {
					observe(float64(k.dataUntil)/1e6, attributes...)
				}
			})
		})
	telemetry.Total(m, "landfall.trainer.trainings", "{training}", "Trainings by this process, by what came of them: published, refused (no better by more than chance) or none (nothing could be trained).",
		func(observe telemetry.Observe) {
			each(func(k *measurement, attributes []attribute.KeyValue) {
				for result, n := range k.counts {
					observe(float64(n), append(attributes[:2:2], telemetry.Outcome.String(result))...)
				}
			})
		})
	telemetry.Gauge(m, "landfall.trainer.failing", "", "1 while the history or the log cannot be read; nothing is trained then.", func(observe telemetry.Observe) {
		t.mu.Lock()
		defer t.mu.Unlock()
		failing := 0.0
		if t.unreachable {
			failing = 1
		}
		observe(failing)
	})
}

// kindKey is the kind of a model.
const kindKey = attribute.Key("landfall.model.kind")
