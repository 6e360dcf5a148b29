package stack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/platform/journal/kafka"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/embedded/stack"
	"landfall.build/tools/replay"
)

// TestALogWhoseOldPartIsArchivedIsTheSameLog: changes land until there is something to archive. Then services that have kept nothing say
// of the oldest change what those said that saw it happen, the cores say again what is in the log, and changes land. One
// that does not know the archive does not start.
func TestALogWhoseOldPartIsArchivedIsTheSameLog(t *testing.T) {
	together(t)
	r := newRepository(t)
	data, folder := t.TempDir(), t.TempDir()
	config := parsed(t, r, data)
	config.Broker.Partitions = 1
	config.Broker.Archive.URL = folder
	s, c := start(t, config)
	const changes = 24
	for i := range changes {
		name := fmt.Sprintf("c%d", i)
		text := "fine\n"
		if i == 1 {
			text = "a bug\n"
		}
		r.branch(name, fmt.Sprintf("f%d/c%d.txt", i%folders, i), text)
		land(t, c, name, name)
	}
	for i := range changes {
		settled(t, c, fmt.Sprintf("c%d", i))
	}
	before := told(t, c)
	s.Close()

	source := replay.Source{Brokers: config.Broker.Brokers, Data: data, Archive: folder}
	verify := func() {
		t.Helper()
		log, done, err := source.Open(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		if err := replay.VerifyQuietly(t.Context(), log, slog.New(slog.NewTextHandler(t.Output(), nil))); err != nil {
			t.Error(err)
		}
	}
	for round := range 2 {
		log, done, err := source.Open(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		deleted := map[string]int64{}
		err = log.MoveToArchive(t.Context(), kafka.Move{Before: time.Now().Add(time.Hour), Segment: 10_000, Kept: 20, Progress: func(m kafka.Moved) { deleted[m.Topic] += m.Deleted }})
		done()
		if err != nil {
			t.Fatal(err)
		}
		for _, topic := range []string{events.TopicChanges, events.TopicBuilds, events.TopicSpeculations, events.TopicDecisions} {
			if round == 0 && deleted[topic] < changes/2 {
				t.Fatalf("hardly anything was moved: %v", deleted)
			}
		}
		verify()
		for _, kept := range []string{"snapshots", "past"} {
			if err := os.RemoveAll(filepath.Join(data, kept)); err != nil {
				t.Fatal(err)
			}
		}
		s, c = start(t, config)
		if after := told(t, c); after != before {
			at := 0
			for at < min(len(after), len(before)) && after[at] == before[at] {
				at++
			}
			t.Errorf("services that read the archive say … %.300s, and before it was made …%.300s", after[max(0, at-100):], before[max(0, at-100):])
		}
		name := fmt.Sprintf("later-%d", round)
		r.branch(name, fmt.Sprintf("f0/later-%d.txt", round), "fine\n")
		land(t, c, name, name)
		if v := settled(t, c, name); v.State != "landed" {
			t.Fatalf("%s is %s: %s", name, v.State, v.Why)
		}
		s.Close()
	}
	verify()

	without := *config
	without.Broker.Archive.URL = ""
	if s, err := stack.Start(context.Background(), stack.Options{Configuration: &without, Logger: slog.New(slog.DiscardHandler), Version: "test"}); !errors.Is(err, kafka.ErrCut) || !strings.Contains(err.Error(), "broker.archive") {
		if err == nil {
			s.Close()
		}
		t.Errorf("without the archive: %v", err)
	}
}

// told returns what people read of the oldest changes.
func told(t *testing.T, c *client.Client) string {
	t.Helper()
	var text bytes.Buffer
	for i := range 3 {
		v := until(t, c, fmt.Sprintf("c%d", i), func(v view.Change) bool { return v.State == "landed" || v.State == "rejected" })
		e, err := c.Explain(t.Context(), queue, fmt.Sprintf("c%d", i), true)
		if err != nil {
			t.Fatal(err)
		}
		e.Full.Position, e.Full.At = 0, time.Time{} // of what was read last
		if err := json.NewEncoder(&text).Encode([]any{v, e}); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}
