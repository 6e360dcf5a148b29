package builder

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/telemetry"
)

// metrics are what a builder measures.
type metrics struct {
	steps metric.Float64Histogram

	mu      sync.Mutex
	workers int
	// busy is how many workers work now, since when at was last moved; used, wasted and idle are what they did before.
	busy               int
	at                 time.Time
	idle, used, wasted time.Duration
}

// Attributes of workers.
const (
	workerState = telemetry.Key("cicd.worker.state")
	timeUse     = telemetry.Key("landfall.worker.use")
	poolKey     = telemetry.Key("landfall.pool")
)

func newMetrics(m metric.Meter, pool string) *metrics {
	of := poolKey.String(pool)
	b := &metrics{
		steps: telemetry.Histogram(m, "landfall.step.duration", "s", "Time that an attempt at a step takes, by how it ended.", telemetry.Long),
	}
	telemetry.Gauge(m, "cicd.worker.count", "{count}", "Workers of the builder: busy, or available.", func(observe telemetry.Observe) {
		b.mu.Lock()
		defer b.mu.Unlock()
		observe(float64(b.busy), of, workerState.String("busy"))
		observe(float64(max(0, b.workers-b.busy)), of, workerState.String("available"))
	})
	telemetry.Total(m, "landfall.worker.time", "s", "Time of workers: used on attempts that passed, failed or timed out; wasted on those that were ended or could not run; idle.",
		func(observe telemetry.Observe) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.pass(time.Now())
			for use, d := range map[string]time.Duration{"used": b.used, "wasted": b.wasted, "idle": b.idle} {
				observe(d.Seconds(), of, timeUse.String(use))
			}
		})
	return b
}

// pass counts the time that workers were idle. mu must be held.
func (b *metrics) pass(now time.Time) {
	if !b.at.IsZero() && now.After(b.at) {
		b.idle += now.Sub(b.at) * time.Duration(max(0, b.workers-b.busy))
	}
	b.at = now
}

// begin is called when the workers are there.
func (b *metrics) begin(workers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.workers, b.at = workers, time.Now()
}

// addBusy changes the number of workers that work.
func (b *metrics) addBusy(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pass(time.Now())
	b.busy += n
}

// step takes an attempt that has ended.
func (b *metrics) step(queue string, r *eventsv1.StepFinished) {
	took := time.Duration(r.FinishedUs-r.StartedUs) * time.Microsecond
	outcome := map[eventsv1.StepOutcome]string{
		eventsv1.StepOutcome_STEP_OUTCOME_PASSED: "passed", eventsv1.StepOutcome_STEP_OUTCOME_FAILED: "failed", eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT: "timed_out",
		eventsv1.StepOutcome_STEP_OUTCOME_ABORTED: "aborted",
	}[r.Outcome]
	b.mu.Lock()
	switch outcome {
	case "passed", "failed", "timed_out":
		b.used += took
	case "":
		outcome = "could_not_run"
		fallthrough
	default:
		b.wasted += took
	}
	b.mu.Unlock()
	b.steps.Record(context.Background(), took.Seconds(), metric.WithAttributes([]attribute.KeyValue{telemetry.Queue.String(queue), telemetry.Outcome.String(outcome)}...))
}
