// Package signintest is a provider of OpenID Connect for tests: zitadel's, in process, with people who sign in without a page.
package signintest

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Clients of a provider: Web has a secret, and its tokens have no names; Command is public.
const (
	Web     = "landfall"
	Secret  = "secret"
	Command = "landfall-command"
)

// Ada and Bob are who can sign in: the subjects of their tokens. Both have the group reviewers.
const (
	Ada = "id1"
	Bob = "id2"
)

// Provider is a running one.
type Provider struct {
	*httptest.Server
	// Store has what is under way: device codes are completed there.
	Store *storage.Storage
	// Away has it answer that it cannot.
	Away atomic.Bool
	// Lifetime is how long the tokens of Command last from now on.
	Lifetime atomic.Int64

	user    atomic.Value
	handler http.Handler
}

// New starts a provider that sends browsers back to some addresses. Ada is signed in there.
func New(t testing.TB, redirects ...string) *Provider {
	t.Helper()
	p, err := Start(redirects...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Start is New for a program.
func Start(redirects ...string) (*Provider, error) {
	p := &Provider{}
	p.SignIn(Ada)
	p.Lifetime.Store(int64(time.Hour))
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		p.handler.ServeHTTP(w, r)
	}))
	p.Store = storage.NewStorageWithClients(storage.NewUserStore(p.URL), map[string]*storage.Client{
		Web: storage.WebClient(Web, Secret, redirects...), Command: storage.NativeClient(Command, "http://127.0.0.1/callback"),
	})
	provider, err := op.NewProvider(&op.Config{
		CryptoKey: sha256.Sum256([]byte("test")), CodeMethodS256: true, GrantTypeRefreshToken: true,
		DeviceAuthorization: op.DeviceAuthorizationConfig{Lifetime: time.Minute, PollInterval: time.Second, UserFormPath: "/device", UserCode: op.UserCodeBase20},
	}, &store{p.Store, p}, op.StaticIssuer(p.URL), op.WithAllowInsecure())
	if err != nil {
		p.Close()
		return nil, err
	}
	back := op.AuthCallbackURL(provider)
	mux := http.NewServeMux()
	mux.Handle("/", provider)
	mux.Handle("/login/username", op.NewIssuerInterceptor(provider.IssuerFromRequest).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, user := r.FormValue("authRequestID"), storage.NewUserStore(p.URL).GetUserByID(p.user.Load().(string))
		if err := p.Store.CheckUsernamePassword(user.Username, user.Password, id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, back(r.Context(), id), http.StatusFound)
	}))
	p.handler = mux
	return p, nil
}

// SignIn has everybody who comes be one of the users.
func (p *Provider) SignIn(user string) { p.user.Store(user) }

// store is zitadel's for examples, with what it lacks.
type store struct {
	*storage.Storage
	provider *Provider
}

func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{c, time.Duration(s.provider.Lifetime.Load())}, nil
}

func (s *store) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string) error {
	info.AppendClaims("groups", []string{"reviewers"})
	return s.Storage.SetUserinfoFromRequest(ctx, info, token, scopes)
}

func (s *store) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	info.AppendClaims("groups", []string{"reviewers"})
	return s.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin)
}

// client lets Command sign in by a device code, and has names in its tokens.
type client struct {
	op.Client
	lifetime time.Duration
}

func (c client) command() bool                        { return c.GetID() == Command }
func (c client) IDTokenUserinfoClaimsAssertion() bool { return c.command() }

func (c client) IDTokenLifetime() time.Duration {
	if c.command() {
		return c.lifetime
	}
	return c.Client.IDTokenLifetime()
}

func (c client) GrantTypes() []oidc.GrantType {
	if c.command() {
		return append(c.Client.GrantTypes(), oidc.GrantTypeDeviceCode)
	}
	return c.Client.GrantTypes()
}
