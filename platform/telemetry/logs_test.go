package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestEveryLineHasTheNameOfItsEvent(t *testing.T) {
	var out bytes.Buffer
	l, err := NewLogger(&out, "info", FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	l.With("service", "lander").Info("work on a partition failed; it starts again from the log", "partition", 2, TraceID("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
	l.Warn("metrics", "event", "metrics.failed")
	l.Debug("unseen")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), out.String())
	}
	for i, want := range []map[string]string{
		{"event": "work_on_a_partition_failed", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "service": "lander", "partition": "2", "level": "INFO"},
		{"event": "metrics.failed", "level": "WARN"},
	} {
		var got map[string]any
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatalf("%v: %s", err, lines[i])
		}
		for key, value := range want {
			if fmt.Sprint(got[key]) != value {
				t.Errorf("%s is %v, want %s, in %s", key, got[key], value, lines[i])
			}
		}
	}
}

func TestWhatIsNoTraceGivesNoID(t *testing.T) {
	for _, trace := range []string{"", "x", "00-short-1-01"} {
		if a := TraceID(trace); !a.Equal(slog.Attr{}) {
			t.Errorf("%q: %v", trace, a)
		}
	}
}

func TestAnUnknownLevelOrFormatIsNamed(t *testing.T) {
	if _, err := NewLogger(os.Stderr, "loud", FormatText); err == nil || !strings.Contains(err.Error(), "--log-level") {
		t.Error(err)
	}
	if _, err := NewLogger(os.Stderr, "info", "xml"); err == nil || !strings.Contains(err.Error(), "--log-format") {
		t.Error(err)
	}
}

// TestAWarningIsLoggedAgainAfterAWhileAndWhenItChanges, with how often it was held back.
func TestAWarningIsLoggedAgainAfterAWhileAndWhenItChanges(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	h := &handler{next: slog.NewTextHandler(&out, nil), repeats: &repeats{now: func() time.Time { return now }, last: map[string]*repeat{}}}
	refused := func(port int) error {
		return &net.OpError{Op: fmt.Sprintf("dial from port %d", port), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	l := slog.New(h)
	for i, c := range []struct {
		after time.Duration
		log   func()
		want  string
	}{
		{0, func() { l.Warn("no connection", "addr", "a:1", "err", refused(1)) }, "no connection"},
		{time.Second, func() { l.Warn("no connection", "addr", "a:1", "err", refused(2)) }, ""},
		{0, func() { l.Warn("no connection", "addr", "b:1", "err", refused(3)) }, "addr=b:1"},
		{0, func() { l.Warn("no connection", "addr", "a:1", "err", errors.New("time-out")) }, "time-out"},
		{0, func() { l.With("service", "lander").Warn("no connection", "addr", "a:1", "err", refused(4)) }, "service=lander"},
		{time.Second, func() { l.Warn("no connection", "addr", "a:1", "err", refused(5)) }, ""},
		{time.Minute, func() { l.Warn("no connection", "addr", "a:1", "err", refused(6)) }, "held_back=2"},
		{time.Second, func() { l.Error("no connection", "addr", "a:1", "err", refused(7)) }, "level=ERROR"},
		{0, func() { l.Info("step finished") }, "step finished"},
		{0, func() { l.Info("step finished") }, "step finished"},
	} {
		now = now.Add(c.after)
		out.Reset()
		if c.log(); (c.want == "") != (out.Len() == 0) || !strings.Contains(out.String(), c.want) {
			t.Errorf("%d: %q, want %q", i, out.String(), c.want)
		}
	}
}
