package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/deadletters"
	"landfall.build/platform/health"
	"landfall.build/platform/registry"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
)

// past serves a queue main in which c1 was admitted at the second 0, the queue paused at the second 1, and a target quarantined then. It is
// an hour later.
func past(t *testing.T) func(path string) (int, string) {
	t.Helper()
	b := apitest.New("main")
	if _, err := b.Land(t.Context(), &eventsv1.LandRequest{Queue: "main", Change: "c1", Entries: []*eventsv1.Entry{{Ref: "c1"}}}); err != nil {
		t.Fatal(err)
	}
	b.Fold("main", events.TopicChanges, &eventsv1.QueuePaused{Who: "sre"})
	b.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//x", UntilUs: apitest.Start.Add(time.Hour).UnixMicro(), Who: "sre", Why: "while it is paused"})
	h, err := api.NewHandler(api.Options{Backend: b, Clock: func() time.Time { return apitest.Start.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return func(path string) (int, string) {
		t.Helper()
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
}

func at(second int) string {
	return "at=" + url.QueryEscape(apitest.Start.Add(time.Duration(second)*time.Second).Format(time.RFC3339))
}

// TestThePastOfServicesIsWhoHadClaimedWhat of the queues that the caller may read, and nobody is said to be at work.
func TestThePastOfServicesIsWhoHadClaimedWhat(t *testing.T) {
	g := serveGuarded(t, func(*api.Options) {})
	claimed := apitest.Start.Add(time.Hour)
	g.SetServices(health.Report{
		Instances:  []health.Instance{{Service: "lander", Instance: "core-1", Alive: true}},
		Partitions: []health.Ownership{{Service: "lander", Queues: []string{"main", "tools"}, Instance: "core-1", Term: 7, Since: claimed, State: health.StateWorking, BehindRecords: 4}},
		Missing:    []health.Missing{{Service: "builder", Queues: []string{"main"}, Sentence: "No builder has been alive for 35 s."}},
	})
	token := g.token(access.Viewer, "main")
	for at, want := range map[string]string{
		"2026-01-05T11:00:00Z": `{"instances":[],"partitions":[{"service":"lander","partition":0,"queues":["main"],"instance":"core-1","term":7,"since":"2026-01-05T11:00:00Z","state":"claimed","behind_records":0}],"missing":[]}`,
		"2026-01-05T10:59:59Z": `{"instances":[],"partitions":[{"service":"lander","partition":0,"queues":["main"],"term":-1,"state":"unowned","behind_records":0}],"missing":[]}`,
	} {
		if answer, text := g.do("GET", "/v1/services?at="+at, "", "Authorization", token); answer.StatusCode != http.StatusOK || strings.TrimSpace(text) != want {
			t.Errorf("at %s: %s %s, want %s", at, answer.Status, text, want)
		}
	}
	for _, at := range []string{"noon", "9999-01-01T00:00:00Z"} {
		if answer, text := g.do("GET", "/v1/services?at="+at, "", "Authorization", token); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("at %s: %s %s", at, answer.Status, text)
		}
	}
}

func TestAQueueIsShownAsItWas(t *testing.T) {
	get := past(t)
	for _, path := range []string{"/v1/queues", "/v1/queues/main", "/v1/queues/main/changes", "/v1/queues/main/graph", "/v1/queues/main/quarantines", "/v1/queues/main/changes/c1", "/v1/queues/main/changes/c1/explain"} {
		_, now := get(path)
		status, then := get(path + "?" + at(0))
		if status != http.StatusOK || !strings.HasSuffix(path, "graph") && now == then {
			t.Errorf("%s before the pause: %d %s", path, status, then)
		}
		if strings.Contains(then, "aused") {
			t.Errorf("%s before the pause has it: %s", path, then)
		}
	}
	if status, text := get("/v1/queues/main/changes/c1?" + at(-1)); status != http.StatusNotFound || !strings.Contains(text, "unknown_change") {
		t.Errorf("a change before it was admitted: %d %s", status, text)
	}
}

func TestWhatIsNoMomentOfThePastIsRefused(t *testing.T) {
	get := past(t)
	for _, c := range []struct{ path, says string }{
		{"/v1/queues/main?at=yesterday", "not a time"},
		{"/v1/queues?at=yesterday", "not a time"},
		{"/v1/queues?at=0000-01-01T00:00:00Z", "before 1970"},
		{"/v1/queues/main?" + at(3601), "not in the past"},
		{"/v1/queues/main/changes/c1/explain?full=true&" + at(1), "landfall replay"},
	} {
		if status, text := get(c.path); status != http.StatusBadRequest || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s", c.path, status, text)
		}
	}
	if status, text := get("/v1/queues/ghost?" + at(1)); status != http.StatusNotFound || !strings.Contains(text, "unknown_queue") {
		t.Errorf("another queue: %d %s", status, text)
	}
}

func TestWhoAsksForThePastTooOftenIsToldSo(t *testing.T) {
	get := past(t)
	for range 200 {
		status, text := get("/v1/queues/main?" + at(0))
		if status == http.StatusTooManyRequests {
			var f api.Failure
			if err := json.Unmarshal([]byte(text), &f); err != nil || f.Error.Code != "too_many_requests" {
				t.Errorf("%s: %v", text, err)
			}
			if status, _ := get("/v1/queues/main"); status != http.StatusOK {
				t.Errorf("the present is refused too: %d", status)
			}
			return
		}
	}
	t.Error("200 questions at once are all answered")
}

// lists holds a dead letter of the second 10 that was sent again at the second 20, and a model of the second 10 that another one took the
// place of at the second 20.
type lists struct{}

func second(n int) int64 { return apitest.Start.Add(time.Duration(n) * time.Second).UnixMicro() }

func (lists) DeadLetters() ([]deadletters.Letter, int) {
	l := deadletters.Letter{DeadLetter: &eventsv1.DeadLetter{Topic: events.TopicLandRequests, Queue: "main", StampUs: second(10)}, Times: 1}
	l.Sent = []*eventsv1.DeadLetterSent{{StampUs: second(20), Who: "sre"}}
	return []deadletters.Letter{l}, 0
}

func (lists) SendAgain(context.Context, *eventsv1.DeadLetter, *eventsv1.DeadLetterSent) error {
	return nil
}

func (lists) ReadModels(_ context.Context, _ string, f func(*registry.Registry) error) error {
	r := registry.New()
	r.Apply(&eventsv1.ModelPromoted{Model: &eventsv1.Model{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS, Version: "older"}, StampUs: second(10)})
	r.Apply(&eventsv1.ModelPromoted{Model: &eventsv1.Model{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS, Version: "newer"}, StampUs: second(20)})
	return f(r)
}

func (lists) ChooseModel(context.Context, string, proto.Message) error { return nil }

func TestListsAreShownAsTheyWere(t *testing.T) {
	h, err := api.NewHandler(api.Options{Backend: apitest.New("main"), DeadLetters: lists{}, Models: lists{}, Clock: func() time.Time { return apitest.Start.Add(time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	get := func(path string, answer any) {
		t.Helper()
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(answer); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v", path, response.StatusCode, err)
		}
	}
	for _, c := range []struct {
		at       string
		letters  int
		sent     bool
		versions []string
		inUse    string
	}{
		{"", 1, true, []string{"newer", "older"}, "newer"},
		{at(25), 1, true, []string{"newer", "older"}, "newer"},
		{at(15), 1, false, []string{"older"}, "older"},
		{at(5), 0, false, nil, ""},
	} {
		var letters api.DeadLetterList
		get("/v1/dead-letters?"+c.at, &letters)
		if len(letters.Letters) != c.letters || c.letters > 0 && (letters.Letters[0].Sent != nil) != c.sent {
			t.Errorf("dead letters %s: %+v", c.at, letters)
		}
		var models api.ModelList
		get("/v1/queues/main/models?"+c.at, &models)
		var versions []string
		var inUse string
		for _, m := range models.Models {
			if versions = append(versions, m.Version); m.InUse {
				inUse += m.Version
			}
		}
		if !slices.Equal(versions, c.versions) || inUse != c.inUse {
			t.Errorf("models %s: %v, in use %q", c.at, versions, inUse)
		}
	}
	for _, path := range []string{"/v1/dead-letters", "/v1/queues/main/models"} {
		for _, wrong := range []string{"at=yesterday", at(3601)} {
			response, err := http.Get(server.URL + path + "?" + wrong)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusBadRequest {
				t.Errorf("%s?%s: %d", path, wrong, response.StatusCode)
			}
		}
	}
}
