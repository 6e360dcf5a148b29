package gateway

import (
	"encoding/json"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/prediction/predictiontest"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/registry"
	"landfall.build/services/gateway/api"
)

func TestModelsAreListedPromotedAndRolledBack(t *testing.T) {
	log := newLog(2)
	first, second := predictiontest.Success(t, 1), predictiontest.Success(t, 2)
	first.Card.Figures = []*eventsv1.ModelFigure{{Name: "log_loss", Of: "candidate", Value: 0.5}}
	corrupt := proto.CloneOf(predictiontest.Success(t, 3))
	corrupt.Predictor = corrupt.Predictor[:len(corrupt.Predictor)-3]
	declined := proto.CloneOf(predictiontest.Success(t, 4))
	declined.Predictor = nil
	for _, m := range []proto.Message{
		&eventsv1.ModelPromoted{Model: first, Who: "trainer", Why: "the first", StampUs: 1}, &eventsv1.ModelTrained{Model: second, StampUs: 2},
		&eventsv1.ModelTrained{Model: corrupt, StampUs: 3}, &eventsv1.ModelTrained{Model: declined, StampUs: 4},
	} {
		if err := registry.Publish(t.Context(), log, events.ServiceTrainer, "test", testQueue, m); err != nil {
			t.Fatal(err)
		}
	}
	r := startGateway(t, log, newRepository(t), "g1")
	list := func() []api.ModelEntry {
		t.Helper()
		status, answer := r.call("GET", "/v1/queues/main/models", nil)
		text, err := json.Marshal(answer)
		if err != nil || status != 200 {
			t.Fatal(status, answer, err)
		}
		var l api.ModelList
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		return l.Models
	}
	models := list()
	if len(models) != 4 || models[0].What != "declined" || models[0].Usable || models[1].Trouble == "" || models[1].Usable || !models[2].Usable || models[2].InUse ||
		!models[3].InUse || models[3].Why != "the first" || models[3].Card.Figures[0].Value != 0.5 {
		t.Fatalf("%+v", models)
	}
	inUse := func(version, who, why string) {
		t.Helper()
		models := list()
		at := slices.IndexFunc(models, func(m api.ModelEntry) bool { return m.InUse })
		if version == "" && at >= 0 || version != "" && (at < 0 || models[at].Version != version || models[at].Who != who || models[at].Why != why) {
			t.Errorf("in use is %d of %+v", at, models)
		}
	}
	for version, want := range map[string]int{"none": 404, "": 404, corrupt.Version: 409, declined.Version: 409} {
		if status, answer := r.call("POST", "/v1/queues/main/models/promote", object{"version": version}); status != want {
			t.Errorf("%s: %d %v", version, status, answer)
		}
	}
	steps := []struct {
		does         string
		body         object
		status       int
		version, why string
	}{
		{"promote", object{"version": second.Version, "why": "it is better"}, 200, second.Version, "it is better"},
		{"rollback", object{"kind": "success", "why": "it is not"}, 200, first.Version, "it is not"},
		{"rollback", object{"kind": "success", "priors": true}, 200, "", ""},
		{"rollback", object{"kind": "success"}, 409, "", ""},
		{"rollback", object{"kind": "weather"}, 400, "", ""},
	}
	for _, s := range steps {
		if status, answer := r.call("POST", "/v1/queues/main/models/"+s.does, s.body); status != s.status {
			t.Errorf("%s %v: %d %v", s.does, s.body, status, answer)
		}
		inUse(s.version, "ada", s.why)
	}
}
