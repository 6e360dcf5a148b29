package telemetry_test

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"

	"landfall.build/platform/health"
	"landfall.build/platform/telemetry"
)

func TestFamiliesAreWrittenAsPrometheusReadsThem(t *testing.T) {
	lag := telemetry.Family{Name: "lag_records", Help: "Not yet written.\nBy topic.", Kind: telemetry.Gauge}
	lag.Add(12, "topic", "b", "partition", "0")
	lag.Add(0.5, "topic", `a"\`+"\n", "partition", "1")
	all := telemetry.Family{Name: "trainings_total", Help: "All.", Kind: telemetry.Counter}
	all.Add(math.Inf(1))
	var out strings.Builder
	if err := telemetry.Write(&out, []telemetry.Family{lag, all}); err != nil {
		t.Fatal(err)
	}
	const want = `# HELP lag_records Not yet written.\nBy topic.
# TYPE lag_records gauge
lag_records{topic="a\"\\\n",partition="1"} 0.5
lag_records{topic="b",partition="0"} 12
# HELP trainings_total All.
# TYPE trainings_total counter
trainings_total +Inf
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

func TestMetricsAreServedUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	address, err := telemetry.Serve(ctx, "127.0.0.1:0", func() []telemetry.Family {
		asked++
		f := telemetry.Family{Name: "asked", Help: "How often.", Kind: telemetry.Gauge}
		f.Add(float64(asked))
		return []telemetry.Family{f}
	}, health.New("test", "1", nil, slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		t.Helper()
		r, err := http.Get("http://" + address.String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(body)
	}
	get("/metrics")
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, "\nasked 2\n") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("healthz: %d", code)
	}
	if code, _ := get("/else"); code != 404 {
		t.Errorf("another path: %d", code)
	}
	if _, err := telemetry.Serve(ctx, address.String(), nil, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "metrics") {
		t.Errorf("an address that is taken: %v", err)
	}
	cancel()
	for {
		r, err := http.Get("http://" + address.String() + "/healthz")
		if err != nil {
			break // ended
		}
		r.Body.Close()
	}
}
