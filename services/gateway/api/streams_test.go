package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"landfall.build/platform/access"
)

// TestWhoeverReadsAQueueKeepsNobodyElseFromWatching opens as many streams as one may have, which was all of them.
func TestWhoeverReadsAQueueKeepsNobodyElseFromWatching(t *testing.T) {
	g := serveGuarded(t)
	one, other := g.token(access.Viewer, "main"), g.token(access.Viewer, "main")
	open := func(token, path string) (int, func()) { return g.stream(t, token, path) }
	paths := []string{"/v1/queues/main/events", "/v1/watch"}
	var ends []func()
	for i := range 500 {
		status, end := open(one, paths[i%2])
		if status != 200 {
			t.Fatalf("stream %d: %d", i, status)
		}
		ends = append(ends, end)
	}
	for _, path := range paths {
		if status, _ := open(one, path); status != 503 {
			t.Errorf("one more of %s: %d", path, status)
		}
		if status, _ := open(other, path); status != 200 {
			t.Errorf("somebody else's of %s: %d", path, status)
		}
	}
	for _, end := range ends {
		end()
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // a stream ends soon after its client
		status, end := open(one, paths[0])
		if end(); status == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("streams do not end with their clients")
		}
	}
}

// TestOneCallerWatchesFewSingleChanges: each is made again whenever its queue changes.
func TestOneCallerWatchesFewSingleChanges(t *testing.T) {
	g := serveGuarded(t)
	one, other := g.token(access.Viewer, "main"), g.token(access.Viewer, "main")
	open := func(token, query string) (int, func()) { return g.stream(t, token, "/v1/watch?"+query) }
	var twenty, end = "", func() {}
	for i := range 20 {
		twenty += fmt.Sprintf("change=main/%d&", i)
	}
	for i := range 10 {
		var status int
		if status, end = open(one, twenty); status != 200 {
			t.Fatalf("stream %d: %d", i, status)
		}
	}
	if status, _ := open(one, "change=main/1"); status != 503 {
		t.Errorf("one change more: %d", status)
	}
	if status, _ := open(one, "changes=main"); status != 200 {
		t.Errorf("a queue as a whole: %d", status)
	}
	if status, _ := open(other, twenty); status != 200 {
		t.Errorf("somebody else's: %d", status)
	}
	deadline := time.Now().Add(time.Minute)
	for end(); ; time.Sleep(10 * time.Millisecond) { // a stream ends soon after its client
		status, again := open(one, "change=main/1")
		if status == 200 {
			break
		}
		again()
		if time.Now().After(deadline) {
			t.Fatal("a stream does not end with its client")
		}
	}
}

// stream opens a stream of somebody, and returns its status and what ends it.
func (g *guarded) stream(t *testing.T, token, path string) (status int, end func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "GET", g.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", token)
	response, err := g.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(); response.Body.Close() })
	return response.StatusCode, end
}
