package hosttest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// proxy is between the service and the host. It counts what is written, and lets a test act before and after.
type proxy struct {
	*httptest.Server
	mu sync.Mutex
	// writes are method and kind of what was written.
	writes []string
	// asked counts all requests, lists the answers to those for pull requests.
	asked, lists int
	// before and after are called at each write; after false the request ends there.
	before, after func(n int) bool
}

func newProxy(t *testing.T, to string) *proxy {
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := httputil.NewSingleHostReverseProxy(at)
	forward.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	p.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		p.mu.Lock()
		p.asked++
		p.mu.Unlock()
		if in.Method == http.MethodGet || strings.HasSuffix(in.URL.Path, "/graphql") || strings.HasSuffix(in.URL.Path, "/access_tokens") {
			forward.ServeHTTP(out, in)
			if strings.HasSuffix(in.URL.Path, "/pulls") || strings.HasSuffix(in.URL.Path, "/merge_requests") {
				p.mu.Lock()
				p.lists++
				p.mu.Unlock()
			}
			return
		}
		p.mu.Lock()
		parts := strings.Split(in.URL.Path, "/")
		p.writes = append(p.writes, in.Method+" "+strings.Join(parts[min(6, len(parts)-1):], "/"))
		n, before, after := len(p.writes), p.before, p.after
		p.mu.Unlock()
		if before != nil && !before(n) {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		// What the client does must not end what is under way.
		forward.ServeHTTP(answer, in.WithContext(context.WithoutCancel(in.Context())))
		if after != nil && !after(n) {
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			out.Header()[name] = values
		}
		out.WriteHeader(answer.Code)
		_, _ = out.Write(answer.Body.Bytes())
	}))
	p.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) written() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.writes...)
}

func (p *proxy) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *proxy) listed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lists
}
