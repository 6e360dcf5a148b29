package hosttest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// relay is between the host and the service. It delivers webhooks as a fault says.
type relay struct {
	*httptest.Server
	to      string
	forward http.Handler

	mu sync.Mutex
	// fault returns when a webhook is delivered, as often as there are times; nil for at once.
	fault func() []time.Duration
	// answers counts those of the service by status.
	answers map[int]int
	wg      sync.WaitGroup
}

func newRelay(t *testing.T, to string) *relay {
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{to: to, forward: httputil.NewSingleHostReverseProxy(at), answers: map[int]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(func() {
		r.Close()
		r.wg.Wait()
	})
	return r
}

// shuffle has webhooks lost, repeated, late and so in another order: each not at all, once or twice, within some seconds.
func (r *relay) shuffle(random *rand.Rand) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = func() (at []time.Duration) {
		for range random.IntN(3) {
			at = append(at, time.Duration(random.IntN(4000))*time.Millisecond)
		}
		return at
	}
}

func (r *relay) serve(out http.ResponseWriter, in *http.Request) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	fault := r.fault
	var times []time.Duration
	if fault != nil {
		times = fault()
	}
	r.mu.Unlock()
	if in.Method != http.MethodPost {
		r.forward.ServeHTTP(out, in)
		return
	}
	if fault == nil {
		out.WriteHeader(r.deliver(in.URL.Path, in.Header, body))
		return
	}
	for _, after := range times {
		r.wg.Go(func() {
			time.Sleep(after)
			r.deliver(in.URL.Path, in.Header, body)
		})
	}
	out.WriteHeader(http.StatusNoContent) // the host believes that it was delivered
}

func (r *relay) deliver(path string, header http.Header, body []byte) int {
	request, err := http.NewRequest(http.MethodPost, r.to+path, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway
	}
	request.Header = header.Clone()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return http.StatusBadGateway
	}
	answer.Body.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[answer.StatusCode]++
	return answer.StatusCode
}
