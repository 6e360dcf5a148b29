package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
)

// watcher reads the stream of several queues, and keeps what it says.
type watcher struct {
	t        *testing.T
	response *http.Response
	lines    *bufio.Scanner
	// parts is what is known of each part, by its kind, queue and change.
	parts map[string]any
	// states and patches name the parts of which an event came, in order.
	states, patches []string
	lastID          string
}

// watch reads the stream, with further headers if there are any.
func (s *server) watch(t *testing.T, query, lastID string, parts map[string]any, headers ...string) *watcher {
	t.Helper()
	request, err := http.NewRequest("GET", s.URL+"/v1/watch"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Last-Event-ID", lastID)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.Client().Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response.Status, err)
	}
	t.Cleanup(func() { response.Body.Close() })
	w := &watcher{t: t, response: response, lines: bufio.NewScanner(response.Body), parts: map[string]any{}}
	w.lines.Buffer(nil, 1<<20)
	maps.Copy(w.parts, parts)
	return w
}

// until reads batches of events until stop is true after one.
func (w *watcher) until(stop func() bool) {
	w.t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { w.response.Body.Close() })
	defer timer.Stop()
	var name, data string
	var ended bool
	for whole := false; !whole || !stop(); {
		whole = false
		if !w.lines.Scan() {
			w.t.Fatalf("the stream ended: %v; states %v, patches %v", w.lines.Err(), w.states, w.patches)
		}
		field, value, _ := strings.Cut(w.lines.Text(), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			data = value
		case "id":
			w.lastID, ended = value, true // the last event of a batch has an id
		case "":
			if name != "" {
				w.take(name, data)
			}
			name, whole = "", ended
			ended = false
		}
	}
}

func (w *watcher) take(name, data string) {
	var p api.Part
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		w.t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(p.Value, &value); err != nil {
		w.t.Fatal(err)
	}
	key := strings.TrimRight(p.Kind+" "+p.Queue+" "+p.Change, " ")
	switch name {
	case api.EventState:
		w.states, w.parts[key] = append(w.states, key), value
	case api.EventPatch:
		w.patches, w.parts[key] = append(w.patches, key), merged(w.parts[key], value)
	default:
		w.t.Errorf("an event is named %s", name)
	}
}

// merged is RFC 7396 as it is written there.
func merged(target, patch any) any {
	fields, is := patch.(map[string]any)
	if !is {
		return patch
	}
	old, _ := target.(map[string]any)
	out := maps.Clone(old)
	if out == nil {
		out = map[string]any{}
	}
	for name, value := range fields {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = merged(out[name], value)
		}
	}
	return out
}

func (w *watcher) title(id string) any {
	changes, _ := w.parts["changes main"].(map[string]any)
	change, _ := changes[id].(map[string]any)
	return change["title"]
}

// get returns what a route serves.
func (s *server) get(path string) (value map[string]any) {
	s.t.Helper()
	if _, text := s.do("GET", path, ""); json.Unmarshal([]byte(text), &value) != nil {
		s.t.Fatal(text)
	}
	return value
}

func (s *server) admit(id, title string) {
	s.t.Helper()
	if r, text := s.do("POST", "/v1/queues/main/changes", fmt.Sprintf(`{"change":%q,"title":%q,"entries":[{"ref":%q}]}`, id, title, id)); r.StatusCode != 201 {
		s.t.Fatal(text)
	}
}

func TestPatchesAddUpToWhatTheRoutesServe(t *testing.T) {
	s := serve(t)
	s.admit("a", "first")
	w := s.watch(t, "?changes=main&graph=main&flakes=main&quarantines=main&change=main/a&change=main/ghost", "", nil)
	w.until(func() bool { return len(w.states) == 8 })
	slices.Sort(w.states)
	if want := []string{"change main a", "change main ghost", "changes main", "flakes main", "graph main", "quarantines main", "queue main", "queue tools"}; !slices.Equal(w.states, want) {
		t.Fatalf("the states are of %v, want %v", w.states, want)
	}
	if w.parts["change main ghost"] != nil {
		t.Error("a change that is not there has a state")
	}
	for i := range 5 {
		s.admit(fmt.Sprint("c", i), "more")
	}
	s.Schedule("main", "b1", "a", nil, "//x")
	s.Prepare("main", "b1", "a", "//x")
	s.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "no", "")
	s.Finish("main", "b1", "//x", 2, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "ok", "")
	s.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//y", UntilUs: apitest.Start.Add(time.Hour).UnixMicro(), Who: "Ada", Why: "a race"})
	s.Fold("main", events.TopicChanges, &eventsv1.ChangeHeld{Change: "a", Hold: "h", Who: "Ada"})
	s.Fold("main", events.TopicChanges, &eventsv1.ChangeReleased{Change: "a", Hold: "h", Who: "Ada"})
	s.Fold("main", events.TopicChanges, &eventsv1.ChangeCancelled{Change: "c0", Who: "Ada"})
	s.admit("ghost", "is there now")
	s.admit("last", "seen")
	w.until(func() bool { return w.title("last") == "seen" && w.parts["change main ghost"] != nil })
	if len(w.states) != 8 {
		t.Errorf("states were sent again: %v", w.states[8:])
	}
	changes := map[string]any{}
	for _, c := range s.get("/v1/queues/main/changes")["changes"].([]any) {
		changes[c.(map[string]any)["change"].(string)] = c
	}
	for key, want := range map[string]any{"changes main": any(changes), "change main a": s.get("/v1/queues/main/changes/a"), "change main ghost": s.get("/v1/queues/main/changes/ghost"), "queue main": s.get("/v1/queues/main"), "graph main": s.get("/v1/queues/main/graph"),
		"flakes main": s.get("/v1/queues/main/flakes"), "quarantines main": s.get("/v1/queues/main/quarantines")} {
		if !reflect.DeepEqual(w.parts[key], want) {
			got, _ := json.Marshal(w.parts[key])
			served, _ := json.Marshal(want)
			t.Errorf("%s is\n%s\nbut its route serves\n%s", key, got, served)
		}
	}
}

func TestAWatcherThatComesBackIsSentOnlyWhatItMissed(t *testing.T) {
	s := serve(t)
	s.admit("a", "first")
	w := s.watch(t, "?changes=main", "", nil)
	w.until(func() bool { return w.title("a") == "first" && w.lastID != "" })
	w.response.Body.Close()
	s.admit("b", "missed")
	again := s.watch(t, "?changes=main&change=main/b", w.lastID, w.parts)
	again.until(func() bool { return again.title("b") == "missed" && again.parts["change main b"] != nil })
	if !slices.Equal(again.states, []string{"change main b"}) {
		t.Errorf("the states sent are of %v, but only that change is new to the client", again.states)
	}
	// Another gateway knows nothing of the patches of this one.
	other := s.watch(t, "?changes=main", strings.Replace(again.lastID, "-", "x-", 1), nil)
	other.until(func() bool { return len(other.states) == 3 })
	if other.title("b") != "missed" {
		t.Error("a client of another gateway is not sent the state")
	}
}

func TestWatchersShareTheWorkAndEachSeesItsParts(t *testing.T) {
	s := serve(t)
	mine, other := s.watch(t, "?changes=main", "", nil), s.watch(t, "?changes=tools", "", nil)
	mine.until(func() bool { return len(mine.states) == 3 })
	other.until(func() bool { return len(other.states) == 3 })
	s.admit("a", "first")
	mine.until(func() bool { return mine.title("a") == "first" })
	other.until(func() bool { return slices.Contains(other.patches, "queue main") })
	if slices.Contains(other.patches, "changes main") {
		t.Error("a client is sent the changes of a queue that it did not name")
	}
}

func TestWhatCannotBeWatchedIsRefused(t *testing.T) {
	s := serve(t)
	many := strings.Repeat("&change=main/x", 21)
	for _, row := range []struct {
		query  string
		status int
		code   string
	}{
		{"?changes=nope", 404, "unknown_queue"}, {"?graph=nope", 404, "unknown_queue"}, {"?change=nope/x", 404, "unknown_queue"}, {"?change=main", 400, "bad_request"},
		{"?models=nope", 404, "unknown_queue"}, {"?list=nope", 400, "bad_request"}, {"?change=main/", 400, "bad_request"}, {"?change=main/" + strings.Repeat("x", 300), 400, "bad_request"}, {"?" + many, 400, "bad_request"},
	} {
		r, text := s.do("GET", "/v1/watch"+row.query, "")
		if r.StatusCode != row.status || !strings.Contains(text, row.code) {
			t.Errorf("%.40s is answered by %s: %s", row.query, r.Status, text)
		}
	}
}

func TestWatchersOfListsAreToldWhenTheyChange(t *testing.T) {
	s := serve(t)
	s.lists.Changed(api.PartModels, "main")
	w := s.watch(t, "?models=main&list=dead-letters", "", nil)
	w.until(func() bool { return len(w.states) == 4 })
	count := func(key string) float64 {
		n, _ := w.parts[key].(float64)
		return n
	}
	if count("models main") != 1 || count("dead-letters") != 0 || w.parts["dead-letters"] == nil {
		t.Errorf("the counts are %v", w.parts)
	}
	s.lists.Changed(api.PartModels, "tools")
	s.lists.Changed(api.PartDeadLetters, "")
	w.until(func() bool { return count("dead-letters") == 1 })
	s.lists.Changed(api.PartModels, "main")
	w.until(func() bool { return count("models main") == 2 })
	if slices.Contains(w.patches, "models tools") || slices.Contains(w.patches, "tokens") {
		t.Errorf("lists that nobody watches were sent: %v", w.patches)
	}
	// Who comes back is told what changed meanwhile.
	w.response.Body.Close()
	s.lists.Changed(api.PartModels, "main")
	again := s.watch(t, "?models=main&list=dead-letters", w.lastID, w.parts)
	again.until(func() bool { return again.parts["models main"] == 3.0 })
	if len(again.states) > 0 {
		t.Errorf("states were sent again: %v", again.states)
	}
}

func TestTheListOfTokensIsWatchedByWhoManagesThemAlone(t *testing.T) {
	g := serveGuarded(t)
	for _, role := range []access.Role{access.Operator, access.Admin} {
		w := g.watch(t, "?list=tokens&list=dead-letters", "", nil, "Authorization", g.token(role, "main"))
		w.until(func() bool { return true })
		slices.Sort(w.states)
		want := []string{"dead-letters", "queue main"}
		if role == access.Admin {
			want = append(want, "tokens")
		}
		if !slices.Equal(w.states, want) {
			t.Errorf("the %s is sent %v, want %v", role, w.states, want)
		}
	}
}
