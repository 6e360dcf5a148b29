package runner_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
	"landfall.build/platform/telemetry"
)

// echo is a core that answers each input with where it was.
type echo struct{ at int64 }

func (c *echo) Apply(_ proto.Message, at int64) { c.at = at }
func (c *echo) Decide() proto.Message           { return &eventsv1.Profile{Position: c.at} }
func (c *echo) Fold(proto.Message)              {}
func (c *echo) Snapshot() proto.Message         { return nil }

// TestAStageReportsWhatCannotBeDecodedOnceHoweverOftenItStarts, if it is the one that reports.
func TestAStageReportsWhatCannotBeDecodedOnceHoweverOftenItStarts(t *testing.T) {
	for _, reports := range []bool{true, false} {
		log := memory.New(memory.Options{Partitions: 1})
		write := func(value string) {
			t.Helper()
			if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Value: []byte(value)}); err != nil {
				t.Fatal(err)
			}
		}
		s := counterStage()
		s.New, s.Reports = func(string) runner.QueueCore { return &echo{} }, reports
		answered := int64(0)
		for range 3 {
			write("{")
			write(`{"queue":"main","entries":[{"ref":"x"}]}`)
			answered++
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			ended := make(chan error, 1)
			go func() {
				ended <- runner.Run(ctx, runner.Options{Log: log, Instance: "i", Version: "test", Logger: slog.New(slog.DiscardHandler)}, s.Service(), 0)
			}()
			own, err := log.Follow(ctx, events.TopicProfiles, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for seen := int64(0); seen < answered; {
				e, err := own.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if _, is := e.Message.(*eventsv1.Profile); is {
					seen++
				}
			}
			own.Close()
			cancel()
			<-ended
		}
		var offsets []int64
		letters, err := log.Follow(t.Context(), events.TopicDeadLetters, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for e, ok, err := letters.TryNext(); ok; e, ok, err = letters.TryNext() {
			if err != nil {
				t.Fatal(err)
			}
			offsets = append(offsets, e.Message.(*eventsv1.DeadLetter).Offset)
		}
		letters.Close()
		want := []int64{0, 2, 4}
		if !reports {
			want = nil
		}
		if !slices.Equal(offsets, want) {
			t.Errorf("reports %v: the records at %v are reported, want %v", reports, offsets, want)
		}
	}
}

// TestADeadLetterIsWrittenWhateverBytesTheRecordHas in its value, its key, its headers, and the reason that quotes them.
func TestADeadLetterIsWrittenWhateverBytesTheRecordHas(t *testing.T) {
	const bad = "a\xff\xfe\xc3"
	log := memory.New(memory.Options{Partitions: 1})
	e := journal.Entry{Topic: events.TopicLandRequests, Offset: 7, Raw: []byte(bad), Headers: []events.Header{{Key: events.HeaderType, Value: []byte(bad)}}}
	e.Queue, e.Subject = bad, bad
	runner.PutDeadLetter(t.Context(), log, slog.New(slog.DiscardHandler), events.ServiceGateway, "i", runner.DeadLetter{Entry: e, Reason: "it says " + bad})
	cursor, err := log.Follow(t.Context(), events.TopicDeadLetters, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	got, ok, err := cursor.TryNext()
	if err != nil || !ok {
		t.Fatalf("no dead letter: %v", err)
	}
	d, is := got.Message.(*eventsv1.DeadLetter)
	if !is || d.Offset != 7 || d.Queue != "a\uFFFD" || d.Change != "a\uFFFD" || d.Type != "a\uFFFD" || d.Reason != "it says a\uFFFD" || string(d.Value) != bad {
		t.Errorf("%v (%v)", got.Message, got.Err)
	}
}

// TestADeadLetterWhoseAppendFailsIsTriedAgain: by the next owner of a claimed partition, and by who claims nothing at once.
func TestADeadLetterWhoseAppendFailsIsTriedAgain(t *testing.T) {
	for _, claimed := range []bool{true, false} {
		failures := 2
		log := memory.New(memory.Options{Partitions: 1, Fault: func(topic string, _ int32, _ events.Envelope) memory.Verdict {
			if topic != events.TopicDeadLetters || failures == 0 {
				return memory.Deliver
			}
			failures--
			return memory.FailBefore
		}})
		if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Value: []byte("{")}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		ended := make(chan error, 1)
		go func() {
			quiet := slog.New(slog.DiscardHandler)
			if !claimed {
				runner.PutDeadLetter(ctx, log, quiet, events.ServiceGateway, "i", runner.DeadLetter{Entry: journal.Entry{Topic: events.TopicLandRequests}, Reason: "it is cut short"})
			}
			for claimed && ctx.Err() == nil { // as whoever holds the ownership does
				s := counterStage()
				s.Reports = true
				_ = runner.Run(ctx, runner.Options{Log: log, Instance: "i", Version: "test", Logger: quiet}, s.Service(), 0)
			}
			ended <- nil
		}()
		letters, err := log.Follow(ctx, events.TopicDeadLetters, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		e, err := letters.Next(ctx)
		if d, is := e.Message.(*eventsv1.DeadLetter); err != nil || !is || d.Topic != events.TopicLandRequests || d.Offset != 0 {
			t.Errorf("claimed %v: %v, %v", claimed, e.Message, err)
		}
		letters.Close()
		cancel()
		<-ended
	}
}

// TestMalformedInputOfOthersIsNoError: anybody can write land requests. A record of our own that cannot be decoded is one.
func TestMalformedInputOfOthersIsNoError(t *testing.T) {
	for topic, want := range map[string]string{events.TopicLandRequests: "level=INFO", events.TopicSpeculations: "level=ERROR"} {
		var out strings.Builder
		log := memory.New(memory.Options{Partitions: 1})
		logger := slog.New(telemetry.Limit(slog.NewTextHandler(&out, nil)))
		e := journal.Entry{Topic: topic, Offset: 7}
		e.Trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		runner.PutDeadLetter(t.Context(), log, logger, events.ServiceGateway, "i", runner.DeadLetter{Entry: e, Reason: "no JSON"})
		for _, want := range []string{want, "event=dead_letter", "trace_id=4bf92f3577b34da6a3ce929d0e0e4736", "no JSON"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %s in %s", topic, want, out.String())
			}
		}
	}
}
