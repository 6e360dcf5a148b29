package client

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"landfall.build/services/gateway/api"
)

// slowGateway answers the first requests to land as one that has no answer of the log yet. It returns the request ids that it was
// given.
func slowGateway(t *testing.T, f *fixture, pending int) (url string, ids *[]string) {
	t.Helper()
	ids = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		if r.Method == http.MethodPost {
			var body api.LandBody
			if err := json.Unmarshal(text, &body); err != nil {
				t.Error(err)
			}
			if *ids = append(*ids, body.RequestID); len(*ids) <= pending {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusAccepted)
				_ = json.NewEncoder(w).Encode(api.LandReply{Outcome: api.OutcomePending, RequestID: "mine", Change: "one", Message: "The request (request_id mine) is in the log and will be answered."})
				return
			}
		}
		f.server.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, ids
}

// TestLandAsksUntilItIsAnswered: a script takes another exit code than 0 for a refusal.
func TestLandAsksUntilItIsAnswered(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	url, ids := slowGateway(t, f, 3)
	out, progress, code := run("land", "one", "--server", url)
	if code != 0 || !strings.Contains(out, "one: Admitted as revision 1.") || strings.Count(progress, "waiting for the queue") != 1 {
		t.Errorf("exit %d\n%s%s", code, out, progress)
	}
	if got := strings.Join(*ids, ","); got != ",mine,mine,mine" {
		t.Errorf("the request ids are %q", got)
	}
}

func TestLandAsksNoLongerThanItsTimeout(t *testing.T) {
	t.Chdir(t.TempDir())
	url, ids := slowGateway(t, serve(t), 1<<30)
	out, _, code := run("land", "one", "--timeout", "1s", "--server", url)
	if code != ExitFailed || !strings.Contains(out, "request_id mine") || len(*ids) < 2 {
		t.Errorf("exit %d after %d requests\n%s", code, len(*ids), out)
	}
	if out, progress, code := run("land", "one", "--timeout", "-1s", "--server", url); code != ExitFailed || !strings.Contains(progress, "--timeout is -1s") {
		t.Errorf("exit %d\n%s%s", code, out, progress)
	}
}

// TestARetryIsAskedForAgainUntilTheGatewayHasReadWhatFailed: of a change, and of the mainline.
func TestARetryIsAskedForAgainUntilTheGatewayHasReadWhatFailed(t *testing.T) {
	for name, path := range map[string]string{"c": "/v1/queues/main/changes/c/retry", "--mainline": "/v1/queues/main/retry"} {
		var asked []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodGet:
				t.Errorf("%s asks for %s", name, r.URL.Path)
			case len(asked) < 2:
				w.WriteHeader(http.StatusServiceUnavailable)
				_ = json.NewEncoder(w).Encode(api.Failure{Error: api.FailureDetail{Code: api.CodeNotReady, Message: "No run that failed has been read yet."}})
			default:
				_ = json.NewEncoder(w).Encode(map[string]string{"queue": "main", "outcome": api.OutcomeRetried, "message": "It no longer counts."})
			}
			asked = append(asked, r.URL.Path)
		}))
		t.Cleanup(server.Close)
		out, progress, code := run("retry", name, "--queue", "main", "--server", server.URL)
		if code != 0 || !strings.Contains(out, "It no longer counts.") || !slices.Equal(asked, []string{path, path, path}) {
			t.Errorf("retry %s: exit %d after %v\n%s%s", name, code, asked, out, progress)
		}
	}
}
