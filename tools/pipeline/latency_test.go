package pipeline_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/ownership"
	"landfall.build/platform/runner"
	"landfall.build/services/lander"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/pipeline"
	"landfall.build/tools/replay"
)

const (
	// eventsPerSecond is the load from outside: admissions, analyses, preparations, leases, finished steps.
	eventsPerSecond = 50
	// samplesPerOperation is what one benchmark operation measures; warmUp events come before the first.
	samplesPerOperation = 100
	warmUp              = 100
	// partitions is what the log's topics have.
	partitions = 4
)

// shapes returns the queues that are measured with a worker free for every build that is worth one: it is the
// pipeline that is measured, not the wait for a worker. About 500 builds run.
func shapes() []shape {
	return []shape{
		{name: "3-ahead", pending: 500, workers: 2000, threshold: 0.5},
		{name: "50-ahead", pending: 500, hubs: 5, workers: 2000, threshold: 0.5},
		{name: "all-conflict", pending: 500, hubs: 1, workers: 2000, threshold: 0.5},
	}
}

// fewWorkers returns a queue with the default settings and 64 workers, all of them busy.
func fewWorkers() shape {
	return shape{name: "3-ahead-64-workers", pending: 500, workers: 64, threshold: 0.05}
}

// BenchmarkDecide is the time from appending the last StepFinished of a deciding build to reading the
// LandIntended that it leads to. One operation is 100 of them; time per operation says nothing, it is set
// by the pace of the load.
func BenchmarkDecide(b *testing.B) {
	for _, s := range append(shapes(), fewWorkers()) {
		b.Run(s.name, func(b *testing.B) { measure(b, s, (*running).deciding) })
	}
}

// BenchmarkSchedule is the time from appending the admission of an urgent change, with its analysis right
// behind it, to reading its first BuildScheduled. The others get theirs when it is their turn.
func BenchmarkSchedule(b *testing.B) {
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) { measure(b, s, (*running).scheduling) })
	}
}

func measure(b *testing.B, s shape, samples func(*running) []time.Duration) {
	r := startPipeline(b, s)
	r.fill()
	before := 0
	r.pace(func(n int) bool { before = len(samples(r)); return n < warmUp })
	for b.Loop() {
		want := before + samplesPerOperation
		r.pace(func(int) bool { return len(samples(r)) < want })
		before = want
	}
	took := samples(r)[before-samplesPerOperation*b.N:]
	if r.load.refused > 0 {
		b.Errorf("the guard refused %d decisions, and nobody pushes past this queue", r.load.refused)
	}
	slices.Sort(took)
	b.ReportMetric(milliseconds(took[quantile(len(took), 50)]), "p50-ms")
	b.ReportMetric(milliseconds(took[quantile(len(took), 99)]), "p99-ms")
	b.ReportMetric(milliseconds(took[len(took)-1]), "max-ms")
	b.ReportMetric(0, "ns/op")
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// running is the pipeline between enumerator and lander on an embedded broker, with its load around it.
type running struct {
	b         *testing.B
	ctx       context.Context
	log       *kafka.Log
	partition int32
	// load is that of the first queue, loads those of all, by name; queues are the names.
	load    *load
	loads   map[string]*load
	queues  []string
	r       *rand.Rand
	news    chan struct{}
	brokers []string
	client  func() []kgo.Opt
	// measured: the services are measured, and scraped every second.
	measured bool
	// traced: the traces of all changes are sent to a collector that takes everything.
	traced bool
	// stop ends the services, and waits for them.
	stop func()

	mu sync.Mutex
	// What was appended and read, and when.
	admitted map[string]time.Time
	finished map[stepKey]time.Time
	first    map[string]time.Time // first BuildScheduled, by change
	order    []string             // changes in the order of that
	steps    map[int64][]stepKey  // finished steps, by position in landfall.speculations
	position int64                // the last one read there
	decided  map[string]int64     // position, by decision
	intended []intention
	// initial counts the queues whose mainline has been looked at.
	initial int
}

type stepKey struct {
	version
	attempt uint32
}

type intention struct {
	decision string
	at       time.Time
}

func startPipeline(b *testing.B, s shape) *running {
	r := openLog(b, b.TempDir(), s)
	r.serve()
	return r
}

// openLog starts the broker on what dir holds, and nothing else.
func openLog(b *testing.B, dir string, s shape) *running {
	ctx, cancel := context.WithCancel(context.Background())
	logger := slog.New(slog.DiscardHandler)
	embedded, err := broker.Start(ctx, broker.Options{Dir: dir, Log: logger})
	if err != nil {
		b.Fatal(err)
	}
	log, err := kafka.Open(ctx, kafka.Options{Brokers: []string{embedded.Addr()}, Client: embedded.Client, Log: logger, Partitions: partitions})
	if err != nil {
		b.Fatal(err)
	}
	r := &running{
		b: b, ctx: ctx, log: log, brokers: []string{embedded.Addr()}, client: embedded.Client, partition: events.PartitionOf(queueName, log.Partitions()), loads: map[string]*load{},
		r: rand.New(rand.NewPCG(2, 0)), news: make(chan struct{}, 1),
		admitted: map[string]time.Time{}, finished: map[stepKey]time.Time{}, first: map[string]time.Time{},
		steps: map[int64][]stepKey{}, decided: map[string]int64{}, stop: cancel,
	}
	for i, name := range queueNames(s, log.Partitions()) {
		r.queues = append(r.queues, name)
		r.loads[name] = newLoad(name, s, uint64(1+i), time.Now)
	}
	r.load = r.loads[queueName]
	b.Cleanup(func() {
		r.stop()
		log.Close()
		embedded.Close()
	})
	return r
}

// queueNames returns those of a shape, all on the partition of the first.
func queueNames(s shape, partitions int32) []string {
	names := []string{queueName}
	for i := 2; len(names) < s.queues; i++ {
		name := fmt.Sprintf("%s-%d", queueName, i)
		if events.PartitionOf(name, partitions) == events.PartitionOf(queueName, partitions) {
			names = append(names, name)
		}
	}
	return names
}

// serve starts the services; what they have written is verified at the end.
func (r *running) serve() {
	b, ctx, log, s, logger := r.b, r.ctx, r.log, r.load.shape, slog.New(slog.DiscardHandler)
	owner := ownership.Static{Log: slog.Default(), Partitions: log.Partitions()}
	process := &pipeline.Process{
		Configuration: configurationOf(b, s), Log: log, Owner: owner, Instance: "benchmark", Version: "benchmark", Logger: logger,
	}
	var wg sync.WaitGroup
	if r.measured {
		process.Metrics = "127.0.0.1:0"
		r.check(process.Begin(ctx))
		wg.Go(func() { r.scrape(process.MetricsURL()) })
	}
	services := []string{events.ServiceEnumerator, events.ServiceProfiler, events.ServicePrioritizer, events.ServiceSelector}
	if r.traced {
		collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) { io.Copy(io.Discard, q.Body) }))
		b.Cleanup(collector.Close)
		b.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.URL+"/v1/traces")
		services = append(services, events.ServiceTracer)
	}
	for _, name := range services {
		wg.Go(func() { r.check(process.Run(ctx, name)) })
	}
	wg.Go(func() {
		options := lander.Options{
			Options:   runner.Options{Log: log, Instance: "benchmark", Version: "benchmark", Logger: logger},
			Mainlines: map[string]lander.Mainline{},
		}
		for name, l := range r.loads {
			options.Mainlines[name] = l.m
		}
		r.check(owner.Run(ctx, events.ServiceLander, events.TopicDecisions, func(ctx context.Context, partition int32) error {
			return lander.Run(ctx, options, partition, time.Hour)
		}))
	})
	for _, topic := range []string{events.TopicSpeculations, events.TopicDecisions, events.TopicChanges} {
		cursor, err := log.Follow(ctx, topic, r.partition, 0)
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() { r.watch(cursor) })
	}
	cancel := r.stop
	r.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	b.Cleanup(func() {
		r.stop()
		if err := replay.VerifyQuietly(context.Background(), log, logger); err != nil && !b.Failed() {
			b.Error(err)
		}
	})
}

func configurationOf(b *testing.B, s shape) *configuration.Configuration {
	return configurationIn(b, s, b.TempDir())
}

func configurationIn(b *testing.B, s shape, data string) *configuration.Configuration {
	text := fmt.Sprintf("version: 1\ndata: %q\nrepositories:\n  repo: {url: %q}\nqueues:\n", data, filepath.Join(b.TempDir(), "none.git"))
	for i, name := range queueNames(s, partitions) {
		text += fmt.Sprintf("  %s:\n    repository: repo\n    branch: branch-%d\n    workers: %d\n    speculation: {threshold: %g}\n", name, i, s.workers, s.threshold)
	}
	c, err := configuration.Parse([]byte(text), "benchmark.yaml", configuration.Defaults{Workers: 2})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func (r *running) check(err error) {
	if err != nil && r.ctx.Err() == nil {
		r.b.Error(err)
	}
}

// watch notes what comes of the load, and hands it on to it.
func (r *running) watch(c journal.Cursor) {
	defer c.Close()
	for {
		e, err := c.Next(r.ctx)
		now := time.Now()
		if err != nil {
			r.check(err)
			return
		}
		r.note(e, now)
		select {
		case r.news <- struct{}{}:
		default:
		}
	}
}

func (r *running) note(e journal.Entry, now time.Time) {
	l := r.loads[e.Queue]
	switch m := e.Message.(type) {
	case *eventsv1.Decision:
		l.decision(m)
	case *eventsv1.ChangeLanded, *eventsv1.ChangeRejected, *eventsv1.ChangeEjected, *eventsv1.Refused:
		l.fact(m)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m := e.Message.(type) {
	case *eventsv1.MainlineMoved:
		r.initial++
	case *eventsv1.Speculation:
		r.position = e.Offset
		for _, f := range m.Facts {
			if s := f.GetStepFinished(); s != nil {
				r.steps[e.Offset] = append(r.steps[e.Offset], stepKey{version{s.Target, s.Hash}, s.Attempt})
			}
		}
	case *eventsv1.LandIntended:
		r.intended = append(r.intended, intention{m.Decision, now})
	case *eventsv1.Decision:
		for _, i := range m.Items {
			if l := i.GetLandDecided(); l != nil {
				r.decided[l.Decision] = m.Position
			}
			if s := i.GetBuildScheduled(); s != nil {
				if _, again := r.first[s.Change.Change.Change]; !again {
					r.first[s.Change.Change.Change] = now
					r.order = append(r.order, s.Change.Change.Change)
				}
			}
		}
	}
}

// append writes events of a queue without waiting, noting when.
func (r *running) append(queue string, outs []outgoing) {
	r.mu.Lock()
	now := time.Now()
	for _, o := range outs {
		switch m := o.message.(type) {
		case *eventsv1.ChangeAdmitted:
			r.admitted[m.Admission.Change] = now
		case *eventsv1.StepFinished:
			r.finished[stepKey{version{m.Target, m.Hash}, m.Attempt}] = now
		}
	}
	r.mu.Unlock()
	for _, o := range outs {
		r.log.AppendAsync(r.ctx, o.topic, r.partition, events.Envelope{
			ID: hexOf(queue, o.subject, now.String())[:32], Source: o.source, Instance: "load", Queue: queue, Subject: o.subject,
			Time: now, Term: -1, Message: o.message,
		}, func(_ int64, err error) { r.check(err) })
	}
}

// fill brings the queue to its size, with a build begun for everything that is worth one.
func (r *running) fill() {
	for {
		r.mu.Lock()
		ready := r.initial == len(r.queues)
		r.mu.Unlock()
		if ready {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for {
		if r.goOn(false) {
			continue
		}
		select {
		case <-r.news:
		case <-time.After(time.Second):
			return // nobody has said anything for long: all wait for steps to finish
		}
	}
}

// goOn appends what comes next in each queue; false if everybody waits for the pipeline.
func (r *running) goOn(finish bool) (did bool) {
	for _, name := range r.queues {
		if outs := r.loads[name].next(finish); outs != nil {
			r.append(name, outs)
			did = true
		}
	}
	return did
}

// pace appends the load at its rate, as independent people and machines do, while goOn says so.
func (r *running) pace(goOn func(events int) bool) {
	next := time.Now()
	for n := 0; goOn(n); {
		outs := r.load.next(true)
		if outs == nil {
			time.Sleep(time.Millisecond)
			next = time.Now()
			continue
		}
		for range outs {
			next = next.Add(time.Duration(r.r.ExpFloat64() * float64(time.Second) / eventsPerSecond))
		}
		time.Sleep(time.Until(next))
		r.append(queueName, outs)
		n += len(outs)
	}
}

// deciding is, for each LandIntended that a finished step led to, how long it took.
func (r *running) deciding() (took []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range r.intended {
		position, known := r.decided[i.decision]
		if !known || position > r.position {
			break // what led to it is still being read
		}
		var last time.Time
		for _, s := range r.steps[position] {
			if at := r.finished[s]; at.After(last) {
				last = at
			}
		}
		if !last.IsZero() {
			took = append(took, i.at.Sub(last))
		}
	}
	return took
}

// scheduling is, for each urgent change, how long its first build took to be scheduled.
func (r *running) scheduling() (took []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, change := range r.order {
		if r.load.isUrgent(change) {
			took = append(took, r.first[change].Sub(r.admitted[change]))
		}
	}
	return took
}
