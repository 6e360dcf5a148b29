package apitest

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/platform/access"
)

// Tokens holds tokens without a log. Its clock is the system's.
type Tokens struct {
	mu     sync.Mutex
	tokens access.Tokens
}

// Make makes a token, which expires at a time; never if that is zero. A token may have expired already.
func (t *Tokens) Make(name string, g access.Grant, expires time.Time) (id, text string) {
	id, hash, text := access.NewToken()
	m, err := access.Created(id, hash, name, g, time.Time{}, time.Now(), nil)
	if err != nil {
		panic(err)
	}
	if !expires.IsZero() {
		m.ExpiresUs = expires.UnixMicro()
	}
	_ = t.Grant(context.Background(), m)
	return id, text
}

// CheckToken implements api.TokenStore.
func (t *Tokens) CheckToken(presented string) (access.Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tokens.Check(presented, time.Now())
}

// Tokens implements api.TokenStore.
func (t *Tokens) Tokens() []access.Token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tokens.List()
}

// Token implements api.TokenStore.
func (t *Tokens) Token(id string) (access.Token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tokens.Get(id)
}

// Grant implements api.TokenStore.
func (t *Tokens) Grant(_ context.Context, fact proto.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens.Apply(fact)
	return nil
}
