package clickhouse_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal/memory"
)

// TestTheHistorySaysWhoHadWhatDone: people and programs by what their issuer vouches for, and nobody where a service wrote by itself.
func TestTheHistorySaysWhoHadWhatDone(t *testing.T) {
	log := memory.New(memory.Options{Partitions: 1})
	dsn := database(t)
	ada := &eventsv1.Actor{Issuer: "https://id.example.com", Subject: "0b1f", Name: "Ada", Role: "contributor", Client: "landfall"}
	bot := &eventsv1.Actor{Issuer: "landfall", Subject: "abc", Name: "ci", Role: "operator", Token: "abc"}
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	write := func(topic, change string, m proto.Message) {
		t.Helper()
		at = at.Add(time.Second)
		if _, err := log.Append(t.Context(), topic, 0, events.Envelope{ID: at.String(), Source: events.ServiceGateway, Queue: "main", Subject: change, Term: -1, Time: at, Message: m}); err != nil {
			t.Fatal(err)
		}
	}
	// What is asked for by Kafka has whoever wrote it as its actor: only the answer counts.
	write(events.TopicLandRequests, "", &eventsv1.LandRequest{Change: "c", Actor: bot})
	write(events.TopicChanges, "c", &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: "main", Change: "c", Revision: 1, Actor: ada}})
	write(events.TopicChanges, "d", &eventsv1.RequestRefused{Change: "d", Code: "forbidden", Message: "not yours", Actor: ada})
	write(events.TopicChanges, "", &eventsv1.QueuePaused{Who: "ci", Why: `an "actor"`, Actor: bot})
	write(events.TopicChanges, "c", &eventsv1.ChangeCancelled{Change: "c", Why: `of an earlier release, about an "actor"`})
	write(events.TopicModels, "", &eventsv1.ModelRolledBack{Why: "wrong", Actor: bot})
	run(t, dsn, log, 10*time.Millisecond)
	caughtUp(t, dsn, log)
	found, err := connectTo(t, dsn).Query(t.Context(), "SELECT what, change, name, role, issuer, who, token, client, why FROM who_did_what")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	var got [][]string
	for found.Next() {
		row := make([]string, 9)
		var into []any
		for i := range row {
			into = append(into, &row[i])
		}
		if err := found.Scan(into...); err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	want := [][]string{
		{"ChangeAdmitted", "c", "Ada", "contributor", "https://id.example.com", "0b1f", "", "landfall", ""},
		{"RequestRefused", "d", "Ada", "contributor", "https://id.example.com", "0b1f", "", "landfall", "not yours"},
		{"QueuePaused", "", "ci", "operator", "landfall", "abc", "abc", "", `an "actor"`},
		{"ModelRolledBack", "", "ci", "operator", "landfall", "abc", "abc", "", "wrong"},
	}
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("who did what:\n%q\nwant\n%q", got, want)
	}
}
