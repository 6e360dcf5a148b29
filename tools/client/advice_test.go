package client

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

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
		{"a branch that is named twice", "refs/heads/topic,refs/heads/topic", "m", "git push origin topic"},
		{"a repository without its mainline", "refs/heads/topic", "", "as told"},
	} {
		s := scripted(t, view.Overview{Queue: "q", Branch: "main", Head: c.head}, http.NotFound)
		var entries []api.LandEntry
		for ref := range strings.SplitSeq(c.ref, ",") {
			entries = append(entries, api.LandEntry{Ref: ref, Commit: commit})
		}
		err := s.advisePush(t.Context(), &Failure{FailureDetail: api.FailureDetail{Code: "no_such_ref", Message: "There is none; push it first.", Advice: "as told"}}, entries)
		if !strings.HasSuffix(err.Error(), c.want) || strings.Count(strings.ToLower(err.Error()), "push it first") != 1 || strings.Contains(err.Error(), "Push first") {
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
	log, err := s.client.Logs(t.Context(), "q", "c", Run{})
	if err != nil || log.Complete || log.Output != "the end" {
		t.Errorf("%+v %v", log, err)
	}
}

func TestADeletedLogIsShownWithWhenAndWhy(t *testing.T) {
	const deleted = "deleted on 2026-03-01 12:00 UTC: older than 720h (retention.logs.age)"
	s := scripted(t, view.Overview{Queue: "q"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.HeaderTarget, "//x")
		w.Header().Set(api.HeaderComplete, "false")
		w.Header().Set(api.HeaderDeleted, deleted)
		w.Write([]byte("the end"))
	})
	var out, progress strings.Builder
	s.out, s.progress = &out, &progress
	log, err := s.client.Logs(t.Context(), "q", "c", Run{})
	if err != nil || log.Deleted != deleted {
		t.Fatalf("%+v %v", log, err)
	}
	if s.printLog(log); out.String() != "the end\n" || !strings.Contains(progress.String(), "(only its end; the complete log was "+deleted+")") {
		t.Errorf("shown are %q and %q", out.String(), progress.String())
	}
}

func TestTheOtherChangesOfARunAreNamed(t *testing.T) {
	s := scripted(t, view.Overview{Queue: "q"}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.HeaderTarget, "//x")
		w.Header().Set(api.HeaderAttempt, "1")
		w.Header().Set(api.HeaderOutcome, view.StepFailed)
		w.Header().Set(api.HeaderComplete, "true")
		w.Header().Set(api.HeaderWith, "k")
		w.Write([]byte("no"))
	})
	var progress strings.Builder
	s.out, s.progress = &strings.Builder{}, &progress
	log, err := s.client.Logs(t.Context(), "q", "c", Run{})
	if s.printLog(log); err != nil || progress.String() != "==> //x, attempt 1: failed, with k\n" {
		t.Errorf("shown is %q (%v)", progress.String(), err)
	}
}

// TestAWaitNeverEndsWellBeforeTheChangeHas, whether the log takes the request late or not at all.
func TestAWaitNeverEndsWellBeforeTheChangeHas(t *testing.T) {
	t.Chdir(t.TempDir())
	f := serve(t)
	f.SetDeaf(true)
	for _, args := range [][]string{{"land", "a"}, {"land", "a", "--wait"}} {
		out, progress, code := f.run(args...)
		if code != ExitFailed || !strings.Contains(progress, `"a"`) || !strings.Contains(progress, "did not confirm") || strings.Contains(out+progress, "is in the log") {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, progress)
		}
	}
	f.SetDeaf(false)
	f.SetSilent(true)
	if out, _, code := f.run("land", "a", "--timeout", "1s"); code != ExitFailed || !strings.Contains(out, "is in the log") {
		t.Errorf("without an answer in time: exit %d\n%s", code, out)
	}
	type result struct {
		out, progress string
		code          int
	}
	ended := make(chan result, 1)
	go func() {
		out, progress, code := f.run("land", "a", "--wait")
		ended <- result{out, progress, code}
	}()
	time.Sleep(300 * time.Millisecond) // let it hear once or twice that there is no answer yet
	select {
	case got := <-ended:
		t.Fatalf("it did not wait: exit %d\n%s%s", got.code, got.out, got.progress)
	default:
	}
	f.SetSilent(false)
	for deadline := time.Now().Add(2 * time.Minute); f.revision("a") < 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it was never asked for again")
		}
	}
	f.Reject("main", "a", "b1", "//x", 1)
	if got := <-ended; got.code != ExitRejected || !strings.Contains(got.progress, "is in the log") {
		t.Errorf("exit %d\n%s%s", got.code, got.out, got.progress)
	}
	f.SetSilent(true)
	if _, progress, code := f.run("retry", "a", "--wait"); code != ExitFailed || !strings.Contains(progress, "landfall watch a") {
		t.Errorf("retry: exit %d\n%s", code, progress)
	}
}

func TestWhoNobodyNamedIsSaidToBeUnnamed(t *testing.T) {
	since := time.Date(2026, 1, 5, 10, 0, 0, 0, time.Local)
	for _, c := range []struct {
		who, why string
		since    time.Time
		want     string
	}{
		{"", "", time.Time{}, "; PAUSED by somebody"}, {"", "fire", time.Time{}, "; PAUSED by somebody: fire"}, {"ada", "", time.Time{}, "; PAUSED by ada"},
		{"ada", "fire", since, "; PAUSED by ada: fire (since 2026-01-05 10:00:00)"},
	} {
		if line := queueLine(view.Overview{Queue: "q", Paused: &view.Pause{Who: c.who, Why: c.why, Since: c.since}}, time.Time{}); !strings.HasSuffix(line, c.want) {
			t.Errorf("%q by %q: %q", c.why, c.who, line)
		}
	}
}
