package client

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/signin"
	"landfall.build/services/gateway/signin/signintest"
)

func TestCommandsAreOfWhoeverHasSignedIn(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("BROWSER", os.Args[0])
	t.Setenv("LANDFALL_TEST_BROWSER", "yes")
	provider := signintest.New(t)
	issuer := configuration.NewIssuer()
	issuer.URL, issuer.CommandClientID = provider.URL, signintest.Command
	issuers, err := identity.NewIssuers(configuration.Access{Issuers: map[string]configuration.Issuer{"company": issuer}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	service := signin.New(signin.Options{Issuers: issuers})
	handler, err := api.NewHandler(api.Options{Backend: apitest.New("main"), SignIn: service, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who, err := service.Of(r); r.URL.Path == "/v1/queues" {
			mu.Lock()
			switch {
			case err != nil:
				asked = append(asked, err.Error())
			case who == nil:
				asked = append(asked, "nobody")
			default:
				asked = append(asked, who.String())
			}
			mu.Unlock()
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	do := func(want string, args ...string) {
		t.Helper()
		out, progress, code := run(append(args, "--server", server.URL)...)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%v: exit %d\n%s%s", args, code, out, progress)
		}
		if strings.Contains(out+progress, "eyJ") {
			t.Errorf("%v prints a token: %s%s", args, out, progress)
		}
	}
	do("", "queue")
	do("Signed in at "+server.URL+" as Test User.", "login")
	do("", "queue")
	do("", "status")
	do(`"refreshed": true`, "login", "--json")
	do("Signed out at", "logout")
	do("", "queue")
	do("You were not signed in.", "logout")
	do(`"signed_out": []`, "logout", "--all", "--json")
	if got := strings.Join(asked, ", "); got != "nobody, Test User, Test User, nobody" {
		t.Errorf("the gateway was asked by %s", got)
	}
	if out, progress, code := run("login", "--issuer", "nobody", "--server", server.URL); code != ExitFailed || !strings.Contains(progress, "--issuer: company") {
		t.Errorf("exit %d\n%s%s", code, out, progress)
	}
}

func TestATokenIsNotSentOn(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("it was asked with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	c, err := New(server.URL, "ada")
	if err != nil {
		t.Fatal(err)
	}
	c.token = func(context.Context) (string, error) { return "secret", nil }
	if _, err := c.Queues(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}
