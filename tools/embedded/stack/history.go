package stack

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"landfall.build/events"
	"landfall.build/tools/embedded/clickhouse"
)

// historyBackoff is the pause between two tries to start the embedded ClickHouse.
const historyBackoff = 10 * time.Second

// keepHistory begins to keep the history, on the server that the configuration names or on an embedded one, and
// says in one line where it is, or why there is none. Nothing else waits for it, and nothing fails with it.
func (s *Stack) keepHistory(ctx context.Context, o Options) string {
	if o.Configuration.ClickHouse.DSN != "" {
		s.wg.Go(func() { s.learn(ctx, o) })
		return "history in the ClickHouse that the configuration names"
	}
	if !o.History {
		return ""
	}
	if err := clickhouse.Installed(); err != nil {
		return "no history is kept, the log has everything: " + err.Error()
	}
	dir := filepath.Join(o.Configuration.Data, "clickhouse")
	s.wg.Go(func() {
		for ctx.Err() == nil {
			server, err := clickhouse.Start(ctx, clickhouse.Options{Dir: dir, Log: o.Logger})
			if err == nil {
				s.process.History = server.DSN()
				s.process.SetAnalyst(analystOf(server, o.Logger))
				s.learn(ctx, o)
				server.Close()
				return
			}
			o.Logger.Warn("the embedded ClickHouse does not start; trying again, and the queue goes on without a history", "in", historyBackoff.String(), "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(historyBackoff):
			}
		}
	})
	return "history in " + dir
}

// analystOf returns how the gateway asks the history: as the user who may read alone, where there is one.
func analystOf(server *clickhouse.Server, logger *slog.Logger) string {
	dsn, err := server.AnalystDSN()
	if err == nil {
		return dsn
	}
	if !errors.Is(err, clickhouse.ErrNoAnalyst) {
		logger.Warn("the gateway asks the history as its owner", "error", err)
	}
	return server.DSN()
}

// learn keeps the history and trains models on it until the stack ends; each reports its own failures, and tries
// again.
func (s *Stack) learn(ctx context.Context, o Options) {
	var both sync.WaitGroup
	for _, service := range []string{events.ServiceHistorian, events.ServiceTrainer} {
		both.Go(func() {
			if err := s.process.Run(ctx, service); err != nil && ctx.Err() == nil {
				o.Logger.Error("a service ended that nothing lands by; the history is not kept, or no models are trained, any more", "service", service, "error", err)
			}
		})
	}
	both.Wait()
}

// History returns where the history is kept, or why it is not; "" where none was asked for.
func (s *Stack) History() string { return s.history }
