package client

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
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
