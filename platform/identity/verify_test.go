package identity

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/go-jose/go-jose/v4"

	"landfall.build/platform/configuration"
)

// testKey is made once: making RSA keys takes long.
var testKey = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(2048) })

func newRSA(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

// issuer signs tokens and serves its keys.
type issuer struct {
	*httptest.Server
	mu    sync.Mutex
	oidc  oidctest.Server
	away  atomic.Bool
	asked atomic.Int64
}

func newIssuer(t testing.TB, keys ...oidctest.PublicKey) *issuer {
	if len(keys) == 0 {
		keys = []oidctest.PublicKey{{PublicKey: testKey().Public(), KeyID: "k", Algorithm: "RS256"}}
	}
	i := &issuer{oidc: oidctest.Server{PublicKeys: keys}}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.asked.Add(1); i.away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		i.oidc.ServeHTTP(w, r)
	}))
	i.oidc.SetIssuer(i.URL)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(keys ...oidctest.PublicKey) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.oidc.PublicKeys = keys
}

// claims are those of a token that is valid for an hour, with others in place of some.
func (i *issuer) claims(others map[string]any) string {
	all := map[string]any{"iss": i.URL, "sub": "7", "aud": "landfall", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "name": "Ada"}
	maps.Copy(all, others)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	text, _ := json.Marshal(all)
	return string(text)
}

func (i *issuer) sign(others map[string]any) string {
	return oidctest.SignIDToken(testKey(), "k", "RS256", i.claims(others))
}

// verifying returns what verifies the tokens of issuers, without pauses between questions.
func verifying(t testing.TB, settings configuration.Issuer, others ...configuration.Issuer) *Issuers {
	t.Helper()
	access := configuration.Access{Issuers: map[string]configuration.Issuer{}}
	for n, one := range append([]configuration.Issuer{settings}, others...) {
		one.Claims = configuration.NewIssuer().Claims
		access.Issuers[fmt.Sprintf("i%d", n)] = one
	}
	s, err := NewIssuers(access, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.providers {
		p.keys.pause, p.metadata.pause = 0, 0
	}
	return s
}

// unsigned returns a token of a header and claims as they are, with a signature as it is.
func unsigned(header, claims string, signature []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(header)) + "." + encode([]byte(claims)) + "." + encode(signature)
}

func byHMAC(header, claims string, secret []byte) string {
	text := unsigned(header, claims, nil)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(strings.TrimSuffix(text, ".")))
	return unsigned(header, claims, mac.Sum(nil))
}

func TestATokenOfAnIssuerSaysWhoSomebodyIs(t *testing.T) {
	i := newIssuer(t)
	s := verifying(t, configuration.Issuer{URL: i.URL, ClientID: "web", Audiences: []string{"landfall"}})
	for name, others := range map[string]map[string]any{
		"for an audience": nil, "for the client": {"aud": "web"}, "for several": {"aud": []string{"x", "landfall"}},
		"of a clock that is ahead": {"nbf": time.Now().Add(time.Minute).Unix()},
	} {
		got, err := s.Verify(t.Context(), i.sign(others))
		if err != nil || got.Issuer != i.URL || got.Subject != "7" || got.Name != "Ada" {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestEveryKindOfPublicKeyIsTaken(t *testing.T) {
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	for algorithm, key := range map[string]crypto.Signer{"RS256": testKey(), "PS512": testKey(), "ES256": ec, "EdDSA": ed} {
		i := newIssuer(t, oidctest.PublicKey{PublicKey: key.Public(), KeyID: "k", Algorithm: algorithm})
		s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
		if _, err := s.Verify(t.Context(), oidctest.SignIDToken(key, "k", algorithm, i.claims(nil))); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
}

func TestForgedAndStolenTokensAreRefused(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}}, configuration.Issuer{URL: other.URL, Audiences: []string{"elsewhere"}})
	good := i.sign(nil)
	parts := strings.Split(good, ".")
	stranger, weak := newRSA(2048), newRSA(1024)
	i.serve(oidctest.PublicKey{PublicKey: testKey().Public(), KeyID: "k", Algorithm: "RS256"}, oidctest.PublicKey{PublicKey: weak.Public(), KeyID: "weak", Algorithm: "RS256"})
	der, _ := x509.MarshalPKIXPublicKey(testKey().Public())
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	jwk, _ := json.Marshal(jose.JSONWebKey{Key: testKey().Public(), KeyID: "k"})
	own, _ := json.Marshal(jose.JSONWebKey{Key: stranger.Public(), KeyID: "k"})
	embedded := func() string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: stranger, KeyID: "k"}}, &jose.SignerOptions{EmbedJWK: true})
		if err != nil {
			t.Fatal(err)
		}
		signed, _ := signer.Sign([]byte(i.claims(nil)))
		text, _ := signed.CompactSerialize()
		return text
	}
	// like signs claims with one more, whose name differs from another's in upper and lower case alone.
	like := func(change map[string]any, claim string) string {
		return oidctest.SignIDToken(testKey(), "k", "RS256", strings.TrimSuffix(i.claims(change), "}")+","+claim+"}")
	}
	full := func() string {
		signed, err := jose.ParseSignedCompact(good, algorithms)
		if err != nil {
			t.Fatal(err)
		}
		return signed.FullSerialize()
	}
	for name, token := range map[string]string{
		"nothing":                                   "",
		"no token":                                  "hello",
		"of two parts":                              parts[0] + "." + parts[1],
		"of four parts":                             good + ".x",
		"of empty parts":                            "..",
		"as JSON":                                   full(),
		"expired":                                   i.sign(map[string]any{"exp": time.Now().Add(-time.Second).Unix()}),
		"without an end":                            i.sign(map[string]any{"exp": nil}),
		"not valid yet":                             i.sign(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"without a signature":                       parts[0] + "." + parts[1] + ".",
		"alg none":                                  unsigned(`{"alg":"none"}`, i.claims(nil), nil),
		"alg None":                                  unsigned(`{"alg":"None","kid":"k"}`, i.claims(nil), []byte("x")),
		"alg none with another's signature":         unsigned(`{"alg":"none","kid":"k"}`, i.claims(nil), []byte(parts[2])),
		"no alg":                                    unsigned(`{"kid":"k"}`, i.claims(nil), nil),
		"of a wrong key":                            oidctest.SignIDToken(stranger, "k", "RS256", i.claims(nil)),
		"of a key that the issuer does not have":    oidctest.SignIDToken(stranger, "other", "RS256", i.claims(nil)),
		"of a wrong key without its name":           oidctest.SignIDToken(stranger, "", "RS256", i.claims(nil)),
		"of a weak key that the issuer has":         oidctest.SignIDToken(weak, "weak", "RS256", i.claims(nil)),
		"of a key that it brings along":             embedded(),
		"of a key at an address that it names":      unsigned(`{"alg":"RS256","kid":"k","jku":"`+other.URL+`/keys"}`, i.claims(nil), []byte("x")),
		"HS256 with the public key (PEM)":           byHMAC(`{"alg":"HS256","kid":"k"}`, i.claims(nil), public),
		"HS256 with the public key (DER)":           byHMAC(`{"alg":"HS256","kid":"k"}`, i.claims(nil), der),
		"HS256 with the public key (JWK)":           byHMAC(`{"alg":"HS256","kid":"k"}`, i.claims(nil), jwk),
		"HS256 with the modulus":                    byHMAC(`{"alg":"HS256"}`, i.claims(nil), testKey().N.Bytes()),
		"HS256 with a key that it brings along":     byHMAC(`{"alg":"HS256","jwk":`+string(own)+`}`, i.claims(nil), own),
		"by another algorithm than its key's":       oidctest.SignIDToken(testKey(), "k", "PS256", i.claims(nil)),
		"with an extension that nobody understands": unsigned(`{"alg":"RS256","kid":"k","crit":["exp"],"exp":1}`, i.claims(nil), []byte("x")),
		"for another program":                       i.sign(map[string]any{"aud": "elsewhere"}),
		"for nobody":                                i.sign(map[string]any{"aud": nil}),
		"for an empty audience":                     i.sign(map[string]any{"aud": ""}),
		"for a part of the audience":                i.sign(map[string]any{"aud": "landfall2"}),
		"with a claim like the audience":            like(map[string]any{"aud": "elsewhere"}, `"Aud":"landfall"`),
		"with a claim like its end":                 like(map[string]any{"exp": 1}, `"EXP":99999999999`),
		"with a claim like its beginning":           like(map[string]any{"nbf": 99999999999}, `"nBf":1`),
		"with a claim like its issuer":              like(nil, `"I\u017fs":"`+i.URL+`"`),
		"of another issuer":                         i.sign(map[string]any{"iss": "https://elsewhere"}),
		"of an issuer for another audience":         i.sign(map[string]any{"iss": other.URL}),
		"of no issuer":                              i.sign(map[string]any{"iss": nil}),
		"of an issuer but for a slash":              i.sign(map[string]any{"iss": i.URL + "/"}),
		"with claims that were changed":             parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(i.claims(map[string]any{"sub": "8"}))) + "." + parts[2],
		"of nobody":                                 i.sign(map[string]any{"sub": nil}),
		"for signing out":                           i.sign(map[string]any{"events": map[string]any{logoutEvent: map[string]any{}}}),
		"of too many bytes":                         i.sign(map[string]any{"x": strings.Repeat("x", MaxToken)}),
	} {
		got, err := s.Verify(t.Context(), token)
		if !errors.Is(err, ErrRefused) || errors.Is(err, ErrUnreachable) || got.Subject != "" {
			t.Errorf("%s: %+v %v", name, got, err)
			continue
		}
		if len(err.Error()) > 300 || strings.Contains(err.Error(), "elsewhere") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Verify(t.Context(), good); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestATokenIsRefusedOnceItHasExpired(t *testing.T) {
	i := newIssuer(t)
	s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	token := i.sign(nil)
	for range 2 {
		if _, err := s.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	s.providers[0].now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if _, err := s.Verify(t.Context(), token); !errors.Is(err, ErrRefused) {
		t.Errorf("an hour later: %v", err)
	}
}

func TestKeysAreRotatedWithoutARestart(t *testing.T) {
	i := newIssuer(t)
	s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	old := i.sign(nil)
	if _, err := s.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	next := newRSA(2048)
	i.serve(oidctest.PublicKey{PublicKey: next.Public(), KeyID: "next", Algorithm: "RS256"})
	if _, err := s.Verify(t.Context(), old); err != nil {
		t.Errorf("before the key was seen to be gone: %v", err)
	}
	if _, err := s.Verify(t.Context(), oidctest.SignIDToken(next, "next", "RS256", i.claims(nil))); err != nil {
		t.Errorf("by the new key: %v", err)
	}
	if _, err := s.Verify(t.Context(), old); !errors.Is(err, ErrRefused) {
		t.Errorf("by the key that is gone: %v", err)
	}
}

func TestAKeyThatTheIssuerTakesBackIsGoneWithTheNextLook(t *testing.T) {
	i := newIssuer(t)
	s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	old := i.sign(nil)
	if _, err := s.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	i.serve(oidctest.PublicKey{PublicKey: newRSA(2048).Public(), KeyID: "next", Algorithm: "RS256"})
	if err := s.providers[0].Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(t.Context(), old); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
}

func TestWhileTheIssuerIsAwayKnownKeysGoOn(t *testing.T) {
	i := newIssuer(t)
	s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	i.away.Store(true)
	if _, err := s.Verify(t.Context(), i.sign(nil)); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrRefused) || strings.Count(err.Error(), ErrUnreachable.Error()) != 1 {
		t.Errorf("at the start: %v", err)
	}
	i.away.Store(false)
	if _, err := s.Verify(t.Context(), i.sign(nil)); err != nil {
		t.Errorf("once it is there: %v", err)
	}
	i.away.Store(true)
	s.providers[0].Refresh(t.Context())
	if _, err := s.Verify(t.Context(), i.sign(map[string]any{"sub": "8"})); err != nil {
		t.Errorf("a new token by a known key: %v", err)
	}
	unknown := oidctest.SignIDToken(newRSA(2048), "next", "RS256", i.claims(nil))
	if _, err := s.Verify(t.Context(), unknown); !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrRefused) {
		t.Errorf("by a key that is not known: %v", err)
	}
	i.away.Store(false)
	if _, err := s.Verify(t.Context(), unknown); !errors.Is(err, ErrRefused) {
		t.Errorf("by a key that is not known, once it is there: %v", err)
	}
}

func TestWrongTokensDoNotHaveTheIssuerAskedForEach(t *testing.T) {
	i := newIssuer(t)
	s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	p := s.providers[0]
	p.keys.pause, p.metadata.pause = time.Hour, time.Hour
	good, wrong := i.sign(nil), oidctest.SignIDToken(newRSA(2048), "other", "RS256", i.claims(nil))
	if _, err := s.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	before := i.asked.Load()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 250 {
				if _, err := s.Verify(t.Context(), wrong); !errors.Is(err, ErrRefused) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if asked := i.asked.Load() - before; asked > 0 {
		t.Errorf("asked %d times within the pause", asked)
	}
	if _, err := s.Verify(t.Context(), good); err != nil {
		t.Error(err)
	}
}

func TestASilentIssuerHoldsNobodyUpWhoseKeyIsKnown(t *testing.T) {
	i := newIssuer(t)
	s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	if _, err := s.Verify(t.Context(), i.sign(nil)); err != nil {
		t.Fatal(err)
	}
	i.mu.Lock() // it takes requests, and does not answer
	defer i.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() {
		_, err := s.Verify(ctx, oidctest.SignIDToken(newRSA(2048), "other", "RS256", i.claims(nil)))
		waiting <- err
	}()
	for i.asked.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	if _, err := s.Verify(t.Context(), i.sign(map[string]any{"sub": "9"})); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-waiting; !errors.Is(err, ErrUnreachable) {
		t.Error(err)
	}
}

func TestKeysOfAFileNeedNoIssuer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	write := func(key *rsa.PrivateKey, id string) {
		text, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: id}}})
		os.WriteFile(path, text, 0o600)
	}
	write(testKey(), "k")
	i := &issuer{Server: &httptest.Server{URL: "https://kubernetes.default.svc"}}
	s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}, KeysFile: path})
	if _, err := s.Verify(t.Context(), i.sign(nil)); err != nil {
		t.Error(err)
	}
	next := newRSA(2048)
	write(next, "next")
	if _, err := s.Verify(t.Context(), oidctest.SignIDToken(next, "next", "RS256", i.claims(nil))); err != nil {
		t.Errorf("once the file has changed: %v", err)
	}
}

func TestAnIssuerOfAPrivateAuthorityIsTrustedByItsCertificate(t *testing.T) {
	i := newIssuer(t)
	secure := httptest.NewTLSServer(i.Config.Handler)
	defer secure.Close()
	i.oidc.SetIssuer(secure.URL)
	path := filepath.Join(t.TempDir(), "ca.pem")
	os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600)
	token := i.sign(map[string]any{"iss": secure.URL})
	if _, err := verifying(t, configuration.Issuer{URL: secure.URL, Audiences: []string{"landfall"}}).Verify(t.Context(), token); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without it: %v", err)
	}
	if _, err := verifying(t, configuration.Issuer{URL: secure.URL, Audiences: []string{"landfall"}, CAFile: path}).Verify(t.Context(), token); err != nil {
		t.Errorf("with it: %v", err)
	}
	os.WriteFile(path, []byte("nothing"), 0o600)
	if _, err := NewIssuers(configuration.Access{Issuers: map[string]configuration.Issuer{"a": {URL: secure.URL, CAFile: path}}}, slog.Default()); err == nil {
		t.Error("a file without certificates was taken")
	}
}

func TestAnAnswerWithoutAnEndIsCutOff(t *testing.T) {
	// Far more than is read, and what is under way in buffers.
	const end = maxAnswer + 64<<20
	written := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for more := make([]byte, 1<<16); n < end; n += len(more) {
			if _, err := w.Write(more); err != nil {
				break
			}
		}
		written <- n
	}))
	defer server.Close()
	client, _ := NewClient(nil)
	client.Timeout = 0
	if _, err := Discover(t.Context(), client, server.URL); err == nil {
		t.Error("it is taken")
	}
	if n := <-written; n >= end {
		t.Errorf("all of %d bytes were read", n)
	}
}

func TestAnIssuerDoesNotLeadToPlainHTTP(t *testing.T) {
	server := httptest.NewServer(nil)
	defer server.Close()
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":"http://id.example.com/keys","token_endpoint":"https://id.example.com/token"}`, server.URL)
	})
	client, _ := NewClient(nil)
	if _, err := Discover(t.Context(), client, server.URL); err == nil || !strings.Contains(err.Error(), "jwks_uri") {
		t.Error(err)
	}
	server.Config.Handler = http.RedirectHandler("http://id.example.com/", http.StatusFound)
	if _, err := Discover(t.Context(), client, server.URL); err == nil || !strings.Contains(err.Error(), "not https") {
		t.Error(err)
	}
}

// TestAnIssuerElsewhereDoesNotLeadToThisMachine, where programs listen that believe whoever reaches them.
func TestAnIssuerElsewhereDoesNotLeadToThisMachine(t *testing.T) {
	var reached atomic.Int64
	here := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer here.Close()
	answer := http.RedirectHandler(here.URL, http.StatusFound)
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer.ServeHTTP(w, r) }))
	defer elsewhere.Close()
	client, err := NewClient(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: elsewhere.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Discover(t.Context(), client, elsewhere.URL); err == nil || reached.Load() > 0 {
		t.Errorf("by a redirect: %v, and %d requests came", err, reached.Load())
	}
	answer = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q,"token_endpoint":"https://id.example.com/token"}`, elsewhere.URL, here.URL)
	})
	if _, err := Discover(t.Context(), client, elsewhere.URL); err == nil || !strings.Contains(err.Error(), "jwks_uri") {
		t.Errorf("by its metadata: %v", err)
	}
}

// TestWorkloadsAreKnownByTheTokensOfTheirPlatforms, with claims as each platform documents them.
func TestWorkloadsAreKnownByTheTokensOfTheirPlatforms(t *testing.T) {
	for _, c := range []struct {
		platform, subject string
		claims            map[string]any
		has               map[string]any
	}{
		{"GitHub Actions", "repo:octo/shop:ref:refs/heads/main", map[string]any{
			"jti": "1", "repository": "octo/shop", "repository_owner": "octo", "repository_id": "74", "ref": "refs/heads/main", "event_name": "push",
			"job_workflow_ref": "octo/shop/.github/workflows/land.yml@refs/heads/main", "runner_environment": "github-hosted",
		}, map[string]any{"repository": "octo/shop"}},
		{"GitLab", "project_path:octo/shop:ref_type:branch:ref:main", map[string]any{
			"aud": []string{"landfall"}, "project_path": "octo/shop", "project_id": "22", "namespace_path": "octo", "ref_protected": "true", "pipeline_source": "push", "user_login": "ada",
		}, map[string]any{"ref_protected": "true"}},
		{"Buildkite", "organization:octo:pipeline:shop:ref:refs/heads/main:commit:9f3:step:land", map[string]any{
			"organization_slug": "octo", "pipeline_slug": "shop", "build_number": 1, "build_branch": "main", "agent_id": "0185",
		}, map[string]any{"build_number": json.Number("1")}},
		{"Kubernetes", "system:serviceaccount:ci:lander", map[string]any{
			"aud": []string{"landfall"}, "kubernetes.io": map[string]any{"namespace": "ci", "serviceaccount": map[string]any{"name": "lander", "uid": "e8"}, "pod": map[string]any{"name": "x"}},
		}, map[string]any{"kubernetes.io.namespace": "ci", "kubernetes.io.serviceaccount.name": "lander"}},
	} {
		t.Run(c.platform, func(t *testing.T) {
			i := newIssuer(t)
			s := verifying(t, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
			c.claims["sub"], c.claims["name"] = c.subject, nil
			got, err := s.Verify(t.Context(), i.sign(c.claims))
			if err != nil || got.Subject != c.subject || got.String() != c.subject {
				t.Fatalf("%+v %v", got, err)
			}
			for name, want := range c.has {
				if got.Claim(name) != want {
					t.Errorf("%s is %v", name, got.Claim(name))
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	i := newIssuer(b)
	s := verifying(b, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	token := i.sign(map[string]any{"groups": []string{"a", "b", "c"}})
	for name, forget := range map[string]bool{"known": false, "new": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if forget {
					s.providers[0].verified = newCache()
				}
				if _, err := s.Verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	i := newIssuer(f)
	s := verifying(f, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	good := i.sign(nil)
	if _, err := s.Verify(f.Context(), good); err != nil {
		f.Fatal(err)
	}
	i.away.Store(true)
	s.providers[0].keys.pause = time.Hour
	parts := strings.Split(good, ".")
	f.Add(parts[0], parts[1], parts[2])
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)), parts[1], "")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, header, payload, signature string) {
		token := header + "." + payload + "." + signature
		got, err := s.Verify(t.Context(), token)
		switch {
		case err == nil && token != good:
			t.Errorf("%q was taken: %+v", token, got)
		case err != nil && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrUnreachable), err != nil && len(err.Error()) > 300:
			t.Errorf("%q: %v", token, err)
		}
	})
}

// FuzzHeadersAndClaims reads headers and claims as they are, which FuzzVerify seldom gets to.
func FuzzHeadersAndClaims(f *testing.F) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader) // signs thirty times as fast as one of RSA
	if err != nil {
		f.Fatal(err)
	}
	i := newIssuer(f, oidctest.PublicKey{PublicKey: testKey().Public(), KeyID: "k", Algorithm: "RS256"},
		oidctest.PublicKey{PublicKey: key.Public(), KeyID: "e", Algorithm: "ES256"})
	s := verifying(f, configuration.Issuer{URL: i.URL, Audiences: []string{"landfall"}})
	if _, err := s.Verify(f.Context(), i.sign(nil)); err != nil {
		f.Fatal(err)
	}
	s.providers[0].keys.pause = time.Hour
	f.Add(`{"alg":"RS256","kid":"k"}`, i.claims(nil), false)
	f.Add(`{"alg":"HS256","crit":["b64"],"b64":false}`, `{"iss":"`+i.URL+`","exp":1e300,"aud":{}}`, false)
	f.Add(`{"alg":"RS256"}`, `{"iss":"`+i.URL+`","aud":["landfall"],"exp":99999999999,"sub":"x","_claim_names":{"a":"b"}}`, true)
	f.Fuzz(func(t *testing.T, header, claims string, sign bool) {
		token := unsigned(header, claims, []byte("x"))
		if sign {
			token = oidctest.SignIDToken(key, "e", "ES256", claims)
		}
		got, err := s.Verify(t.Context(), token)
		switch {
		case err == nil && (!sign || got.Issuer != i.URL || got.Subject == ""):
			t.Errorf("%q %q was taken: %+v", header, claims, got)
		case err != nil && !errors.Is(err, ErrRefused), err != nil && len(err.Error()) > 300:
			t.Errorf("%q %q: %v", header, claims, err)
		}
	})
}

func FuzzKeys(f *testing.F) {
	text, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: testKey().Public(), KeyID: "k"}}})
	f.Add(string(text))
	f.Add(`{"keys":[{"kty":"oct","k":"AA"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"RSA","n":"AA","e":"AA"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		set, err := readKeys(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, key := range set {
			if !key.IsPublic() || !strong(key.Key) {
				t.Errorf("%q gives %T", text, key.Key)
			}
		}
	})
}
