package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/signin"
)

const (
	// signInLimit is how long somebody may take in the browser.
	signInLimit = 5 * time.Minute
	// early is how long before its end a token is refreshed.
	early = 30 * time.Second
)

// ErrAgain is wrapped where tokens are of no more use.
var ErrAgain = errors.New("sign in again: landfall login")

// offlineAccess is the scope with which many providers give a refresh token.
const offlineAccess = "offline_access"

// refusal is what an issuer says instead of giving tokens.
type refusal struct{ code, description string }

func (r refusal) Error() string {
	return fmt.Sprintf("the issuer refuses: %q %s", identity.Shown(r.code), identity.Shown(r.description))
}

// ofOffline reports whether an error may be about the scope offline_access: some users, or clients, are not given it.
func ofOffline(err error) bool {
	var r refusal
	return errors.As(err, &r) && (r.code == "invalid_scope" || r.code == "not_allowed")
}

// issuer is a provider as a command sees it.
type issuer struct {
	*identity.Issuers
	provider *identity.Provider
	metadata identity.Metadata
	config   oauth2.Config
}

// contextOf has requests of oauth2 made by the provider's client, whose answers are bounded.
func (i *issuer) contextOf(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, i.provider.Client)
}

func newIssuer(ctx context.Context, url, client string, scopes []string) (*issuer, error) {
	if !identity.Secure(url) {
		return nil, fmt.Errorf("the issuer %q is not an https address", identity.Shown(url))
	}
	settings := configuration.NewIssuer()
	settings.URL, settings.ClientID = url, client
	all, err := identity.NewIssuers(configuration.Access{Issuers: map[string]configuration.Issuer{"issuer": settings}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	i := &issuer{Issuers: all, provider: all.Providers()[0]}
	if i.metadata, err = i.provider.Metadata(ctx); err != nil {
		return nil, err
	}
	i.config = oauth2.Config{ClientID: client, Scopes: scopes, Endpoint: i.metadata.Endpoint(false)}
	return i, nil
}

// kept returns what is kept of somebody whom a provider gave tokens for.
func (i *issuer) kept(tokens *oauth2.Token, who identity.Identity) Kept {
	k := Kept{Issuer: i.provider.Settings.URL, ClientID: i.config.ClientID, Name: who.String(), RefreshToken: tokens.RefreshToken}
	k.IDToken, _ = tokens.Extra("id_token").(string)
	k.Expires = expiryOf(who)
	return k
}

// expiryOf returns when a token ends whose claims these are.
func expiryOf(who identity.Identity) time.Time {
	number, _ := who.Claims["exp"].(interface{ Float64() (float64, error) })
	if number == nil {
		return time.Time{}
	}
	seconds, _ := number.Float64()
	return time.Unix(int64(seconds), 0).UTC()
}

// Browser signs somebody in with a browser of this machine, which open is to show an address, and keeps the tokens for a gateway.
func (s *Store) Browser(ctx context.Context, server string, way signin.Way, open func(address string) error) (Kept, error) {
	return signIn(ctx, way, func(i *issuer) (Kept, error) { return s.browser(ctx, server, way, i, open) })
}

// signIn has somebody sign in, with offline_access if the issuer has it, and without if it refuses it to them.
func signIn(ctx context.Context, way signin.Way, by func(i *issuer) (Kept, error)) (Kept, error) {
	i, err := newIssuer(ctx, way.Issuer, way.ClientID, way.Scopes)
	if err != nil {
		return Kept{}, err
	}
	if !slices.Contains(i.metadata.Scopes, offlineAccess) || slices.Contains(way.Scopes, offlineAccess) {
		return by(i)
	}
	i.config.Scopes = append(slices.Clone(way.Scopes), offlineAccess)
	k, err := by(i)
	if ofOffline(err) {
		i.config.Scopes = way.Scopes
		return by(i)
	}
	return k, err
}

func (s *Store) browser(ctx context.Context, server string, way signin.Way, i *issuer, open func(address string) error) (Kept, error) {
	gateway, err := gatewayOf(server)
	if err != nil {
		return Kept{}, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return Kept{}, err
	}
	i.config.RedirectURL = "http://" + listener.Addr().String() + "/callback"
	ctx, cancel := context.WithTimeout(i.contextOf(ctx), signInLimit)
	defer cancel()
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	answers := make(chan answer)
	local := &http.Server{
		Handler:           &callback{host: listener.Addr().String(), state: state, issuer: way.Issuer, answers: answers, done: ctx.Done()},
		ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
	}
	go local.Serve(listener)
	defer func() {
		// The page that says so is still to be sent.
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if local.Shutdown(down) != nil {
			local.Close()
		}
	}()
	if err := open(i.config.AuthCodeURL(state, oauth2.SetAuthURLParam("nonce", nonce), oauth2.S256ChallengeOption(verifier))); err != nil {
		return Kept{}, err
	}
	var came answer
	select {
	case came = <-answers:
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return Kept{}, context.Cause(ctx)
		}
		return Kept{}, fmt.Errorf("nobody signed in within %v; --device is for a machine without a browser", signInLimit)
	}
	if came.err != nil {
		return Kept{}, came.err
	}
	tokens, err := i.config.Exchange(ctx, came.code, oauth2.VerifierOption(verifier))
	if err != nil {
		return Kept{}, explain(err)
	}
	token, _ := tokens.Extra("id_token").(string)
	who, err := i.provider.VerifySignIn(ctx, token, i.config.ClientID, nonce)
	if err != nil {
		return Kept{}, err
	}
	k := i.kept(tokens, who)
	return k, s.put(gateway, k)
}

// answer is what the provider sent the browser back with.
type answer struct {
	code string
	err  error
}

// callback takes one answer of the provider.
type callback struct {
	host, state, issuer string
	answers             chan<- answer
	done                <-chan struct{}
}

func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	query := r.URL.Query()
	// Whoever does not know the state, or comes by another name, ends nothing.
	if r.Host != c.host || r.Method != http.MethodGet || r.URL.Path != "/callback" || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(c.state)) != 1 {
		http.Error(w, "This is not the answer to a sign-in that is under way.", http.StatusBadRequest)
		return
	}
	came := answer{code: query.Get("code")}
	switch iss := query.Get("iss"); {
	case iss != "" && iss != c.issuer:
		came.err = errors.New("the answer is of another issuer")
	case query.Has("error"):
		came.err = refusal{query.Get("error"), query.Get("error_description")}
	case came.code == "":
		came.err = errors.New("the answer has no code")
	}
	select {
	case c.answers <- came:
		fmt.Fprintln(w, "Landfall: you can close this window. The command says whether you are signed in.")
	case <-c.done:
		http.Error(w, "Nobody waits for this any more.", http.StatusGone)
	}
}

// Show opens an address with the program of BROWSER, else with the system's.
func Show(address string) error {
	program := []string{"xdg-open"}
	if given := os.Getenv("BROWSER"); given != "" {
		program = strings.Fields(given)
	} else if runtime.GOOS == "darwin" {
		program = []string{"open"}
	}
	command := exec.Command(program[0], append(program[1:], address)...)
	if err := command.Start(); err != nil {
		return err
	}
	go command.Wait()
	return nil
}

// Device signs somebody in with a browser of another machine: prompt is told where, and which code to enter.
func (s *Store) Device(ctx context.Context, server string, way signin.Way, prompt func(address, code string)) (Kept, error) {
	return signIn(ctx, way, func(i *issuer) (Kept, error) { return s.device(ctx, server, i, prompt) })
}

func (s *Store) device(ctx context.Context, server string, i *issuer, prompt func(address, code string)) (Kept, error) {
	gateway, err := gatewayOf(server)
	if err != nil {
		return Kept{}, err
	}
	if i.metadata.DeviceURL == "" {
		return Kept{}, errors.New("the issuer has no codes for devices; sign in with a browser (without --device)")
	}
	ctx, cancel := context.WithTimeout(i.contextOf(ctx), 3*signInLimit)
	defer cancel()
	// Providers that ask for a proof key do so here too; others ignore it.
	verifier := oauth2.GenerateVerifier()
	device, err := i.config.DeviceAuth(ctx, oauth2.S256ChallengeOption(verifier))
	if err != nil {
		return Kept{}, explain(err)
	}
	where := device.VerificationURI
	if device.VerificationURIComplete != "" {
		where = device.VerificationURIComplete
	}
	if !identity.Secure(where) {
		return Kept{}, errors.New("the issuer asks to enter the code at an address that is not https")
	}
	prompt(identity.Shown(where), identity.Shown(device.UserCode))
	tokens, err := i.config.DeviceAccessToken(ctx, device, oauth2.VerifierOption(verifier))
	if err != nil {
		return Kept{}, explain(err)
	}
	token, _ := tokens.Extra("id_token").(string)
	who, err := i.provider.Verify(ctx, token)
	if err != nil {
		return Kept{}, err
	}
	k := i.kept(tokens, who)
	return k, s.put(gateway, k)
}

// Token returns the token for a gateway, refreshed if need be; "" if nobody has signed in there.
func (s *Store) Token(ctx context.Context, server string) (string, error) {
	gateway, err := gatewayOf(server)
	if err != nil {
		return "", nil // nobody can have signed in there
	}
	c, err := s.read()
	if err != nil {
		return "", err
	}
	k, signedIn := c.Gateways[gateway]
	if !signedIn {
		return "", nil
	}
	if time.Until(k.Expires) > early {
		return k.IDToken, nil
	}
	// A refresh token is often good for one use: commands that run side by side refresh one after the other.
	err = s.change(func(c *content) error {
		if k, signedIn = c.Gateways[gateway]; !signedIn {
			return fmt.Errorf("signed out meanwhile; %w", ErrAgain)
		}
		if time.Until(k.Expires) > early {
			return nil
		}
		fresh, err := refresh(ctx, k)
		if err != nil {
			return err
		}
		k = fresh
		c.Gateways[gateway] = fresh
		return nil
	})
	if err != nil && time.Until(k.Expires) > 0 {
		return k.IDToken, nil // it still holds, whatever is the matter with the issuer
	}
	return k.IDToken, err
}

func refresh(ctx context.Context, k Kept) (Kept, error) {
	if k.RefreshToken == "" {
		return k, fmt.Errorf("what %s gave has expired, and cannot be refreshed; %w", k.Issuer, ErrAgain)
	}
	i, err := newIssuer(ctx, k.Issuer, k.ClientID, nil)
	if err != nil {
		return k, err
	}
	ctx = i.contextOf(ctx)
	tokens, err := i.config.TokenSource(ctx, &oauth2.Token{RefreshToken: k.RefreshToken}).Token()
	if err != nil {
		return k, explain(err)
	}
	token, has := tokens.Extra("id_token").(string)
	if !has {
		return k, fmt.Errorf("%s gives no new token of who somebody is; %w", k.Issuer, ErrAgain)
	}
	who, err := i.provider.Verify(ctx, token)
	if err != nil {
		return k, err
	}
	fresh := i.kept(tokens, who)
	if fresh.RefreshToken == "" {
		fresh.RefreshToken = k.RefreshToken
	}
	return fresh, nil
}

// explain says what an issuer has refused. Nothing of it is a token.
func explain(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		return fmt.Errorf("%w; %w", refusal{refused.ErrorCode, refused.ErrorDescription}, ErrAgain)
	}
	var failed *url.Error
	if errors.As(err, &failed) {
		return fmt.Errorf("%w: %w", identity.ErrUnreachable, failed.Err)
	}
	return err
}

// Forget removes the tokens for a gateway, for all if server is "", and takes them back at their issuers. It returns for which
// gateways there were any. revoked is why an issuer may still take them.
func (s *Store) Forget(ctx context.Context, server string) (gateways []string, revoked, err error) {
	gateway := ""
	if server != "" {
		if gateway, err = gatewayOf(server); err != nil {
			return nil, nil, err
		}
	}
	var gone []Kept
	err = s.change(func(c *content) error {
		for name, k := range c.Gateways {
			if gateway == "" || name == gateway {
				gateways, gone = append(gateways, name), append(gone, k)
				delete(c.Gateways, name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(gateways)
	for _, k := range gone {
		revoked = errors.Join(revoked, revoke(ctx, k))
	}
	return gateways, revoked, nil
}

func revoke(ctx context.Context, k Kept) error {
	if k.RefreshToken == "" {
		return nil
	}
	i, err := newIssuer(ctx, k.Issuer, k.ClientID, nil)
	if err != nil {
		return err
	}
	if i.metadata.RevocationURL == "" {
		return fmt.Errorf("%s takes no tokens back", k.Issuer)
	}
	form := url.Values{"token": {k.RefreshToken}, "token_type_hint": {"refresh_token"}, "client_id": {k.ClientID}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, i.metadata.RevocationURL, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	reply, err := i.provider.Client.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s does not take the token back: %s", k.Issuer, reply.Status)
	}
	return nil
}
