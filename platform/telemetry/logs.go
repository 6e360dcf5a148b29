package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
)

// Formats of logs.
const (
	FormatText = "text"
	FormatJSON = "json"
)

// NewLogger returns the logger of a process: lines of a format from a level on, each with the name of its event (see EventName), in
// which what repeats itself is limited (see Limit).
func NewLogger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level is %q; it is one of debug, info, warn, error", level)
	}
	options := &slog.HandlerOptions{Level: l}
	switch format {
	case FormatText:
		return slog.New(Limit(slog.NewTextHandler(w, options))), nil
	case FormatJSON:
		return slog.New(Limit(slog.NewJSONHandler(w, options))), nil
	}
	return nil, fmt.Errorf("--log-format is %q; it is one of text, json", format)
}

const (
	// repeatAfter is how often a warning or an error that goes on is logged.
	repeatAfter = time.Minute
	// maxKinds bounds what is remembered; beyond that all are logged again.
	maxKinds = 500
)

// Limit returns a handler that names the event of each record, and passes on a warning or an error at once, and again no sooner than
// after a minute, with how often it was held back; meanwhile it is a debug line. Lines are of one kind if they have the message, the
// place (service, queue, partition, topic, address, target and the like), and the kind of error in common.
func Limit(next slog.Handler) slog.Handler {
	if h, is := next.(*handler); is {
		return h
	}
	return &handler{next: next, repeats: &repeats{now: time.Now, last: map[string]*repeat{}}}
}

type handler struct {
	next    slog.Handler
	repeats *repeats
	// kind is what WithAttrs says of the place.
	kind string
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(name), repeats: h.repeats, kind: h.kind}
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	kind := h.kind
	for _, a := range attrs {
		kind += kindOf(a)
	}
	return &handler{next: h.next.WithAttrs(attrs), repeats: h.repeats, kind: kind}
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	named, held := false, 0
	kind := h.kind + r.Message
	r.Attrs(func(a slog.Attr) bool {
		named = named || a.Key == "event"
		kind += kindOf(a)
		return true
	})
	r = r.Clone()
	if r.Level >= slog.LevelWarn {
		var logged bool
		if held, logged = h.repeats.shouldLog(r.Level.String() + kind); !logged {
			if r.Level = slog.LevelDebug; !h.next.Enabled(ctx, r.Level) {
				return nil
			}
		}
	}
	if !named {
		r.AddAttrs(slog.String("event", EventName(r.Message)))
	}
	if held > 0 {
		r.AddAttrs(slog.Int("held_back", held))
	}
	return h.next.Handle(ctx, r)
}

// EventName returns the name of the event that a message tells of: its words up to the first pause. Messages are constants.
func EventName(message string) string {
	if i := strings.IndexAny(message, ",;:("); i > 0 {
		message = message[:i]
	}
	return strings.Trim(strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return '_'
	}, strings.ReplaceAll(message, "'", "")), "_")
}

// kindOf returns what an attribute says of the kind of a line, "" for nothing. The words of an error name ports, which are others each
// time.
func kindOf(a slog.Attr) string {
	switch a.Key {
	case "service", "queue", "partition", "topic", "addr", "target", "repository", "what", "change", "worker", "at":
		return " " + a.Key + "=" + a.Value.String()
	case "error", "err", "reason":
		err, is := a.Value.Any().(error)
		if !is {
			return ""
		}
		var number syscall.Errno
		if errors.As(err, &number) {
			return fmt.Sprintf(" errno=%d", number)
		}
		return fmt.Sprintf(" %T", err)
	}
	return ""
}

// repeats are the warnings and errors that were logged, by kind.
type repeats struct {
	now func() time.Time

	mu   sync.Mutex
	last map[string]*repeat
}

type repeat struct {
	at time.Time
	// held is how many were not logged since.
	held int
}

// shouldLog decides whether a line is logged now, and returns how many of its kind were not since the last one that was. It counts
// the line.
func (s *repeats) shouldLog(kind string) (held int, log bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, last := s.now(), s.last[kind]
	if last != nil && now.Sub(last.at) < repeatAfter {
		last.held++
		return 0, false
	}
	if last != nil {
		held = last.held
	} else if len(s.last) >= maxKinds {
		clear(s.last)
	}
	s.last[kind] = &repeat{at: now}
	return held, true
}
