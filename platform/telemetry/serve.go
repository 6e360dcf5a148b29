package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"landfall.build/platform/health"
	"landfall.build/platform/listening"
)

// Health is GET /healthz: whether each service of the process can work, and how far it has read. Its status is 200 even if one cannot.
type Health struct {
	Ready    bool           `json:"ready"`
	Services []health.Check `json:"services"`
}

// Serve answers GET /metrics at an address, and GET /livez, GET /readyz and GET /healthz with the health of the process, until ctx ends.
// It returns once it listens, with the address, or an error if it cannot.
func (t *Telemetry) Serve(ctx context.Context, address string, process *health.Process, logger *slog.Logger) (net.Addr, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := process.Ready(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, err)
			return
		}
		io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.Encode(Health{process.Ready() == nil, process.Checks()})
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		if err := server.Serve(listening.Bounded(listening.Patient(listener, logger), listening.Usual(nil), logger)); !errors.Is(err, http.ErrServerClosed) {
			logger.Warn("metrics are no longer served", "error", err)
		}
	}()
	return listener.Addr(), nil
}
