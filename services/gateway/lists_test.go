package gateway

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"landfall.build/engine/prediction/predictiontest"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/registry"
	"landfall.build/services/gateway/api"
)

func TestWhoWatchesIsToldWhatOthersDoToDeadLettersTokensAndModels(t *testing.T) {
	log := newLog(2)
	_, admin := writeToken(t, log, "admin", access.Grant{Role: access.Admin, Queues: []string{access.AllQueues}})
	r := startGatewayWith(t, log, newRepository(t), "g1", func(c *configuration.Configuration) { required(c) })
	request, err := http.NewRequestWithContext(t.Context(), "GET", r.server.URL+"/v1/watch?list=dead-letters&list=tokens&models=main&models=other", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+admin)
	response, err := r.server.Client().Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response.Status, err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	counts := map[string]float64{}
	until := func(what string, true func() bool) {
		t.Helper()
		timer := time.AfterFunc(20*time.Second, func() { response.Body.Close() })
		defer timer.Stop()
		for !true() {
			if !lines.Scan() {
				t.Fatalf("%s: the stream ended with %v: %v", what, counts, lines.Err())
			}
			var p api.Part
			if data, is := strings.CutPrefix(lines.Text(), "data: "); is && json.Unmarshal([]byte(data), &p) == nil && p.Kind != api.PartQueue {
				var n float64
				if err := json.Unmarshal(p.Value, &n); err != nil {
					t.Fatal(err, lines.Text())
				}
				counts[p.Kind+" "+p.Queue] = n
			}
		}
	}
	until("the counts come", func() bool { return len(counts) == 4 })
	grows := func(key string, does func()) {
		t.Helper()
		before := counts[key]
		does()
		until(key, func() bool { return counts[key] > before })
	}
	grows("models main", func() {
		if err := registry.Publish(t.Context(), log, events.ServiceTrainer, "test", testQueue, &eventsv1.ModelTrained{Model: predictiontest.Success(t, 1), StampUs: 1}); err != nil {
			t.Fatal(err)
		}
	})
	grows("tokens ", func() { writeToken(t, log, "another", access.Grant{Role: access.Viewer, Queues: []string{testQueue}}) })
	grows("dead-letters ", func() {
		if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Partition: 1, Value: []byte("{")}); err != nil {
			t.Fatal(err)
		}
	})
	if counts["models other"] != 0 {
		t.Errorf("the models of another queue are said to have changed: %v", counts)
	}
}
