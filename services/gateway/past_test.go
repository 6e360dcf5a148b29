package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal"
	"landfall.build/platform/snapshot"
)

// startWithDisk starts a gateway that keeps snapshots in a directory, and returns how to ask it and how to stop it.
func startWithDisk(t testing.TB, log journal.Log, dir string) (g *Gateway, get func(path string) string, stop func()) {
	t.Helper()
	store, err := snapshot.Open(dir, snapshot.DefaultPace)
	if err != nil {
		t.Fatal(err)
	}
	g, err = New(Options{
		Log: log, Config: testConfiguration(t, "nowhere"), Instance: "g", Snapshots: store,
		Mirrors: func(context.Context, string) (*gitrepo.Repo, error) { return nil, errors.New("no repository") },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	server := httptest.NewServer(g.Handler())
	stop = func() {
		server.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); g.Ready() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is never ready")
		}
	}
	return g, func(path string) string {
		t.Helper()
		answer, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, answer.StatusCode, text, err)
		}
		return string(text)
	}, stop
}

// TestCheckpointsAreMadeBeforeAnybodyAsks, and the next gateway has them.
func TestCheckpointsAreMadeBeforeAnybodyAsks(t *testing.T) {
	log, dir, begin := newLog(1), t.TempDir(), time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 2*checkpointEvery + 100 {
		e := events.Envelope{ID: fmt.Sprint(i), Queue: testQueue, Time: begin.Add(time.Duration(i) * 100 * time.Millisecond), Term: -1, Message: &eventsv1.QueuePaused{Who: fmt.Sprint("sre-", i)}}
		if _, err := log.Append(t.Context(), events.TopicChanges, 0, e); err != nil {
			t.Fatal(err)
		}
	}
	_, _, stop := startWithDisk(t, log, dir)
	kept := func() int {
		files, _ := filepath.Glob(filepath.Join(dir, "gateway-0-"+testQueue, "*.moment"))
		return len(files)
	}
	for deadline := time.Now().Add(2 * time.Minute); kept() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("there are %d checkpoints", kept())
		}
	}
	stop()
	_, get, stop := startWithDisk(t, log, dir)
	defer stop()
	for _, i := range []int{2*checkpointEvery + 50, checkpointEvery + 7, 3} {
		at := "?at=" + url.QueryEscape(begin.Add(time.Duration(i)*100*time.Millisecond).Format(time.RFC3339Nano))
		for _, path := range []string{"/v1/queues", "/v1/queues/" + testQueue} {
			if text := get(path + at); !strings.Contains(text, fmt.Sprintf(`"sre-%d"`, i)) || strings.Contains(text, fmt.Sprintf(`"sre-%d"`, i+1)) {
				t.Errorf("%s of record %d: %s", path, i, text)
			}
		}
	}
	if kept() != 2 {
		t.Errorf("there are %d checkpoints by now", kept())
	}
}
