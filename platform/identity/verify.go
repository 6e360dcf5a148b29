package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"landfall.build/platform/configuration"
)

const (
	// keysPeriod is after how long keys are asked for again: one that the issuer took back is not trusted for longer.
	keysPeriod = 10 * time.Minute
	// retryPeriod is the same while an issuer does not answer.
	retryPeriod = 15 * time.Second
)

// Issuers verifies tokens of all issuers of a configuration.
type Issuers struct {
	// Log is told when an issuer stops answering, and when it answers again.
	log       *slog.Logger
	providers []*Provider
	byURL     map[string]*Provider
}

var _ Verifier = (*Issuers)(nil)

// NewIssuers makes them; it asks none of them. The error is that of a file.
func NewIssuers(access configuration.Access, log *slog.Logger) (*Issuers, error) {
	s := &Issuers{log: log, byURL: map[string]*Provider{}}
	for _, name := range access.IssuerNames() {
		p, err := newProvider(name, access.Issuers[name])
		if err != nil {
			return nil, err
		}
		s.providers = append(s.providers, p)
		s.byURL[p.Settings.URL] = p
	}
	return s, nil
}

// Providers returns the issuers, by name.
func (s *Issuers) Providers() []*Provider { return s.providers }

// Run keeps keys fresh until the context ends.
func (s *Issuers) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range s.providers {
		all.Go(func() { p.keepFresh(ctx, s.log) })
	}
	all.Wait()
}

func (p *Provider) keepFresh(ctx context.Context, log *slog.Logger) {
	away := false
	for ctx.Err() == nil {
		err := p.Refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !away:
			log.Warn("an issuer does not answer; who is signed in goes on", "issuer", p.Name, "error", err)
		case err == nil && away:
			log.Info("an issuer answers again", "issuer", p.Name)
		}
		away = err != nil
		wait := keysPeriod
		if away {
			wait = retryPeriod
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// Refresh reads the issuer's metadata and keys again. It returns ErrUnreachable if the issuer does not answer.
func (p *Provider) Refresh(ctx context.Context) error {
	if p.Settings.KeysFile == "" {
		if _, err := p.metadata.again(ctx); err != nil {
			return err
		}
	}
	_, err := p.keys.again(ctx)
	return err
}

// Verify implements Verifier. The identity is shared: its claims are not to be changed.
func (s *Issuers) Verify(ctx context.Context, token string) (Identity, error) {
	issuer, err := issuerOf(token)
	if err != nil {
		return Identity{}, err
	}
	p := s.byURL[issuer]
	if p == nil {
		return Identity{}, fmt.Errorf("%w: the token's issuer is none of access.issuers", ErrRefused)
	}
	return p.Verify(ctx, token)
}

// issuerOf returns who a token says has made it; nothing is verified yet.
func issuerOf(token string) (string, error) {
	refuse := func(why string) (string, error) { return "", fmt.Errorf("%w: %s", ErrRefused, why) }
	if len(token) > MaxToken {
		return refuse(fmt.Sprintf("the token has more than %d bytes", MaxToken))
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, signature, found := strings.Cut(rest, ".")
	if !found || strings.Contains(signature, ".") {
		return refuse("it is no signed token (JWT)")
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil {
		return refuse("it is no signed token (JWT)")
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(text, &claims) != nil {
		return refuse("it is no signed token (JWT)")
	}
	return claims.Issuer, nil
}

// Verify returns whom a token of this issuer names, as Verifier does.
func (p *Provider) Verify(ctx context.Context, token string) (Identity, error) {
	now := p.now()
	_, version := p.keys.known()
	if identity, known := p.verified.get(token, version, now); known {
		return identity, nil
	}
	verified, err := p.verify(ctx, token, p.Settings.Accepts(), now)
	if err != nil {
		return Identity{}, err
	}
	identity, err := p.identity(verified)
	if err != nil {
		return Identity{}, err
	}
	// Of keys that have changed meanwhile it is not said that they signed it.
	p.verified.put(token, version, identity, verified.Expiry)
	return identity, nil
}

// VerifySignIn returns whom the token of a sign-in names: one for the client and with the nonce that it was asked for with.
func (p *Provider) VerifySignIn(ctx context.Context, token, client, nonce string) (Identity, error) {
	if _, err := issuerOf(token); err != nil {
		return Identity{}, err
	}
	verified, err := p.verify(ctx, token, []string{client}, p.now())
	if err != nil {
		return Identity{}, err
	}
	identity, err := p.identity(verified)
	switch azp, has := identity.Claims["azp"]; {
	case err != nil:
		return Identity{}, err
	case nonce == "" || verified.Nonce != nonce:
		return Identity{}, fmt.Errorf("%w: the token is of another sign-in", ErrRefused)
	case has && azp != client || !has && len(verified.Audience) > 1:
		return Identity{}, fmt.Errorf("%w: the token is for another program", ErrRefused)
	}
	return identity, nil
}

func (p *Provider) verify(ctx context.Context, token string, audiences []string, now time.Time) (*oidc.IDToken, error) {
	signature := &signature{keys: p.keys}
	// Audiences are checked below: there may be several.
	verifier := oidc.NewVerifier(p.Settings.URL, signature, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithmNames(), Now: func() time.Time { return now }})
	verified, err := verifier.Verify(ctx, token)
	var expired *oidc.TokenExpiredError
	switch {
	case signature.err != nil:
		return nil, signature.err
	case errors.As(err, &expired):
		return nil, fmt.Errorf("%w: the token has expired", ErrRefused)
	case err != nil:
		// Not what the library says: it may repeat parts of the token.
		return nil, fmt.Errorf("%w: it is no token that is valid now and signed with a public key", ErrRefused)
	case !slices.ContainsFunc(verified.Audience, func(a string) bool { return slices.Contains(audiences, a) }):
		return nil, fmt.Errorf("%w: the token is for another program (its audience is none of access.issuers.%s)", ErrRefused, p.Name)
	}
	return verified, nil
}

// WithUserInfo returns an identity with what the issuer's userinfo endpoint says besides. What the token has stands. The error is
// ErrRefused if the text is about somebody else.
func (p *Provider) WithUserInfo(who Identity, info []byte) (Identity, error) {
	names := ClaimNames(p.Settings.Claims)
	more, err := FromClaims(p.Settings.URL, info, names)
	if err != nil {
		return Identity{}, err
	}
	if more.Subject != who.Subject {
		return Identity{}, fmt.Errorf("%w: the issuer's userinfo is about somebody else", ErrRefused)
	}
	all := more.Claims
	who.Claims = maps.Clone(who.Claims)
	if len(list(find(who.Claims, names.Groups))) == 0 {
		delete(who.Claims, GroupsClaim)
	}
	// Each says of its own address alone that it is verified.
	switch address := text(who.Claims, names.Email); address {
	case "":
		delete(who.Claims, "email_verified")
	case text(all, names.Email):
	default:
		delete(all, "email_verified")
	}
	maps.Copy(all, who.Claims)
	merged, err := json.Marshal(all)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return FromClaims(p.Settings.URL, merged, names)
}

// logoutEvent is what tokens have that end sessions. Those name somebody and are for the same client, but sign nobody in.
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// judged are the claims that decide whether a token counts. The library matches their names in any case, and takes the last of several: a
// claim Aud that somebody chose would replace aud.
var judged = []string{"iss", "sub", "aud", "exp", "nbf", "iat", "nonce"}

func (p *Provider) identity(token *oidc.IDToken) (Identity, error) {
	var claims json.RawMessage
	if err := token.Claims(&claims); err != nil {
		return Identity{}, fmt.Errorf("%w: the claims are no JSON object", ErrRefused)
	}
	identity, err := FromClaims(p.Settings.URL, claims, ClaimNames(p.Settings.Claims))
	if err != nil {
		return Identity{}, err
	}
	for name := range identity.Claims {
		if slices.ContainsFunc(judged, func(exact string) bool { return name != exact && strings.EqualFold(name, exact) }) {
			return Identity{}, fmt.Errorf("%w: it has a claim whose name differs from a registered one in upper and lower case alone", ErrRefused)
		}
	}
	if events, is := identity.Claims["events"].(map[string]any); is && events[logoutEvent] != nil {
		return Identity{}, fmt.Errorf("%w: the token is for signing out", ErrRefused)
	}
	return identity, nil
}
