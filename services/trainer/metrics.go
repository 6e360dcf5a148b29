package trainer

import (
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/exposition"
	"landfall.build/services/profiler/prediction"
	"landfall.build/services/trainer/book"
)

// Results of a training.
const (
	resultPublished = "published" // better: put into use
	resultRefused   = "refused"   // not better by more than chance, or only looked at
	resultNone      = "none"      // nothing could be trained
)

// known is what a kind of a queue is measured by.
type known struct {
	// trained is when a model was last trained, by whomever; dataUntil when the data of the one in use ends. Microseconds since
	// 1970, 0 for never and for none.
	trained, dataUntil int64
	// result of the last training by this process, with why; empty if there was none.
	result, why, version string
	counts               map[string]int
}

// noteBook takes what the log says of a queue.
func (t *Trainer) noteBook(queue string, of *book.Book, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, kind := range prediction.Kinds() {
		k := t.knownOf(attempt{queue, kind})
		k.trained, k.dataUntil = of.TrainedAt(kind, now.UnixMicro()), of.InUse(kind).GetCard().GetDataUntilUs()
	}
}

// noteResult takes what came of a training.
func (t *Trainer) noteResult(queue string, kind eventsv1.ModelKind, o Outcome, published bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.knownOf(attempt{queue, kind})
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

// knownOf needs mu.
func (t *Trainer) knownOf(a attempt) *known {
	if t.known == nil {
		t.known = map[attempt]*known{}
	}
	if t.known[a] == nil {
		t.known[a] = &known{counts: map[string]int{resultPublished: 0, resultRefused: 0, resultNone: 0}}
	}
	return t.known[a]
}

func (t *Trainer) noteReachable(is bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unreachable = !is
}

// Measurements are what the trainer measures, for Prometheus.
func (t *Trainer) Measurements() []exposition.Family {
	t.mu.Lock()
	defer t.mu.Unlock()
	trained := exposition.Family{
		Name: "landfall_trainer_last_training_timestamp_seconds", Kind: exposition.Gauge,
		Help: "When a model was last trained, published or not, by this process or another one; absent if never.",
	}
	data := exposition.Family{
		Name: "landfall_trainer_model_data_until_timestamp_seconds", Kind: exposition.Gauge,
		Help: "When the data of the model in use ends; absent where priors predict. 180 days later it is used no more.",
	}
	result := exposition.Family{
		Name: "landfall_trainer_last_result", Kind: exposition.Gauge,
		Help: "What came of the last training by this process, as labels: published, refused (no better by more than chance) or none (nothing could be trained), and why.",
	}
	count := exposition.Family{
		Name: "landfall_trainer_trainings_total", Kind: exposition.Counter,
		Help: "Trainings by this process since it began, by what came of them.",
	}
	failing := exposition.Family{
		Name: "landfall_trainer_failing", Kind: exposition.Gauge, Help: "1 while the history or the log cannot be asked; nothing is trained then.",
	}
	unreachable := 0.0
	if t.unreachable {
		unreachable = 1
	}
	failing.Add(unreachable)
	for a, k := range t.known {
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
	return []exposition.Family{trained, data, result, count, failing}
}
