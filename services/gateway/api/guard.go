package api

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/refusals"
	"landfall.build/services/gateway/signin"
)

// Bounds of a server. Writes are bounded one by one, since a stream has no end.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	// requestsOfConnection is how many requests an HTTP/2 connection may have at a time, and bufferOfConnection how many unread bytes of them
	// are held. With the bound of connections, they bound the memory that strangers can take.
	requestsOfConnection = 16
	bufferOfConnection   = 64 << 10
	writeTimeout         = 30 * time.Second
	// maxStreams is how many streams there may be, and beside them how many finished logs may be sent at a time.
	maxStreams = 1000
	// maxStreamsOfOne is how many of them one who has proven who it is may have: whoever reads a queue keeps nobody else from it.
	maxStreamsOfOne = maxStreams / 2
	// maxChangesOfOne is how many single changes one caller may watch over GET /v1/watch, over all of its streams: each is made again whenever
	// its queue changes.
	maxChangesOfOne = 200
	// strangersPerSecond is how many requests without proof an address may make, and strangersAtOnce how many at once.
	strangersPerSecond = 5
	strangersAtOnce    = 100
)

//go:embed openapi.yaml
var document []byte

// NewHandler serves the API. The error is that of the log store's directory.
func NewHandler(o Options) (http.Handler, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Refusals == nil {
		o.Refusals = refusals.New(o.Log)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Lists == nil {
		o.Lists = &Lists{}
	}
	if o.SignIn == nil {
		o.SignIn = signin.New(signin.Options{Issuers: &identity.Issuers{}})
	}
	if o.Identity == nil {
		o.Identity = o.SignIn
	}
	if o.Access.Mode == "" {
		o.Access.Mode, o.Access.Logs, o.Access.Rate = configuration.AccessOpen, access.Viewer.String(), 50
	}
	h := &handler{Options: o, boot: rand.Text()[:12], hosts: map[string]bool{"localhost": true}, streams: newStreams(), logsSent: newStreams(), mux: http.NewServeMux()}
	h.watched = newWatched(h)
	h.rules = access.NewRules(o.Access)
	h.callers, h.strangers = newThrottle(float64(o.Access.Rate), 10*o.Access.Rate), newThrottle(strangersPerSecond, strangersAtOnce)
	h.callbacks = newThrottle(strangersPerSecond, strangersAtOnce)
	h.refused = newThrottle(refusalsPerSecond, refusalsAtOnce)
	h.turns, h.looks, h.timelines = newTurns(), newLooks(), make(chan struct{}, maxTimelines)
	for _, name := range o.Hosts {
		h.hosts[strings.ToLower(name)] = true
	}
	if o.LogStore != "" {
		if err := os.MkdirAll(o.LogStore, 0o755); err != nil {
			return nil, fmt.Errorf("log store: %w", err)
		}
		root, err := os.OpenRoot(o.LogStore)
		if err != nil {
			return nil, fmt.Errorf("log store: %w", err)
		}
		h.logs = root
	}
	for _, r := range h.routes() {
		door, known := access.RouteOf(r.method, r.path)
		if !known {
			return nil, fmt.Errorf("the table of doors (platform/access) has no row of %s %s", r.method, r.path)
		}
		h.mux.HandleFunc(r.method+" "+r.path, h.guard(door, r.serve))
	}
	h.servePages()
	h.mux.HandleFunc("/", h.serveNothing)
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.writeFailure(w, r, fail(http.StatusForbidden, codeForbidden, "The request comes from a page of another site.", "Use the command line, or a program of yours."))
	}))
	return identified(h.checkHost(protection.Handler(h.bounded(h.mux)))), nil
}

// NewServer has every bound that a server on an open port needs. It does not listen. Streams end with the
// context, so that Shutdown need not wait for those who watch.
func NewServer(ctx context.Context, h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler:     h, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: requestsOfConnection, MaxReadFrameSize: 16 << 10, MaxReceiveBufferPerConnection: bufferOfConnection, MaxReceiveBufferPerStream: bufferOfConnection,
		},
	}
}

// checkHost refuses requests for names that are not ours. A page of another site can make its own name
// resolve to this address, and its requests are then of the same origin; but they carry that name.
func (h *handler) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.Host
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host
		}
		name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
		if _, err := netip.ParseAddr(name); err != nil && !h.hosts[name] {
			h.writeFailure(w, r, fail(http.StatusForbidden, codeForbidden, "The request is for a host name that is not this gateway's.", "Use localhost or its IP address, or add the name to gateway.hosts in the configuration."))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host {
			h.writeFailure(w, r, fail(http.StatusForbidden, codeForbidden, "The request comes from a page of another site.", "Use the command line, or a program of yours."))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *handler) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// serveNothing answers for paths and methods that no route has.
func (h *handler) serveNothing(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "POST", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		h.writeFailure(w, r, fail(http.StatusMethodNotAllowed, codeMethod, "This path does not take "+clipText(r.Method, 20)+".", "It takes "+strings.Join(allowed, " and ")+"."))
		return
	}
	h.writeFailure(w, r, fail(http.StatusNotFound, codeNotFound, "There is nothing at this path.", "See /v1/openapi.yaml; a change's id goes into the path percent-encoded."))
}

func (h *handler) serveHealth(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (h *handler) serveReady(w http.ResponseWriter, r *http.Request) {
	err := h.Backend.Ready()
	if err == nil {
		if why := h.Backend.Healthy(); why != nil {
			message := "The gateway cannot work: " + why.Error() + "."
			if !h.rules.Open() { // anybody may ask, and the reason has addresses of other machines
				message = "The gateway cannot work; its log says why, and so does /readyz at the address of its metrics."
			}
			err = fail(http.StatusServiceUnavailable, codeNotHealthy, message, "What it read before is still shown.")
		}
	}
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (h *handler) serveDocument(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Write(document)
}

func clipText(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
