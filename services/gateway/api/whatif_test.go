package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/whatif"
)

// TestASettingIsSimulatedForWhoMaySteer: one at a time, within bounds, and what is left out is as at present.
func TestASettingIsSimulatedForWhoMaySteer(t *testing.T) {
	begun := make(chan whatif.Question, 9)
	runner := whatif.New(func(ctx context.Context, q whatif.Question, _ func(float64)) (whatif.Outcome, error) {
		begun <- q
		<-ctx.Done()
		return whatif.Outcome{}, ctx.Err()
	}, func(string) {})
	t.Cleanup(runner.Close)
	g := serveGuarded(t, func(o *api.Options) { o.WhatIf = runner })
	bypass := 0.7
	g.Graph("main", &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{PoolWorkers: 8, Workers: 3, Threshold: 0.05, BypassThreshold: &bypass}})
	operator, viewer := g.token(access.Operator, "main", "tools"), g.token(access.Viewer, "main")
	ask := func(method, path, body, who string, status int, text string) api.WhatIf {
		t.Helper()
		header := []string{"Authorization", who}
		answer, got := g.do(method, path, body, header...)
		if answer.StatusCode != status || !strings.Contains(got, text) {
			t.Fatalf("%s %s %s: %s %s, want %d with %s", method, path, body, answer.Status, got, status, text)
		}
		var is api.WhatIf
		if status < http.StatusBadRequest {
			if err := json.Unmarshal([]byte(got), &is); err != nil {
				t.Fatal(err)
			}
		}
		return is
	}
	const path = "/v1/queues/main/what-if"
	if is := ask("GET", path, "", viewer, 200, `"queue":"main"`); is.Run != nil || is.Busy || is.Present != (whatif.Setting{Workers: 8, Threshold: 0.05, BypassThreshold: 0.7}) {
		t.Errorf("before: %+v", is)
	}
	ask("POST", path, `{"workers":16}`, viewer, 403, "simulating other settings needs the role operator")
	ask("POST", path+"/cancel", `{}`, viewer, 403, "forbidden")
	ask("POST", path+"/cancel", `{}`, operator, 409, "not_applied")
	for body, says := range map[string]string{
		`{}`: "That is the present setting.", `{"workers":8,"threshold":0.05}`: "That is the present setting.", `{"workers":0}`: "workers is 0", `{"workers":100000}`: "workers is 100000",
		`{"threshold":1.5}`: "threshold is 1.5", `{"bypass_threshold":-1}`: "bypass_threshold is -1", `{"workers":9,"changes":2001}`: "changes is 2001", `{"worker":9}`: "bad_request",
	} {
		ask("POST", path, body, operator, 400, says)
	}
	is := ask("POST", path, `{"workers":16,"bypass_threshold":2,"who":"somebody else"}`, operator, 202, `"state":"running"`)
	want := whatif.Question{Queue: "main", Present: is.Present, Chosen: whatif.Setting{Workers: 16, Threshold: 0.05, BypassThreshold: 2}, Changes: whatif.DefaultChanges}
	if q := <-begun; q != want || is.Run.Chosen != q.Chosen || is.Run.Who == "somebody else" {
		t.Errorf("it simulates %+v, want %+v; %+v", q, want, is.Run)
	}
	ask("POST", path, `{"workers":32}`, operator, 409, "what_if_runs")
	ask("POST", "/v1/queues/tools/what-if", `{"workers":32}`, operator, 409, "what_if_runs")
	if other := ask("GET", "/v1/queues/tools/what-if", "", operator, 200, `"busy":true`); other.Run != nil {
		t.Errorf("of another queue: %+v", other)
	}
	if is := ask("POST", path+"/cancel", `{}`, operator, 200, `"state":"cancelled"`); is.Run.EndedAt.IsZero() {
		t.Errorf("cancelled: %+v", is.Run)
	}
	ask("GET", "/v1/queues/ghost/what-if", "", g.token(access.Operator, "*"), 404, "unknown_queue")

	none := serveGuarded(t)
	if answer, text := none.do("GET", path, "", "Authorization", none.token(access.Viewer, "main")); answer.StatusCode != 200 || !strings.Contains(text, "landfall simulate log") {
		t.Errorf("where nothing simulates: %s %s", answer.Status, text)
	}
	if answer, text := none.do("POST", path, `{"workers":9}`, "Authorization", none.token(access.Operator, "main")); answer.StatusCode != 404 {
		t.Errorf("where nothing simulates: %s %s", answer.Status, text)
	}
}
