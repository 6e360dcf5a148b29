// Package telemetry serves the metrics of a service in Prometheus's text format (version 0.0.4). They are collected when
// they are scraped.
package telemetry

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"landfall.build/platform/health"
)

// Kind of a measurement.
type Kind string

const (
	// Gauge goes up and down.
	Gauge Kind = "gauge"
	// Counter only goes up, and begins at 0 with the process.
	Counter Kind = "counter"
)

// Family is what has one name and meaning, with a sample for each combination of labels.
type Family struct {
	// Name ends in its unit; Help says what it is in one sentence.
	Name, Help string
	Kind       Kind
	Samples    []Sample
}

// Sample is one value.
type Sample struct {
	// Labels are pairs: a name, then its value.
	Labels []string
	Value  float64
}

// Add appends a sample.
func (f *Family) Add(value float64, labels ...string) {
	f.Samples = append(f.Samples, Sample{Labels: labels, Value: value})
}

// Write writes families in their order, the samples of each by their labels. Values of labels may be any text.
func Write(out io.Writer, families []Family) error {
	w := bufio.NewWriter(out)
	for _, f := range families {
		fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", f.Name, helpEscape.Replace(f.Help), f.Name, f.Kind)
		lines := make([]string, 0, len(f.Samples))
		for _, s := range f.Samples {
			var pairs []string
			for i := 0; i+1 < len(s.Labels); i += 2 {
				pairs = append(pairs, s.Labels[i]+`="`+labelEscape.Replace(strings.ToValidUTF8(s.Labels[i+1], "\uFFFD"))+`"`)
			}
			labels := ""
			if len(pairs) > 0 {
				labels = "{" + strings.Join(pairs, ",") + "}"
			}
			lines = append(lines, f.Name+labels+" "+strconv.FormatFloat(s.Value, 'g', -1, 64)+"\n")
		}
		slices.Sort(lines)
		for _, line := range lines {
			w.WriteString(line)
		}
	}
	return w.Flush()
}

var (
	helpEscape  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// Health is GET /healthz: whether each service of the process can work, and how far it has read. Its status is 200 even if one cannot.
type Health struct {
	Ready    bool           `json:"ready"`
	Services []health.Check `json:"services"`
}

// Serve answers GET /metrics at an address with what collect returns, GET /livez, GET /readyz and GET /healthz with the health of the
// process, until ctx ends. It returns once it listens, with the address, or an error if it cannot. collect may be called by several
// goroutines at once.
func Serve(ctx context.Context, address string, collect func() []Family, process *health.Process, logger *slog.Logger) (net.Addr, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		if err := Write(w, collect()); err != nil {
			logger.Debug("the metrics could not be sent", "error", err)
		}
	})
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
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Warn("metrics are no longer served", "error", err)
		}
	}()
	return listener.Addr(), nil
}
