package webhooks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"landfall.build/events"
	"landfall.build/platform/outbound"
	"landfall.build/platform/telemetry"
)

// Bounds of the attempts.
const (
	// maxFlying is how many attempts at an endpoint are under way at a time, on one partition.
	maxFlying = 8
	timeout   = 15 * time.Second
	// maxAnswer is how much of an answer is read, so that the connection can be used again.
	maxAnswer = 64 << 10
	// secretFor is how long a secret that was read is used.
	secretFor = time.Minute
)

// Endpoint is a configured webhook.
type Endpoint struct {
	URL string
	// Secret reads the secret that requests are signed with.
	Secret func(ctx context.Context) ([]byte, error)
	Wants
	// AllowPrivate permits addresses of this machine and link-local ones.
	AllowPrivate bool
}

// sender makes attempts, several at a time.
type sender struct {
	endpoints map[string]*target
	version   string
	ctx       context.Context
	cancel    context.CancelFunc
	wg        sync.WaitGroup

	mu   sync.Mutex
	done Results
}

// target is an endpoint with its connections and its secret.
type target struct {
	Endpoint
	client *http.Client

	mu     sync.Mutex
	secret []byte
	read   time.Time
}

func newSender(endpoints map[string]Endpoint, version string) *sender {
	s := &sender{endpoints: map[string]*target{}, version: version}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for name, e := range endpoints {
		dialer := &net.Dialer{Timeout: timeout}
		if !e.AllowPrivate {
			dialer.Control = refusePrivate
		}
		s.endpoints[name] = &target{Endpoint: e, client: &http.Client{
			Timeout: timeout,
			// A redirect could lead to an address that nobody has configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			// No proxy: it would reach what the dialer refuses.
			Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout, MaxIdleConnsPerHost: maxFlying, IdleConnTimeout: time.Minute},
		}}
	}
	return s
}

// close ends all attempts and waits for them.
func (s *sender) close() {
	s.cancel()
	s.wg.Wait()
	for _, t := range s.endpoints {
		t.client.CloseIdleConnections()
	}
}

// begin makes an attempt in the background.
func (s *sender) begin(send Send) {
	s.wg.Go(func() {
		r := s.attempt(send)
		if s.ctx.Err() != nil {
			return // what was ended by us says nothing
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done = append(s.done, r)
	})
}

// collect returns the attempts that have ended since it was called last.
func (s *sender) collect() (done Results) {
	s.mu.Lock()
	defer s.mu.Unlock()
	done, s.done = s.done, nil
	return done
}

func (s *sender) attempt(send Send) Result {
	r := Result{Send: send}
	t := s.endpoints[send.Key.endpoint]
	if t == nil {
		r.Message = "the configuration has no such endpoint"
		return r
	}
	request, err := t.request(s.ctx, send, time.Now())
	if err != nil {
		r.Message = err.Error()
		return r
	}
	request.Header.Set("User-Agent", "landfall/"+s.version)
	answer, err := t.client.Do(request)
	if err != nil {
		r.Message = withoutAddress(err)
		return r
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	r.Status = answer.StatusCode
	switch {
	case r.Status >= 200 && r.Status < 300:
	case r.Status >= 300 && r.Status < 400:
		r.Message = fmt.Sprintf("it answers %d; redirects are not followed", r.Status)
	case r.Status == http.StatusGone:
		r.Message, r.Final = "it answers 410: it wants nothing more", true
	default:
		r.Message = fmt.Sprintf("it answers %d", r.Status)
	}
	return r
}

// body is what is posted, in the form that Standard Webhooks recommends.
type body struct {
	Type      string          `json:"type"`
	Timestamp string          `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// request returns the request of an attempt.
func (t *target) request(ctx context.Context, send Send, now time.Time) (*http.Request, error) {
	data, err := events.OutcomeJSON(send.Outcome)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body{events.OutcomeTypePrefix + send.Outcome.State, send.Outcome.Time, data}); err != nil {
		return nil, err
	}
	content.Truncate(content.Len() - 1)
	secret, err := t.currentSecret(ctx, now)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(content.Bytes()))
	if err != nil {
		return nil, errors.New("the endpoint's url is none")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("webhook-id", send.ID)
	request.Header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	request.Header.Set("webhook-signature", sign(secret, send.ID, now, content.Bytes()))
	if trace := telemetry.Traceparent(telemetry.SpanContext(send.Trace)); trace != "" {
		request.Header.Set("traceparent", trace)
	}
	return request, nil
}

// currentSecret returns the signing key. It is read again now and then, so that it can be changed.
func (t *target) currentSecret(ctx context.Context, now time.Time) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.secret != nil && now.Sub(t.read) < secretFor {
		return t.secret, nil
	}
	text, err := t.Secret(ctx)
	if err != nil {
		return nil, fmt.Errorf("its secret cannot be read: %w", err)
	}
	if t.secret, err = keyOf(text); err != nil {
		return nil, err
	}
	t.read = now
	return t.secret, nil
}

// MaxSecret is the greatest number of bytes of a secret, and minKey the least of the key in it.
const (
	MaxSecret = 4 << 10
	minKey    = 16
)

// keyOf returns the key that a secret stands for: whsec_ and base64, as Standard Webhooks has it.
func keyOf(secret []byte) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(secret)), "whsec_"))
	if err != nil || len(key) < minKey {
		return nil, fmt.Errorf("its secret is not whsec_ and the base64 of at least %d bytes; make one with: echo whsec_$(openssl rand -base64 32)", minKey)
	}
	return key, nil
}

// sign returns the signature of Standard Webhooks, version 1.
func sign(key []byte, id string, at time.Time, content []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
	mac.Write(content)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// errPrivate says that an address is not called.
var errPrivate = errors.New("its address is one of this machine or of its link, which is not called; set allow_private if it is meant")

// refusePrivate is called with the address that a name stands for. What steps do not reach by themselves is refused here, too.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return errPrivate
	}
	if (outbound.Filter{}).Refuses(at.Addr()) {
		return errPrivate
	}
	return nil
}

// withoutAddress returns what an error says besides the URL, which may hold a token.
func withoutAddress(err error) string {
	var at *url.Error
	if errors.As(err, &at) {
		if at.Timeout() {
			return fmt.Sprintf("it does not answer within %v", timeout)
		}
		err = at.Err
	}
	return err.Error()
}
