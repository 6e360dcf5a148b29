package login

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/platform/identity"
	"landfall.build/services/gateway/signin"
	"landfall.build/services/gateway/signin/signintest"
)

const gateway = "https://landfall.example.com"

func newStore(t *testing.T) *Store {
	t.Helper()
	return &Store{filepath.Join(t.TempDir(), "landfall", "credentials.json")}
}

func wayOf(p *signintest.Provider) signin.Way {
	return signin.Way{Name: "company", Issuer: p.URL, ClientID: signintest.Command, Scopes: []string{"openid", "profile", "email"}}
}

// browse goes to an address and where it is sent.
func browse(address string) error {
	go func() {
		if answer, err := http.Get(address); err == nil {
			answer.Body.Close()
		}
	}()
	return nil
}

func TestSomebodySignsInByABrowser(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	k, err := s.Browser(t.Context(), gateway, wayOf(p), browse)
	if err != nil || k.Name != "Test User" || k.RefreshToken == "" {
		t.Fatalf("%+v %v", k, err)
	}
	token, err := s.Token(t.Context(), "HTTPS://Landfall.example.com/")
	if err != nil || token != k.IDToken {
		t.Errorf("%q %v", token, err)
	}
	for _, other := range []string{"https://landfall.example.com:8443", "http://landfall.example.com", "https://evil.example.com"} {
		if token, err := s.Token(t.Context(), other); err != nil || token != "" {
			t.Errorf("%s gets %q %v", other, token, err)
		}
	}
	for path, want := range map[string]os.FileMode{s.path: 0o600, filepath.Dir(s.path): 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	os.Chmod(s.path, 0o644)
	if _, err := s.Token(t.Context(), gateway); err == nil || !strings.Contains(err.Error(), "others can read") {
		t.Errorf("of a file that others can read: %v", err)
	}
}

func TestSomebodySignsInByACode(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	k, err := s.Device(t.Context(), gateway, wayOf(p), func(address, code string) {
		if !strings.HasPrefix(address, p.URL+"/device") || len(code) < 8 {
			t.Errorf("%s %s", address, code)
		}
		if err := p.Store.CompleteDeviceAuthorization(t.Context(), code, signintest.Bob); err != nil {
			t.Error(err)
		}
	})
	if err != nil || k.Name != "Test User2" {
		t.Fatalf("%+v %v", k, err)
	}
	if token, err := s.Token(t.Context(), gateway); err != nil || token == "" {
		t.Errorf("%q %v", token, err)
	}
	_, err = s.Device(t.Context(), gateway, wayOf(p), func(_, code string) { p.Store.DenyDeviceAuthorization(t.Context(), code) })
	if err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("denied: %v", err)
	}
}

// TestWhoGetsNoOfflineAccessSignsInWithoutIt: an issuer has the scope, and refuses it to this user or client.
func TestWhoGetsNoOfflineAccessSignsInWithoutIt(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	var asked []bool
	k, err := s.Browser(t.Context(), gateway, wayOf(p), func(address string) error {
		at, _ := url.Parse(address)
		query := at.Query()
		offline := strings.Contains(query.Get("scope"), "offline_access")
		if asked = append(asked, offline); offline {
			return browse(query.Get("redirect_uri") + "?error=invalid_scope&state=" + query.Get("state"))
		}
		return browse(address)
	})
	if err != nil || k.Name != "Test User" || !slices.Equal(asked, []bool{true, false}) {
		t.Errorf("%+v %v, asked %v", k, err, asked)
	}
}

// TestAWrongScopeIsRefusedOnce: where offline_access is not what was added, nobody is asked again.
func TestAWrongScopeIsRefusedOnce(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	way := wayOf(p)
	way.Scopes = append(way.Scopes, "offline_access")
	asked := 0
	_, err := s.Browser(t.Context(), gateway, way, func(address string) error {
		asked++
		at, _ := url.Parse(address)
		return browse(at.Query().Get("redirect_uri") + "?error=invalid_scope&state=" + at.Query().Get("state"))
	})
	if err == nil || !strings.Contains(err.Error(), "invalid_scope") || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// TestOnlyTheAnswerToThisSignInCounts: others that reach the command's port neither sign it in nor end it.
func TestOnlyTheAnswerToThisSignInCounts(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	k, err := s.Browser(t.Context(), gateway, wayOf(p), func(address string) error {
		at, _ := url.Parse(address)
		query := at.Query()
		back, state := query.Get("redirect_uri"), query.Get("state")
		if !strings.HasPrefix(back, "http://127.0.0.1:") || query.Get("code_challenge_method") != "S256" || query.Get("nonce") == "" {
			t.Errorf("%v", at)
		}
		for name, try := range map[string]struct{ method, address, host string }{
			"no state":         {"GET", back + "?code=x", ""},
			"another state":    {"GET", back + "?code=x&state=y", ""},
			"another path":     {"GET", strings.Replace(back, "/callback", "/", 1) + "?code=x&state=" + state, ""},
			"a form":           {"POST", back + "?code=x&state=" + state, ""},
			"another name":     {"GET", back + "?code=x&state=" + state, "evil.example.com"},
			"localhost's name": {"GET", back + "?code=x&state=" + state, "localhost"},
		} {
			r, _ := http.NewRequest(try.method, try.address, nil)
			if r.Host = try.host; try.host == "" {
				r.Host = r.URL.Host
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				continue
			}
			text, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if answer.StatusCode != http.StatusBadRequest || strings.Contains(string(text), "x&") {
				t.Errorf("%s: %s %s", name, answer.Status, text)
			}
		}
		return browse(address)
	})
	if err != nil || k.Name != "Test User" {
		t.Errorf("%+v %v", k, err)
	}
}

func TestARefusalOrAnotherIssuerSignsNobodyIn(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	for more, want := range map[string]string{
		"&error=access_denied&error_description=no%1b[31m": "access_denied", "&code=x&iss=https://evil.example.com": "another issuer", "": "no code", "&code=x": "refuses",
	} {
		_, err := s.Browser(t.Context(), gateway, wayOf(p), func(address string) error {
			at, _ := url.Parse(address)
			return browse(at.Query().Get("redirect_uri") + "?state=" + at.Query().Get("state") + more)
		})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", more, err)
		}
	}
	// The code of somebody else's sign-in is of another proof key.
	_, err := s.Browser(t.Context(), gateway, wayOf(p), func(address string) error {
		at, _ := url.Parse(address)
		query := at.Query()
		state := query.Get("state")
		query.Set("state", "mallory")
		query.Set("code_challenge", strings.Repeat("x", 43))
		at.RawQuery = query.Encode()
		client := &http.Client{CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if r.URL.Query().Get("state") == "mallory" && r.URL.Query().Has("code") {
				return http.ErrUseLastResponse
			}
			return nil
		}}
		answer, err := client.Get(at.String())
		if err != nil {
			return err
		}
		answer.Body.Close()
		back, _ := url.Parse(answer.Header.Get("Location"))
		if !back.Query().Has("code") {
			return fmt.Errorf("no code: %v", back)
		}
		return browse(query.Get("redirect_uri") + "?state=" + state + "&code=" + url.QueryEscape(back.Query().Get("code")))
	})
	if err == nil || !strings.Contains(err.Error(), "refuses") {
		t.Errorf("with the code of another: %v", err)
	}
	if token, err := s.Token(t.Context(), gateway); token != "" || err != nil {
		t.Errorf("signed in: %q %v", token, err)
	}
}

func TestTokensAreRefreshed(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	p.Lifetime.Store(int64(early / 2))
	k, err := s.Browser(t.Context(), gateway, wayOf(p), browse)
	if err != nil {
		t.Fatal(err)
	}
	p.Away.Store(true)
	if token, err := s.Token(t.Context(), gateway); err != nil || token != k.IDToken {
		t.Errorf("the provider is away, the token still holds: %q %v", token, err)
	}
	p.Away.Store(false)
	p.Lifetime.Store(int64(time.Hour))
	var all sync.WaitGroup
	tokens := make([]string, 8)
	for i := range tokens {
		all.Go(func() {
			var err error
			if tokens[i], err = s.Token(t.Context(), gateway); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, token := range tokens {
		if token == k.IDToken || token != tokens[0] {
			t.Errorf("%d bytes, as before: %v", len(token), token == k.IDToken)
		}
	}
	c, err := s.read()
	if err != nil || c.Gateways[gateway].RefreshToken == k.RefreshToken || c.Gateways[gateway].RefreshToken == "" {
		t.Errorf("the refresh token is the same: %v", err)
	}
}

func TestWhatCannotBeRefreshedSaysSo(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	k, err := s.Browser(t.Context(), gateway, wayOf(p), browse)
	if err != nil {
		t.Fatal(err)
	}
	k.Expires = time.Now().Add(-time.Minute)
	for name, change := range map[string]func(*Kept){
		"without a refresh token": func(k *Kept) { k.RefreshToken = "" },
		"with one that was used":  func(k *Kept) { k.RefreshToken = "used" },
	} {
		expired := k
		change(&expired)
		s.put(gateway, expired)
		if _, err := s.Token(t.Context(), gateway); !errors.Is(err, ErrAgain) || strings.Contains(err.Error(), k.IDToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.put(gateway, k)
	p.Away.Store(true)
	if _, err := s.Token(t.Context(), gateway); !errors.Is(err, identity.ErrUnreachable) {
		t.Errorf("while the provider is away: %v", err)
	}
}

func TestWhoSignsOutLeavesNothing(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	k, err := s.Browser(t.Context(), gateway, wayOf(p), browse)
	if err != nil {
		t.Fatal(err)
	}
	s.put("https://other.example.com", Kept{Issuer: p.URL, ClientID: signintest.Command})
	gone, revoked, err := s.Forget(t.Context(), gateway)
	if err != nil || revoked != nil || len(gone) != 1 || gone[0] != gateway {
		t.Fatalf("%v %v %v", gone, revoked, err)
	}
	if text, err := os.ReadFile(s.path); err != nil || strings.Contains(string(text), k.RefreshToken) || !strings.Contains(string(text), "other.example.com") {
		t.Errorf("%s %v", text, err)
	}
	k.Expires = time.Time{}
	if _, err := refresh(t.Context(), k); !errors.Is(err, ErrAgain) {
		t.Errorf("the issuer still takes the token: %v", err)
	}
	if gone, _, _ := s.Forget(t.Context(), gateway); len(gone) != 0 {
		t.Errorf("again: %v", gone)
	}
	if gone, _, _ := s.Forget(t.Context(), ""); len(gone) != 1 {
		t.Errorf("all: %v", gone)
	}
}

func TestNobodySignsInWhereOthersReadAlong(t *testing.T) {
	p, s := signintest.New(t), newStore(t)
	if _, err := s.Browser(t.Context(), "http://landfall.example.com", wayOf(p), browse); err == nil || !strings.Contains(err.Error(), "plain HTTP") {
		t.Errorf("a gateway: %v", err)
	}
	way := wayOf(p)
	way.Issuer = "http://id.example.com"
	if _, err := s.Browser(t.Context(), gateway, way, browse); err == nil || !strings.Contains(err.Error(), "not an https address") {
		t.Errorf("an issuer: %v", err)
	}
}
