package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/signin"
)

// strict is a provider that takes no code.
type strict struct{ asked atomic.Int64 }

func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/token" {
		s.asked.Add(1)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
	} else {
		fmt.Fprint(w, strings.ReplaceAll(`{"issuer":"@","authorization_endpoint":"@/authorize","token_endpoint":"@/token","jwks_uri":"@/keys"}`, "@", "https://id.example.com"))
	}
	return w.Result(), nil
}

// TestWhoComesBackWithWrongCodesHasTheProviderAskedSeldom: anybody could have it asked without end, and keep others from signing in. No time
// passes in the test, so that no more may be asked meanwhile.
func TestWhoComesBackWithWrongCodesHasTheProviderAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issuer := configuration.NewIssuer()
		issuer.URL, issuer.ClientID = "https://id.example.com", "landfall"
		issuers, err := identity.NewIssuers(configuration.Access{Issuers: map[string]configuration.Issuer{"company": issuer}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		provider := &strict{}
		issuers.Providers()[0].Client.Transport = provider
		h, err := api.NewHandler(api.Options{Backend: apitest.New("main"), SignIn: signin.New(signin.Options{Issuers: issuers, Sessions: configuration.Sessions{Idle: time.Hour, Lifetime: time.Hour}})})
		if err != nil {
			t.Fatal(err)
		}
		get := func(address, path string, cookies ...*http.Cookie) *http.Response {
			r := httptest.NewRequest("GET", "http://localhost"+path, nil)
			r.RemoteAddr = address
			for _, c := range cookies {
				r.AddCookie(c)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Result()
		}
		try := func(address string) int {
			begun := get(address, "/v1/signin/company/start")
			to, err := url.Parse(begun.Header.Get("Location"))
			if err != nil || begun.StatusCode != http.StatusSeeOther {
				t.Fatal(begun.Status, err)
			}
			return get(address, "/v1/signin/company/callback?code=wrong&state="+to.Query().Get("state"), begun.Cookies()...).StatusCode
		}
		got := map[int]int{}
		for range 300 {
			got[try("192.0.2.1:1234")]++
		}
		if provider.asked.Load() != 100 || got[http.StatusUnauthorized] != 100 || got[http.StatusTooManyRequests] != 200 {
			t.Errorf("the provider was asked %d times; the answers were %v", provider.asked.Load(), got)
		}
		if status := try("192.0.2.2:1234"); status != http.StatusUnauthorized || provider.asked.Load() != 101 {
			t.Errorf("from another address: %d", status)
		}
	})
}

// TestNobodySendsALongRequestToSignOut: whoever has proven nothing could have the gateway keep 256 KiB for each connection.
func TestNobodySendsALongRequestToSignOut(t *testing.T) {
	g := serveGuarded(t)
	for length, want := range map[int]int{0: 200, 900: 200, 2000: 413} {
		if status, _ := g.codeOf("POST", "/v1/signout", "{"+strings.Repeat(" ", length)+"}", http.Header{}); status != want {
			t.Errorf("%d bytes: %d, want %d", length, status, want)
		}
	}
}
