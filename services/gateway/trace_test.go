package gateway

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/telemetry"
)

// TestAnAdmissionKeepsTheTraceOfItsRequest, however it came: by HTTP, as a header of the record, as an extension of CloudEvents in either
// mode. What is none is ignored, and a request without gets a trace of its own.
func TestAnAdmissionKeepsTheTraceOfItsRequest(t *testing.T) {
	repo := newRepository(t)
	log := memory.New(memory.Options{Partitions: 1})
	g := startGateway(t, log, repo, "one")
	defer g.stop()
	const given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	header := func(key, value string) []events.Header { return []events.Header{{Key: key, Value: []byte(value)}} }
	plain := `{"queue":"main","entries":[{"ref":"CHANGE"}]}`
	structured := `{"specversion":"1.0","id":"1","type":"t","source":"s","datacontenttype":"application/json",TRACE"data":` + plain + `}`
	cloud := header("content-type", "application/cloudevents+json")
	for name, c := range map[string]struct {
		value   string
		headers []events.Header
		want    string
	}{
		"header":            {plain, header("traceparent", given), given},
		"extension":         {plain, header("ce_traceparent", given), given},
		"structured":        {strings.Replace(structured, "TRACE", `"traceparent":"`+given+`",`, 1), cloud, given},
		"around-structured": {strings.Replace(structured, "TRACE", "", 1), append(header("traceparent", given), cloud...), given},
		"malformed":         {plain, header("traceparent", "00-nothing\r\nx-01"), ""},
		"none":              {plain, nil, ""},
	} {
		repo.branch(name)
		err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Headers: c.headers, Value: []byte(strings.ReplaceAll(c.value, "CHANGE", name))})
		if err != nil {
			t.Fatal(err)
		}
		checkTrace(t, log, name, c.want)
	}
	repo.branch("http")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.server.URL+"/v1/queues/main/changes", strings.NewReader(`{"entries":[{"ref":"http"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", given)
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("%v, %v", answer, err)
	}
	answer.Body.Close()
	checkTrace(t, log, "http", given)
}

// checkTrace waits for the admission of a change. A trace of its own is wanted with "".
func checkTrace(t *testing.T, log journal.Log, change, want string) {
	t.Helper()
	if want == "" {
		want = telemetry.Traceparent(telemetry.OwnTrace(log.ID(), testQueue, change, 1))
	}
	c, err := log.Follow(t.Context(), events.TopicChanges, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		e, err := c.Next(ctx)
		if err != nil {
			t.Fatalf("%s: %v", change, err)
		}
		if m, is := e.Message.(*eventsv1.ChangeAdmitted); is && m.Admission.Change == change {
			if m.Admission.Trace != want || e.Trace != want {
				t.Errorf("%s: %q, header %q, want %q", change, m.Admission.Trace, e.Trace, want)
			}
			return
		}
	}
}
