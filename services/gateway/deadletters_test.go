package gateway

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/api"
)

// deadLetters returns what the API lists.
func (r *running) deadLetters() []api.DeadLetter {
	r.t.Helper()
	status, answer := r.call("GET", "/v1/dead-letters", nil)
	text, err := json.Marshal(answer)
	if err != nil || status != 200 {
		r.t.Fatal(status, err)
	}
	var list api.DeadLetterList
	if err := json.Unmarshal(text, &list); err != nil {
		r.t.Fatal(err)
	}
	return list.Letters
}

func TestADeadLetterIsListedAndSentAgainOnceItsQueueIsThere(t *testing.T) {
	repo := newRepository(t)
	repo.branch("late")
	log := newLog(4)
	r := startGatewayWith(t, log, repo, "g1", func(c *configuration.Configuration) { delete(c.Queues, "other") })
	if err := log.Write(context.Background(),
		journal.Record{Topic: events.TopicLandRequests, Partition: 1, Key: []byte("k\xff"), Value: []byte(`{"queue":"other","change":"late","entries":[{"ref":"late"}]}`), Headers: []events.Header{{Key: "tenant", Value: []byte("t\xff")}}},
		journal.Record{Topic: events.TopicLandRequests, Partition: 2, Value: []byte(`{"queue":` + strings.Repeat(" ", 10_000))},
	); err != nil {
		t.Fatal(err)
	}
	r.eventually("both are listed", func() bool { return len(r.deadLetters()) == 2 })
	r.stop()

	r = startGateway(t, log, repo, "g2")
	of := map[string]api.DeadLetter{}
	for _, d := range r.deadLetters() {
		of[d.Place] = d
	}
	late, broken := of["land-requests/1/0"], of["land-requests/2/0"]
	if late.Queue != "other" || late.Change != "late" || late.Service != events.ServiceGateway || !strings.Contains(late.Reason, "there is no queue") || late.Advice == "" || !late.MaySend || late.Sent != nil {
		t.Errorf("%+v", late)
	}
	if d := late.Record; d == nil || d.Key != "k\uFFFD" || len(d.Headers) != 1 || d.Headers[0].Name != "tenant" || d.Headers[0].Value != "t\uFFFD" || !strings.Contains(d.Value, `"change":"late"`) {
		t.Errorf("%+v", d)
	}
	if d := broken.Record; d == nil || len(d.Value) > 4<<10 {
		t.Errorf("the value of a dead letter is %d bytes", len(d.Value))
	}
	for place, want := range map[string]int{"land-requests/1/9": 404, "builds/1/0": 404, "land-requests/2/0": 409} {
		if status, answer := r.call("POST", "/v1/dead-letters/"+place+"/send", object{}); status != want {
			t.Errorf("%s: %d %v", place, status, answer)
		}
	}
	if status, answer := r.call("POST", "/v1/dead-letters/land-requests/1/0/send", object{"why": "the queue\nis there"}); status != 400 {
		t.Errorf("%d %v", status, answer)
	}
	if status, answer := r.call("POST", "/v1/dead-letters/land-requests/1/0/send", object{"why": "the queue is there now"}); status != 200 {
		t.Fatalf("%d %v", status, answer)
	}
	r.eventually("the change is admitted", func() bool {
		status, _ := r.call("GET", "/v1/queues/other/changes/late", nil)
		return status == 200
	})
	for _, d := range r.deadLetters() {
		if d.Place == late.Place && (d.Sent == nil || d.Sent.Who != "ada" || d.Sent.Why != "the queue is there now" || d.Sent.Times != 1) {
			t.Errorf("%+v", d.Sent)
		}
	}
}
