package trainer

import (
	"time"

	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/telemetry"
	"landfall.build/services/trainer/registry"
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
	// result, why and version are of the last training by this process; empty if there was none.
	result, why, version string
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
	switch {
	case o.Report == nil:
		k.result, k.why, k.version = resultNone, o.Why.Error(), ""
	default:
		card := o.Report.Model.GetCard()
		k.result, k.why, k.version = resultRefused, card.GetVerdict(), prediction.ShortVersion(o.Report.Model.GetVersion())
		k.trained = now.UnixMicro()
		if o.Report.Better && published {
			k.result, k.dataUntil = resultPublished, card.GetDataUntilUs()
		}
	}
	k.counts[k.result]++
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

// Measurements returns the trainer's metrics for Prometheus.
func (t *Trainer) Measurements() []telemetry.Family {
	t.mu.Lock()
	defer t.mu.Unlock()
	trained := telemetry.Family{
		Name: "landfall_trainer_last_training_timestamp_seconds", Kind: telemetry.Gauge,
		Help: "When a model was last trained, published or not, by this process or another one; absent if never.",
	}
	data := telemetry.Family{
		Name: "landfall_trainer_model_data_until_timestamp_seconds", Kind: telemetry.Gauge,
		Help: "When the data of the model in use ends; absent where priors predict. 180 days later it is used no more.",
	}
	result := telemetry.Family{
		Name: "landfall_trainer_last_result", Kind: telemetry.Gauge,
		Help: "What came of the last training by this process, as labels: published, refused (no better by more than chance) or none (nothing could be trained), and why.",
	}
	count := telemetry.Family{
		Name: "landfall_trainer_trainings_total", Kind: telemetry.Counter,
		Help: "Trainings by this process since it began, by what came of them.",
	}
	failing := telemetry.Family{
		Name: "landfall_trainer_failing", Kind: telemetry.Gauge, Help: "1 while the history or the log cannot be read; nothing is trained then.",
	}
	unreachable := 0.0
	if t.unreachable {
		unreachable = 1
	}
	failing.Add(unreachable)
	for a, k := range t.measurements {
		labels := []string{"queue", a.queue, "kind", prediction.KindName(a.kind)}
		if k.trained > 0 {
			trained.Add(float64(k.trained)/1e6, labels...)
		}
		if k.dataUntil > 0 {
			data.Add(float64(k.dataUntil)/1e6, labels...)
		}
		if k.result != "" {
			result.Add(1, append(labels[:4:4], "result", k.result, "version", k.version, "why", k.why)...)
		}
		for name, n := range k.counts {
			count.Add(float64(n), append(labels[:4:4], "result", name)...)
		}
	}
	return []telemetry.Family{trained, data, result, count, failing}
}
