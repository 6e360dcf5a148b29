package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"landfall.build/platform/configuration"
)

// maxAnswer bounds what is read of an issuer's answer.
const maxAnswer = 1 << 20

// Metadata is what an issuer says of itself (OpenID Connect Discovery).
type Metadata struct {
	AuthorizationURL string   `json:"authorization_endpoint"`
	TokenURL         string   `json:"token_endpoint"`
	DeviceURL        string   `json:"device_authorization_endpoint"`
	RevocationURL    string   `json:"revocation_endpoint"`
	EndSessionURL    string   `json:"end_session_endpoint"`
	UserInfoURL      string   `json:"userinfo_endpoint"`
	KeysURL          string   `json:"jwks_uri"`
	AuthMethods      []string `json:"token_endpoint_auth_methods_supported"`
	Scopes           []string `json:"scopes_supported"`
}

// Discover asks an issuer what it says of itself.
func Discover(ctx context.Context, client *http.Client, issuer string) (Metadata, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, client), issuer)
	if err != nil {
		return Metadata{}, err
	}
	var m Metadata
	if err := provider.Claims(&m); err != nil {
		return Metadata{}, err
	}
	for name, text := range map[string]string{
		"authorization_endpoint": m.AuthorizationURL, "token_endpoint": m.TokenURL, "device_authorization_endpoint": m.DeviceURL,
		"revocation_endpoint": m.RevocationURL, "userinfo_endpoint": m.UserInfoURL, "end_session_endpoint": m.EndSessionURL, "jwks_uri": m.KeysURL,
	} {
		if text != "" && !leads(issuer, text) {
			return Metadata{}, fmt.Errorf("its %s is not an https address", name)
		}
	}
	return m, nil
}

// Endpoint returns the addresses of the issuer for a client with a secret, or without.
func (m Metadata) Endpoint(secret bool) oauth2.Endpoint {
	style := oauth2.AuthStyleInParams
	if secret && (len(m.AuthMethods) == 0 || slices.Contains(m.AuthMethods, "client_secret_basic")) {
		style = oauth2.AuthStyleInHeader
	}
	return oauth2.Endpoint{AuthURL: m.AuthorizationURL, TokenURL: m.TokenURL, DeviceAuthURL: m.DeviceURL, AuthStyle: style}
}

// Secure reports whether nobody between here and an address can read along: it is https, or on this machine.
func Secure(address string) bool {
	at, err := url.Parse(address)
	return err == nil && at.Host != "" && (at.Scheme == "https" || at.Scheme == "http" && configuration.IsLoopback(at.Host))
}

// leads reports whether an issuer may lead from one address to another: to one that is secure, and from elsewhere to no program of this
// machine.
func leads(from, to string) bool {
	at, err := url.Parse(to)
	return err == nil && Secure(to) && (at.Scheme == "https" || strings.HasPrefix(from, "http:"))
}

// NewClient returns an HTTP client for an issuer, whose answers are bounded in size and time. authorities are certificates of
// those to trust, in PEM; nil for the system's.
func NewClient(authorities []byte) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if authorities != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authorities) {
			return nil, errors.New("it has no certificate")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &http.Client{
		Transport: boundedTransport{transport},
		Timeout:   fetchLimit,
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || !leads(via[0].URL.String(), r.URL.String()) {
				return errors.New("it redirects too often, or to an address that is not https")
			}
			return nil
		},
	}, nil
}

// boundedTransport gives answers an end.
type boundedTransport struct{ http.RoundTripper }

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	}
	return answer, err
}

// Provider is one issuer of the configuration. It is safe for concurrent use.
type Provider struct {
	// Name is its name in the configuration.
	Name     string
	Settings configuration.Issuer
	// Client is for requests to it.
	Client *http.Client

	metadata *remote[Metadata]
	keys     *remote[keySet]
	verified *cache
	now      func() time.Time
}

func newProvider(name string, settings configuration.Issuer) (*Provider, error) {
	p := &Provider{Name: name, Settings: settings, verified: newCache(), now: time.Now}
	var authorities []byte
	if settings.CAFile != "" {
		var err error
		if authorities, err = os.ReadFile(settings.CAFile); err != nil {
			return nil, fmt.Errorf("access.issuers.%s.ca_file: %w", name, err)
		}
	}
	client, err := NewClient(authorities)
	if err != nil {
		return nil, fmt.Errorf("access.issuers.%s.ca_file: %w", name, err)
	}
	p.Client = client
	p.metadata = newRemote(func(ctx context.Context) (Metadata, error) { return Discover(ctx, client, settings.URL) })
	p.keys = newRemote(p.fetchKeys)
	return p, nil
}

// Metadata returns what the issuer says of itself, from memory if that is there. The error is ErrUnreachable.
func (p *Provider) Metadata(ctx context.Context) (Metadata, error) { return p.metadata.get(ctx) }

// Reach asks the issuer whether it answers, unless it was asked a few seconds ago. The error is ErrUnreachable.
func (p *Provider) Reach(ctx context.Context) error {
	_, err := p.metadata.again(ctx)
	return err
}

// Problem returns why nobody can sign in by the issuer, "" if there is nothing in the way.
func (p *Provider) Problem() string {
	p.metadata.mu.Lock()
	defer p.metadata.mu.Unlock()
	if p.metadata.version == 0 && p.metadata.err != nil {
		return fmt.Sprintf("%v: %s", ErrUnreachable, Shown(p.metadata.err.Error()))
	}
	return ""
}

// EndSession returns where somebody signs out at the issuer itself, "" if it has no such place.
func (p *Provider) EndSession() string {
	m, _ := p.metadata.known()
	at, err := url.Parse(m.EndSessionURL)
	if err != nil || m.EndSessionURL == "" {
		return ""
	}
	query := at.Query()
	query.Set("client_id", p.Settings.ClientID)
	at.RawQuery = query.Encode()
	return at.String()
}

// fetchKeys reads the keys from the file of the settings, or asks the issuer.
func (p *Provider) fetchKeys(ctx context.Context) (keySet, error) {
	if p.Settings.KeysFile != "" {
		file, err := os.Open(p.Settings.KeysFile)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readKeys(file)
	}
	m, err := p.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.KeysURL, nil)
	if err != nil {
		return nil, err
	}
	answer, err := p.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its keys: %s", answer.Status)
	}
	return readKeys(answer.Body)
}
