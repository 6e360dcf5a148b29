package access

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
)

// TokenPrefix begins every token: landfall_<id>_<secret>.
const TokenPrefix = "landfall_"

const (
	idBytes = 12
	// secretBytes are of 32 letters each: 130 bits, which nobody tries, so that a fast hash keeps them.
	secretBytes = 26
	// MaxTokens bounds the tokens in force, and how many of the others are listed.
	MaxTokens   = 10_000
	maxInactive = 1000
	// MaxTokenBytes bounds what is read of a presented token.
	MaxTokenBytes = 200
)

// Grant is what a token is for.
type Grant struct {
	Role Role
	// Queues it is for; AllQueues is every one. Verbs narrow the role; none: all that the role may do.
	Queues []string
	Verbs  []Verb
}

func (g *Grant) covers(queue string) bool { return len(g.Queues) > 0 && coversQueue(g.Queues, queue) }

// Check returns what is wrong with a grant.
func (g Grant) Check() error {
	switch {
	case g.Role == NoRole:
		return errors.New("a token needs a role or verbs")
	case len(g.Queues) == 0:
		return errors.New("a token needs queues; * is every one")
	}
	return nil
}

// RoleFor returns the least role that may do all of the verbs to any change.
func RoleFor(verbs []Verb) Role {
	role := NoRole
	for _, v := range verbs {
		n, _ := needOf(v)
		role = max(role, n.role)
	}
	return role
}

// Token is one that was made, without its secret.
type Token struct {
	ID, Name string
	Grant
	Created, Expires time.Time
	// By made it.
	By *eventsv1.Actor
	// Revoked is when it was revoked, zero if it was not; LastUse a day on which it was used.
	Revoked, LastUse time.Time

	hash []byte
}

// At returns a token as it was at a time, and whether it had been made. Its last use is zero where it was later: the one before is not
// kept.
func (t Token) At(at time.Time) (then Token, made bool) {
	if t.Revoked.After(at) {
		t.Revoked = time.Time{}
	}
	if t.LastUse.After(at) {
		t.LastUse = time.Time{}
	}
	return t, !t.Created.After(at)
}

// NewToken makes a token. The secret is in text alone, which is shown once.
func NewToken() (id string, hash []byte, text string) {
	id, secret := strings.ToLower(rand.Text()[:idBytes]), strings.ToLower(rand.Text()[:secretBytes])
	return id, hashOf(secret), TokenPrefix + id + "_" + secret
}

func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// Errors of Check.
var (
	ErrNoToken = errors.New("it is no token of this Landfall")
	ErrExpired = errors.New("the token has expired")
	ErrRevoked = errors.New("the token was revoked")
)

// Tokens are the tokens of a log, folded from landfall.access. The zero value has none. It is for one goroutine at a time.
type Tokens struct {
	byID map[string]*Token
	// inactive are ids of tokens that were revoked, oldest first.
	inactive []string
}

// Apply folds a record of landfall.access.
func (t *Tokens) Apply(m proto.Message) {
	switch m := m.(type) {
	case *eventsv1.TokenCreated:
		t.create(m)
	case *eventsv1.TokenRevoked:
		if token := t.byID[m.Token]; token != nil && token.Revoked.IsZero() {
			token.Revoked, token.hash = time.UnixMicro(m.StampUs).UTC(), nil
			t.inactive = append(t.inactive, token.ID)
			t.forget()
		}
	case *eventsv1.TokenUsed:
		if token := t.byID[m.Token]; token != nil {
			if at := time.UnixMicro(m.StampUs).UTC(); at.After(token.LastUse) {
				token.LastUse = at
			}
		}
	}
}

// create takes the first record of an id: a second one cannot give it another secret. If there is no room, it first forgets the tokens that
// had expired by then.
func (t *Tokens) create(m *eventsv1.TokenCreated) {
	if t.byID == nil {
		t.byID = map[string]*Token{}
	}
	role, known := ParseRole(m.Role)
	if t.byID[m.Token] != nil || len(m.Hash) != sha256.Size || !known {
		return
	}
	if len(t.byID)-len(t.inactive) >= MaxTokens {
		maps.DeleteFunc(t.byID, func(_ string, token *Token) bool {
			return token.Revoked.IsZero() && !token.Expires.IsZero() && !token.Expires.After(time.UnixMicro(m.StampUs))
		})
	}
	if len(t.byID)-len(t.inactive) >= MaxTokens {
		return
	}
	token := &Token{ID: m.Token, Name: m.Name, Grant: Grant{Role: role, Queues: m.Queues}, Created: time.UnixMicro(m.StampUs).UTC(), By: m.Actor, hash: m.Hash}
	for _, name := range m.Verbs {
		token.Verbs = append(token.Verbs, Verb(name))
	}
	if m.ExpiresUs != 0 {
		token.Expires = time.UnixMicro(m.ExpiresUs).UTC()
	}
	t.byID[token.ID] = token
}

func (t *Tokens) forget() {
	for len(t.inactive) > maxInactive {
		delete(t.byID, t.inactive[0])
		t.inactive = t.inactive[1:]
	}
}

// Get returns the token of an id.
func (t *Tokens) Get(id string) (Token, bool) {
	if token := t.byID[id]; token != nil {
		return *token, true
	}
	return Token{}, false
}

// List returns all tokens, oldest first.
func (t *Tokens) List() []Token {
	out := make([]Token, 0, len(t.byID))
	for _, token := range t.byID {
		out = append(out, *token)
	}
	slices.SortFunc(out, func(a, b Token) int { return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID)) })
	return out
}

// nobodysHash is compared with where there is no token of an id, so that this takes as long.
var nobodysHash = make([]byte, sha256.Size)

// compare is a variable so that a test sees what is compared.
var compare = subtle.ConstantTimeCompare

// Check returns the token that was presented. The time that it takes tells nothing of the secret, nor whether the id exists.
func (t *Tokens) Check(presented string, now time.Time) (Token, error) {
	id, secret, ok := splitToken(presented)
	if !ok {
		return Token{}, ErrNoToken
	}
	token, want := t.byID[id], nobodysHash
	if token != nil && token.hash != nil {
		want = token.hash
	}
	same := compare(hashOf(secret), want) == 1
	switch {
	case token == nil:
		return Token{}, ErrNoToken
	case !token.Revoked.IsZero():
		// The hash is gone, so whoever knows the id alone hears this as well.
		return Token{}, ErrRevoked
	case !same:
		return Token{}, ErrNoToken
	case !token.Expires.IsZero() && !now.Before(token.Expires):
		return Token{}, ErrExpired
	}
	return *token, nil
}

// IsToken reports whether a text looks like a token of Landfall.
func IsToken(text string) bool { return strings.HasPrefix(text, TokenPrefix) }

func splitToken(text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, TokenPrefix)
	if !ok || len(text) > MaxTokenBytes {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	return id, secret, ok && len(id) == idBytes && len(secret) == secretBytes
}

// Caller returns who presents the token.
func (t Token) Caller() Caller {
	return Caller{Issuer: IssuerToken, Subject: t.ID, Name: t.Name, Token: t.ID, grant: &t.Grant}
}

// Created returns the fact that makes a token.
func Created(id string, hash []byte, name string, g Grant, expires, now time.Time, by *eventsv1.Actor) (*eventsv1.TokenCreated, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if Clean(name, MaxNameBytes) != name || name == "" {
		return nil, fmt.Errorf("the name of a token is one line of printable text, at most %d bytes", MaxNameBytes)
	}
	m := &eventsv1.TokenCreated{Token: id, Hash: hash, Name: name, Role: g.Role.String(), Queues: g.Queues, StampUs: now.UnixMicro(), Actor: by}
	for _, v := range g.Verbs {
		m.Verbs = append(m.Verbs, string(v))
	}
	if !expires.IsZero() {
		if !expires.After(now) {
			return nil, errors.New("a token expires in the future")
		}
		m.ExpiresUs = expires.UnixMicro()
	}
	return m, nil
}
