package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/services/gateway/api"
)

// Where access.logs names another role, and to a token that is not for logs, nobody is shown the output of steps by what tells of a
// change: all of it but three lines is the logs'.
func TestWhoMayNotReadLogsIsShownNoOutput(t *testing.T) {
	g := serveGuarded(t, func(o *api.Options) { o.Access.Logs = access.Operator.String() })
	if r, text := g.do("POST", "/v1/queues/main/changes", `{"change":"a","entries":[{"ref":"a"}]}`, "Authorization", g.token(access.Lander, "main")); r.StatusCode != http.StatusCreated {
		t.Fatal(r.Status, text)
	}
	g.Schedule("main", "b1", "a", nil, "//x")
	g.Prepare("main", "b1", "a", "//x")
	g.Finish("main", "b1", "//x", 1, eventsv1.StepOutcome_STEP_OUTCOME_FAILED, "the host name is secret\n1\n2\n3\n4\nFAIL\n", "x.log")
	g.Reject("main", "a", "b1", "//x", 1)
	_, reader := g.tokens.Make("reader", access.Grant{Role: access.Admin, Queues: []string{"main"}, Verbs: []access.Verb{access.Read}}, time.Time{})
	const change = "/v1/queues/main/changes/a"
	at := "at=" + time.Now().UTC().Format(time.RFC3339)
	for header, may := range map[string]bool{
		g.token(access.Viewer, "main"): false, g.token(access.Lander, "main"): false, "Bearer " + reader: false, g.token(access.Operator, "main"): true,
	} {
		for _, path := range []string{change, change + "?" + at, change + "/explain", change + "/explain?" + at, "/v1/queues/main/events?change=a", "/v1/watch?change=main/a"} {
			text := g.beginning(path, header)
			if !strings.Contains(text, `"//x"`) && !strings.Contains(text, `"rejected"`) {
				t.Errorf("%s: %q", path, text)
			}
			if shown := strings.Contains(text, "the host name"); shown && !may {
				t.Errorf("%s shows output to %s", path, header)
			} else if !shown && may && strings.HasPrefix(path, change) {
				t.Errorf("%s shows no output to an operator: %s", path, text)
			}
		}
	}
}

// beginning returns what comes of an answer first: all of it, or the first 64 KiB that a stream sends within a second.
func (g *guarded) beginning(path, authorization string) string {
	g.t.Helper()
	request, err := http.NewRequestWithContext(g.t.Context(), "GET", g.URL+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header.Set("Authorization", authorization)
	response, err := g.Client().Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	text := make([]byte, 64<<10)
	stop := time.AfterFunc(time.Second, func() { response.Body.Close() })
	defer stop.Stop()
	n := 0
	for n < len(text) {
		more, err := response.Body.Read(text[n:])
		if n += more; err != nil {
			break
		}
	}
	return string(text[:n])
}
