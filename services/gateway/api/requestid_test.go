package api_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestEveryAnswerNamesItsRequestAndARefusalInTheLogToo(t *testing.T) {
	g := serveGuarded(t)
	ask := func(path, id string) string {
		t.Helper()
		r, err := http.NewRequest("GET", g.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if id != "" {
			r.Header.Set("X-Request-Id", id)
		}
		answer, err := g.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.Header.Get("X-Request-Id")
	}
	first, second := ask("/readyz", ""), ask("/readyz", "")
	if len(first) != 16 || len(second) != 16 || first == second {
		t.Errorf("ids are %q and %q", first, second)
	}
	if got := ask("/v1/queues/main", "trace-7.b_c"); got != "trace-7.b_c" {
		t.Errorf("the client's own id became %q", got)
	}
	if log := g.log.String(); !strings.Contains(log, "request=trace-7.b_c") {
		t.Errorf("the refusal is logged as %s", log)
	}
	for _, bad := range []string{"a b", `"><script>`, strings.Repeat("a", 65), "a=b"} {
		if got := ask("/nowhere", bad); got == bad || len(got) != 16 {
			t.Errorf("%q became %q", bad, got)
		}
	}
}
