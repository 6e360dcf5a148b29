package gateway

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/telemetry"
	"landfall.build/services/gateway/view"
)

// metrics are what a gateway measures of the queues. Each gateway measures the same, from the log: what is counted is counted from its
// start on.
type metrics struct {
	finished, refused                 metric.Float64Counter
	turnaround, wait, builds          metric.Float64Histogram
	estimateError, landingProbability metric.Float64Histogram
}

// Attributes of queues.
const (
	stateKey  = telemetry.Key("landfall.change.state")
	causeKey  = telemetry.Key("landfall.wait.cause")
	targetKey = telemetry.Key("landfall.target.state")
	// serviceKey is a service of the flow, or the broker.
	serviceKey = telemetry.Key("landfall.service")
)

func newMetrics(m metric.Meter, g *Gateway) metrics {
	g.measureQueues(m)
	telemetry.Gauge(m, "landfall.service.missing", "", "1 for each service that has done no work on a partition with queues for ten seconds; /v1/services says why. Absent while it does.",
		func(observe telemetry.Observe) {
			for _, t := range g.fleet.Report().Missing {
				observe(1, serviceKey.String(t.Service), telemetry.Partition.String(strconv.Itoa(int(t.Partition))))
			}
		})
	refused := telemetry.Counter(m, "landfall.guard.refusals", "{refusal}", "Decisions that the check before landing refused.")
	for queue := range g.queues {
		refused.Add(context.Background(), 0, metric.WithAttributes(telemetry.Queue.String(queue))) // so that the first one is an increase
	}
	return metrics{
		finished:           telemetry.Counter(m, "landfall.queue.changes.finished", "{change}", "Changes that have left the queue, by how."),
		refused:            refused,
		turnaround:         telemetry.Histogram(m, "landfall.change.turnaround", "s", "Time from the land request to the end of the change, by how it ended.", telemetry.Long),
		wait:               telemetry.Histogram(m, "landfall.change.wait", "s", "Time that a change has waited for each cause, measured when it leaves.", telemetry.Long),
		builds:             telemetry.Histogram(m, "landfall.change.builds", "{build}", "Builds that a change took.", []float64{0, 1, 2, 3, 4, 6, 8, 12, 16, 32}),
		estimateError:      telemetry.Histogram(m, "landfall.prediction.time_error", "s", "How far the first estimate of when a change is decided was from when it was.", telemetry.Long),
		landingProbability: telemetry.Histogram(m, "landfall.prediction.landing_error", "1", "How far the first probability that a change lands was from the outcome, which is 1 or 0.", []float64{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1}),
	}
}

// measureQueues registers what is measured of the queues as they are.
func (g *Gateway) measureQueues(m metric.Meter) {
	gauge := func(name, unit, help string, of func(m view.Measures, now time.Time, observe telemetry.Observe)) {
		telemetry.Gauge(m, name, unit, help, func(observe telemetry.Observe) {
			if !g.ready.Load() {
				return
			}
			for queue, q := range g.queues {
				of(q.measures(), time.Now(), func(value float64, attributes ...attribute.KeyValue) {
					observe(value, append(attributes, telemetry.Queue.String(queue))...)
				})
			}
		})
	}
	gauge("landfall.queue.changes", "{change}", "Pending changes, by state.", func(m view.Measures, _ time.Time, observe telemetry.Observe) {
		for state, n := range m.Changes {
			observe(float64(n), stateKey.String(state))
		}
	})
	gauge("landfall.queue.oldest.age", "s", "Age of the change that has been pending longest; 0 if none is.", func(m view.Measures, now time.Time, observe telemetry.Observe) {
		observe(ageOf(m.Oldest, now))
	})
	gauge("landfall.queue.last_landing.age", "s", "Time since a change landed last; absent if none has.", func(m view.Measures, now time.Time, observe telemetry.Observe) {
		if !m.LastLanded.IsZero() {
			observe(ageOf(m.LastLanded, now))
		}
	})
	gauge("landfall.queue.paused", "", "1 while the queue is paused, else 0.", func(m view.Measures, _ time.Time, observe telemetry.Observe) {
		observe(map[bool]float64{true: 1}[m.Paused])
	})
	gauge("cicd.pipeline.run.active", "{run}", "Builds that hold a slot.", func(m view.Measures, _ time.Time, observe telemetry.Observe) {
		observe(float64(m.RunningBuilds))
	})
	gauge("landfall.mainline.targets", "{target}", "Targets in which the mainline is red, by a direct push (red) or by none, as since before the queue (red_before_queue), or has never been proven (unproven).",
		func(m view.Measures, _ time.Time, observe telemetry.Observe) {
			observe(float64(m.MainlineRed-m.Inherited), targetKey.String("red"))
			observe(float64(m.Inherited), targetKey.String("red_before_queue"))
			observe(float64(m.Unproven), targetKey.String("unproven"))
		})
	gauge("landfall.flaky.targets", "{target}", "Targets that have contradicted themselves, and those that are quarantined.", func(m view.Measures, _ time.Time, observe telemetry.Observe) {
		observe(float64(m.FlakyTargets), targetKey.String("flaky"))
		observe(float64(m.Quarantined), targetKey.String("quarantined"))
	})
	gauge("landfall.flaky.rate", "1", "Share of the versions of flaky targets that contradicted themselves.", func(m view.Measures, _ time.Time, observe telemetry.Observe) {
		observe(m.FlakeRate)
	})
	telemetry.Gauge(m, "landfall.queue.waiting", "{change}", "Pending changes, by what each waits for now.", func(observe telemetry.Observe) {
		for queue, q := range g.queues {
			for cause, n := range q.waitingFor() {
				observe(float64(n), causeKey.String(cause), telemetry.Queue.String(queue))
			}
		}
	})
	requests := func(name, unit, help string, of func(q *queue) float64) {
		telemetry.Gauge(m, name, unit, help, func(observe telemetry.Observe) {
			for queue, q := range g.queues {
				observe(of(q), telemetry.Queue.String(queue))
			}
		})
	}
	requests("landfall.requests.unanswered", "{request}", "Land requests that were read and are not answered.", func(q *queue) float64 { return float64(len(q.room)) })
	requests("landfall.requests.oldest.age", "s", "Age of the oldest request that waits for its turn; 0 if none does.", func(q *queue) float64 {
		return max(q.inbox.oldest(), q.far.oldest())
	})
}

func ageOf(at, now time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at).Seconds())
}

// oldest returns the age of the oldest request that waits, in seconds.
func (b *inbox) oldest() float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	age := 0.0
	for _, a := range b.waiting {
		age = max(age, time.Since(a.read).Seconds())
	}
	return age
}

func (q *queue) measures() view.Measures {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.state.View.Measures()
}

// waitingFor returns the number of pending changes by what they waited for when they were looked at last, nil before that.
func (q *queue) waitingFor() map[string]int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.causes == nil {
		return nil
	}
	byCause := map[string]int{}
	for _, cause := range view.Causes() {
		byCause[cause] = q.causes[cause]
	}
	return byCause
}

// waits is what is known of how long a pending change has waited for what.
type waits struct {
	byCause map[string]time.Duration
	// cause is what it waited for when it was looked at last, counted until the time counted.
	cause   string
	counted time.Time
	// median and lands are of the first estimate.
	median time.Time
	lands  float64
}

const (
	// sampleEvery is the least time between two looks at what each change waits for; sampleShare bounds what they cost, one in so many.
	sampleEvery = time.Second
	sampleShare = 200
)

// sampleWaits looks once in a while at what each change waits for, until the context ends.
func (g *Gateway) sampleWaits(ctx context.Context) error {
	for pause := sampleEvery; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		began := time.Now()
		for _, q := range g.queues {
			q.sample(began)
		}
		pause = max(sampleEvery, sampleShare*time.Since(began))
	}
}

// sample counts the time since the last look for what each change waits for now.
func (q *queue) sample(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.causes = map[string]int{}
	q.state.View.Waits(func(w view.Wait) {
		q.causes[w.Cause]++
		known := q.waits[w.Change]
		if known == nil {
			return // it was admitted before this gateway was ready
		}
		if known.median.IsZero() {
			known.median, known.lands = w.Median, w.Lands
		}
		known.count(w.Cause, now)
	})
}

// count counts the time since it was counted last for a cause.
func (w *waits) count(cause string, now time.Time) {
	w.cause = cause
	if now.After(w.counted) {
		w.byCause[cause] += now.Sub(w.counted)
		w.counted = now
	}
}

// measure takes a record that was folded, once the gateway is ready. The lock must be held.
func (q *queue) measure(e journal.Entry, c lineup.Consequence) {
	g := q.gateway
	if !g.ready.Load() || g.Meter == nil {
		return
	}
	ctx, of := context.Background(), telemetry.Queue.String(q.settings.Name)
	if _, is := e.Message.(*eventsv1.Refused); is {
		g.metrics.refused.Add(ctx, 1, metric.WithAttributes(of))
	}
	if c.Entered != nil {
		known := &waits{byCause: map[string]time.Duration{}, counted: time.UnixMicro(c.Entered.Admission.ReceivedUs)}
		known.count(view.CauseAdmission, e.Time)
		q.waits[c.Entered.ID()] = known
	}
	if c.Left == nil || c.Revised {
		return
	}
	s, ok := q.state.View.Summary(c.Left.ID())
	known := q.waits[c.Left.ID()]
	if delete(q.waits, c.Left.ID()); !ok {
		return
	}
	outcome := telemetry.Outcome.String(c.As.String())
	total := s.FinishedAt.Sub(s.AdmittedAt)
	g.metrics.finished.Add(ctx, 1, metric.WithAttributes(of, outcome))
	g.metrics.turnaround.Record(ctx, max(0, total.Seconds()), metric.WithAttributes(of, outcome))
	g.metrics.builds.Record(ctx, float64(q.state.View.BuildsOf(c.Left.ID())), metric.WithAttributes(of, outcome))
	if known == nil {
		return
	}
	// What came after the last look was of the same cause. A change that was never looked at was decided at once.
	if known.cause == view.CauseAdmission {
		known.cause = view.CauseDecision
	}
	known.count(known.cause, s.FinishedAt)
	for _, cause := range slices.Sorted(maps.Keys(known.byCause)) {
		g.metrics.wait.Record(ctx, known.byCause[cause].Seconds(), metric.WithAttributes(of, causeKey.String(cause)))
	}
	if c.As == lineup.Cancelled || known.median.IsZero() {
		return
	}
	landed := map[bool]float64{true: 1}[c.As == lineup.Landed]
	g.metrics.estimateError.Record(ctx, s.FinishedAt.Sub(known.median).Abs().Seconds(), metric.WithAttributes(of))
	g.metrics.landingProbability.Record(ctx, max(landed-known.lands, known.lands-landed), metric.WithAttributes(of))
}
