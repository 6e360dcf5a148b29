package events_test

import (
	"os"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// TestAnOutcomeInJSONIsWhatItWas: programs of others read it. New fields may come at the end of an object.
func TestAnOutcomeInJSONIsWhatItWas(t *testing.T) {
	const file = "testdata/outcome.json"
	m := &eventsv1.ChangeOutcome{}
	fill(m.ProtoReflect())
	values, headers, err := events.Encode(events.Envelope{ID: "main/8", Source: events.ServiceOutcomes, Instance: "log", Queue: "main", Subject: m.Subject, Term: -1, Message: m, JSON: true})
	if err != nil {
		t.Fatal(err)
	}
	if *renew || *update {
		if _, err := os.Stat(file); *renew || os.IsNotExist(err) {
			if err := os.WriteFile(file, append(values[0], '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(values[0]) + "\n"; got != string(want) {
		t.Errorf("it is\n%sand was\n%s", got, want)
	}
	attributes := map[string]string{}
	for _, h := range headers[0] {
		attributes[h.Key] = string(h.Value)
	}
	for key, value := range map[string]string{"ce_type": "build.landfall.change.state-0", "content-type": "application/json", "ce_source": "/landfall/outcomes/log", "ce_id": "main/8"} {
		if attributes[key] != value {
			t.Errorf("%s is %q, want %q", key, attributes[key], value)
		}
	}
	if term, has := attributes["ce_term"]; has {
		t.Errorf("it has the term %s", term)
	}
}

// TestAnOutcomeIsReadInBothForms, with fields of a newer version.
func TestAnOutcomeIsReadInBothForms(t *testing.T) {
	m := &eventsv1.ChangeOutcome{}
	fill(m.ProtoReflect())
	for _, json := range []bool{true, false} {
		values, headers, err := events.Encode(events.Envelope{Term: -1, Message: m, JSON: json})
		if err != nil {
			t.Fatal(err)
		}
		_, typeName, err := events.DecodeHeaders(nil, headers[0])
		if err != nil {
			t.Fatal(err)
		}
		if json {
			values[0] = append([]byte(`{"new":[1],`), values[0][1:]...)
		}
		got, err := events.DecodeMessage(typeName, values[0])
		if err != nil || !proto.Equal(got, m) {
			t.Errorf("JSON %v: %v, %v", json, got, err)
		}
	}
	if _, err := events.DecodeMessage("build.landfall.change.landed", []byte("{")); err == nil {
		t.Error("what is cut short is read")
	}
}
