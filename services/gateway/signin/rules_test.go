package signin_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/go-jose/go-jose/v4"

	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/signin"
	"landfall.build/services/gateway/signin/signintest"
)

// TestRulesSayWhatWhoHasSignedInMayDo, a person by a session and a workload by its platform's token, on the API itself.
func TestRulesSayWhatWhoHasSignedInMayDo(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}})
	path := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, keys, 0o600); err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, now: time.Now()}
	var handler http.Handler
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	defer g.Close()
	g.provider = signintest.New(t, g.URL+"/v1/signin/company/callback")
	company, github := configuration.NewIssuer(), configuration.NewIssuer()
	t.Setenv("LANDFALL_TEST_CLIENT_SECRET", signintest.Secret)
	company.URL, company.ClientID, company.ClientSecret.Environment = g.provider.URL, signintest.Web, "LANDFALL_TEST_CLIENT_SECRET"
	github.URL, github.Audiences, github.KeysFile = "https://token.actions.githubusercontent.com", []string{"landfall"}, path
	settings := configuration.Access{
		Mode: configuration.AccessRequired, Logs: "viewer", Rate: 50,
		Sessions: configuration.Sessions{Idle: time.Hour, Lifetime: time.Hour},
		Issuers:  map[string]configuration.Issuer{"company": company, "github": github},
		Rules: []configuration.AccessRule{
			{Role: "viewer", Issuer: "company", Any: []configuration.ClaimSet{{All: map[string]string{"groups": "reviewers"}}}},
			{Role: "operator", Issuer: "github", Queues: []string{"main"}, Any: []configuration.ClaimSet{{All: map[string]string{"repository": "octo/shop", "ref": "refs/heads/main"}}}},
		},
	}
	issuers, err := identity.NewIssuers(settings, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	service := signin.New(signin.Options{Issuers: issuers, Sessions: settings.Sessions, Clock: g.clock})
	handler, err = api.NewHandler(api.Options{Backend: apitest.New("main"), SignIn: service, Access: settings})
	if err != nil {
		t.Fatal(err)
	}
	token := func(claims map[string]any) string {
		for name, value := range map[string]any{"iss": github.URL, "aud": "landfall", "sub": "repo:octo/shop:ref:refs/heads/main", "repository": "octo/shop", "ref": "refs/heads/main", "exp": time.Now().Add(time.Hour).Unix()} {
			if _, given := claims[name]; !given {
				claims[name] = value
			}
		}
		text, _ := json.Marshal(claims)
		return "Bearer " + oidctest.SignIDToken(key, "k", "RS256", string(text))
	}
	b, stranger := g.browser(), g.browser()
	b.do("GET", "/v1/signin/company/start?to=/v1/whoami", "")
	page := []string{"Sec-Fetch-Site", "same-origin"}
	for _, c := range []struct {
		name, method, path string
		by                 *browser
		headers            []string
		want               int
	}{
		{"nobody reads", "GET", "/v1/queues/main", stranger, nil, http.StatusUnauthorized},
		{"nobody by the name of somebody reads", "GET", "/v1/queues/main", stranger, []string{api.UserHeader, "ada"}, http.StatusUnauthorized},
		{"anybody asks how to sign in", "GET", "/v1/signin", stranger, nil, http.StatusOK},
		{"somebody of the group reads", "GET", "/v1/queues/main", b, nil, http.StatusOK},
		{"and pauses nothing", "POST", "/v1/queues/main/pause", b, page, http.StatusForbidden},
		{"the mainline's job pauses", "POST", "/v1/queues/main/pause", stranger, []string{"Authorization", token(map[string]any{})}, http.StatusOK},
		{"a branch's job does not", "POST", "/v1/queues/main/pause", stranger, []string{"Authorization", token(map[string]any{"ref": "refs/heads/topic"})}, http.StatusForbidden},
		{"another repository's job does not", "POST", "/v1/queues/main/pause", stranger, []string{"Authorization", token(map[string]any{"repository": "evil/shop"})}, http.StatusForbidden},
		{"a job with a token for another program is nobody", "POST", "/v1/queues/main/pause", stranger, []string{"Authorization", token(map[string]any{"aud": "other"})}, http.StatusUnauthorized},
		{"a job that has the people's group does not read as they do", "GET", "/v1/queues/main", stranger, []string{"Authorization", token(map[string]any{"ref": "x", "groups": "reviewers"})}, http.StatusForbidden},
		{"a wrong token is not made up for by a session", "GET", "/v1/queues/main", b, []string{"Authorization", "Bearer x.y.z"}, http.StatusUnauthorized},
	} {
		if answer, text := c.by.do(c.method, c.path, "", c.headers...); answer.StatusCode != c.want {
			t.Errorf("%s: %s %s", c.name, answer.Status, text)
		}
	}
	var who api.WhoAmI
	_, text := b.do("GET", "/v1/whoami", "")
	if err := json.Unmarshal([]byte(text), &who); err != nil || who.Issuer != g.provider.URL || who.Subject != signintest.Ada || who.Name != "Test User" || who.Roles["main"] != access.Viewer.String() {
		t.Errorf("%s %v", text, err)
	}
	b.do("POST", "/v1/signout", "", page...)
	if answer, text := b.do("GET", "/v1/queues/main", ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("signed out: %s %s", answer.Status, text)
	}
}
