package signin_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/signin"
	"landfall.build/services/gateway/signin/signintest"
)

// gateway is the API with a provider, and says at /who who sends a request.
type gateway struct {
	t testing.TB
	*httptest.Server
	provider *signintest.Provider
	service  *signin.Service
	mu       sync.Mutex
	now      time.Time
}

func (g *gateway) clock() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.now }

func (g *gateway) wait(d time.Duration) { g.mu.Lock(); defer g.mu.Unlock(); g.now = g.now.Add(d) }

// serve starts a gateway, over TLS or not.
func serve(t testing.TB, secure bool) *gateway {
	t.Helper()
	g := &gateway{t: t, now: time.Now()}
	var handler http.Handler
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	if secure {
		g.Server.StartTLS()
	} else {
		g.Server.Start()
	}
	t.Cleanup(g.Close)
	g.provider = signintest.New(t, g.URL+"/v1/signin/company/callback")
	issuer := configuration.NewIssuer()
	t.Setenv("LANDFALL_TEST_CLIENT_SECRET", signintest.Secret+"\n")
	issuer.URL, issuer.ClientID, issuer.ClientSecret.Environment, issuer.CommandClientID = g.provider.URL, signintest.Web, "LANDFALL_TEST_CLIENT_SECRET", signintest.Command
	machines := configuration.NewIssuer()
	machines.URL, machines.Audiences = "https://machines.example.com", []string{"landfall"}
	issuers, err := identity.NewIssuers(configuration.Access{Issuers: map[string]configuration.Issuer{"company": issuer, "machines": machines}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g.service = signin.New(signin.Options{Issuers: issuers, Sessions: configuration.Sessions{Idle: time.Hour, Lifetime: 8 * time.Hour}, Clock: g.clock})
	routes, err := api.NewHandler(api.Options{Backend: apitest.New("main"), SignIn: g.service, Hosts: []string{"landfall.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/who" {
			routes.ServeHTTP(w, r)
			return
		}
		who, err := g.service.Of(r)
		switch {
		case err != nil:
			fmt.Fprintf(w, "refused: %v", err)
		case who == nil:
			fmt.Fprint(w, "nobody")
		default:
			fmt.Fprintf(w, "%s <%s> %v", who.Name, who.Email, who.Claims[identity.GroupsClaim])
		}
	})
	return g
}

const (
	isAda = "Test User <test-user@zitadel.ch> [reviewers]"
	isBob = "Test User2 <test-user2@zitadel.ch> [reviewers]"
)

// browser keeps cookies, and goes where it is sent.
type browser struct {
	g *gateway
	*http.Client
	// visited are the addresses that it was sent to.
	visited []*url.URL
}

func (g *gateway) browser() *browser {
	jar, _ := cookiejar.New(nil)
	b := &browser{g: g}
	b.Client = &http.Client{Jar: jar, Timeout: 2 * time.Minute, Transport: g.Server.Client().Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		b.visited = append(b.visited, r.URL)
		if len(via) > 10 {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

// do sends a request; headers are in pairs, Host among them.
func (b *browser) do(method, address, body string, headers ...string) (*http.Response, string) {
	b.g.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.g.URL + address
	}
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		b.g.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := b.Do(r)
	if err != nil {
		b.g.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		b.g.t.Fatal(err)
	}
	return answer, string(text)
}

func (b *browser) who() string { _, text := b.do("GET", "/who", ""); return text }

// stay has the browser go nowhere by itself.
func (b *browser) stay() {
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
}

// comeBack begins to sign in and returns the address that the provider sends the browser back to, without going there.
func (b *browser) comeBack() string {
	b.g.t.Helper()
	follow := b.CheckRedirect
	defer func() { b.CheckRedirect = follow }()
	b.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if strings.HasSuffix(r.URL.Path, "/callback") && strings.HasPrefix(r.URL.String(), b.g.URL) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	answer, text := b.do("GET", "/v1/signin/company/start", "")
	back := answer.Header.Get("Location")
	if !strings.Contains(back, "code=") {
		b.g.t.Fatalf("not sent back with a code: %s %q", answer.Status, text)
	}
	return back
}

// cookies returns the cookies of the gateway, by name.
func (b *browser) cookies() map[string]string {
	at, _ := url.Parse(b.g.URL)
	all := map[string]string{}
	for _, c := range b.Jar.Cookies(at) {
		all[c.Name] = c.Value
	}
	return all
}

func TestSomebodySignsInAndOut(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
			g := serve(t, secure)
			b := g.browser()
			if got := b.who(); got != "nobody" {
				t.Fatal(got)
			}
			answer, _ := b.do("GET", "/v1/signin/company/start?to=/who", "")
			if answer.Request.URL.Path != "/who" || b.who() != isAda {
				t.Fatalf("at %v: %s", answer.Request.URL, b.who())
			}
			name := "landfall"
			if secure {
				name = "__Host-landfall"
			}
			if all := b.cookies(); len(all) != 1 || len(all[name]) < 20 {
				t.Errorf("the cookies are %v", all)
			}
			answer, text := b.do("POST", "/v1/signout", "{}", "Sec-Fetch-Site", "same-origin")
			if answer.StatusCode != http.StatusOK || !strings.Contains(text, `"ended":1`) || !strings.Contains(text, g.provider.URL) {
				t.Errorf("%s %s", answer.Status, text)
			}
			if got := b.who(); got != "nobody" || len(b.cookies()) != 0 {
				t.Errorf("%s %v", got, b.cookies())
			}
		})
	}
}

func TestCookiesAreForThisSiteAlone(t *testing.T) {
	for _, secure := range []bool{false, true} {
		g := serve(t, secure)
		b := g.browser()
		back := b.comeBack()
		b.stay()
		answer, _ := b.do("GET", back, "")
		cookies := answer.Cookies()
		if len(cookies) != 2 {
			t.Fatal(cookies)
		}
		for _, c := range cookies {
			if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.Secure != secure || strings.HasPrefix(c.Name, "__Host-") != secure {
				t.Errorf("tls=%v: %+v", secure, c)
			}
		}
		if answer.Header.Get("Referrer-Policy") != "no-referrer" || answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v", answer.Header)
		}
	}
}

func TestTheProviderIsAskedForACodeWithAProofKeyOfThisBrowser(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	b.stay()
	answer, _ := b.do("GET", "/v1/signin/company/start", "")
	at, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	query := at.Query()
	for name, want := range map[string]string{"response_type": "code", "code_challenge_method": "S256", "client_id": signintest.Web, "scope": "openid profile email", "redirect_uri": g.URL + "/v1/signin/company/callback"} {
		if query.Get(name) != want {
			t.Errorf("%s is %q", name, query.Get(name))
		}
	}
	if len(query.Get("state")) < 20 || len(query.Get("nonce")) < 20 || len(query.Get("code_challenge")) < 40 || strings.Contains(at.String(), signintest.Secret+"&") {
		t.Errorf("%v", at)
	}
	if strings.Contains(fmt.Sprint(b.cookies()), query.Get("state")) {
		t.Error("the cookie shows the state")
	}
}

func TestACodeWithoutItsProofKeyIsWorthNothing(t *testing.T) {
	g := serve(t, false)
	back, _ := url.Parse(g.browser().comeBack()) // somebody reads along
	answer, err := http.PostForm(g.provider.URL+"/oauth/token", url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "redirect_uri": {g.URL + "/v1/signin/company/callback"},
		"client_id": {signintest.Web}, "client_secret": {signintest.Secret}, "code_verifier": {strings.Repeat("x", 43)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode < 400 {
		t.Errorf("the provider gave tokens for it: %s", answer.Status)
	}
}

// TestNobodyIsSignedInAsSomebodyElse: the answer of the provider counts in the browser that has begun, once.
func TestNobodyIsSignedInAsSomebodyElse(t *testing.T) {
	g := serve(t, false)
	mallory := g.browser()
	with := func(address string, change func(url.Values)) string {
		at, _ := url.Parse(address)
		query := at.Query()
		change(query)
		at.RawQuery = query.Encode()
		return at.String()
	}
	for name, try := range map[string]func(victim *browser) string{
		"the answer to somebody else": func(*browser) string { return mallory.comeBack() },
		"the same, where the victim has begun too": func(victim *browser) string {
			victim.comeBack()
			return mallory.comeBack()
		},
		"the code of somebody else with the victim's state": func(victim *browser) string {
			code, _ := url.Parse(mallory.comeBack())
			return with(victim.comeBack(), func(q url.Values) { q.Set("code", code.Query().Get("code")) })
		},
		"no state": func(victim *browser) string { return with(victim.comeBack(), func(q url.Values) { q.Del("state") }) },
		"another state": func(victim *browser) string {
			return with(victim.comeBack(), func(q url.Values) { q.Set("state", "x") })
		},
		"no code": func(victim *browser) string { return with(victim.comeBack(), func(q url.Values) { q.Del("code") }) },
		"a code of no end": func(victim *browser) string {
			return with(victim.comeBack(), func(q url.Values) { q.Set("code", strings.Repeat("x", 10_000)) })
		},
		"another issuer": func(victim *browser) string {
			return with(victim.comeBack(), func(q url.Values) { q.Set("iss", "https://evil.example.com") })
		},
		"a refusal": func(victim *browser) string {
			return with(victim.comeBack(), func(q url.Values) { q.Set("error", "access_denied\x1b[31m") })
		},
		"too late":          func(victim *browser) string { back := victim.comeBack(); g.wait(11 * time.Minute); return back },
		"without a browser": func(*browser) string { return g.URL + "/v1/signin/company/callback?code=x&state=" },
	} {
		victim := g.browser()
		answer, text := victim.do("GET", try(victim), "")
		if answer.StatusCode != http.StatusUnauthorized || victim.who() != "nobody" || strings.Contains(text, `\u001b`) && !strings.Contains(text, `\\`) {
			t.Errorf("%s: %s %s, and then %s", name, answer.Status, text, victim.who())
		}
		if len(answer.Cookies()) > 0 {
			t.Errorf("%s: a cookie was set", name)
		}
	}
}

func TestAnAnswerCountsOnce(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	back := b.comeBack()
	attempt := b.cookies()["landfall-signin"]
	if b.do("GET", back, ""); b.who() != isAda {
		t.Fatal(b.who())
	}
	again := g.browser()
	answer, text := again.do("GET", back, "", "Cookie", "landfall-signin="+attempt)
	if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "used before") || again.who() != "nobody" {
		t.Errorf("%s %s", answer.Status, text)
	}
}

// TestTheTokenOfAnotherSignInIsRefused: what the provider gives has another nonce, as if somebody had put in a token of before.
func TestTheTokenOfAnotherSignInIsRefused(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	b.stay()
	start, _ := b.do("GET", "/v1/signin/company/start", "")
	at, _ := url.Parse(start.Header.Get("Location"))
	query := at.Query()
	query.Set("nonce", "of-another-sign-in")
	at.RawQuery = query.Encode()
	victim := g.browser()
	victim.Jar = b.Jar
	answer, text := victim.do("GET", at.String(), "")
	if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "another sign-in") || victim.who() != "nobody" {
		t.Errorf("%s %s", answer.Status, text)
	}
}

// TestASessionIsNewWithEverySignIn: one that somebody has planted is not the one of whoever signs in.
func TestASessionIsNewWithEverySignIn(t *testing.T) {
	g := serve(t, false)
	mallory := g.browser()
	g.provider.SignIn(signintest.Bob)
	mallory.do("GET", "/v1/signin/company/start", "")
	planted := mallory.cookies()["landfall"]
	victim := g.browser()
	at, _ := url.Parse(g.URL)
	for _, value := range []string{planted, "chosen-by-mallory-chosen-by"} {
		victim.Jar.SetCookies(at, []*http.Cookie{{Name: "landfall", Value: value, Path: "/"}})
		g.provider.SignIn(signintest.Ada)
		victim.do("GET", "/v1/signin/company/start", "")
		if victim.who() != isAda || victim.cookies()["landfall"] == value {
			t.Errorf("%s %v", victim.who(), victim.cookies())
		}
		if got := mallory.who(); got != "nobody" {
			t.Errorf("the session that was planted is of %s", got)
		}
	}
	// Two cookies of the name, as a page of another path could plant one, are none.
	if _, got := g.browser().do("GET", "/who", "", "Cookie", "landfall="+victim.cookies()["landfall"]+"; landfall="+planted); got != "nobody" {
		t.Error(got)
	}
}

func TestASessionOfPlainHTTPIsNoneOverTLS(t *testing.T) {
	g := serve(t, true)
	b := g.browser()
	b.do("GET", "/v1/signin/company/start", "")
	id := b.cookies()["__Host-landfall"]
	if _, got := g.browser().do("GET", "/who", "", "Cookie", "landfall="+id); got != "nobody" {
		t.Error(got)
	}
	if _, got := g.browser().do("GET", "/who", "", "Cookie", "__Host-landfall="+id); got != isAda {
		t.Error(got)
	}
}

// TestAPageOverPlainHTTPDoesNothingWithASession: whoever is on the network between makes one of this very host.
func TestAPageOverPlainHTTPDoesNothingWithASession(t *testing.T) {
	g := serve(t, true)
	b := g.browser()
	b.do("GET", "/v1/signin/company/start", "")
	host := strings.TrimPrefix(g.URL, "https://")
	if answer, text := b.do("POST", "/v1/signout", "", "Origin", "http://"+host); answer.StatusCode < 400 || b.who() != isAda {
		t.Errorf("%s %s", answer.Status, text)
	}
	if answer, text := b.do("POST", "/v1/signout", "", "Origin", "https://"+host); answer.StatusCode != http.StatusOK || b.who() != "nobody" {
		t.Errorf("its own page: %s %s", answer.Status, text)
	}
}

// TestPagesOfOtherSitesDoNothingWithASession, whatever of what browsers send they leave out.
func TestPagesOfOtherSitesDoNothingWithASession(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	b.do("GET", "/v1/signin/company/start", "")
	host := strings.TrimPrefix(g.URL, "http://")
	for name, headers := range map[string][]string{
		"a form of another site":               {"Origin", "https://evil.example.com", "Sec-Fetch-Site", "cross-site"},
		"a form of another site, without kind": {"Origin", "https://evil.example.com"},
		"of a name below":                      {"Origin", "http://evil." + host, "Sec-Fetch-Site", "same-site"},
		"of another port":                      {"Origin", "http://127.0.0.1:1"},
		"of no origin":                         {"Origin", "null"},
		"of nothing":                           {},
	} {
		answer, text := b.do("POST", "/v1/signout", `{"everywhere":true}`, headers...)
		if answer.StatusCode < 400 || b.who() != isAda {
			t.Errorf("%s: %s %s", name, answer.Status, text)
		}
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}} {
		if _, got := b.do("GET", "/who", "", headers...); !strings.HasPrefix(got, "refused") {
			t.Errorf("%v: %s", headers, got)
		}
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, {}} {
		if _, got := b.do("GET", "/who", "", headers...); got != isAda {
			t.Errorf("%v: %s", headers, got)
		}
	}
	if answer, text := b.do("GET", "/v1/signout", ""); answer.StatusCode != http.StatusMethodNotAllowed || b.who() != isAda {
		t.Errorf("%s %s", answer.Status, text)
	}
	if answer, text := b.do("POST", "/v1/signout", "", "Origin", g.URL); answer.StatusCode != http.StatusOK || b.who() != "nobody" {
		t.Errorf("its own page: %s %s", answer.Status, text)
	}
}

func TestNobodyIsSentToAnotherSite(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	b.stay()
	for _, to := range []string{
		"https://evil.example.com", "//evil.example.com", "///evil.example.com", `/\evil.example.com`, `\\evil.example.com`, "/\t/evil.example.com", "/\n/evil.example.com",
		"javascript:alert(1)", "evil.example.com", "http:evil", " /x", "/x y", "/%", "/" + strings.Repeat("x", 1000),
	} {
		if answer, text := b.do("GET", "/v1/signin/company/start?to="+url.QueryEscape(to), ""); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %s %s", to, answer.Status, text)
		}
	}
	for _, to := range []string{"/", "/queues/main?a=b#c", "/x/..//y", "/a:b"} {
		if answer, text := b.do("GET", "/v1/signin/company/start?to="+url.QueryEscape(to), ""); answer.StatusCode != http.StatusSeeOther {
			t.Errorf("%q: %s %s", to, answer.Status, text)
		}
	}
	// The state cannot say where to either, nor can the answer.
	back := b.comeBack()
	if answer, _ := b.do("GET", back+"&to=https://evil.example.com", ""); answer.Header.Get("Location") != "/" {
		t.Errorf("sent to %s", answer.Header.Get("Location"))
	}
}

func TestANameThatWasBoundToThisAddressGetsNothing(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	b.do("GET", "/v1/signin/company/start", "")
	b.stay()
	for _, path := range []string{"/v1/signin", "/v1/signin/company/start", "/v1/signin/company/callback?code=x&state=y"} {
		answer, text := b.do("GET", path, "", "Host", "evil.example.com")
		if answer.StatusCode != http.StatusForbidden || len(answer.Cookies()) > 0 || strings.Contains(text, g.provider.URL) {
			t.Errorf("%s: %s %s", path, answer.Status, text)
		}
	}
	if _, got := b.do("GET", "/who", "", "Host", "evil.example.com"); got != "nobody" {
		t.Errorf("a session for another name: %s", got)
	}
}

func TestOverPlainHTTPPeopleSignInOnTheirOwnMachineOnly(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	b.stay()
	for _, host := range []string{"landfall.example.com", "10.0.0.1:7878"} {
		answer, text := b.do("GET", "/v1/signin/company/start", "", "Host", host, "X-Forwarded-Proto", "https")
		if answer.StatusCode != http.StatusForbidden || !strings.Contains(text, "https") {
			t.Errorf("%s: %s %s", host, answer.Status, text)
		}
	}
}

func TestATokenInAnAddressIsNotTaken(t *testing.T) {
	g := serve(t, false)
	for _, query := range []string{"access_token=x", "id_token=x", "a=b&access_token=x"} {
		if _, got := g.browser().do("GET", "/who?"+query, ""); !strings.Contains(got, "refused") {
			t.Errorf("%s: %s", query, got)
		}
	}
}

func TestASessionEnds(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	b.do("GET", "/v1/signin/company/start", "")
	for range 9 { // used every 50 minutes
		g.wait(50 * time.Minute)
		if got := b.who(); got != isAda {
			t.Fatal(got)
		}
	}
	if g.wait(50 * time.Minute); b.who() != "nobody" {
		t.Error("it lasts longer than it may")
	}
	b.do("GET", "/v1/signin/company/start", "")
	if g.wait(61 * time.Minute); b.who() != "nobody" {
		t.Error("it lasts although nobody uses it")
	}
}

func TestSignedOutEverywhereIsEverywhere(t *testing.T) {
	g := serve(t, false)
	var of []*browser
	for _, user := range []string{signintest.Ada, signintest.Ada, signintest.Ada, signintest.Bob} {
		g.provider.SignIn(user)
		b := g.browser()
		b.do("GET", "/v1/signin/company/start", "")
		of = append(of, b)
	}
	if _, text := of[0].do("POST", "/v1/signout", `{"everywhere":true}`, "Sec-Fetch-Site", "same-origin"); !strings.Contains(text, `"ended":3`) {
		t.Error(text)
	}
	for i, want := range []string{"nobody", "nobody", "nobody", isBob} {
		if got := of[i].who(); got != want {
			t.Errorf("browser %d: %s", i, got)
		}
	}
}

func TestSessionsOfOnePersonAreBounded(t *testing.T) {
	g := serve(t, false)
	first := g.browser()
	first.do("GET", "/v1/signin/company/start", "")
	g.provider.SignIn(signintest.Bob)
	bob := g.browser()
	bob.do("GET", "/v1/signin/company/start", "")
	g.provider.SignIn(signintest.Ada)
	for range 20 {
		g.wait(time.Second)
		g.browser().do("GET", "/v1/signin/company/start", "")
	}
	if first.who() != "nobody" || bob.who() != isBob {
		t.Errorf("%s, %s", first.who(), bob.who())
	}
}

func TestWhileTheProviderIsAwayWhoIsSignedInGoesOn(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	b.do("GET", "/v1/signin/company/start", "")
	g.provider.Away.Store(true)
	if got := b.who(); got != isAda {
		t.Error(got)
	}
	other := g.browser()
	back := func() string {
		g.provider.Away.Store(false)
		defer g.provider.Away.Store(true)
		return other.comeBack()
	}()
	answer, text := other.do("GET", back, "")
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "provider_unreachable") || !strings.Contains(text, "does not answer") {
		t.Errorf("%s %s", answer.Status, text)
	}
}

// TestWhoCannotSignInReadsWhy although the gateway knows where its provider was: the browser would be sent to something that is not there.
func TestWhoCannotSignInReadsWhy(t *testing.T) {
	g := serve(t, false)
	b := g.browser()
	if b.do("GET", "/v1/signin/company/start", ""); b.who() != isAda {
		t.Fatal(b.who())
	}
	g.provider.Away.Store(true)
	// The provider is asked once in five seconds at most.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		answer, text := g.browser().do("GET", "/v1/signin/company/start", "")
		if answer.StatusCode == http.StatusServiceUnavailable && strings.Contains(text, "does not answer") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s %s", answer.Status, text)
		}
	}
}

func TestAGatewayStartsWithoutItsProvider(t *testing.T) {
	g := serve(t, false)
	g.provider.Away.Store(true)
	b := g.browser()
	answer, text := b.do("GET", "/v1/signin/company/start", "")
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, "does not answer") {
		t.Errorf("%s %s", answer.Status, text)
	}
	var ways api.SignInWays
	_, text = b.do("GET", "/v1/signin", "")
	if err := json.Unmarshal([]byte(text), &ways); err != nil || len(ways.Issuers) != 1 || !strings.Contains(ways.Issuers[0].Problem, "does not answer") {
		t.Errorf("%v %s", err, text)
	}
}

func TestTheGatewaySaysHowToSignIn(t *testing.T) {
	g := serve(t, false)
	_, text := g.browser().do("GET", "/v1/signin", "")
	want := fmt.Sprintf(`{"issuers":[{"name":"company","issuer":%q,"start":"/v1/signin/company/start","client_id":"landfall-command","scopes":["openid","profile","email"]}]}`, g.provider.URL)
	if strings.TrimSpace(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
	for _, path := range []string{"/v1/signin/nobody/start", "/v1/signin/machines/start", "/v1/signin/machines/callback"} {
		if answer, text := g.browser().do("GET", path, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s %s", path, answer.Status, text)
		}
	}
}

func TestHeadersAndCookiesWithoutAnEndAreRefused(t *testing.T) {
	g := serve(t, false)
	server := api.NewServer(t.Context(), g.Config.Handler, slog.New(slog.DiscardHandler))
	bounded := httptest.NewUnstartedServer(nil)
	bounded.Config = server
	bounded.Start()
	defer bounded.Close()
	for name, header := range map[string][2]string{
		"a cookie":     {"Cookie", "landfall=" + strings.Repeat("x", 1<<20)},
		"a token":      {"Authorization", "Bearer " + strings.Repeat("x", 1<<20)},
		"a long token": {"Authorization", "Bearer " + strings.Repeat("x", 20<<10)},
		"cookies":      {"Cookie", strings.Repeat("landfall=x; ", 2000)},
	} {
		r, _ := http.NewRequest("GET", bounded.URL+"/who", nil)
		r.Header.Set(header[0], header[1])
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			continue // it has hung up
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if got := string(text); answer.StatusCode == http.StatusOK && got != "nobody" && !strings.HasPrefix(got, "refused") || len(got) > 500 {
			t.Errorf("%s: %s %.200s", name, answer.Status, got)
		}
	}
}

// FuzzCallback sends what a browser never would.
func FuzzCallback(f *testing.F) {
	g := serve(f, false)
	b := g.browser()
	back, _ := url.Parse(b.comeBack())
	f.Add(back.RawQuery, "landfall-signin=x; landfall=y", "Bearer x.y.z")
	f.Add("state=&code=", "landfall-signin=", "Basic x")
	f.Add("error=%00", "__Host-landfall=a; landfall=a; landfall=b", "")
	f.Fuzz(func(t *testing.T, query, cookie, authorization string) {
		r := httptest.NewRequestWithContext(context.Background(), "GET", "/v1/signin/company/callback", nil)
		r.Host, r.URL.RawQuery = "localhost", query
		r.Header["Cookie"], r.Header["Authorization"] = []string{cookie}, []string{authorization}
		if cookie == "" {
			delete(r.Header, "Authorization")
		}
		if strings.Contains(query, "secure") {
			r.TLS = &tls.ConnectionState{}
		}
		if to, cookies, err := g.service.Finish(r, "company"); err == nil {
			t.Errorf("%q %q: signed in, sent to %s with %v", query, cookie, to, cookies)
		}
		if who, _ := g.service.Of(r); who != nil {
			t.Errorf("%q: %+v", cookie, who)
		}
	})
}

func FuzzTo(f *testing.F) {
	g := serve(f, false)
	f.Add("/queues/main?a=b#c")
	f.Add(`/\evil.example.com`)
	f.Fuzz(func(t *testing.T, to string) {
		r := httptest.NewRequest("GET", "http://localhost/v1/signin/company/start", nil)
		if _, _, err := g.service.Begin(r, "company", to); err != nil || to == "" {
			return
		}
		// A browser takes tabs and line feeds out, and a backslash for a slash.
		base, _ := url.Parse("https://landfall.example.com/")
		at, err := base.Parse(strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(to))
		if err != nil || at.Host != base.Host || at.Scheme != base.Scheme {
			t.Errorf("%q leads to %v (%v)", to, at, err)
		}
	})
}

// BenchmarkWhoAsks compares requests of nobody and of a session.
func BenchmarkWhoAsks(b *testing.B) {
	g := serve(b, false)
	one := g.browser()
	one.do("GET", "/v1/signin/company/start?to=/who", "")
	session := one.cookies()["landfall"]
	ask := func(b *testing.B, header, value string) {
		r := httptest.NewRequest("GET", g.URL+"/v1/queues", nil)
		r.Host = strings.TrimPrefix(g.URL, "http://")
		if header != "" {
			r.Header.Set(header, value)
		}
		who, err := g.service.Of(r)
		if err != nil || (who == nil) != (header == "") {
			b.Fatal(who, err)
		}
	}
	b.Run("nobody", func(b *testing.B) {
		for b.Loop() {
			ask(b, "", "")
		}
	})
	b.Run("session", func(b *testing.B) {
		for b.Loop() {
			ask(b, "Cookie", "landfall="+session)
		}
	})
}
