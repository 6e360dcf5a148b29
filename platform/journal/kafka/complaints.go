package kafka

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clientLog passes the client's own log on. Its level Info is Debug here, and so is, while the log is being opened, that a broker does
// not answer yet: failures meanwhile are in Open's error. Each client tries each broker many times a second, so what it repeats is
// limited (telemetry.Limit).
type clientLog struct {
	log *slog.Logger
	// opening is set until Open is through.
	opening *atomic.Bool
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
	case c.opening.Load():
	case level == kgo.LogLevelError:
		to = slog.LevelError
	case level == kgo.LogLevelWarn:
		to = slog.LevelWarn
	}
	c.log.Log(context.Background(), to, "kafka client: "+message, append(pairs[:len(pairs):len(pairs)], "event", "kafka_client")...)
}
