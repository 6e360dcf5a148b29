package hosts

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"landfall.build/engine/lru"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/journal"
)

const (
	// maxWebhook bounds the body of a webhook.
	maxWebhook = 4 << 20
	// smallWebhook is up to which length a body is read at once. Of longer ones, and of those that do not say how long they are, maxLarge are
	// read at a time: who sends one need not have proven anything.
	smallWebhook = 64 << 10
	maxLarge     = 32
	// maxDeliveries is how many deliveries are remembered, so that they are not taken again.
	maxDeliveries = 100_000
	// refusalsPerSecond is how many lines there are about refused webhooks, and refusalsAtOnce how many at once.
	refusalsPerSecond = 5
	refusalsAtOnce    = 100
	// maxHostName bounds the name of a host in such a line.
	maxHostName = 100
	// receivePatience bounds how long the log may take to confirm a webhook.
	receivePatience = 5 * time.Second
	// receiverSource is the source of HostNoticed. These records have no term, so it is not the service's name.
	receiverSource = "hosts-receiver"
)

// Receiver takes webhooks at /v1/hosts/{host}, and writes to the log that there is news. It may run in any process.
type Receiver struct {
	Log          journal.Log
	Instance     string
	Logger       *slog.Logger
	Repositories map[string]Repository
	// Secrets reads the webhooks' secret of a host.
	Secrets func(ctx context.Context, host string) ([]byte, error)
	// Names are the repositories' names at their hosts, owner/name, by queue.
	Names map[string]string

	// large has a place for each long body that is read.
	large chan struct{}
	// secrets are those of the known hosts, as they were at most a minute ago.
	secrets map[string]*Secret

	mu   sync.Mutex
	seen *lru.Cache[string, struct{}]
	// arrivals has what last came of each host.
	arrivals map[string]Arrivals
	// lines bounds those about refused webhooks; leftOut have none.
	lines   *rate.Limiter
	leftOut int
}

// Arrivals says when webhooks of a host came last.
type Arrivals struct {
	Taken   time.Time `json:"taken"`
	Refused time.Time `json:"refused"`
	// Reason says why one was refused last.
	Reason string `json:"reason"`
}

// ArrivalsProof returns what proves to a receiver that somebody knows the secret of a host's webhooks, and may see its arrivals.
func ArrivalsProof(host string, secret []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("arrivals " + host))
	return hex.EncodeToString(mac.Sum(nil))
}

// ArrivalsHeader has the proof.
const ArrivalsHeader = "X-Landfall-Proof"

// NewServer returns a server of webhooks with bounds.
func NewServer(ctx context.Context, handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
	}
}

// Handler returns the routes.
func (r *Receiver) Handler() http.Handler {
	r.seen, r.large, r.secrets = lru.New[string, struct{}](maxDeliveries), make(chan struct{}, maxLarge), map[string]*Secret{}
	for _, repository := range r.Repositories {
		host := repository.Settings.Host
		// Whoever asked may have gone away; others wait for it too.
		r.secrets[host] = &Secret{Read: func(ctx context.Context) ([]byte, error) { return r.Secrets(context.WithoutCancel(ctx), host) }}
	}
	mux := http.NewServeMux()
	r.arrivals, r.lines = map[string]Arrivals{}, rate.NewLimiter(refusalsPerSecond, refusalsAtOnce)
	routes := map[string]http.HandlerFunc{"POST /v1/hosts/{host}": r.serve, "GET /v1/hosts/{host}": r.serveArrivals}
	for _, d := range access.Doors() {
		if route := routes[d.Name]; d.Kind == access.HostRoute && route != nil {
			mux.HandleFunc(d.Name, route)
			delete(routes, d.Name)
		}
	}
	if len(routes) > 0 {
		panic("routes of the hosts service are not in the table of doors")
	}
	return mux
}

func (r *Receiver) serve(w http.ResponseWriter, in *http.Request) {
	host := in.PathValue("host")
	status, err := r.receive(in, host)
	if status == http.StatusConflict {
		r.arrived(host, nil)
	} else {
		r.arrived(host, err)
	}
	if err != nil {
		r.noteRefusal(host, status, err)
		http.Error(w, err.Error(), status)
		return
	}
	w.WriteHeader(status)
}

// noteRefusal writes a line, unless a flood has had too many: then the next one says how many are left out.
func (r *Receiver) noteRefusal(host string, status int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lines.Allow() {
		r.leftOut++
		return
	}
	r.Logger.Warn("a webhook is refused", "host", access.Clean(host, maxHostName), "status", status, "error", access.Clean(err.Error(), 300), "left_out", r.leftOut)
	r.leftOut = 0
}

// arrived notes that a webhook of a known host came.
func (r *Receiver) arrived(host string, err error) {
	known := slices.ContainsFunc(slices.Collect(maps.Values(r.Repositories)), func(repository Repository) bool { return repository.Settings.Host == host })
	if !known {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.arrivals[host]
	if err != nil {
		a.Refused, a.Reason = time.Now(), err.Error()
	} else {
		a.Taken = time.Now()
	}
	r.arrivals[host] = a
}

// serveArrivals answers whoever knows the secret.
func (r *Receiver) serveArrivals(w http.ResponseWriter, in *http.Request) {
	host := in.PathValue("host")
	secret, err := r.secretOf(in.Context(), host)
	if err != nil || len(secret) == 0 || !hmac.Equal([]byte(in.Header.Get(ArrivalsHeader)), []byte(ArrivalsProof(host, secret))) {
		http.Error(w, "there is no proof that you know the webhooks' secret", http.StatusUnauthorized)
		return
	}
	r.mu.Lock()
	a := r.arrivals[host]
	r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a)
}

// receive returns the status of the answer, and why a webhook is refused.
func (r *Receiver) receive(in *http.Request, host string) (int, error) {
	queues := map[string]Repository{}
	for queue, repository := range r.Repositories {
		if repository.Settings.Host == host {
			queues[queue] = repository
		}
	}
	if len(queues) == 0 {
		return http.StatusNotFound, errors.New("no such host")
	}
	if in.ContentLength < 0 || in.ContentLength > smallWebhook {
		select {
		case r.large <- struct{}{}:
			defer func() { <-r.large }()
		default:
			return http.StatusServiceUnavailable, fmt.Errorf("%d others as long are being sent; send it again, or wait for the next look at the host (hosts.poll)", maxLarge)
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, in.Body, maxWebhook))
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return http.StatusRequestEntityTooLarge, fmt.Errorf("its body is longer than %d bytes", maxWebhook)
	} else if err != nil {
		return http.StatusBadRequest, errors.New("its body cannot be read")
	}
	secret, err := r.secretOf(in.Context(), host)
	if err != nil {
		return http.StatusServiceUnavailable, errors.New("the secret of its webhooks cannot be read")
	}
	var n Notice
	for _, repository := range queues {
		if n, err = repository.Host.Notice(in.Header, body, secret); err != nil {
			if errors.Is(err, ErrForged) {
				return http.StatusUnauthorized, err
			}
			return http.StatusBadRequest, err
		}
		break // all repositories of a host read it alike
	}
	delivery := host + " " + n.Delivery
	if r.isKnown(delivery) {
		return http.StatusConflict, errors.New("it was delivered before")
	}
	for queue := range queues {
		if n.Event == "" || !strings.EqualFold(r.Names[queue], n.Repository) {
			continue
		}
		if err := r.write(in.Context(), host, queue, n); err != nil {
			r.Logger.Error("the log did not confirm a webhook", "host", host, "queue", queue, "error", err)
			return http.StatusServiceUnavailable, errors.New("the log does not confirm it")
		}
	}
	r.remember(delivery)
	return http.StatusNoContent, nil
}

// secretOf returns the webhooks' secret of a host.
func (r *Receiver) secretOf(ctx context.Context, host string) ([]byte, error) {
	if s := r.secrets[host]; s != nil {
		return s.Current(ctx)
	}
	return nil, errors.New("no such host")
}

func (r *Receiver) isKnown(delivery string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen.Peek(delivery) != nil
}

func (r *Receiver) remember(delivery string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen.Put(delivery, struct{}{}, 1)
}

func (r *Receiver) write(ctx context.Context, host, queue string, n Notice) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), receivePatience)
	defer cancel()
	now := time.Now()
	_, err := r.Log.Append(ctx, events.TopicHosts, events.PartitionOf(queue, r.Log.Partitions()), events.Envelope{
		ID: events.DeriveID(r.Log.ID(), "notice", host, queue, n.Delivery), Source: receiverSource, Instance: r.Instance, Queue: queue,
		Subject: ChangeOf(n.Number), Time: now, Term: -1,
		Message: &eventsv1.HostNoticed{Host: host, Queue: queue, Number: n.Number, Commit: n.Commit, Event: n.Event, Delivery: n.Delivery, StampUs: now.UnixMicro()},
	})
	return err
}
