// Package signin signs people in with a browser, by OpenID Connect's authorization code flow with PKCE, and keeps their sessions.
// It finds who sends a request: by the session's cookie, or by a bearer token.
package signin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/platform/secretplace"
)

const (
	// attemptLimit is how long somebody may take to sign in at the provider.
	attemptLimit = 10 * time.Minute
	// maxTo bounds the path that somebody is sent to who has signed in, maxCode what the provider sends along.
	maxTo   = 1000
	maxCode = 4096
	// maxSecret bounds the secret of a client.
	maxSecret = 4096
	// maxExchanges bounds how many codes are exchanged at a time, maxUsed how many are remembered.
	maxExchanges = 32
	maxUsed      = 10_000
)

var (
	// ErrUnknown is returned for an issuer by which nobody can sign in with a browser.
	ErrUnknown = errors.New("nobody signs in with a browser by an issuer of that name")
	// ErrTo is returned where somebody would be sent elsewhere after signing in.
	ErrTo = errors.New("to is not a path of this site")
)

// Options of a service.
type Options struct {
	Issuers  *identity.Issuers
	Sessions configuration.Sessions
	// URL is where people reach the gateway (gateway.url), "" if that is not configured.
	URL string
	// Clock is nil for time.Now.
	Clock func() time.Time
}

// Service signs people in and finds who sends a request. It is safe for concurrent use.
type Service struct {
	Options
	sessions *sessions
	// seal keeps what is under way in a cookie that only this process can read or make.
	seal      cipher.AEAD
	exchanges chan struct{}

	mu sync.Mutex
	// used are the states of sign-ins that came back, with when they are void anyway.
	used map[string]time.Time
}

var _ identity.Source = (*Service)(nil)

// New returns a service.
func New(o Options) *Service {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	key := make([]byte, 32)
	rand.Read(key)
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has the right length
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &Service{Options: o, sessions: newSessions(o.Sessions, o.Clock), seal: seal, exchanges: make(chan struct{}, maxExchanges), used: map[string]time.Time{}}
}

// Way is how people sign in by one issuer.
type Way struct {
	Name   string `json:"name"`
	Issuer string `json:"issuer"`
	// Start is where a browser begins. Left out: not with a browser.
	Start string `json:"start,omitempty"`
	// ClientID is as what a command signs in, which asks for Scopes. Left out: not by a command.
	ClientID string   `json:"client_id,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
	// Problem is why it does not work now.
	Problem string `json:"problem,omitempty"`
}

// Ways returns how people sign in.
func (s *Service) Ways() []Way {
	list := []Way{}
	for _, p := range s.Issuers.Providers() {
		w := Way{Name: p.Name, Issuer: p.Settings.URL, ClientID: p.Settings.CommandClient(), Problem: p.Problem()}
		if p.Settings.ClientID != "" {
			w.Start = s.URL + path(p.Name, "start")
		}
		if w.ClientID != "" {
			w.Scopes = p.Settings.Scopes
		}
		if w.Start != "" || w.ClientID != "" {
			list = append(list, w)
		}
	}
	return list
}

func path(issuer, end string) string { return "/v1/signin/" + url.PathEscape(issuer) + "/" + end }

// attempt is a sign-in under way. It is in a cookie, so that it belongs to one browser and costs the gateway no memory.
type attempt struct {
	Issuer, State, Nonce, Verifier, To string
	Expires                            time.Time
}

// Begin returns where to send a browser that signs in by an issuer, and the cookie to give it. It will be sent to a path of this
// site afterwards, to.
func (s *Service) Begin(r *http.Request, issuer, to string) (location string, cookie *http.Cookie, err error) {
	p, err := s.provider(issuer)
	if err != nil {
		return "", nil, err
	}
	at, err := s.at(r)
	if err != nil {
		return "", nil, err
	}
	if to == "" {
		to = "/"
	}
	if !local(to) {
		return "", nil, ErrTo
	}
	// With what is in memory the browser would be sent to a provider that is away, and its user would not learn why.
	if err := p.Reach(r.Context()); err != nil {
		return "", nil, err
	}
	client, err := webClient(r.Context(), p, at)
	if err != nil {
		return "", nil, err
	}
	a := attempt{issuer, rand.Text(), rand.Text(), oauth2.GenerateVerifier(), to, s.Clock().Add(attemptLimit)}
	text, err := json.Marshal(a)
	if err != nil {
		return "", nil, err
	}
	sealed := base64.RawURLEncoding.EncodeToString(s.seal.Seal(nil, nil, text, nil))
	location = client.AuthCodeURL(a.State, oauth2.SetAuthURLParam("nonce", a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	return location, at.cookie(attemptCookie, sealed, attemptLimit), nil
}

// Finish takes a browser back from the provider. It returns where to send it, and its cookies.
func (s *Service) Finish(r *http.Request, issuer string) (to string, cookies []*http.Cookie, err error) {
	p, err := s.provider(issuer)
	if err != nil {
		return "", nil, err
	}
	at, err := s.at(r)
	if err != nil {
		return "", nil, err
	}
	query := r.URL.Query()
	a, err := s.begun(at.read(r, attemptCookie), issuer, query.Get("state"))
	if err != nil {
		return "", nil, err
	}
	if iss := query.Get("iss"); iss != "" && iss != p.Settings.URL {
		return "", nil, fmt.Errorf("%w: the answer is of another issuer", identity.ErrRefused)
	}
	if query.Has("error") {
		return "", nil, fmt.Errorf("%w: %s says %q", identity.ErrRefused, p.Name, identity.Shown(query.Get("error")))
	}
	who, err := s.exchange(r.Context(), p, at, a, query.Get("code"))
	if err != nil {
		return "", nil, err
	}
	s.sessions.end(at.read(r, sessionCookie))
	id := s.sessions.begin(who)
	return a.To, []*http.Cookie{at.cookie(sessionCookie, id, s.Sessions.Lifetime), at.cookie(attemptCookie, "", 0)}, nil
}

// begun returns the sign-in that a browser has begun, once.
func (s *Service) begun(sealed, issuer, state string) (attempt, error) {
	refuse := func(why string) (attempt, error) {
		return attempt{}, fmt.Errorf("%w: %s", identity.ErrRefused, why)
	}
	text, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		text, err = s.seal.Open(nil, nil, text, nil)
	}
	var a attempt
	if err != nil || json.Unmarshal(text, &a) != nil {
		return refuse("this browser has not begun to sign in here, or the gateway was started again meanwhile")
	}
	now := s.Clock()
	switch {
	case now.After(a.Expires):
		return refuse(fmt.Sprintf("it took longer than %v", attemptLimit))
	case a.Issuer != issuer || subtle.ConstantTimeCompare([]byte(a.State), []byte(state)) != 1:
		return refuse("the answer is not to what this browser has begun")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.used[a.State]; again {
		return refuse("this answer was used before")
	}
	for old, expires := range s.used {
		if len(s.used) >= maxUsed || now.After(expires) {
			delete(s.used, old)
		}
	}
	s.used[a.State] = a.Expires
	return a, nil
}

// exchange asks the provider for whom a code stands.
func (s *Service) exchange(ctx context.Context, p *identity.Provider, at site, a attempt, code string) (identity.Identity, error) {
	if code == "" || len(code) > maxCode {
		return identity.Identity{}, fmt.Errorf("%w: the answer has no code", identity.ErrRefused)
	}
	select {
	case s.exchanges <- struct{}{}:
		defer func() { <-s.exchanges }()
	case <-ctx.Done():
		return identity.Identity{}, context.Cause(ctx)
	}
	client, err := webClient(ctx, p, at)
	if err != nil {
		return identity.Identity{}, err
	}
	if p.Settings.HasSecret() {
		// As it is now: it may have been renewed.
		secret, err := secretplace.Read(ctx, p.Settings.ClientSecret, maxSecret)
		if err != nil {
			return identity.Identity{}, fmt.Errorf("access.issuers.%s.client_secret: %w", p.Name, err)
		}
		client.ClientSecret = strings.TrimRight(string(secret), "\r\n")
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, p.Client)
	tokens, err := client.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		var refused *oauth2.RetrieveError
		if errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError {
			return identity.Identity{}, fmt.Errorf("%w: %s does not take the code (%q)", identity.ErrRefused, p.Name, identity.Shown(refused.ErrorCode))
		}
		return identity.Identity{}, fmt.Errorf("%w: no tokens from %s", identity.ErrUnreachable, p.Name)
	}
	token, _ := tokens.Extra("id_token").(string)
	who, err := p.VerifySignIn(ctx, token, client.ClientID, a.Nonce)
	if err != nil {
		return identity.Identity{}, err
	}
	return s.completed(ctx, p, tokens.AccessToken, who)
}

// completed adds the claims of the issuer's userinfo endpoint: the token need not have names and groups.
func (s *Service) completed(ctx context.Context, p *identity.Provider, token string, who identity.Identity) (identity.Identity, error) {
	m, err := p.Metadata(ctx)
	if err != nil || m.UserInfoURL == "" || token == "" {
		return who, err
	}
	away := func(what any) (identity.Identity, error) {
		return identity.Identity{}, fmt.Errorf("%w: its userinfo: %v", identity.ErrUnreachable, what)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.UserInfoURL, nil)
	if err != nil {
		return away(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := p.Client.Do(request)
	if err != nil {
		return away(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return away(answer.Status)
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") {
		return who, nil // it is signed, and says no more than the token
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, identity.MaxToken+1))
	if err != nil {
		return away(err)
	}
	return p.WithUserInfo(who, text)
}

func (s *Service) provider(name string) (*identity.Provider, error) {
	for _, p := range s.Issuers.Providers() {
		if p.Name == name && p.Settings.ClientID != "" {
			return p, nil
		}
	}
	return nil, ErrUnknown
}

// webClient returns the client as which the gateway signs people in, without its secret: a sign-in that begins does not need that.
func webClient(ctx context.Context, p *identity.Provider, at site) (*oauth2.Config, error) {
	m, err := p.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	return &oauth2.Config{
		ClientID: p.Settings.ClientID, Scopes: p.Settings.Scopes, RedirectURL: at.url + path(p.Name, "callback"),
		Endpoint: m.Endpoint(p.Settings.HasSecret()),
	}, nil
}

// local reports whether a text is a path of this site, for a browser too.
func local(to string) bool {
	if len(to) > maxTo || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsFunc(to, func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f }) {
		return false
	}
	at, err := url.Parse(to)
	return err == nil && at.Scheme == "" && at.Host == "" && at.User == nil
}

// SignOut ends the session of a request, or all sessions of whoever sends it. It returns how many these were, where the browser can
// be sent to sign out at the provider too ("" if the provider has no such place), and the cookie that takes the place of the
// session's.
func (s *Service) SignOut(r *http.Request, everywhere bool) (ended int, provider string, cookie *http.Cookie, err error) {
	who, err := s.Of(r)
	if err != nil {
		return 0, "", nil, err
	}
	at, err := s.at(r)
	if err != nil {
		return 0, "", nil, err
	}
	if who == nil {
		return 0, "", at.cookie(sessionCookie, "", 0), nil
	}
	if everywhere {
		ended = s.sessions.endAll(who.Issuer, who.Subject)
	} else if s.sessions.end(at.read(r, sessionCookie)) {
		ended = 1
	}
	for _, p := range s.Issuers.Providers() {
		if p.Settings.URL == who.Issuer {
			provider = p.EndSession()
		}
	}
	return ended, provider, at.cookie(sessionCookie, "", 0), nil
}

// keyOf returns what a session is known by in memory: nobody who reads that can send the cookie.
func keyOf(id string) [sha256.Size]byte { return sha256.Sum256([]byte(id)) }
