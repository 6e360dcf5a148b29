package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"landfall.build/engine/evidence"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/retention"
	"landfall.build/platform/steplog"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

type server struct {
	t testing.TB
	*apitest.Backend
	*httptest.Server
	store string
	lists api.Lists
}

func serve(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, Backend: apitest.New("main", "tools"), store: t.TempDir()}
	handler, err := api.NewHandler(api.Options{Backend: s.Backend, Lists: &s.lists, LogStore: s.store, LogID: "the log", Hosts: []string{"Landfall.Example"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Server = httptest.NewServer(handler)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// do sends a request as it is given, and returns the answer with its body.
func (s *server) do(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequest(method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if method == "POST" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		} else if headers[i+1] == "" {
			request.Header.Del(headers[i])
		} else {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := s.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(text)
}

func (s *server) land(change string) {
	s.t.Helper()
	if r, text := s.do("POST", "/v1/queues/main/changes", fmt.Sprintf(`{"change":%q,"entries":[{"ref":%q}]}`, change, change)); r.StatusCode != 201 {
		s.t.Fatalf("land %s: %s %s", change, r.Status, text)
	}
}

func TestWhatIsHostileOrMalformedIsRefusedWithTheRightCode(t *testing.T) {
	s := serve(t)
	s.land("a/b")
	const quarantines = "/v1/queues/main/quarantines"
	soon := time.Now().Add(time.Hour).Format(time.RFC3339)
	const land, body = "/v1/queues/main/changes", `{"entries":[{"ref":"x"}]}`
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code                     string
	}{
		{"another host name", "GET", "/v1/queues", "", []string{"Host", "evil.example:7878"}, 403, "forbidden_origin"},
		{"a name given to the handler", "GET", "/v1/queues", "", []string{"Host", "landfall.example:80"}, 200, ""},
		{"localhost", "GET", "/v1/queues", "", []string{"Host", "LOCALHOST"}, 200, ""},
		{"an IPv6 address", "GET", "/v1/queues", "", []string{"Host", "[::1]:7878"}, 200, ""},
		{"another origin", "POST", land, body, []string{"Origin", "https://evil.example"}, 403, "forbidden_origin"},
		{"the null origin", "POST", land, body, []string{"Origin", "null"}, 403, "forbidden_origin"},
		{"a cross-site fetch", "POST", land, body, []string{"Sec-Fetch-Site", "cross-site"}, 403, "forbidden_origin"},
		{"a form's content type", "POST", land, body, []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type"},
		{"no content type", "POST", land, body, []string{"Content-Type", ""}, 415, "unsupported_media_type"},
		{"no body", "POST", land, "", nil, 400, "bad_request"},
		{"an unknown field", "POST", land, `{"entrys":[]}`, nil, 400, "bad_request"},
		{"two values", "POST", land, body + body, nil, 400, "bad_request"},
		{"an array", "POST", land, `[]`, nil, 400, "bad_request"},
		{"no UTF-8", "POST", land, "{\"entries\":[{\"ref\":\"\xff\"}]}", nil, 400, "bad_request"},
		{"deep nesting", "POST", land, strings.Repeat(`{"labels":`, 20_000), nil, 400, "bad_request"},
		{"a huge body", "POST", land, `{"title":"` + strings.Repeat("x", events.MaxRequestBytes) + `"}`, nil, 413, "too_large"},
		{"a negative revision", "POST", land, `{"revision":-1,"entries":[{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"an infinite benefit", "POST", land, `{"benefit":1e999,"entries":[{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"an unknown host class", "POST", land, `{"host":"sourceforge","entries":[{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"an id with a newline", "POST", land, `{"change":"a\nb","entries":[{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"an id that turns text around", "POST", land, `{"change":"a\u202eb","entries":[{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"an id that is an option", "POST", land, `{"change":"--json","entries":[{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"an id that is too long", "POST", land, `{"change":"` + strings.Repeat("x", 201) + `","entries":[{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"an id that leads upwards", "POST", land, `{"change":"..","entries":[{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"51 entries", "POST", land, `{"entries":[` + strings.Repeat(`{"ref":"x"},`, 50) + `{"ref":"x"}]}`, nil, 400, "bad_request"},
		{"a wait that is none", "POST", land + "?wait=ever", body, nil, 400, "bad_request"},
		{"an unknown branch", "POST", land, `{"entries":[{"ref":"nowhere"}]}`, nil, 422, "no_such_ref"},
		{"an unknown queue", "GET", "/v1/queues/nope", "", nil, 404, "unknown_queue"},
		{"an unknown queue to land on", "POST", "/v1/queues/nope/changes", body, nil, 404, "unknown_queue"},
		{"an unknown change", "GET", land + "/ghost", "", nil, 404, "unknown_change"},
		{"an unknown change with an escaped path", "GET", land + "/..%2F..%2Fetc%2Fpasswd", "", nil, 404, "unknown_change"},
		{"a change with a slash", "GET", land + "/a%2Fb", "", nil, 200, ""},
		{"an unknown state", "GET", land + "?state=lost", "", nil, 400, "bad_request"},
		{"a long request id", "POST", land, `{"entries":[{"ref":"x"}],"request_id":"` + strings.Repeat("x", 5000) + `"}`, nil, 400, "bad_request"},
		{"a request id that moves the cursor", "POST", land, `{"entries":[{"ref":"x"}],"request_id":"a\u001b[2Jb"}`, nil, 400, "bad_request"},
		{"a long host", "POST", land, `{"entries":[{"ref":"x"}],"host":"` + strings.Repeat("x", 5000) + `"}`, nil, 400, "bad_request"},
		{"a long field", "POST", land, `{"entries":[{"ref":"x"}],"` + strings.Repeat("x", 5000) + `":1}`, nil, 400, "bad_request"},
		{"a limit that moves the cursor", "GET", land + "?limit=%1b%5b2J", "", nil, 400, "bad_request"},
		{"a limit of nothing", "GET", land + "?limit=0", "", nil, 400, "bad_request"},
		{"no such path", "GET", "/v2/queues", "", nil, 404, "not_found"},
		{"no such method", "PUT", land, body, nil, 405, "method_not_allowed"},
		{"a why with an escape sequence", "POST", land + "/a%2Fb/cancel", `{"why":"\u001b[2J"}`, nil, 400, "bad_request"},
		{"a user of many bytes", "POST", land + "/a%2Fb/cancel", `{}`, []string{api.UserHeader, strings.Repeat("u", 400)}, 400, "bad_request"},
		{"a quarantine of nothing", "POST", quarantines, `{"why":"w","until":"` + soon + `"}`, nil, 400, "bad_request"},
		{"a quarantine of two lines", "POST", quarantines, `{"target":"//a\nb","why":"w","until":"` + soon + `"}`, nil, 400, "bad_request"},
		{"a quarantine of a long name", "POST", quarantines, `{"target":"` + strings.Repeat("x", 1001) + `","why":"w","until":"` + soon + `"}`, nil, 400, "bad_request"},
		{"a quarantine of the repository", "POST", quarantines, `{"target":"//:repository","why":"w","until":"` + soon + `"}`, nil, 400, "bad_request"},
		{"a quarantine of everything", "POST", quarantines, `{"target":"//*:*","why":"w","until":"` + soon + `"}`, nil, 400, "bad_request"},
		{"a quarantine without a reason", "POST", quarantines, `{"target":"//a","until":"` + soon + `"}`, nil, 400, "bad_request"},
		{"a quarantine without an end", "POST", quarantines, `{"target":"//a","why":"w"}`, nil, 400, "bad_request"},
		{"a quarantine that is over", "POST", quarantines, `{"target":"//a","why":"w","until":"2001-01-01T00:00:00Z"}`, nil, 400, "bad_request"},
		{"a quarantine of two years", "POST", quarantines, `{"target":"//a","why":"w","until":"` + time.Now().AddDate(2, 0, 0).Format(time.RFC3339) + `"}`, nil, 400, "bad_request"},
		{"the end of no quarantine", "POST", quarantines + "/end", `{"target":"//a"}`, nil, 409, "not_applied"},
		{"no body where none is needed", "POST", "/v1/queues/main/pause", "", []string{"Content-Type", ""}, 200, ""},
		{"nor a content type", "POST", "/v1/queues/main/resume", "", []string{"Content-Type", ""}, 200, ""},
		{"logs of nothing", "GET", land + "/a%2Fb/logs", "", nil, 404, "no_log"},
		{"logs of a revision that there is not", "GET", land + "/a%2Fb/logs?revision=7", "", nil, 404, "no_log"},
		{"an attempt that is none", "GET", land + "/a%2Fb/logs?attempt=x", "", nil, 400, "bad_request"},
		{"the change, untouched by all this", "GET", land + "/a%2Fb", "", nil, 200, ""},
	} {
		response, text := s.do(c.method, c.path, c.body, c.headers...)
		var failure api.Failure
		if err := json.Unmarshal([]byte(text), &failure); err != nil {
			t.Errorf("%s: the answer is no JSON: %q", c.name, text)
		}
		if response.StatusCode != c.status || failure.Error.Code != c.code {
			t.Errorf("%s: %s %s, want %d %s", c.name, response.Status, text, c.status, c.code)
		}
		if c.status >= 400 && (len(text) > 1500 || strings.ContainsFunc(failure.Error.Message+failure.Error.Advice, unicode.IsControl)) {
			t.Errorf("%s: what was asked is echoed: %q", c.name, text)
		}
		if c.code != "" && (failure.Error.Message == "" || failure.Error.Advice == "") {
			t.Errorf("%s: no message or advice: %s", c.name, text)
		}
	}
	if s.summary("a/b").State != view.StateWaiting {
		t.Error("the change did not survive")
	}
}

func (s *server) summary(change string) view.Summary {
	var out view.Summary
	s.Read("main", func(q *view.Queue) { out, _ = q.Summary(change) })
	return out
}

func TestAnUnreadyGatewayAndAnUnansweredRequestSaySo(t *testing.T) {
	s := serve(t)
	s.SetReady(false)
	for _, path := range []string{"/readyz", "/v1/queues", "/v1/queues/main", "/v1/queues/main/changes", "/v1/queues/main/events"} {
		if r, text := s.do("GET", path, ""); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %s %s", path, r.Status, text)
		}
	}
	if r, _ := s.do("GET", "/livez", ""); r.StatusCode != 200 {
		t.Errorf("livez: %s", r.Status)
	}
	if r, _ := s.do("GET", "/healthz", ""); r.StatusCode != 200 {
		t.Errorf("healthz: %s", r.Status)
	}
	s.SetReady(true)
	s.SetSilent(true)
	r, text := s.do("POST", "/v1/queues/main/changes?wait=1ms", `{"entries":[{"ref":"x"}],"request_id":"mine"}`)
	var reply api.LandReply
	if json.Unmarshal([]byte(text), &reply); r.StatusCode != 202 || reply.Outcome != api.OutcomePending || reply.RequestID != "mine" {
		t.Errorf("an unanswered request: %s %s", r.Status, text)
	}
}

// TestAMissingServiceIsShownInPlaceOfAnEstimate, and a gateway whose broker is away is not ready, and goes on answering.
func TestAMissingServiceIsShownInPlaceOfAnEstimate(t *testing.T) {
	s := serve(t)
	s.do("POST", "/v1/queues/main/changes", `{"change":"one","entries":[{"ref":"x"}]}`)
	const sentence = "No lander has owned partition 0 (queue main) for 35 s; nothing lands until one does."
	s.SetHealthy(errors.New("the broker has not answered for 7s"))
	s.SetServices(health.Report{
		Instances: []health.Instance{}, Partitions: []health.Ownership{},
		Missing: []health.Missing{{Service: "lander", Queues: []string{"main"}, Sentence: sentence}},
	})
	if r, text := s.do("GET", "/readyz", ""); r.StatusCode != 503 || !strings.Contains(text, "not_healthy") || !strings.Contains(text, "has not answered for 7s") {
		t.Errorf("readyz: %s %s", r.Status, text)
	}
	var report health.Report
	if r, text := s.do("GET", "/v1/services", ""); json.Unmarshal([]byte(text), &report) != nil || r.StatusCode != 200 || len(report.Missing) != 1 || report.Missing[0].Sentence != sentence {
		t.Errorf("services: %s %s", r.Status, text)
	}
	if c := s.summary("one"); c.Why != sentence || c.ETA == nil || c.ETA.Unknown != "no lander has owned partition 0 (queue main) for 35 s; nothing lands until one does" {
		t.Errorf("%+v, %+v", c, c.ETA)
	}
	var overview view.Overview
	s.Read("main", func(q *view.Queue) { overview = q.Overview() })
	if len(overview.ServiceTroubles) != 1 || overview.ServiceTroubles[0].Sentence != sentence {
		t.Errorf("%+v", overview)
	}
	s.SetHealthy(nil)
	s.SetServices(health.Report{})
	if c := s.summary("one"); c.Why == sentence {
		t.Errorf("%+v", c)
	}
}

func TestAnOperatorQuarantinesAndEndsItAndTheConfigurationsStays(t *testing.T) {
	s := serve(t)
	inForce := func() (names string) {
		_, text := s.do("GET", "/v1/queues/main/quarantines", "")
		var list api.QuarantineList
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			t.Fatal(err)
		}
		for _, q := range list.Quarantines {
			names += fmt.Sprintf("%s %s %s %s; ", q.Target, q.Source, q.Who, q.Why)
		}
		return names
	}
	const path = "/v1/queues/main/quarantines"
	soon := time.Now().Add(time.Hour).Format(time.RFC3339)
	s.Prepare("main", "build-1", "a", "//e2e:one", "//z", "//t7")
	if r, text := s.do("POST", path, `{"target":"//e2e:*","why":"a race","until":"`+soon+`"}`, api.UserHeader, "ada"); r.StatusCode != 200 {
		t.Fatalf("%s %s", r.Status, text)
	}
	s.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{
		Target: "//z", UntilUs: time.Now().Add(time.Hour).UnixMicro(), Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_CONFIGURATION, Who: "configuration", Why: "known",
	})
	if got := inForce(); got != "//e2e:* operator ada a race; //z configuration configuration known; " {
		t.Errorf("in force are %q", got)
	}
	for _, of := range []string{"", "/end"} {
		r, text := s.do("POST", path+of, `{"target":"//z","why":"mine","until":"`+soon+`"}`)
		if r.StatusCode != 409 || !strings.Contains(text, "in the configuration") {
			t.Errorf("a quarantine of the configuration: %s %s", r.Status, text)
		}
	}
	if r, text := s.do("POST", path+"/end", `{"target":"//e2e:*"}`); r.StatusCode != 200 {
		t.Errorf("the end: %s %s", r.Status, text)
	}
	if got := inForce(); got != "//z configuration configuration known; " {
		t.Errorf("in force then are %q", got)
	}
	for i := range evidence.MaxQuarantines - 1 {
		s.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{Target: fmt.Sprint("//t", i), UntilUs: 1})
	}
	if r, text := s.do("POST", path, `{"target":"//more","why":"w","until":"`+soon+`"}`); r.StatusCode != 409 || !strings.Contains(text, "1000 quarantines") {
		t.Errorf("one too many: %s %s", r.Status, text)
	}
	if r, text := s.do("POST", path, `{"target":"//t7","why":"longer","until":"`+soon+`"}`); r.StatusCode != 200 {
		t.Errorf("one that is renewed: %s %s", r.Status, text)
	}
}

// TestAQuarantineOfATargetThatNobodyKnowsIsRefusedUnlessItIsForced: of a name with a slip it would do nothing, and nobody would notice.
func TestAQuarantineOfATargetThatNobodyKnowsIsRefusedUnlessItIsForced(t *testing.T) {
	s := serve(t)
	s.land("a")
	s.Prepare("main", "build-1", "a", "//e2e:checkout", "//lib", "//lib/io")
	s.Finish("main", "build-1", "//lib", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "", "")
	const path = "/v1/queues/main/quarantines"
	ask := func(target, more string) (int, string) {
		r, text := s.do("POST", path, `{"target":"`+target+`","why":"w","until":"`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"`+more+`}`)
		return r.StatusCode, text
	}
	if code, text := ask("//e2e:chekout", ""); code != 404 || !strings.Contains(text, "unknown_target") || !strings.Contains(text, "Did you mean //e2e:checkout?") {
		t.Errorf("a slip: %d %s", code, text)
	}
	if code, text := ask("check", ""); code != 404 || !strings.Contains(text, "Did you mean //e2e:checkout?") {
		t.Errorf("a part of one name: %d %s", code, text)
	}
	if code, text := ask("li", ""); code != 404 || strings.Contains(text, "Did you mean") {
		t.Errorf("a part of two names: %d %s", code, text)
	}
	if code, text := ask("//web:*", ""); code != 404 || !strings.Contains(text, "unknown_target") || strings.Contains(text, "Did you mean") {
		t.Errorf("a pattern that matches nothing: %d %s", code, text)
	}
	if code, text := ask("//e2e:checkout", ""); code != 200 {
		t.Errorf("a target of a build: %d %s", code, text)
	}
	if code, text := ask("//to/come", `,"force":true`); code != 200 {
		t.Errorf("what is forced: %d %s", code, text)
	}
	if code, text := ask("//to/come", ""); code != 200 {
		t.Errorf("its renewal: %d %s", code, text)
	}
	s.Fold("main", events.TopicChanges, &eventsv1.TargetQuarantined{Target: "//slip", UntilUs: 1, Source: eventsv1.QuarantineSource_QUARANTINE_SOURCE_CONFIGURATION})
	var list api.QuarantineList
	_, text := s.do("GET", path, "")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	unseen := ""
	for _, q := range list.Quarantines {
		if q.Unseen {
			unseen += q.Target + " "
		}
	}
	if unseen != "//slip //to/come " {
		t.Errorf("unseen are %s", unseen)
	}
	if _, text := s.do("GET", "/v1/queues/main", ""); !strings.Contains(text, `"unseen_quarantines":["//slip","//to/come"]`) {
		t.Errorf("the queue is %s", text)
	}
}

// TestWhatTheLogDoesNotConfirmIsNeverSaidToBeInIt.
func TestWhatTheLogDoesNotConfirmIsNeverSaidToBeInIt(t *testing.T) {
	s := serve(t)
	s.land("there")
	s.SetDeaf(true)
	for path, names := range map[string][]string{"/changes": {`\"review-7\"`, "request_id mine"}, "/changes/there/cancel": {}, "/pause": {}} {
		body := "{}"
		if path == "/changes" {
			body = `{"change":"review-7","entries":[{"ref":"x"}],"request_id":"mine"}`
		}
		r, text := s.do("POST", "/v1/queues/main"+path, body)
		if r.StatusCode != 504 || !strings.Contains(text, `"unanswered"`) || !strings.Contains(text, "did not confirm") || strings.Contains(text, "is in the log") {
			t.Errorf("%s: %s %s", path, r.Status, text)
		}
		for _, name := range names {
			if !strings.Contains(text, name) {
				t.Errorf("%s: no %s in %s", path, name, text)
			}
		}
	}
}

func TestLogsAreCompleteFromTheStoreAndElseTheTail(t *testing.T) {
	s := serve(t)
	s.land("a")
	s.Schedule("main", "b1", "a", nil, "//x", "//y")
	s.Prepare("main", "b1", "a", "//x", "//y")
	s.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "the end of x\n", "deep/x.log")
	s.Finish("main", "b1", "//y", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "the end of y\n", "../secret")
	os.MkdirAll(filepath.Join(s.store, "deep"), 0o755)
	os.WriteFile(filepath.Join(s.store, "deep", "x.log"), []byte("the beginning and the end of x\n"), 0o644)
	os.WriteFile(filepath.Join(filepath.Dir(s.store), "secret"), []byte("do not show"), 0o644)
	os.Symlink("/etc/hostname", filepath.Join(s.store, "link.log"))
	const logs = "/v1/queues/main/changes/a/logs"
	r, text := s.do("GET", logs, "")
	if text != "the end of y\n" || r.Header.Get(api.HeaderOutcome) != view.StepFailed || r.Header.Get(api.HeaderTarget) != "//y" {
		t.Errorf("without a target it is what failed, and never a file outside of the store: %q %v", text, r.Header)
	}
	if r, text = s.do("GET", logs+"?step=lint", ""); r.StatusCode != 404 || !strings.Contains(text, `No step has failed in the command \"lint\"`) {
		t.Errorf("a command in which nothing failed: %d %s", r.StatusCode, text)
	}
	r, text = s.do("GET", logs+"?target=//x&attempt=1", "")
	if text != "the beginning and the end of x\n" || r.Header.Get(api.HeaderComplete) != "true" {
		t.Errorf("the complete log is %q", text)
	}
	if r, text = s.do("GET", logs+"?target=//x", "", "Range", "bytes=4-12"); r.StatusCode != 206 || text != "beginning" {
		t.Errorf("a range is %s %q", r.Status, text)
	}
	if _, text = s.do("GET", logs+"?target=//x&limit=9", ""); text != "end of x\n" {
		t.Errorf("the last nine bytes are %q", text)
	}
	s.Finish("main", "b1", "//y", 2, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "second", "link.log")
	if _, text = s.do("GET", logs+"?target=//y&attempt=2", ""); text != "second" {
		t.Errorf("a link out of the store was followed: %q", text)
	}
}

// TestALogIsFollowedWhileItsStepRuns: it is read as it grows, and ends with the step.
func TestALogIsFollowedWhileItsStepRuns(t *testing.T) {
	s := serve(t)
	s.land("a")
	s.Schedule("main", "b1", "a", nil, "//x", "//y")
	s.Prepare("main", "b1", "a", "//x", "//y")
	lease := func(target, id string) *os.File {
		t.Helper()
		l := &eventsv1.StepLeased{Target: target, Hash: apitest.VersionOf("b1", target), Attempt: 1, Lease: id, Worker: "w", Build: "b1", UntilUs: time.Now().Add(time.Hour).UnixMicro()}
		s.Fold("main", events.TopicBuilds, l)
		name := filepath.Join(s.store, steplog.Name(steplog.Run{Log: "the log", Queue: "main", Target: l.Target, Hash: l.Hash, Attempt: 1, Lease: id}))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	const logs = "/v1/queues/main/changes/a/logs"
	file := lease("//x", "first")
	file.WriteString("it begins\n")
	if r, text := s.do("GET", logs+"?target=//x", ""); text != "it begins\n" || r.Header.Get(api.HeaderOutcome) != view.StepRunning || r.Header.Get(api.HeaderComplete) != "false" {
		t.Errorf("of a step that runs there is %q %v", text, r.Header)
	}
	if r, text := s.do("GET", logs, ""); r.StatusCode != 404 {
		t.Errorf("without a target a step that runs is shown: %q", text)
	}
	follow := func(query string) (*http.Response, func(want string)) {
		t.Helper()
		response, err := s.Client().Get(s.URL + logs + query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response, func(want string) {
			t.Helper()
			got := make([]byte, len(want))
			if _, err := io.ReadFull(response.Body, got); err != nil || string(got) != want {
				t.Fatalf("read %q, want %q: %v", got, want, err)
			}
		}
	}
	r, read := follow("?target=//x&follow=true")
	_, end := follow("?target=//x&follow=true&limit=3")
	read("it begins\n")
	end("ns\n")
	file.WriteString("it goes on\n")
	read("it goes on\n")
	end("it goes on\n")
	file.WriteString("the end of x\n")
	// The log of a step that fails gets another name, and what is open stays.
	if err := os.Rename(file.Name(), filepath.Join(s.store, "x.failed.log")); err != nil {
		t.Fatal(err)
	}
	s.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "the end of x\n", "x.failed.log")
	read("the end of x\n")
	if rest, err := io.ReadAll(r.Body); len(rest) > 0 || err != nil || r.Header.Get(api.HeaderComplete) != "true" {
		t.Errorf("after the step there is %q, %v %v", rest, err, r.Header)
	}
	// Where the store has nothing, the end of the output comes once it is known.
	os.Remove(lease("//y", "elsewhere").Name())
	r, _ = follow("?target=//y&follow=true")
	s.Finish("main", "b1", "//y", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "the end of y\n", "main/elsewhere.log")
	if rest, err := io.ReadAll(r.Body); string(rest) != "the end of y\n" || err != nil || r.Header.Get(api.HeaderComplete) != "" {
		t.Errorf("of a log elsewhere there is %q, %v %v", rest, err, r.Header)
	}
	// A step that nobody runs any more is not waited for, nor one that somebody else runs.
	file = lease("//y", "dead")
	file.WriteString("cut of")
	s.Fold("main", events.TopicBuilds, &eventsv1.StepLeased{Target: "//y", Hash: apitest.VersionOf("b1", "//y"), Attempt: 2, Lease: "dead", Build: "b1", UntilUs: time.Now().Add(-time.Hour).UnixMicro()})
	r, _ = follow("?target=//y&attempt=2&follow=true")
	if _, err := io.ReadAll(r.Body); err != nil {
		t.Error(err)
	}
}

func TestADeletedLogSaysSo(t *testing.T) {
	s := serve(t)
	s.land("a")
	s.Schedule("main", "b1", "a", nil, "//x", "//y")
	s.Prepare("main", "b1", "a", "//x", "//y", "//z")
	for target, log := range map[string]string{"//x": "main/x.failed.log", "//z": "main/z.failed.log"} {
		s.Fold("main", events.TopicBuilds, &eventsv1.StepFinished{
			Target: target, Hash: apitest.VersionOf("b1", target), Attempt: 1, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_FAILED, Build: "b1",
			OutputTail: []byte("the end of " + target + "\n"), OutputBytes: 1 << 20, Log: log,
		})
	}
	s.Finish("main", "b1", "//y", 1, eventsv1.StepOutcome_STEP_OUTCOME_PASSED, "the end of y\n", "main/y.log")
	os.MkdirAll(filepath.Join(s.store, "main"), 0o755)
	deleted := []retention.Victim{{Item: retention.Item{Path: filepath.Join(s.store, "main", "x.failed.log")}, Bound: "older than 2160h (retention.logs.failed_age)"}}
	if _, err := retention.Delete(filepath.Join(s.store, "main"), deleted, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	const logs = "/v1/queues/main/changes/a/logs"
	r, text := s.do("GET", logs+"?target=//x", "")
	if text != "the end of //x\n" || r.Header.Get(api.HeaderDeleted) != "deleted on 2026-03-01 12:00 UTC: older than 2160h (retention.logs.failed_age)" {
		t.Errorf("a deleted log is %q %v", text, r.Header)
	}
	// One is elsewhere, and of one there is no more than its end.
	for _, target := range []string{"//z", "//y"} {
		if r, _ = s.do("GET", logs+"?target="+target, ""); r.Header.Get(api.HeaderDeleted) != "" {
			t.Errorf("the log of %s, which was not deleted, is %v", target, r.Header)
		}
	}
}

// events reads a stream until stop says so, and returns the last id.
func (s *server) events(path, lastID string, stop func(name string, update view.Update) bool) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	request, _ := http.NewRequestWithContext(ctx, "GET", s.URL+path, nil)
	request.Header.Set("Last-Event-ID", lastID)
	response, err := s.Client().Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("the stream is %s", response.Status)
	}
	lines := bufio.NewScanner(response.Body)
	name, stopping := "", false
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			name = value
		case "data":
			var u view.Update
			if err := json.Unmarshal([]byte(value), &u); err != nil {
				s.t.Fatal(err)
			}
			stopping = stop(name, u) || stopping
		case "id":
			if stopping { // the id closes a batch
				return value
			}
		}
	}
	s.t.Fatalf("the stream ended: %v", lines.Err())
	return ""
}

func TestAStreamBeginsWithTheStateAndResumesWhereItBroke(t *testing.T) {
	s := serve(t)
	s.land("a")
	s.land("b")
	const path = "/v1/queues/main/events"
	seen := map[string]bool{}
	id := s.events(path, "", func(name string, u view.Update) bool {
		seen[name+u.Change] = true
		if len(u.Events) > 0 {
			t.Errorf("a new stream tells of the past: %v", u.Events)
		}
		return u.Change == "b"
	})
	if !seen["queue"] || !seen["changea"] {
		t.Errorf("the state was %v", seen)
	}
	s.Fold("main", events.TopicChanges, &eventsv1.ChangeHeld{Change: "b", Hold: "h", Who: "ada"})
	s.LandIt("main", "a", "build", nil)
	var kinds []string
	next := s.events(path, id, func(name string, u view.Update) bool {
		for _, e := range u.Events {
			kinds = append(kinds, u.Change+":"+e.Kind)
		}
		return u.Change == "b"
	})
	if got := strings.Join(kinds, " "); got != "a:landing a:landed b:held" {
		t.Errorf("what was missed is %q", got)
	}
	s.Fold("main", events.TopicChanges, &eventsv1.ChangeReleased{Change: "b", Hold: "h", Who: "ada"})
	kinds = nil
	s.events(path+"?change=b&change=a", next, func(name string, u view.Update) bool {
		for _, e := range u.Events {
			kinds = append(kinds, u.Change+":"+e.Kind)
		}
		return u.Change == "a" && u.State == view.StateLanded
	})
	if got := strings.Join(kinds, " "); got != "b:released" {
		t.Errorf("what was missed then is %q", got)
	}
	// An id of another process tells nothing here: the state comes, and nothing breaks.
	s.events(path+"?change=a", "OTHERBOOT-99-99", func(name string, u view.Update) bool { return u.State == view.StateLanded })
}

// TestAStreamTellsOfWhatLandedWhileTheGatewayWasAway although the client comes back to another process.
func TestAStreamTellsOfWhatLandedWhileTheGatewayWasAway(t *testing.T) {
	s := serve(t)
	s.land("a")
	s.land("b")
	s.land("c")
	s.LandIt("main", "a", "build", nil)
	const path = "/v1/queues/main/events"
	id := s.events(path, "", func(_ string, u view.Update) bool { return u.Change == "c" })
	s.LandIt("main", "b", "build", nil)
	_, place, _ := strings.Cut(id, "-")
	told := map[string]string{}
	s.events(path, "OTHERBOOT-"+place, func(_ string, u view.Update) bool {
		told[u.Change] = u.State
		return u.Change == "c"
	})
	if told["b"] != view.StateLanded {
		t.Errorf("of the change that landed meanwhile the stream says %q", told["b"])
	}
	if _, again := told["a"]; again {
		t.Error("the stream tells again of a change that had landed before")
	}
}

func TestAStreamSendsWhatHappensWhileItIsOpen(t *testing.T) {
	s := serve(t)
	s.land("a")
	told := false
	s.events("/v1/queues/main/events?change=a", "", func(name string, u view.Update) bool {
		if name == "change" && !told {
			told = true
			go s.Fold("main", events.TopicChanges, &eventsv1.ChangeCancelled{Change: "a", Who: "ada"})
		}
		return u.State == view.StateCancelled
	})
}

func TestStreamsEndWithTheServersContext(t *testing.T) {
	handler, err := api.NewHandler(api.Options{Backend: apitest.New("main")})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := api.NewServer(ctx, handler, slog.New(slog.DiscardHandler))
	go server.Serve(listener)
	response, err := http.Get("http://" + listener.Addr().String() + "/v1/queues/main/events")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	cancel()
	if err := server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
}

func FuzzLandBody(f *testing.F) {
	f.Add([]byte(`{"entries":[{"ref":"x"}]}`))
	f.Add([]byte(`{"change":"a","revision":3,"entries":[{"commit":"0123456789abcdef0123456789abcdef01234567"}],"requires":["b"],"labels":{"k":"v"},"benefit":2.5}`))
	f.Add([]byte(`{"entries":[null]}`))
	f.Add([]byte(`{"entries":[{"ref":"../.."}],"change":"%2e%2e"}`))
	backend := apitest.New("main")
	handler, err := api.NewHandler(api.Options{Backend: backend})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"changes", "changes/a/cancel", "changes/a/priority", "pause"} {
			request := httptest.NewRequest("POST", "http://127.0.0.1/v1/queues/main/"+path, strings.NewReader(string(body)))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, request)
			if recorder.Code >= 500 {
				t.Fatalf("%s: %d %s", path, recorder.Code, recorder.Body)
			}
			if !json.Valid(recorder.Body.Bytes()) {
				t.Fatalf("%s: the answer is no JSON: %s", path, recorder.Body)
			}
			var reply api.LandReply
			if path == "changes" && recorder.Code == 201 {
				json.Unmarshal(recorder.Body.Bytes(), &reply)
				if reply.Change == "" || strings.HasPrefix(reply.Change, "-") || len(reply.Change) > 200 {
					t.Fatalf("admitted as %q", reply.Change)
				}
			}
		}
	})
}
