package telemetry_test

import (
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/telemetry"
)

// BenchmarkLog is the time to write a record to a log in memory and to read it back, as it is and measured.
func BenchmarkLog(b *testing.B) {
	for _, name := range []string{"without", "with"} {
		b.Run(name, func(b *testing.B) {
			var log journal.Log = memory.New(memory.Options{Partitions: 1})
			if name == "with" {
				m := telemetry.New(telemetry.Options{Instance: "one", Logger: quiet()})
				log = telemetry.Measure(m.Meter("lander"), log, health.New("one", "1", nil, quiet()).Service("lander"), func(int32) time.Time { return time.Time{} })
			}
			c, err := log.Follow(b.Context(), events.TopicChanges, 0, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			e := events.Envelope{Source: events.ServiceLander, Queue: "q", Time: time.Now(), Message: &eventsv1.LandIntended{}}
			for b.Loop() {
				if _, err := log.Append(b.Context(), events.TopicChanges, 0, e); err != nil {
					b.Fatal(err)
				}
				if _, err := c.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
