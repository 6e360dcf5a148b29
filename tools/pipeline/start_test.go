package pipeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/ownership"
	"landfall.build/platform/runner"
	"landfall.build/tools/pipeline"
)

// startEvents is the length of the log of BenchmarkStart, startPending how many changes are pending in each of
// startQueues queues, unless LANDFALL_START_EVENTS, LANDFALL_START_PENDING and LANDFALL_START_QUEUES say others.
const (
	startEvents  = 20_000
	startPending = 200
	startQueues  = 1
)

// maxWorkers: as many builds are proposed at once as a queue has workers, of which there are 4,096 at most.
const maxWorkers = 4096

// startPatience bounds one start.
const startPatience = 5 * time.Minute

// BenchmarkStart is how long each service takes, on a log of so many events of queues with so many pending changes each,
// from its start until it has folded what the log holds: from nothing, and from the snapshot that it has kept. The log
// is made by the services themselves, in the folder that LANDFALL_START_LOG names if it does, and one that is there
// already is used as it is. MB is what the service holds then.
func BenchmarkStart(b *testing.B) {
	n, pending, queues := given(b, "LANDFALL_START_EVENTS", startEvents), given(b, "LANDFALL_START_PENDING", startPending), given(b, "LANDFALL_START_QUEUES", startQueues)
	dir, s := os.Getenv("LANDFALL_START_LOG"), shape{name: "start", pending: pending, workers: min(2*pending, maxWorkers), threshold: 0.5, queues: queues}
	if dir == "" {
		dir = b.TempDir()
	}
	r := openLog(b, dir, s)
	switch have := r.records(); {
	case have <= 4: // LogCreated, once for each opening
		r.serve()
		r.write(int64(n))
	case have < int64(n):
		b.Fatalf("%s holds %d records, not %d: it was cut off; remove it", dir, have, n)
	}
	b.Logf("%d records", r.records())
	for _, name := range pipeline.Services() {
		empty := b.TempDir // outlives the benchmarks of the service
		data := ""
		for _, from := range []string{"nothing", "snapshot"} {
			b.Run(fmt.Sprintf("events=%d/queues=%d/pending=%d/service=%s/from=%s", n, queues, pending, name, from), func(b *testing.B) {
				for b.Loop() {
					if from == "nothing" {
						data = empty() // what it keeps there is for the next
					}
					took, held := r.start(b, name, data)
					b.ReportMetric(took.Seconds(), "s/start")
					b.ReportMetric(held/(1<<20), "MB")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// write lets the services go on until the log has n records, and ends them.
func (r *running) write(n int64) {
	r.fill()
	for r.records() < n {
		if r.goOn(true) {
			continue
		}
		select {
		case <-r.news:
		case <-time.After(time.Second):
		}
	}
	r.stop()
}

// given returns a number of the environment.
func given(b *testing.B, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatalf("%s: %v", variable, err)
	}
	return n
}

// records returns how many records the queue's partition of all topics holds.
func (r *running) records() (n int64) {
	for _, topic := range events.Topics() {
		end, err := r.log.End(context.Background(), topic.Name, r.partition)
		if err != nil {
			r.b.Fatal(err)
		}
		n += end
	}
	return n
}

// start returns how long a service takes until it is live, and by how many bytes the heap shrinks when it ends. The broker is
// in this process too, and keeps what it was asked for.
func (r *running) start(b *testing.B, name, data string) (took time.Duration, held float64) {
	took, held = r.live(b, name, data)
	return took, held - heap()
}

// live runs one service until it is live, and lets it keep a snapshot; the heap is taken then.
func (r *running) live(b *testing.B, name, data string) (took time.Duration, held float64) {
	log, err := kafka.Open(context.Background(), kafka.Options{Brokers: r.brokers, Client: r.client, Log: slog.New(slog.DiscardHandler), Partitions: r.log.Partitions()})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	l := &listener{partition: int64(r.partition), live: make(chan struct{})}
	c := configurationIn(b, r.load.shape, data)
	c.Gateway.Listen = "127.0.0.1:0"
	// A queue of 10,000 is told of in a few hundred records.
	c.Snapshots = configuration.Snapshots{After: 10, Every: 100 * time.Millisecond}
	p := &pipeline.Process{
		Configuration: c, Log: log, Owner: ownership.Static{Log: slog.New(slog.DiscardHandler), Partitions: log.Partitions()},
		Instance: "start", Version: "benchmark", Logger: slog.New(l),
	}
	// There is no repository; a mirror of it would be tried again and again.
	if err := os.RemoveAll(filepath.Join(data, "mirrors")); err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- p.Run(ctx, name) }()
	select {
	case <-l.live:
		took = time.Since(began)
	case err := <-ended:
		b.Fatalf("the %s ended: %v", name, err)
	}
	r.keeps(ctx, b, p, name)
	held = heap()
	cancel()
	<-ended
	if err := p.Close(); err != nil {
		b.Error(err)
	}
	return took, held
}

// keeps waits until the service has kept what it holds: one that reads a long log keeps it on the way, too.
func (r *running) keeps(ctx context.Context, b *testing.B, p *pipeline.Process, name string) {
	const rest = 8 * time.Second
	live := time.Now()
	file := filepath.Join(p.Configuration.Data, "snapshots", fmt.Sprintf("%s-%d.snapshot", name, r.partition))
	for time.Since(live) < time.Minute && ctx.Err() == nil {
		if info, err := os.Stat(file); err == nil && time.Since(live) > rest && time.Since(info.ModTime()) > rest {
			b.ReportMetric(float64(info.Size())/(1<<20), "file-MB")
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.Errorf("the %s keeps no snapshot", name)
}

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// listener waits for a service to say that it is live.
type listener struct {
	slog.Handler
	partition int64
	once      sync.Once
	live      chan struct{}
}

func (l *listener) Enabled(context.Context, slog.Level) bool { return true }

func (l *listener) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *listener) WithGroup(string) slog.Handler { return l }

func (l *listener) Handle(_ context.Context, r slog.Record) error {
	live := r.Message == "gateway is ready"
	if r.Message == runner.SaysLive {
		r.Attrs(func(a slog.Attr) bool {
			live = live || a.Key == "partition" && a.Value.Int64() == l.partition
			return true
		})
	}
	if live {
		l.once.Do(func() { close(l.live) })
	}
	return nil
}
