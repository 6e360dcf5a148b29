package client

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
)

// scripted is a gateway that lists one queue and answers everything else by a function.
func scripted(t *testing.T, queue view.Overview, other http.HandlerFunc) *session {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/queues" {
			json.NewEncoder(w).Encode(api.QueueList{Queues: []view.Overview{queue}})
			return
		}
		other(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := New(server.URL, "ada")
	if err != nil {
		t.Fatal(err)
	}
	return &session{client: c, queue: queue.Queue, out: &bytes.Buffer{}, progress: &bytes.Buffer{}}
}

func TestNobodyIsAdvisedToPushPastTheQueue(t *testing.T) {
	commit := strings.Repeat("ab", 20)
	for _, c := range []struct {
		name, ref, head, want string
	}{
		{"a branch that is not pushed", "refs/heads/topic", "m", "git push origin topic"},
		{"the mainline with commits of one's own", "refs/heads/main", "m", "git push origin abababababab:refs/heads/NAME"},
		{"a repository without its mainline", "refs/heads/topic", "", "as told"},
	} {
		s := scripted(t, view.Overview{Queue: "q", Branch: "main", Head: c.head}, http.NotFound)
		err := s.advisePush(t.Context(), &Failure{FailureDetail: api.FailureDetail{Code: "no_such_ref", Message: "No.", Advice: "as told"}}, []api.LandEntry{{Ref: c.ref, Commit: commit}})
		if !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %q, want %q at its end", c.name, err, c.want)
		}
	}
}

func TestOfAnOutputThatIsTooLongTheEndIsShown(t *testing.T) {
	s := scripted(t, view.Overview{Queue: "q"}, func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil || limit > maxAnswerBytes {
			t.Errorf("asked for %q bytes, and reads %d", r.URL.Query().Get("limit"), maxAnswerBytes)
		}
		w.Header().Set(api.HeaderComplete, "false")
		w.Write([]byte("the end"))
	})
	log, err := s.client.Logs(t.Context(), "q", "c", "", "", 0)
	if err != nil || log.Complete || log.Output != "the end" {
		t.Errorf("%+v %v", log, err)
	}
}
