package stack_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"landfall.build/tools/embedded/stack"
	"landfall.build/tools/traceview"
)

// collector takes traces by OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string][]received
}

// received is a span as it was sent.
type received struct {
	*tracepb.Span
	service string
}

func (r received) id() string     { return hex.EncodeToString(r.SpanId) }
func (r received) parent() string { return hex.EncodeToString(r.ParentSpanId) }

func attributeOf(list []*commonpb.KeyValue, key string) string {
	for _, a := range list {
		if a.Key == key {
			if s, is := a.Value.Value.(*commonpb.AnyValue_StringValue); is {
				return s.StringValue
			}
			return fmt.Sprint(a.Value.Value)
		}
	}
	return ""
}

func (r received) attribute(key string) string { return attributeOf(r.Attributes, key) }

// newCollector starts a collector, to which a stack that is started afterwards sends.
func newCollector(t *testing.T) *collector {
	c := &collector{spans: map[string][]received{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		m := &collectorpb.ExportTraceServiceRequest{}
		if err == nil {
			err = proto.Unmarshal(body, m)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range m.ResourceSpans {
			for _, list := range of.ScopeSpans {
				for _, s := range list.Spans {
					id := hex.EncodeToString(s.TraceId)
					c.spans[id] = append(c.spans[id], received{s, attributeOf(of.Resource.Attributes, "service.name")})
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.URL+"/v1/traces")
	return c
}

// traces waits until a number of traces was sent, and returns the spans of each by its id.
func (c *collector) traces(t *testing.T, n int) map[string][]received {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		c.mu.Lock()
		if len(c.spans) >= n {
			defer c.mu.Unlock()
			return c.spans
		}
		got := len(c.spans)
		c.mu.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("%d traces were sent, want %d", got, n)
		}
	}
}

// landTraced asks for a change as a program does that traces.
func landTraced(t *testing.T, s *stack.Stack, change, traceparent string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"change": change, "entries": []map[string]string{{"ref": change}}})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/queues/main/changes", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if traceparent != "" {
			r.Header.Set("traceparent", traceparent)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		switch {
		case answer.StatusCode == http.StatusCreated:
			return
		case answer.StatusCode != http.StatusServiceUnavailable || time.Now().After(deadline): // it may read the log still
			t.Fatalf("%d %s", answer.StatusCode, text)
		}
	}
}

// upstream returns the traceparent of a program in the n-th trace.
func upstream(n int, flags string) (trace, parent, header string) {
	trace, parent = fmt.Sprintf("%032x", 0xabc000+n), fmt.Sprintf("%016x", 0xdef000+n)
	return trace, parent, "00-" + trace + "-" + parent + "-" + flags
}

// TestAChangeIsATraceFromItsRequestToItsPush: one that lands, one that shares a step with it, one that is rejected, one that its
// upstream does not sample, and one whose request has no trace.
func TestAChangeIsATraceFromItsRequestToItsPush(t *testing.T) {
	r := newRepository(t)
	r.write("f0/landfall.yaml", `targets:
  - {name: f0, kind: test, sources: ["*.txt"], steps: [{name: slow, run: ["sleep", "2"]}]}
`)
	r.commit("slow steps")
	r.git("push", "-q", "origin", "main")
	r.branch("first", "f0/b.txt", "b\n")
	r.git("checkout", "-q", "-b", "second", "first") // the same version of f0
	r.git("reset", "-q", "--soft", "main")
	r.write("f1/b.txt", "b\n")
	r.commit("second")
	r.git("push", "-q", "origin", "second")
	r.git("checkout", "-q", "main")
	r.branch("failing", "f2/b.txt", "a bug\n")
	r.branch("unsampled", "f3/b.txt", "b\n")
	r.branch("untraced", "f1/c.txt", "c\n")
	collector := newCollector(t)
	s, c := start(t, configured(t, r, t.TempDir()))
	defer s.Close()
	names := []string{"first", "second", "failing", "unsampled"}
	for i, name := range names {
		flags := "01"
		if name == "unsampled" {
			flags = "00"
		}
		_, _, header := upstream(i, flags)
		landTraced(t, s, name, header)
	}
	landTraced(t, s, "untraced", "")
	for name, state := range map[string]string{"first": "landed", "failing": "rejected", "unsampled": "landed", "untraced": "landed"} {
		if v := settled(t, c, name); v.State != state {
			t.Fatalf("%s is %s: %s", name, v.State, v.Why)
		}
	}
	settled(t, c, "second")
	sent := collector.traces(t, 4)
	time.Sleep(2 * time.Second) // one too many would have come
	of := func(n int) []received { id, _, _ := upstream(n, ""); return sent[id] }
	checkSteps(t, of(0), of(1), of(2))
	for n, name := range append(names, "untraced") {
		id, parent, _ := upstream(n, "")
		made, err := traceview.Find(t.Context(), s.Log(), traceview.Wanted{Change: name}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if name == "untraced" {
			id, parent = made.TraceID.String(), ""
		}
		spans := sent[id]
		if name == "unsampled" {
			if len(spans) > 0 {
				t.Errorf("the trace of %s was sent", name)
			}
			continue
		}
		checkTree(t, name, spans, parent)
		var asSent, asMade []string
		for _, s := range spans {
			asSent = append(asSent, s.id()+" "+s.Name)
		}
		for _, s := range made.Spans {
			asMade = append(asMade, s.ID.String()+" "+s.Name)
		}
		slices.Sort(asSent)
		slices.Sort(asMade)
		if made.TraceID.String() != id || !slices.Equal(asSent, asMade) {
			t.Errorf("%s: what was sent is not what the log gives: %s\n%v\n%v", name, made.TraceID, asSent, asMade)
		}
		delete(sent, id)
	}
	if len(sent) > 0 {
		t.Errorf("more was sent: %v", sent)
	}
}

// checkSteps checks that steps are spans of CI/CD with their results, and that of two changes that share one, the one that it did not run
// for links to the other.
func checkSteps(t *testing.T, first, second, failing []received) {
	t.Helper()
	ran := spansNamed(t, first, "//f0")[0]
	shared := spansNamed(t, second, "//f0")[0]
	if len(ran.Links) > 0 && len(shared.Links) == 0 {
		first, second, ran, shared = second, first, shared, ran // it ran for the other one
	}
	if len(ran.Links) != 0 || len(shared.Links) != 1 || !bytes.Equal(shared.Links[0].TraceId, ran.TraceId) || !bytes.Equal(shared.Links[0].SpanId, ran.SpanId) {
		t.Errorf("the shared step links to %v", shared.Links)
	}
	if ran.attribute("cicd.pipeline.task.run.result") != "success" || ran.attribute("cicd.pipeline.task.name") != "//f0" || ran.service != "landfall-builder" ||
		ran.EndTimeUnixNano-ran.StartTimeUnixNano < uint64(2*time.Second) {
		t.Errorf("the step is %v", ran)
	}
	for _, s := range spansNamed(t, failing, "//f2") {
		if s.attribute("cicd.pipeline.task.run.result") != "failure" || s.Status.Code != tracepb.Status_STATUS_CODE_ERROR || s.attribute("landfall.step.command") != "has-no-bug" {
			t.Errorf("the step that failed is %v", s)
		}
	}
	if root := spansNamed(t, failing, "RUN main")[0]; root.attribute("cicd.pipeline.result") != "failure" || root.attribute("error.type") != "step_failed" || root.Status.Code != tracepb.Status_STATUS_CODE_ERROR {
		t.Errorf("the rejected change is %v", root)
	}
	if push := spansNamed(t, first, "push")[0]; push.Kind != tracepb.Span_SPAN_KIND_CLIENT || push.service != "landfall-lander" {
		t.Errorf("the push is %v", push)
	}
	// Either the first or the second is ahead, and the other one has a build that assumes it.
	assumes := func(spans, other []received) bool {
		root := spansNamed(t, other, "RUN main")[0]
		return slices.ContainsFunc(spansNamed(t, spans, "build"), func(b received) bool { return len(b.Links) == 1 && bytes.Equal(b.Links[0].SpanId, root.SpanId) })
	}
	if !assumes(first, second) && !assumes(second, first) {
		t.Error("no build links to the change that it assumes to land")
	}
}

// spansNamed returns the spans of a name; there is one at least.
func spansNamed(t *testing.T, spans []received, name string) (out []received) {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no span %s among %v", name, spans)
	}
	return out
}

// checkTree checks that spans are one tree, each within the time of the root.
func checkTree(t *testing.T, change string, spans []received, parent string) {
	t.Helper()
	ids := map[string]received{}
	var root received
	for _, s := range spans {
		if _, twice := ids[s.id()]; twice {
			t.Errorf("%s: the span %s came twice", change, s.Name)
		}
		ids[s.id()] = s
		if s.Name == "RUN main" {
			root = s
		}
	}
	if root.Span == nil {
		t.Fatalf("%s: no root among %v", change, spans)
	}
	for _, s := range spans {
		_, known := ids[s.parent()]
		switch {
		case s.id() == root.id():
			if s.parent() != parent {
				t.Errorf("%s: the root is below %q, want %q", change, s.parent(), parent)
			}
		case !known:
			t.Errorf("%s: %s is below nothing", change, s.Name)
		case s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano || s.EndTimeUnixNano < s.StartTimeUnixNano:
			t.Errorf("%s: %s is not within its root", change, s.Name)
		}
	}
}

// TestACollectorThatIsAwayDelaysNothing: changes land, and the traces of what ends meanwhile come once it is back.
func TestACollectorThatIsAwayDelaysNothing(t *testing.T) {
	r := newRepository(t)
	r.branch("one", "f0/b.txt", "b\n")
	collector := newCollector(t)
	var away atomic.Bool
	away.Store(true)
	asked := make(chan struct{}, 1000)
	answers := collector.Config.Handler
	collector.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked <- struct{}{}; away.Load() {
			w.WriteHeader(http.StatusInternalServerError) // not one that its client tries again by itself
			return
		}
		answers.ServeHTTP(w, r)
	})
	s, c := start(t, configured(t, r, t.TempDir()))
	defer s.Close()
	id, parent, header := upstream(0, "01")
	landTraced(t, s, "one", header)
	if v := settled(t, c, "one"); v.State != "landed" {
		t.Fatalf("%s: %s", v.State, v.Why)
	}
	for range 2 {
		select {
		case <-asked:
		case <-time.After(patience):
			t.Fatal("the collector is not asked")
		}
	}
	away.Store(false)
	checkTree(t, "one", collector.traces(t, 1)[id], parent)
}
