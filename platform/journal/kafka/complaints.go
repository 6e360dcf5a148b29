package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clientLog passes the client's own log on. Its level Info is Debug here, and so is, while the log is
// being opened, that a broker does not answer yet.
type clientLog struct {
	log        *slog.Logger
	complaints *complaints
}

func (c clientLog) Level() kgo.LogLevel {
	if c.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelWarn
}

func (c clientLog) Log(level kgo.LogLevel, message string, pairs ...any) {
	to := slog.LevelDebug
	switch {
	case c.complaints.opening.Load():
	case level == kgo.LogLevelError:
		to = slog.LevelError
	case level == kgo.LogLevelWarn:
		to = slog.LevelWarn
	}
	if to > slog.LevelDebug {
		suppressed, log := c.complaints.shouldLog(kindOf(message, pairs))
		if !log {
			to = slog.LevelDebug
		} else if suppressed > 0 {
			pairs = append(pairs[:len(pairs):len(pairs)], "times_since_the_last_line", suppressed)
		}
	}
	c.log.Log(context.Background(), to, "kafka client: "+message, pairs...)
}

const (
	// repeatAfter is how often a complaint that goes on is logged: each client tries each broker many times a second.
	repeatAfter = 5 * time.Minute
	// maxKinds bounds what is remembered; beyond that all are logged again.
	maxKinds = 200
)

// complaints are what the clients of a log have logged about failures, by kind.
type complaints struct {
	// opening is set until Open is through: failures meanwhile are in Open's error.
	opening atomic.Bool
	now     func() time.Time

	mu   sync.Mutex
	last map[string]*complaint
}

type complaint struct {
	at time.Time
	// suppressed is how many were not logged since.
	suppressed int
}

// shouldLog decides whether a complaint is logged now, and returns how many of its kind were not since the last one that
// was. It counts the complaint.
func (c *complaints) shouldLog(kind string) (suppressed int, log bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, last := c.now(), c.last[kind]
	if last != nil && now.Sub(last.at) < repeatAfter {
		last.suppressed++
		return 0, false
	}
	if last != nil {
		suppressed = last.suppressed
	} else if len(c.last) >= maxKinds {
		clear(c.last)
	}
	c.last[kind] = &complaint{at: now}
	return suppressed, true
}

// kindOf identifies a kind of complaint: by the message, the address, and the system's reason. The words of an error
// name ports, which are others each time.
func kindOf(message string, pairs []any) string {
	kind := message
	for i := 0; i+1 < len(pairs); i += 2 {
		switch value := pairs[i+1].(type) {
		case error:
			var reason syscall.Errno
			if errors.As(value, &reason) {
				kind += fmt.Sprintf(" errno=%d", reason)
			} else {
				kind += fmt.Sprintf(" %T", value)
			}
		default:
			if name := fmt.Sprint(pairs[i]); name == "addr" || name == "topic" {
				kind += fmt.Sprintf(" %s=%v", name, value)
			}
		}
	}
	return kind
}
