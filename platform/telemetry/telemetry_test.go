package telemetry_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/telemetry"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func text(t *testing.T, m *telemetry.Telemetry) string {
	t.Helper()
	var out strings.Builder
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no %s in\n%s", line, text)
		}
	}
}

func TestServicesOfOneProcessAreMeasuredApart(t *testing.T) {
	m := telemetry.New(telemetry.Options{Instance: "one", Version: "1", Logger: quiet()})
	for _, service := range []string{"lander", "builder"} {
		telemetry.Counter(m.Meter(service), "landfall.test.things", "{thing}", "Things.").Add(t.Context(), float64(len(service)))
	}
	wants(t, text(t, m), `landfall_test_things_total{service_name="landfall-lander"} 6`, `landfall_test_things_total{service_name="landfall-builder"} 7`)
}

func TestTheSeriesOfAnInstrumentAreBounded(t *testing.T) {
	m := telemetry.New(telemetry.Options{Instance: "one", Version: "1", Logger: quiet()})
	c := telemetry.Counter(m.Meter("lander"), "landfall.test.things", "{thing}", "Things.")
	for n := range 5000 {
		c.Add(t.Context(), 1, metric.WithAttributes(telemetry.Queue.String(strings.Repeat("q", n%4999+1))))
	}
	if n := strings.Count(text(t, m), "landfall_test_things_total{"); n > 2000 {
		t.Errorf("%d series", n)
	}
}

// TestALogIsMeasuredAsItIsUsed: what goes in and out, and how far the service is behind.
func TestALogIsMeasuredAsItIsUsed(t *testing.T) {
	m := telemetry.New(telemetry.Options{Instance: "one", Version: "1", Logger: quiet()})
	s := health.New("one", "1", nil, quiet()).Service(events.ServiceLander)
	log := telemetry.Measure(m.Meter("lander"), memory.New(memory.Options{Partitions: 1}), s, func(int32) time.Time { return time.Now().Add(-time.Hour) })
	e := events.Envelope{Source: events.ServiceLander, Queue: "q", Time: time.Now(), Term: 0, Message: &eventsv1.LandIntended{}}
	if _, err := log.Append(t.Context(), events.TopicChanges, 0, e, e); err != nil {
		t.Fatal(err)
	}
	sent := make(chan error)
	go log.AppendAsync(t.Context(), events.TopicChanges, 0, e, func(_ int64, err error) { sent <- err })
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	c, err := log.Follow(t.Context(), events.TopicChanges, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := c.TryNext(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	s.Begin(0, 7).Read(events.TopicChanges, 2)
	got := text(t, m)
	const topic = `messaging_destination_name="landfall.changes",messaging_`
	wants(t, got,
		`messaging_client_sent_messages_total{landfall_event_type="landfall.events.v1.LandIntended",`+topic+`system="kafka",service_name="landfall-lander"} 3`,
		`messaging_client_consumed_messages_total{`+topic+`system="kafka",service_name="landfall-lander"} 2`,
		`messaging_client_operation_duration_seconds_count{`+topic+`operation_name="send",messaging_system="kafka",service_name="landfall-lander"} 2`,
		`landfall_broker_silence_seconds{service_name="landfall-lander"} 0`,
		`landfall_clock_jumps_seconds_total{service_name="landfall-lander"} 0`,
		`landfall_partition_term{messaging_destination_partition_id="0",service_name="landfall-lander"} 7`,
		`landfall_consumer_lag{messaging_destination_name="landfall.changes",messaging_destination_partition_id="0",service_name="landfall-lander"} 0`)
	if !strings.Contains(got, "landfall_snapshot_age_seconds{") {
		t.Errorf("no age of the snapshot in\n%s", got)
	}
}

// TestWhoLooksSomethingUpDoesNotFallBehind: what is followed sparingly, such as a moment of the past, is not what the service takes.
func TestWhoLooksSomethingUpDoesNotFallBehind(t *testing.T) {
	m := telemetry.New(telemetry.Options{Instance: "one", Version: "1", Logger: quiet()})
	s := health.New("one", "1", nil, quiet()).Service(events.ServiceGateway)
	log := telemetry.Measure(m.Meter("gateway"), memory.New(memory.Options{Partitions: 1}), s, func(int32) time.Time { return time.Time{} })
	old := events.Envelope{Source: events.ServiceLander, Queue: "q", Time: time.Now().Add(-24 * time.Hour), Term: -1, Message: &eventsv1.LandIntended{}}
	young := old
	young.Time = time.Now()
	if _, err := log.Append(t.Context(), events.TopicChanges, 0, old, young, young); err != nil {
		t.Fatal(err)
	}
	c, err := log.Follow(t.Context(), events.TopicChanges, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sparing, err := journal.FollowSparingly(t.Context(), log, events.TopicChanges, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sparing.Close()
	for _, c := range []journal.Cursor{c, c, sparing} {
		if _, err := c.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.Begin(0, 7).Read(events.TopicChanges, -1) // of no broker it is known where the topic ends: one is left
	got := text(t, m)
	wants(t, got, `messaging_client_consumed_messages_total{messaging_destination_name="landfall.changes",messaging_system="kafka",service_name="landfall-gateway"} 3`)
	_, after, found := strings.Cut(got, "landfall_consumer_lag_time_seconds{")
	line, _, _ := strings.Cut(after, "\n")
	if age, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64); !found || err != nil || age > 3600 {
		t.Errorf("the last record that was taken is of a moment ago, and %s", line)
	}
}

func TestWithoutAMeterNothingIsMeasured(t *testing.T) {
	telemetry.Counter(nil, "landfall.test.things", "{thing}", "Things.").Add(t.Context(), 1)
	telemetry.Gauge(nil, "landfall.test.gauge", "1", "A gauge.", func(telemetry.Observe) { t.Error("it is asked") })
	var none *telemetry.Telemetry
	telemetry.Histogram(none.Meter("lander"), "landfall.test.h", "s", "H.", telemetry.Short).Record(t.Context(), 1)
	if err := none.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMetricsArePushedByOTLP, to where OpenTelemetry's variables say.
func TestMetricsArePushedByOTLP(t *testing.T) {
	came := make(chan []byte, 16)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/metrics" {
			came <- body
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	if !telemetry.PushWanted() {
		t.Fatal("the variable is not seen")
	}
	m := telemetry.New(telemetry.Options{Instance: "one", Version: "1", Logger: quiet(), Push: true})
	telemetry.Counter(m.Meter("lander"), "landfall.test.things", "{thing}", "Things.").Add(t.Context(), 6)
	if err := m.Shutdown(t.Context()); err != nil { // it pushes what is left
		t.Fatal(err)
	}
	body := string(<-came)
	for _, want := range []string{"landfall.test.things", "landfall-lander", "service.instance.id"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in what was pushed", want)
		}
	}
}

func TestMetricsAndHealthAreServedUntilTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := telemetry.New(telemetry.Options{Instance: "one", Version: "1", Logger: quiet()})
	telemetry.Gauge(m.Meter("lander"), "landfall.test.gauge", "{thing}", "A gauge.", func(observe telemetry.Observe) { observe(2) })
	p := health.New("one", "1", nil, quiet())
	s := p.Service("lander")
	address, err := m.Serve(ctx, "127.0.0.1:0", p, quiet())
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
	want := func(path string, status int, words string) {
		t.Helper()
		if got, body := get(path); got != status || !strings.Contains(body, words) {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
	want("/metrics", 200, "landfall_test_gauge{service_name=\"landfall-lander\"} 2\n")
	want("/livez", 200, "ok")
	want("/readyz", 503, "lander: it has not joined its group yet")
	want("/healthz", 200, `"ready": false`)
	s.SetJoined(true)
	want("/readyz", 200, "ok")
	want("/else", 404, "")
	if _, err := m.Serve(ctx, address.String(), p, quiet()); err == nil || !strings.Contains(err.Error(), "metrics") {
		t.Errorf("an address that is taken: %v", err)
	}
	cancel()
	for {
		r, err := http.Get("http://" + address.String() + "/livez")
		if err != nil {
			break // ended
		}
		r.Body.Close()
	}
}
