package gateway

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
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

// attribute leaves a land request the actor that a gateway has signed. Of any other one it is known only that somebody could write the
// topic.
func (g *Gateway) attribute(ctx context.Context, e journal.Entry, r *eventsv1.LandRequest) error {
	if r.Actor != nil && r.SignedBy != "" && len(r.Signature) == ed25519.SignatureSize {
		signed, err := g.isSigned(ctx, r)
		if err != nil || signed {
			return err
		}
	}
	r.SignedBy, r.Signature = "", nil
	subject := e.Source
	if e.Instance != "" {
		subject += "/" + e.Instance
	}
	r.Actor = &eventsv1.Actor{Issuer: access.IssuerLog, Subject: access.Clean(subject, access.MaxSubjectBytes), Name: access.Clean(r.Author, access.MaxNameBytes), Role: access.Lander.String()}
	return nil
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

// Grant implements api.TokenStore.
func (g *Gateway) Grant(ctx context.Context, fact proto.Message) error {
	ctx, cancel := context.WithTimeout(ctx, appendWait)
	defer cancel()
	return g.appendAccess(ctx, fact)
}
