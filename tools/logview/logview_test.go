package logview

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
	"landfall.build/tools/embedded/broker"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// sample is a log of two changes, one of which lands under the second of two claims, a minute between two records.
func sample(t *testing.T) *memory.Log {
	t.Helper()
	log := memory.New(memory.Options{Partitions: 1})
	at := noon
	put := func(source, subject string, term int64, m proto.Message) int64 {
		offsets, err := log.Append(t.Context(), events.TopicChanges, 0, events.Envelope{
			ID: "x", Source: source, Queue: "main", Subject: subject, Time: at, Term: term, Message: m})
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Minute)
		return offsets[0]
	}
	first := put("lander", "", -1, &eventsv1.Claim{Service: "lander"})
	put("gateway", "a", -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "a"}})
	put("gateway", "b<c", -1, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "b<c", Requires: []string{"a"}}})
	second := put("lander", "", -1, &eventsv1.Claim{Service: "lander"})
	for _, term := range []int64{first, second} {
		put("lander", "a", term, &eventsv1.ChangeLanded{Change: &eventsv1.ChangeRef{Change: "a", Revision: 1}})
	}
	put("lander", "", second, &eventsv1.Refused{Change: &eventsv1.ChangeRef{Change: "b<c", Revision: 1}})
	return log
}

func offsets(t *testing.T, o Options) string {
	t.Helper()
	o.Topics, o.JSON = []string{events.TopicChanges}, true
	var out bytes.Buffer
	if err := Print(t.Context(), sample(t), o, &out); err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for line := range strings.Lines(out.String()) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		list.WriteByte(byte('0' + r.Offset))
		if !r.Counts {
			list.WriteByte('-')
		}
	}
	return list.String()
}

func TestEachFilterLeavesWhatItNames(t *testing.T) {
	for want, o := range map[string]Options{
		"0-123-4-56": {},
		"1256":       {Counted: true},
		"3-4-56":     {From: 3},
		"123-":       {Since: noon.Add(time.Minute), Until: noon.Add(4 * time.Minute)},
		"0-3-4-56":   {Services: []string{"lander"}},
		"4-56":       {Types: []string{"ChangeLanded", "Refused"}},
		"26":         {Change: "b<c"},
		"124-5":      {Change: "a"},
		"5":          {Change: "a", Counted: true, Services: []string{"lander"}},
		"":           {Queue: "another"},
	} {
		if got := offsets(t, o); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}

func TestALineMarksWhatDoesNotCount(t *testing.T) {
	var out bytes.Buffer
	if err := Print(t.Context(), sample(t), Options{Topics: []string{events.TopicChanges}, From: 4, Types: []string{"ChangeLanded"}}, &out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "- changes/0/4 ") || !strings.HasPrefix(lines[1], "changes/0/5 ") && !strings.HasPrefix(lines[1], "  changes/0/5 ") {
		t.Errorf("%q", lines)
	}
}

// A configuration of landfall up has no brokers: its log is found in its data directory.
func TestTheDataDirectoryOfTheConfigurationHasTheLog(t *testing.T) {
	data := t.TempDir()
	c := Command(func(string) (*configuration.Configuration, error) {
		return &configuration.Configuration{Data: data}, nil
	})
	c.SetArgs(nil)
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), data+" holds no log of an embedded broker") {
		t.Errorf("without a log there: %v", err)
	}
	b, err := broker.Start(t.Context(), broker.Options{Dir: filepath.Join(data, "broker"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "topic") {
		t.Errorf("a log without topics: %v", err)
	}
}

func TestFlagsThatNameNothingAreRefused(t *testing.T) {
	for _, c := range []struct{ topic, since, until, event string }{
		{topic: "nothing"}, {since: "yesterday"}, {until: "25:00"}, {event: "ChangeLandet"},
	} {
		o := Options{}
		if c.event != "" {
			o.Types = []string{c.event}
		}
		if err := o.choose(c.topic, c.since, c.until, noon); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	o := Options{Types: []string{"ChangeLanded"}}
	if err := o.choose("changes", "-1h", "12:30", noon); err != nil || len(o.Topics) != 1 || !o.Since.Equal(noon.Add(-time.Hour)) || !o.Until.Equal(noon.Add(30*time.Minute)) {
		t.Errorf("%+v, %v", o, err)
	}
	o = Options{}
	if err := o.choose("", "", "", noon); err != nil || len(o.Topics) != len(events.Topics()) {
		t.Errorf("%+v, %v", o, err)
	}
}
