package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"landfall.build/platform/access"
	"landfall.build/services/gateway/analytics"
	"landfall.build/services/gateway/api"
)

// analyst is a history whose answers name the question, or that fails.
type analyst struct{ err error }

func (a analyst) Ask(_ context.Context, q analytics.Question) (analytics.Analytics, error) {
	return analytics.Analytics{Queue: q.Queue, Weeks: q.Weeks, At: q.At}, a.err
}

func TestTheHistoryIsAskedOrItIsSaidWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name, path string
		of         api.Analyst
		status     int
		text       string
	}{
		{"it answers", "/v1/queues/main/analytics", analyst{}, 200, `"queue":"main","weeks":12`},
		{"about so many weeks", "/v1/queues/main/analytics?weeks=104", analyst{}, 200, `"weeks":104`},
		{"about too many", "/v1/queues/main/analytics?weeks=105", analyst{}, 400, `weeks=\"105\" is none of 4, 12, 26, 52, 104.`},
		{"about a number of its own", "/v1/queues/main/analytics?weeks=13", analyst{}, 400, `weeks=\"13\" is none of`},
		{"about no number", "/v1/queues/main/analytics?weeks=x", analyst{}, 400, `weeks=\"x\" is none of`},
		{"about the past", "/v1/queues/main/analytics?at=2026-01-02T03:04:05.6%2B01:00", analyst{}, 200, `"at":"2026-01-02T02:04:05.6Z"`},
		{"about the future", "/v1/queues/main/analytics?at=9999-01-02T03:04:05Z", analyst{}, 400, `is not in the past`},
		{"about no moment", "/v1/queues/main/analytics?at=noon", analyst{}, 400, `is not a time`},
		{"about another queue", "/v1/queues/tools/analytics", analyst{}, 403, "forbidden"},
		{"it does not answer", "/v1/queues/main/analytics", analyst{errors.New("secret:9000 refused")}, 503, `"code":"history_unreachable"`},
		{"there is none", "/v1/queues/main/analytics?weeks=4", analyst{analytics.ErrNone}, 200, "clickhouse.dsn"},
		{"none is asked", "/v1/queues/main/analytics", nil, 200, "clickhouse.dsn"},
	} {
		g := serveGuarded(t, func(o *api.Options) { o.Analyst = c.of })
		answer, text := g.do("GET", c.path, "", "Authorization", g.token(access.Viewer, "main"))
		if answer.StatusCode != c.status || !strings.Contains(text, c.text) || strings.Contains(text, "secret") {
			t.Errorf("%s: %s %s, want %d with %s", c.name, answer.Status, text, c.status, c.text)
		}
		var a analytics.Analytics
		if err := json.Unmarshal([]byte(text), &a); c.status == http.StatusOK && (err != nil || (a.Missing != nil) == (c.text[0] == '"') || strings.Contains(text, "null") != (a.Missing == nil)) {
			t.Errorf("%s: %v, %s", c.name, err, text)
		}
	}
}
