package analytics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestWeeksBeginOnMondays(t *testing.T) {
	for at, want := range map[string]string{
		"2026-11-28T16:00:00Z":      "2026-11-23", // a Saturday
		"2026-11-29T23:59:59Z":      "2026-11-23", // the Sunday after it
		"2026-11-30T00:00:00Z":      "2026-11-30",
		"2026-11-30T00:30:00+01:00": "2026-11-23", // still Sunday in UTC
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := since(now, 1).Format(time.DateOnly); got != want {
			t.Errorf("the week of %s begins on %s, want %s", at, got, want)
		}
		if got := since(now, 3); !got.Equal(since(now, 1).AddDate(0, 0, -14)) {
			t.Errorf("three weeks begin on %s", got)
		}
	}
}

func TestWithoutAHistoryThereIsNone(t *testing.T) {
	h := New(func() string { return "" }, time.Now)
	defer h.Close()
	if _, err := h.Ask(t.Context(), Question{Queue: "shop", Weeks: 3}); !errors.Is(err, ErrNone) {
		t.Errorf("the error is %v", err)
	}
}

func TestAHistoryThatDoesNotAnswerSaysNoPassword(t *testing.T) {
	for _, dsn := range []string{"clickhouse://ada:sesame@127.0.0.1:1/landfall", "http//ada:sesame@[", "mysql://ada:sesame@x/y"} {
		h := New(func() string { return dsn }, time.Now)
		_, err := h.Ask(t.Context(), Question{Queue: "shop", Weeks: 3})
		if err == nil || errors.Is(err, ErrNone) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", dsn, err)
		}
		h.Close()
	}
}

func TestAQuestionWaitsForItsTurnNoLongerThanItsAsker(t *testing.T) {
	h := New(func() string { return "clickhouse://127.0.0.1:1/landfall" }, time.Now)
	<-h.turn // somebody asks
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := h.Ask(ctx, Question{Queue: "shop", Weeks: 3}); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// TestAFailureIsToldAgainForAWhile to whoever asks, without a turn.
func TestAFailureIsToldAgainForAWhile(t *testing.T) {
	now, dsn := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC), "clickhouse://127.0.0.1:1/landfall"
	h := New(func() string { return dsn }, func() time.Time { return now })
	_, first := h.Ask(t.Context(), Question{Queue: "shop", Weeks: 4})
	if first == nil {
		t.Fatal("nobody answers there, and yet there is no error")
	}
	<-h.turn // somebody asks
	ctx, stop := context.WithCancel(t.Context())
	stop()
	now = now.Add(4 * time.Second)
	if _, err := h.Ask(ctx, Question{Queue: "tools", Weeks: 12}); !errors.Is(err, first) {
		t.Errorf("after four seconds the error is %v, want %v", err, first)
	}
	dsn = "clickhouse://127.0.0.1:2/landfall"
	if _, err := h.Ask(ctx, Question{Queue: "tools", Weeks: 12}); !errors.Is(err, context.Canceled) {
		t.Errorf("elsewhere the error is %v", err)
	}
	dsn, now = "clickhouse://127.0.0.1:1/landfall", now.Add(time.Second)
	if _, err := h.Ask(ctx, Question{Queue: "tools", Weeks: 12}); !errors.Is(err, context.Canceled) {
		t.Errorf("after five seconds the error is %v", err)
	}
}

// TestAnAskerWhoLeavesIsNoFailureOfTheHistory: others ask it themselves.
func TestAnAskerWhoLeavesIsNoFailureOfTheHistory(t *testing.T) {
	h := New(func() string { return "clickhouse://127.0.0.1:1/landfall" }, time.Now)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := h.failedWith(ctx, errors.New("the query was ended")); err == nil || h.failure != nil {
		t.Errorf("it told %v, and keeps %v", err, h.failure)
	}
}
