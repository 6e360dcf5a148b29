package hosts

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"landfall.build/platform/journal/memory"
)

// TestWebhooksThatAreStillSentTakeBoundedMemory: each of any number of connections could have the service keep 4 MiB.
func TestWebhooksThatAreStillSentTakeBoundedMemory(t *testing.T) {
	log := memory.New(memory.Options{ID: "log", Partitions: 1})
	r := &Receiver{Log: log, Instance: "i", Logger: slog.New(slog.DiscardHandler), Repositories: map[string]Repository{"main": {setting, fake{}}}, Names: map[string]string{"main": "Acme/Shop"},
		Secrets: func(context.Context, string) ([]byte, error) { return []byte("s"), nil }}
	server := httptest.NewServer(r.Handler())
	t.Cleanup(server.Close) // after the connections
	// A server says to continue when it begins to read.
	begin := func(delivery string) (net.Conn, *bufio.Reader, int) {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		fmt.Fprintf(c, "POST /v1/hosts/forge HTTP/1.1\r\nHost: localhost\r\nD: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", delivery, smallWebhook+1)
		in := bufio.NewReader(c)
		answer, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c, in, answer.StatusCode
	}
	var first net.Conn
	var answers *bufio.Reader
	for i := range maxLarge {
		c, in, status := begin(fmt.Sprint("large", i))
		if status != http.StatusContinue {
			t.Fatalf("%d of %d: %d", i, maxLarge, status)
		}
		if i == 0 {
			first, answers = c, in
		}
	}
	if _, _, status := begin("more"); status != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", status)
	}
	post := func(body io.Reader, delivery string) int {
		request, _ := http.NewRequest("POST", server.URL+"/v1/hosts/forge", body)
		request.Header.Set("D", delivery)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := post(strings.NewReader("s"), "small"); got != http.StatusNoContent {
		t.Errorf("a small one: %d", got)
	}
	if got := post(io.MultiReader(strings.NewReader("s")), "of no length"); got != http.StatusServiceUnavailable {
		t.Errorf("one of a length that nobody knows: %d", got)
	}
	fmt.Fprint(first, "s"+strings.Repeat("x", smallWebhook))
	if answer, err := http.ReadResponse(answers, nil); err != nil || answer.StatusCode != http.StatusNoContent {
		t.Errorf("the first: %v, %v", answer, err)
	}
	if _, _, status := begin("after it"); status != http.StatusContinue {
		t.Errorf("after the first has ended: %d", status)
	}
}

// TestForgedWebhooksDoNotHaveTheSecretReadForEach: it may be a command that prints it.
func TestForgedWebhooksDoNotHaveTheSecretReadForEach(t *testing.T) {
	var read atomic.Int64
	r := &Receiver{Logger: slog.New(slog.DiscardHandler), Repositories: map[string]Repository{"main": {setting, fake{}}},
		Secrets: func(ctx context.Context, host string) ([]byte, error) {
			read.Add(1)
			return []byte("s"), ctx.Err()
		}}
	handler := r.Handler()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	const tries = 1000
	for i := range tries {
		w, request := httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/hosts/forge", strings.NewReader("x"))
		if i == 0 { // who has gone away does not keep it from the others
			request = request.WithContext(gone)
		}
		if handler.ServeHTTP(w, request); w.Code != http.StatusUnauthorized {
			t.Errorf("%d: %d %s", i, w.Code, w.Body)
		}
	}
	if read.Load() > tries/10 {
		t.Errorf("it was read %d times", read.Load())
	}
}
