package broker_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/tools/embedded/broker"
)

// BenchmarkHop is one event from Append's start to Next's return, through the broker, one at a time.
func BenchmarkHop(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			ctx := context.Background()
			log := open(b, start(b, broker.Options{Dir: b.TempDir(), Sync: sync}))
			cursor, err := log.Follow(ctx, events.TopicBuilds, 0, 0)
			if err != nil {
				b.Fatal(err)
			}
			var took []time.Duration
			hop := func(i int) {
				began := time.Now()
				log.AppendAsync(ctx, events.TopicBuilds, 0, step(fmt.Sprint(i), 500), func(_ int64, err error) {
					if err != nil {
						b.Error(err)
					}
				})
				if _, err := cursor.Next(ctx); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			for i := range 50 {
				hop(i)
			}
			took = took[:0]
			for i := 0; b.Loop(); i++ {
				hop(i)
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkAppend is the time of one acknowledged append, one at a time.
func BenchmarkAppend(b *testing.B) {
	ctx := context.Background()
	log := open(b, start(b, broker.Options{Dir: b.TempDir()}))
	for i := 0; b.Loop(); i++ {
		if _, err := log.Append(ctx, events.TopicBuilds, 0, step(fmt.Sprint(i), 500)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkThroughput appends without waiting and reads all back at the same time; one operation is
// one record of about 1 KB, encoded, written, read and decoded.
func BenchmarkThroughput(b *testing.B) {
	decision := step("e", 700)
	decision.Source = events.ServiceSelector
	for name, w := range map[string]struct {
		topic string
		event events.Envelope
	}{
		"all under way":          {events.TopicBuilds, step("e", 700)},
		"claimed, one at a time": {events.TopicDecisions, decision},
	} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			log := open(b, start(b, broker.Options{Dir: b.TempDir()}))
			cursor, err := log.Follow(ctx, w.topic, 0, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(1000)
			b.ResetTimer()
			go func() {
				for range b.N {
					log.AppendAsync(ctx, w.topic, 0, w.event, func(_ int64, err error) {
						if err != nil {
							b.Error(err)
						}
					})
				}
			}()
			for range b.N {
				if _, err := cursor.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkChain is one event that passes four stages in a row, each reading one topic and writing the
// next, all with one log as in one process.
func BenchmarkChain(b *testing.B) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	log := open(b, start(b, broker.Options{Dir: b.TempDir()}))
	topics := []string{events.TopicChanges, events.TopicSpeculations, events.TopicProfiles, events.TopicPriorities, events.TopicDecisions}
	writers := []string{events.ServiceGateway, events.ServiceEnumerator, events.ServiceProfiler, events.ServicePrioritizer, events.ServiceSelector}
	acknowledged := func(_ int64, err error) {
		if err != nil && ctx.Err() == nil {
			b.Error(err)
		}
	}
	event := func(stage int) events.Envelope {
		e := step("e", 500)
		e.Source = writers[stage]
		return e
	}
	for stage := 1; stage < len(topics); stage++ {
		cursor, err := log.Follow(ctx, topics[stage-1], 1, 0)
		if err != nil {
			b.Fatal(err)
		}
		go func() {
			for {
				if _, err := cursor.Next(ctx); err != nil {
					return
				}
				log.AppendAsync(ctx, topics[stage], 1, event(stage), acknowledged)
			}
		}()
	}
	last, err := log.Follow(ctx, topics[len(topics)-1], 1, 0)
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		log.AppendAsync(ctx, topics[0], 1, event(0), acknowledged)
		if _, err := last.Next(ctx); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkFollow is the time from Follow to the first record, while the same client waits for news of
// another partition.
func BenchmarkFollow(b *testing.B) {
	ctx := context.Background()
	log := open(b, start(b, broker.Options{Dir: b.TempDir()}))
	if _, err := log.Append(ctx, events.TopicBuilds, 0, step("e", 0)); err != nil {
		b.Fatal(err)
	}
	if _, err := log.Follow(ctx, events.TopicBuilds, 1, 0); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := log.Follow(ctx, events.TopicBuilds, 0, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Next(ctx); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
