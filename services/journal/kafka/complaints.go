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

// clientLog passes the client's own log on. What it calls information is debugging for us, and so is, while the log
// is being opened, that a broker does not answer yet.
type clientLog struct {
	log  *slog.Logger
	told *complaints
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
	case c.told.opening.Load():
	case level == kgo.LogLevelError:
		to = slog.LevelError
	case level == kgo.LogLevelWarn:
		to = slog.LevelWarn
	}
	if to > slog.LevelDebug {
		held, say := c.told.say(kindOf(message, pairs))
		if !say {
			to = slog.LevelDebug
		} else if held > 0 {
			pairs = append(pairs[:len(pairs):len(pairs)], "times_since_the_last_line", held)
		}
	}
	c.log.Log(context.Background(), to, "kafka client: "+message, pairs...)
}

const (
	// sayAgain is when a complaint that goes on is repeated: each client tries each broker many times a second.
	sayAgain = 5 * time.Minute
	// maxKinds bounds what is remembered; beyond that all is said anew.
	maxKinds = 200
)

// complaints are what the clients of a log have said of what goes wrong, by kind.
type complaints struct {
	// opening is set until Open is through: what goes wrong meanwhile is told by Open.
	opening atomic.Bool
	now     func() time.Time

	mu   sync.Mutex
	said map[string]*complaint
}

type complaint struct {
	at time.Time
	// held is how many were not said since.
	held int
}

// say says whether a complaint is to be said now, and how many of its kind were not since the last one that was.
func (c *complaints) say(kind string) (held int, say bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, last := c.now(), c.said[kind]
	if last != nil && now.Sub(last.at) < sayAgain {
		last.held++
		return 0, false
	}
	if last != nil {
		held = last.held
	} else if len(c.said) >= maxKinds {
		clear(c.said)
	}
	c.said[kind] = &complaint{at: now}
	return held, true
}

// kindOf tells complaints apart: by what is said, at which address, and the system's reason. The words of an error
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
