package api_test

import (
	"bufio"
	"context"
	"io"
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

// beginning returns an answer: all of it, or what a stream sends up to the first event that tells of the change as it is.
func (g *guarded) beginning(path, authorization string) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, "GET", g.URL+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header.Set("Authorization", authorization)
	response, err := g.Client().Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(response.Body)
		if err != nil {
			g.t.Fatalf("%s: %v", path, err)
		}
		return string(text)
	}
	var text strings.Builder
	lines, told := bufio.NewReader(response.Body), false
	for {
		line, err := lines.ReadString('\n')
		text.WriteString(line)
		switch {
		case err != nil:
			g.t.Fatalf("%s: %v after %q, which does not tell of the change", path, err, text.String())
		case line == "event: "+api.EventChange+"\n", strings.HasPrefix(line, `data: {"kind":"`+api.PartChange+`"`):
			told = true
		case line == "\n" && told:
			return text.String()
		}
	}
}
