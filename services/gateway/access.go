package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/api"
)

// maxKeys bounds the keys of gateways: a request is answered long before so many have started.
const maxKeys = 10_000

// useEvery is how often it is written that a token is used.
const useEvery = 24 * time.Hour

// grants is what is folded of landfall.access, and this gateway's own key.
type grants struct {
	mu     sync.RWMutex
	tokens access.Tokens
	// used has when this gateway wrote last that a token is used.
	used map[string]time.Time
	// keys are by name, oldest first in order.
	keys  map[string]ed25519.PublicKey
	order []string

	key     string
	private ed25519.PrivateKey
}

func (a *grants) init() {
	a.used, a.keys, a.key = map[string]time.Time{}, map[string]ed25519.PublicKey{}, rand.Text()
	_, a.private, _ = ed25519.GenerateKey(nil) // never fails with the system's source
}

func (a *grants) apply(m proto.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, is := m.(*eventsv1.GatewayKey); is {
		if len(k.Public) != ed25519.PublicKeySize || a.keys[k.Key] != nil {
			return
		}
		a.keys[k.Key], a.order = k.Public, append(a.order, k.Key)
		if len(a.order) > maxKeys {
			delete(a.keys, a.order[0])
			a.order = a.order[1:]
		}
		return
	}
	a.tokens.Apply(m)
}

// sign signs who asks for a land request, so that every gateway believes it.
func (a *grants) sign(log string, r *eventsv1.LandRequest) {
	if r.Actor == nil {
		return
	}
	access.SignRequest(log, a.key, a.private, r)
}

// announceKey writes the key with which this gateway signs, and reads it back.
func (g *Gateway) announceKey(ctx context.Context) error {
	return g.appendAccess(ctx, &eventsv1.GatewayKey{
		Key: g.access.key, Public: g.access.private.Public().(ed25519.PublicKey), Instance: g.Instance, StampUs: time.Now().UnixMicro(),
	})
}

func (g *Gateway) appendAccess(ctx context.Context, m proto.Message) error {
	id := events.DeriveID(g.Log.ID(), "access", rand.Text())
	partition := events.PartitionOf("", g.Log.Partitions())
	offset, err := g.appendAsked(ctx, events.TopicAccess, partition, g.envelope("", "", id, "", m))
	if err != nil {
		return err
	}
	return g.accessFolded[partition].wait(ctx, offset)
}

// attribute leaves a land request the actor that a gateway has signed, and gives it the publisher that has. Of any other one it is known
// only that somebody could write the topic. It returns why such a record does not count. Its request id does not count then either:
// whoever can write the topic could have another's request answered by it.
func (g *Gateway) attribute(ctx context.Context, e journal.Entry, r *eventsv1.LandRequest) (*admission.Refusal, error) {
	if r.Actor != nil && r.SignedBy != "" && len(r.Signature) == ed25519.SignatureSize {
		signed, err := g.isSigned(ctx, r)
		if err != nil || signed {
			return nil, err
		}
	}
	r.SignedBy, r.Signature = "", nil
	for _, entry := range r.Entries {
		if entry != nil {
			entry.Review = nil
		}
	}
	subject := e.Source
	if e.Instance != "" {
		subject += "/" + e.Instance
	}
	r.Actor = &eventsv1.Actor{Issuer: access.IssuerLog, Subject: access.Clean(subject, access.MaxSubjectBytes), Name: access.Clean(r.Author, access.MaxNameBytes), Role: access.Lander.String()}
	name, publisher, refused := signerOf(g.Config.Access.Publishers, e, r)
	if name != "" {
		r.Actor = &eventsv1.Actor{Issuer: access.IssuerPublisher, Subject: name, Name: name, Role: publisher.Role}
	}
	switch requests := g.Config.Access.Requests; {
	case requests == configuration.RequestsRefuse:
		refused = forbidden("Land requests by Kafka are refused here (access.requests); ask by the gateway's API.")
	case requests == configuration.RequestsSigned && name == "" && refused == nil:
		refused = forbidden("Land requests by Kafka need the signature of a publisher here (access.requests), in the headers %s and %s.", events.HeaderPublisher, events.HeaderSignature)
	}
	if refused != nil {
		r.RequestId = ""
	}
	return refused, nil
}

// signerOf returns the publisher that has signed a record, "" if none has, and why a signature does not count. What is signed is the
// record's value. So its queue has to be in there, a request id, under which the record counts once however often it is written, and the
// commits, so that one that is written again after a refusal asks for nothing else.
func signerOf(publishers map[string]configuration.Publisher, e journal.Entry, r *eventsv1.LandRequest) (string, configuration.Publisher, *admission.Refusal) {
	var twice string
	headers := map[string]string{}
	for _, h := range e.Headers {
		key := strings.ToLower(h.Key)
		if _, has := headers[key]; has && (key == events.HeaderPublisher || key == events.HeaderSignature || key == events.HeaderContentType) {
			twice = key
		}
		headers[key] = string(h.Value)
	}
	name, text := headers[events.HeaderPublisher], headers[events.HeaderSignature]
	if name == "" && text == "" {
		return "", configuration.Publisher{}, nil
	}
	publisher, known := publishers[name]
	signature, _ := base64.StdEncoding.DecodeString(text)
	said := access.RequestText(headers[events.HeaderContentType], e.Raw)
	switch of, err := events.DecodeLandRequest(nil, e.Raw, e.Headers); {
	case twice != "":
		return "", publisher, forbidden("The record has the header %s twice.", twice)
	case strings.Contains(headers[events.HeaderContentType], "\n"):
		// What follows the break may be the beginning of the value that was signed.
		return "", publisher, forbidden("The record's content type has a line break.")
	case !known || !slices.ContainsFunc(publisher.PublicKeys(), func(key ed25519.PublicKey) bool { return ed25519.Verify(key, said, signature) }):
		return "", publisher, forbidden("The record is not signed by a key of the publisher %q (access.publishers).", access.Clean(name, access.MaxSubjectBytes))
	case err != nil || of.Queue == "" || r.RequestId == "":
		return "", publisher, forbidden("A signed request names its queue and has a request_id, so that it counts for that queue and once.")
	case slices.ContainsFunc(r.Entries, func(entry *eventsv1.Entry) bool { return entry.GetCommit() == "" }):
		return "", publisher, forbidden("A signed request has the commit of each entry, so that nothing else can land by it.")
	case len(publisher.Queues) > 0 && !slices.Contains(publisher.Queues, "*") && !slices.Contains(publisher.Queues, r.Queue):
		return "", publisher, forbidden("The publisher %q is not one of the queue %q (access.publishers).", name, r.Queue)
	}
	return name, publisher, nil
}

// isSigned reports whether a gateway has signed a request. The gateway's key was in the log before the request was.
func (g *Gateway) isSigned(ctx context.Context, r *eventsv1.LandRequest) (bool, error) {
	key := g.access.keyOf(r.SignedBy)
	if key == nil {
		partition := events.PartitionOf("", g.Log.Partitions())
		end, err := g.Log.End(ctx, events.TopicAccess, partition)
		if err != nil {
			return false, fmt.Errorf("end of %s/%d: %w", events.TopicAccess, partition, err)
		}
		limited, cancel := context.WithTimeoutCause(ctx, idleAfter, errIdle)
		defer cancel()
		if err := g.accessFolded[partition].wait(limited, end-1); err != nil && !errors.Is(err, errIdle) {
			return false, err
		}
		if key = g.access.keyOf(r.SignedBy); key == nil {
			return false, nil
		}
	}
	return access.IsSigned(g.Log.ID(), key, r), nil
}

func (a *grants) keyOf(name string) ed25519.PublicKey {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.keys[name]
}

// mayRevise reports whether who asks for a change may do so, now that it is known whose it is.
func (q *queue) mayRevise(r *eventsv1.LandRequest, before *eventsv1.Admission) bool {
	if before == nil {
		return q.state.View.Lineup().Known(r.Change) == 0 || access.MayRevise(r.Actor, r.Author, access.Owner{})
	}
	return access.MayRevise(r.Actor, r.Author, api.OwnerOf(before))
}

// CheckToken implements api.TokenStore.
func (g *Gateway) CheckToken(presented string) (access.Token, error) {
	now := time.Now()
	g.access.mu.RLock()
	token, err := g.access.tokens.Check(presented, now)
	stale := err == nil && now.Sub(token.LastUse) > useEvery && now.Sub(g.access.used[token.ID]) > useEvery
	g.access.mu.RUnlock()
	if stale {
		g.noteUse(token.ID, now)
	}
	return token, err
}

// noteUse writes that a token is used, beside the request.
func (g *Gateway) noteUse(id string, now time.Time) {
	g.access.mu.Lock()
	first := now.Sub(g.access.used[id]) > useEvery
	g.access.used[id] = now
	g.access.mu.Unlock()
	if first && g.ready.Load() {
		go func() {
			// What is not written today is tomorrow.
			_ = g.appendAccess(context.Background(), &eventsv1.TokenUsed{Token: id, StampUs: now.UnixMicro()})
		}()
	}
}

// Tokens implements api.TokenStore.
func (g *Gateway) Tokens() []access.Token {
	g.access.mu.RLock()
	defer g.access.mu.RUnlock()
	return g.access.tokens.List()
}

// Token implements api.TokenStore.
func (g *Gateway) Token(id string) (access.Token, bool) {
	g.access.mu.RLock()
	defer g.access.mu.RUnlock()
	return g.access.tokens.Get(id)
}

// Grant implements api.TokenStore.
func (g *Gateway) Grant(ctx context.Context, fact proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, appendWait)
	defer cancel()
	return g.appendAccess(ctx, fact)
}
