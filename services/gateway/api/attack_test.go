package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/health"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/refusals"
	"landfall.build/services/gateway/view"
)

// raw sends bytes as they are, and returns the status and the rest of the first answer.
func (g *guarded) raw(text string) (status string, rest string) {
	g.t.Helper()
	c, err := net.Dial("tcp", g.Listener.Addr().String())
	if err != nil {
		g.t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.WriteString(c, text); err != nil {
		g.t.Fatal(err)
	}
	all, _ := io.ReadAll(bufio.NewReader(c))
	status, rest, _ = strings.Cut(string(all), "\r\n")
	return status, rest
}

func TestATokenCountsInItsHeaderAloneAndAsItIs(t *testing.T) {
	g := serveGuarded(t)
	good := g.token(access.Operator, "main")
	token := strings.TrimPrefix(good, "Bearer ")
	_, expired := g.tokens.Make("old", access.Grant{Role: access.Admin, Queues: []string{"*"}}, time.Now().Add(-time.Second))
	id, revoked := g.tokens.Make("lost", access.Grant{Role: access.Admin, Queues: []string{"*"}}, time.Time{})
	if err := g.tokens.Grant(t.Context(), &eventsv1.TokenRevoked{Token: id, StampUs: 1}); err != nil {
		t.Fatal(err)
	}
	other := g.token(access.Admin, "tools")
	for _, c := range []struct {
		name, path string
		header     http.Header
		want       int
	}{
		{"the token", "", http.Header{"Authorization": {good}}, 200},
		{"the scheme in other letters", "", http.Header{"Authorization": {"bEARER " + token}}, 200},
		{"an expired token", "", http.Header{"Authorization": {"Bearer " + expired}}, 401},
		{"a revoked token", "", http.Header{"Authorization": {"Bearer " + revoked}}, 401},
		{"a token of another queue", "", http.Header{"Authorization": {other}}, 403},
		{"another secret", "", http.Header{"Authorization": {"Bearer " + token[:len(token)-1] + "_"}}, 401},
		{"its id alone", "", http.Header{"Authorization": {"Bearer " + token[:len("landfall_")+12]}}, 401},
		{"upper case", "", http.Header{"Authorization": {"Bearer " + strings.ToUpper(token)}}, 401},
		{"a token and more", "", http.Header{"Authorization": {good + ", " + good}}, 401},
		{"two headers", "", http.Header{"Authorization": {good, good}}, 401},
		{"two headers, the good one last", "", http.Header{"Authorization": {"Bearer x", good}}, 401},
		{"Basic", "", http.Header{"Authorization": {"Basic " + token}}, 401},
		{"no scheme", "", http.Header{"Authorization": {token}}, 401},
		{"nothing", "", http.Header{"Authorization": {""}}, 401},
		{"a token that nobody has signed", "", http.Header{"Authorization": {"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9."}}, 401},
		{"a session beside a token that is wrong", "", http.Header{"Authorization": {"Bearer " + expired}, "X-Test-Session": {"ada admin"}}, 401},
		{"in the URL", "?access_token=" + token + "&token=" + token + "&authorization=" + token, http.Header{}, 401},
		{"in a cookie", "", http.Header{"Cookie": {"token=" + token + "; Authorization=" + token}}, 401},
		{"in the header of the name", "", http.Header{api.UserHeader: {token}}, 401},
		{"in headers that look alike", "", http.Header{"X_Authorization": {good}, "Proxy-Authorization": {good}, "X-Forwarded-Authorization": {good}, "X-Forwarded-User": {"admin"}, "X-Remote-User": {"admin"}}, 401},
		{"an issuer that does not answer", "", http.Header{"X-Test-Session": {"away admin"}}, 503},
	} {
		if status, code := g.codeOf("POST", "/v1/queues/main/pause"+c.path, "{}", c.header); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, status, code, c.want)
		}
	}
	// In the body, where the API takes no such field.
	if status, code := g.codeOf("POST", "/v1/queues/main/pause", `{"token":"`+token+`"}`, http.Header{}); status != 401 {
		t.Errorf("in the body: %d %s", status, code)
	}
	for _, secret := range []string{token[len(token)-20:], expired[len(expired)-20:], revoked[len(revoked)-20:], strings.ToUpper(token[len(token)-20:])} {
		if strings.Contains(g.log.String(), secret) {
			t.Errorf("the log has a secret: %s", g.log)
		}
	}
}

func TestHeadersThatAreSmuggledLetNobodyIn(t *testing.T) {
	g := serveGuarded(t)
	good := g.token(access.Operator, "main")
	for name, text := range map[string]string{
		"a second request within the body of one with proof": "GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + good + "\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nPOST /v1/queues/main/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"two lengths":                       "POST /v1/queues/main/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + good + "\r\nContent-Length: 2\r\nContent-Length: 0\r\n\r\n{}",
		"a header with a space":             "POST /v1/queues/main/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization : " + good + "\r\nConnection: close\r\n\r\n",
		"a folded header":                   "POST /v1/queues/main/pause HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer\r\n nothing\r\nX-Landfall-User: admin\r\nConnection: close\r\n\r\n",
		"a bare line feed":                  "POST /v1/queues/main/pause HTTP/1.1\r\nHost: localhost\r\nX: a\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n",
		"an address that stands for a path": "POST http://localhost/v1/queues/main/pause HTTP/1.1\r\nHost: localhost\r\nX-Landfall-User: admin\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
	} {
		if status, rest := g.raw(text); !strings.Contains(status, " 4") && !strings.Contains(status, " 501") {
			t.Errorf("%s: %q %s", name, status, rest)
		}
	}
	for _, path := range []string{"/v1/queues/tools/../main/pause", "//v1/queues/main/pause", "/v1/queues/main%2Fpause", "/v1/queues/main/pause/", "/V1/queues/main/pause", "/v1/queues/main/pause;x=1", "/v1/queues/%6dain/pause"} {
		if status, rest := g.raw("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"); strings.Contains(status, " 200") {
			t.Errorf("%s: %q %s", path, status, rest)
		}
	}
	for _, e := range g.Folded("main") {
		if _, is := e.Message.(*eventsv1.QueuePaused); is {
			t.Error("the queue was paused")
		}
	}
}

// TestHeadersThatAreSmuggledByHTTP2LetNobodyIn, nor give the client another address than the one that the proxy has added.
func TestHeadersThatAreSmuggledByHTTP2LetNobodyIn(t *testing.T) {
	const theProxys, theClients = "203.0.113.7", "198.51.100.1"
	g := serveGuarded(t, func(o *api.Options) { o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	good := g.token(access.Operator, "main")
	dial := serveHTTP2(t, g.Config.Handler)
	ask := func(fields ...string) (status string) {
		var block bytes.Buffer
		encoder := hpack.NewEncoder(&block)
		for i := 0; i < len(fields); i += 2 {
			encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
		framer := dial()
		framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}); err != nil {
			t.Fatal(err)
		}
		for {
			frame, err := framer.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch f := frame.(type) {
			case *http2.MetaHeadersFrame:
				return f.PseudoValue("status")
			case *http2.RSTStreamFrame, *http2.GoAwayFrame:
				return "refused"
			}
		}
	}
	to := func(path, authority string) []string {
		return []string{":method", "POST", ":scheme", "https", ":path", path, ":authority", authority}
	}
	const pause = "/v1/queues/main/pause"
	for name, c := range map[string]struct {
		fields []string
		want   string // its beginning
	}{
		"with proof":                            {append(to(pause, "localhost"), "authorization", good), "200"},
		"without":                               {to(pause, "localhost"), "401"},
		"a line break in a value":               {append(to(pause, "localhost"), "x", "a\r\nauthorization: "+good), ""},
		"a line break in a name":                {append(to(pause, "localhost"), "x: a\r\nauthorization", good), ""},
		"a second request in the path":          {to(pause+" HTTP/1.1\r\nauthorization: "+good+"\r\nx:", "localhost"), ""},
		"a header in the host":                  {to(pause, "localhost\r\nauthorization: "+good), ""},
		"another host beside this one":          {append(to(pause, "evil.example"), "host", "localhost", "authorization", good), "4"},
		"a name in upper case":                  {append(to(pause, "localhost"), "Authorization", good), ""},
		"a name with a space":                   {append(to(pause, "localhost"), "authorization ", good), ""},
		"two proofs":                            {append(to(pause, "localhost"), "authorization", "Bearer x", "authorization", good), "401"},
		"two paths":                             {append(to("/healthz", "localhost"), ":path", pause), ""},
		"a path after the headers":              {append(to("/healthz", "localhost"), "x", "a", ":path", pause), ""},
		"lengths and codings of the body":       {append(to(pause, "localhost"), "transfer-encoding", "chunked", "content-length", "5"), ""},
		"an address before the proxy's":         {append(to(pause, "localhost"), "x-forwarded-for", theClients), "401"},
		"many of them in one":                   {append(to(pause, "localhost"), "x-forwarded-for", theClients+","+theClients+", "), "401"},
		"an address in headers that look alike": {append(to(pause, "localhost"), "x_forwarded_for", theClients, "forwarded", "for="+theClients, "x-real-ip", theClients), "401"},
		"an address that ends the headers":      {append(to(pause, "localhost"), "x-forwarded-for", theClients+"\r\n\r\n"), ""},
		"an address in upper case":              {append(to(pause, "localhost"), "X-Forwarded-For", theClients), ""},
	} {
		got := ask(append(c.fields, "x-forwarded-for", theProxys)...)
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "refused" && !strings.HasPrefix(got, "4") {
			t.Errorf("%s: %s", name, got)
		}
	}
	paused := 0
	for _, e := range g.Folded("main") {
		if _, is := e.Message.(*eventsv1.QueuePaused); is {
			paused++
		}
	}
	if paused != 1 {
		t.Errorf("the queue was paused %d times, and once with proof", paused)
	}
	if text := g.log.String(); strings.Count(text, "request refused") < 5 || strings.Count(text, "request refused") != strings.Count(text, "address="+theProxys) {
		t.Errorf("refused:\n%s", text)
	}
}

// TestWhoDidItIsWhoHasProvenIt whatever else the request says.
func TestWhoDidItIsWhoHasProvenIt(t *testing.T) {
	g := serveGuarded(t)
	id, text := g.tokens.Make("deploy bot", access.Grant{Role: access.Operator, Queues: []string{"main"}}, time.Time{})
	header := http.Header{"Authorization": {"Bearer " + text}, api.UserHeader: {"root"}, "User-Agent": {"bot/1\u202e[31m"}}
	if status, _ := g.codeOf("POST", "/v1/queues/main/pause", `{"who":"root","why":"x"}`, header); status != 200 {
		t.Fatal(status)
	}
	if status, _ := g.codeOf("POST", "/v1/queues/main/changes", `{"change":"c","entries":[{"ref":"c"}],"author":"Root <root@example.com>"}`, http.Header{"X-Test-Session": {"ada contributor"}, api.UserHeader: {"root"}}); status != 201 {
		t.Fatal(status)
	}
	var paused *eventsv1.QueuePaused
	var admitted *eventsv1.Admission
	for _, e := range g.Folded("main") {
		switch m := e.Message.(type) {
		case *eventsv1.QueuePaused:
			paused = m
		case *eventsv1.ChangeAdmitted:
			admitted = m.Admission
		}
	}
	if a := paused.GetActor(); paused.GetWho() != "deploy bot" || a.GetIssuer() != "landfall" || a.GetSubject() != id || a.GetToken() != id || a.GetRole() != "operator" || a.GetName() != "deploy bot" || a.GetClient() != "bot/1?[31m" {
		t.Errorf("paused by %v", paused)
	}
	if a := events.ActorOf(&eventsv1.ChangeAdmitted{Admission: admitted}); admitted.GetAuthor() != "ada <ada@example.com>" || a.GetIssuer() != issuer || a.GetSubject() != "ada" || a.GetRole() != "contributor" {
		t.Errorf("admitted of %s by %v", admitted.GetAuthor(), a)
	}
}

func TestNamesForgeNoLineOfTheLog(t *testing.T) {
	g := serveGuarded(t)
	g.codeOf("POST", "/v1/queues/main/pause", "{}", http.Header{"X-Test-Session": {"eve\u2028level=ERROR\u202e viewer"}})
	g.codeOf("POST", "/v1/queues/a%0alevel=ERROR%1b%5b31m/pause", "{}", http.Header{"X-Test-Session": {"eve viewer"}})
	g.codeOf("POST", "/v1/queues/main/pause", "{}", http.Header{"Authorization": {"Bearer eyJ"}})
	text := g.log.String()
	if n := strings.Count(text, "\n"); n != 3 || strings.Contains(text, "\nlevel=ERROR") || strings.ContainsAny(text, "\x1b\u2028\u202e") {
		t.Errorf("%d lines:\n%q", n, text)
	}
	if !strings.Contains(text, `path="/v1/queues/a?level=ERROR?[31m/pause"`) {
		t.Errorf("no path in:\n%s", text)
	}
}

// TestRefusalsAreInALogOfTheirOwn: who was refused what, where and when, with the id of the answer and without what was presented as proof.
func TestRefusalsAreInALogOfTheirOwn(t *testing.T) {
	folder := t.TempDir()
	refused, err := refusals.Open(folder, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	g := serveGuarded(t, func(o *api.Options) { o.Refusals = refused })
	_, wrong := g.tokens.Make("old", access.Grant{Role: access.Admin, Queues: []string{"*"}}, time.Now().Add(-time.Second))
	other, _ := g.tokens.Make("of tools", access.Grant{Role: access.Viewer, Queues: []string{"tools"}}, time.Time{})
	eve := func(role string, more ...string) http.Header {
		h := http.Header{"X-Test-Session": {"eve " + role}, "User-Agent": {"browser"}}
		if len(more) == 2 {
			h.Set(more[0], more[1])
		}
		return h
	}
	type line struct {
		Time, Request, Method, Path, Address, Code, Reason string
		Who                                                struct{ Issuer, Subject, Client string }
	}
	for i, c := range []struct {
		method, path, body string
		header             http.Header
		status             int
		subject, code      string
	}{
		{"POST", "/v1/queues/main/pause", "{}", http.Header{"Authorization": {"Bearer " + wrong}}, 401, "", "unauthenticated"},
		{"POST", "/v1/queues/main/pause", "{}", eve("viewer"), 403, "eve", "forbidden"},
		{"POST", "/v1/queues/main/changes", `{"change":"c","entries":[{"ref":"c"}],"benefit":5}`, eve("lander"), 403, "eve", "forbidden"},
		{"POST", "/v1/tokens", `{"name":"x","role":"viewer","queues":["tools"]}`, eve("admin"), 403, "eve", "forbidden"},
		{"POST", "/v1/tokens/" + other + "/revoke", "{}", eve("admin"), 404, "eve", "forbidden"},
		{"GET", "/v1/queues/main", "", eve("viewer", "Origin", "https://evil.example.com"), 403, "", "forbidden_origin"},
	} {
		if status, code := g.codeOf(c.method, c.path, c.body, c.header); status != c.status {
			t.Fatalf("%s %s: %d %s, want %d", c.method, c.path, status, code, c.status)
		}
		text, err := os.ReadFile(filepath.Join(folder, refusals.FileName))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		var l line
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &l); err != nil || len(lines) != i+1 {
			t.Fatalf("%d lines, the last one is %s: %v", len(lines), lines[len(lines)-1], err)
		}
		if l.Method != c.method || l.Path != c.path || l.Who.Subject != c.subject || l.Code != c.code || l.Request == "" || l.Time == "" || !strings.HasPrefix(l.Address, "127.") || l.Reason == "" || strings.Contains(string(text), wrong[len(wrong)-20:]) {
			t.Errorf("%s %s: %+v", c.method, c.path, l)
		}
	}
	if g.log.String() != "" {
		t.Errorf("the ordinary log has %s", g.log)
	}
}

// TestAFloodOfWrongTokensHarmsNobodyElse: who comes with a good one is served meanwhile, and neither memory nor the log grows with the
// flood. The addresses are many: one would soon be told to slow down.
func TestAFloodOfWrongTokensHarmsNobodyElse(t *testing.T) {
	g := serveGuarded(t)
	good := g.token(access.Viewer, "main")
	handler := g.Config.Handler
	ask := func(address, authorization string) int {
		r := httptest.NewRequest("GET", "http://localhost/v1/queues/main", nil)
		r.RemoteAddr = address
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	counts := map[int]int{}
	var mu sync.Mutex
	var flood sync.WaitGroup
	for n := range 4 {
		flood.Go(func() {
			mine := map[int]int{}
			for i := range 10_000 {
				address := "192.0.2.1:1234"
				if n > 0 {
					address = fmt.Sprintf("[2001:db8:%x:%x::1]:1", n, i)
				}
				_, _, wrong := access.NewToken()
				mine[ask(address, "Bearer "+wrong)]++
			}
			mu.Lock()
			defer mu.Unlock()
			for code, n := range mine {
				counts[code] += n
			}
		})
	}
	served := 0
	done := make(chan struct{})
	go func() { flood.Wait(); close(done) }()
	for running := true; running; {
		// From the very address that the flood comes from, too.
		if code := ask("192.0.2.1:1234", good); code != 200 {
			t.Fatalf("a good token is answered %d", code)
		}
		served++
		select {
		case <-done:
			running = false
		case <-time.After(2 * time.Millisecond):
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if counts[401] < 100 || counts[429] < 9000 || counts[401]+counts[429] != 40_000 || served < 10 {
		t.Errorf("answers are %v, and %d good ones", counts, served)
	}
	if lines := strings.Count(g.log.String(), "192.0.2.1"); lines > 1000 {
		t.Errorf("an address has %d lines in the log", lines)
	}
	// 1000 at once, and a few for each second.
	if lines := strings.Count(g.log.String(), "\n"); lines > 4000 {
		t.Errorf("the flood has %d lines in the log", lines)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
}

func TestACallerThatAsksTooOftenWaitsAndNobodyElse(t *testing.T) {
	g := serveGuarded(t)
	one, other := g.token(access.Viewer, "main"), g.token(access.Viewer, "main")
	handler := g.Config.Handler
	ask := func(authorization string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "http://localhost/v1/whoami", nil)
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w
	}
	limited := 0
	for range 60_000 {
		if w := ask(one); w.Code == 429 {
			if limited++; w.Header().Get("Retry-After") == "" {
				t.Fatal("it is not said when to ask again")
			}
		}
	}
	if limited == 0 {
		t.Error("nothing bounds it")
	}
	if w := ask(other); w.Code != 200 {
		t.Errorf("another caller is answered %d", w.Code)
	}
}

func TestTokensAreMadeShownAndRevokedByAdminsOfTheirQueues(t *testing.T) {
	g := serveGuarded(t)
	admin := http.Header{"X-Test-Session": {"ada admin"}}
	make := func(body string, header http.Header) (int, api.TokenReply, string) {
		request, _ := http.NewRequest("POST", g.URL+"/v1/tokens", strings.NewReader(body))
		request.Header = header.Clone()
		request.Header.Set("Content-Type", "application/json")
		response, err := g.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		var reply api.TokenReply
		_ = json.Unmarshal(text, &reply)
		return response.StatusCode, reply, string(text)
	}
	status, reply, text := make(`{"name":"bot","verbs":["read","land"],"queues":["main"],"ttl":"1h"}`, admin)
	if status != 201 || reply.Token.Role != "lander" || reply.Token.CreatedBy != "ada" || time.Until(reply.Token.Expires) > time.Hour || !access.IsToken(reply.Secret) {
		t.Fatalf("%d %s", status, text)
	}
	bot := http.Header{"Authorization": {"Bearer " + reply.Secret}}
	if status, _ := g.codeOf("POST", "/v1/queues/main/changes", `{"change":"c","entries":[{"ref":"c"}]}`, bot); status != 201 {
		t.Errorf("the token lands: %d", status)
	}
	if status, _ := g.codeOf("POST", "/v1/queues/main/changes/c/cancel", "{}", bot); status != 403 {
		t.Errorf("the token cancels: %d", status)
	}
	for _, refused := range []struct {
		body   string
		header http.Header
		want   int
	}{
		{`{"name":"bot","role":"viewer","queues":["tools"]}`, admin, 403},
		{`{"name":"bot","role":"viewer","queues":["main","tools"]}`, admin, 403},
		{`{"name":"bot","role":"viewer","queues":["*"]}`, admin, 403},
		{`{"name":"bot","role":"viewer","queues":["nowhere"]}`, admin, 403}, // as one that is there
		{`{"name":"bot","role":"viewer","queues":["nowhere"]}`, http.Header{"Authorization": {g.token(access.Admin, "*")}}, 404},
		{`{"name":"bot","role":"viewer","queues":[]}`, admin, 400},
		{`{"name":"bot","queues":["main"]}`, admin, 400},
		{`{"name":"bot","role":"god","queues":["main"]}`, admin, 400},
		{`{"name":"bot","verbs":["fly"],"queues":["main"]}`, admin, 400},
		{`{"name":"bot\n","role":"viewer","queues":["main"]}`, admin, 400},
		{`{"name":"bot","role":"viewer","queues":["main"],"ttl":"-1h"}`, admin, 400},
		{`{"name":"bot","role":"viewer","queues":["main"]}`, bot, 403},
	} {
		if status, _, text := make(refused.body, refused.header); status != refused.want {
			t.Errorf("%s: %d %s, want %d", refused.body, status, text, refused.want)
		}
	}
	// A token that may only make tokens for an hour makes none that may do more, or lasts longer.
	_, narrow := g.tokens.Make("minter", access.Grant{Role: access.Admin, Queues: []string{"main"}, Verbs: []access.Verb{access.ManageTokens, access.Read}}, time.Now().Add(time.Hour))
	minter := http.Header{"Authorization": {"Bearer " + narrow}}
	for body, want := range map[string]int{
		`{"name":"a","role":"viewer","queues":["main"]}`: 403, `{"name":"a","role":"admin","verbs":["pause"],"queues":["main"],"ttl":"1m"}`: 403,
		`{"name":"a","verbs":["read"],"queues":["main"]}`: 201, `{"name":"a","verbs":["read"],"queues":["main"],"ttl":"720h"}`: 201,
	} {
		status, reply, text := make(body, minter)
		if status != want || status == 201 && (reply.Token.Expires.IsZero() || time.Until(reply.Token.Expires) > time.Hour) {
			t.Errorf("%s: %d %s, want %d", body, status, text, want)
		}
	}
	g.tokens.Make("of tools", access.Grant{Role: access.Viewer, Queues: []string{"tools"}}, time.Time{})
	_, list := g.do("GET", "/v1/tokens", "", "X-Test-Session", "ada admin")
	if strings.Contains(list, "of tools") || !strings.Contains(list, reply.Token.ID) || strings.Contains(list, reply.Secret[22:]) || strings.Contains(list, "hash") {
		t.Errorf("listed: %s", list)
	}
	for _, token := range g.tokens.Tokens() {
		if token.Name == "of tools" {
			if status, _ := g.codeOf("POST", "/v1/tokens/"+token.ID+"/revoke", "{}", admin); status != 404 {
				t.Errorf("a token of another queue is revoked: %d", status)
			}
		}
	}
	if status, _ := g.codeOf("POST", "/v1/tokens/"+reply.Token.ID+"/revoke", `{"why":"lost"}`, admin); status != 200 {
		t.Errorf("revoke: %d", status)
	}
	if status, _ := g.codeOf("GET", "/v1/queues/main", "", bot); status != 401 {
		t.Errorf("a revoked token is answered %d", status)
	}
	if strings.Contains(g.log.String(), reply.Secret[22:]) {
		t.Error("the log has the secret")
	}
}

func TestWhoMayReadOneQueueIsShownThatOne(t *testing.T) {
	g := serveGuarded(t)
	for _, path := range []string{"/v1/queues", "/v1/whoami"} {
		if _, text := g.do("GET", path, "", "X-Test-Session", "ada viewer"); !strings.Contains(text, "main") || strings.Contains(text, "tools") {
			t.Errorf("%s: %s", path, text)
		}
	}
	if status, text := g.do("GET", "/v1/watch?changes=tools", "", "X-Test-Session", "ada viewer"); status.StatusCode != 404 || strings.Contains(text, "main, tools") {
		t.Errorf("watch: %s %s", status.Status, text)
	}
}

// emptyBoard is a board on which nobody has posted.
type emptyBoard struct{ health.Board }

func (emptyBoard) Read(context.Context) ([]health.Beat, error) { return nil, nil }

// TestNobodyLearnsWhichOtherQueuesThereAre checks lists about several queues, refusals, and explanations of the rules.
func TestNobodyLearnsWhichOtherQueuesThereAre(t *testing.T) {
	g := serveGuarded(t)
	var both []health.Missing
	synctest.Test(t, func(t *testing.T) {
		fleet := health.NewFleet([]string{"main", "tools"}, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		fleet.Watch(ctx, emptyBoard{}, func() { both = fleet.Report().Missing })
	})
	g.SetServices(health.Report{
		Partitions: []health.Ownership{{Service: "lander", Partition: 1, Queues: []string{"main", "tools"}}, {Service: "lander", Partition: 2, Queues: []string{"tools"}}, {Service: "gateway", Partition: 3}},
		Missing:    append(both, health.Missing{Service: "builder", Partition: 2, Queues: []string{"tools"}, Sentence: "of the other"}, health.Missing{Service: "gateway", Sentence: "of all"}),
	})
	for _, path := range []string{"/v1/queues", "/v1/queues/main"} {
		if _, text := g.do("GET", path, "", "X-Test-Session", "ada viewer"); !strings.Contains(text, "No lander has owned partition 0 (queue main) for") || strings.Contains(text, "tools") {
			t.Errorf("%s: %s", path, text)
		}
	}
	_, text := g.do("GET", "/v1/services", "", "X-Test-Session", "ada viewer")
	for _, want := range []string{`"partition":1,"queues":["main"]`, `"partition":3`, "No lander has owned partition 0 (queue main) for", "of all"} {
		if !strings.Contains(text, want) {
			t.Errorf("the services lack %s: %s", want, text)
		}
	}
	if strings.Contains(text, "tools") || strings.Contains(text, `"partition":2`) {
		t.Errorf("the services name another queue: %s", text)
	}
	if _, all := g.do("GET", "/v1/services", "", "Authorization", g.token(access.Viewer, "*")); !strings.Contains(all, "No lander has owned partition 0 (queues main, tools) for") || !strings.Contains(all, `"partition":2,"queues":["tools"]`) {
		t.Errorf("who may read all is shown %s", all)
	}
	for _, path := range []string{"/v1/services", "/v1/queues", "/v1/watch", "/v1/tokens", "/v1/dead-letters", "/v1/pools/default/timeline"} {
		if status, text := g.do("GET", path, "", "X-Test-Session", "eve nothing"); status.StatusCode != 403 || strings.Contains(text, "main") || strings.Contains(text, "tools") || !strings.Contains(text, " in no queue, and ") {
			t.Errorf("%s: %s %s", path, status.Status, text)
		}
	}
}

// TestAdminsOfOneQueueLearnOfNoOther, by what they may ask about tokens and rules.
func TestAdminsOfOneQueueLearnOfNoOther(t *testing.T) {
	g := serveGuarded(t, func(o *api.Options) {
		o.Access.Rules = append(o.Access.Rules, configuration.AccessRule{Role: "viewer", Issuer: "company", Queues: []string{"tools"}, Any: []configuration.ClaimSet{{All: map[string]string{"groups": "x"}}}})
	})
	admin := g.token(access.Admin, "main", "gone")
	var answers []string
	for _, queue := range []string{"tools", "absent"} {
		response, text := g.do("POST", "/v1/tokens", fmt.Sprintf(`{"name":"a","role":"viewer","queues":[%q]}`, queue), "Authorization", admin)
		answers = append(answers, response.Status+strings.ReplaceAll(text, queue, "it"))
	}
	if answers[0] != answers[1] {
		t.Errorf("a token for a queue of others is answered %s, for one that is not there %s", answers[0], answers[1])
	}
	for _, path := range []string{"/v1/queues/main/access?user=ada&verb=land", "/v1/queues/gone/access?user=ada&verb=land"} {
		if _, text := g.do("GET", path, "", "Authorization", admin); strings.Contains(text, "tools") || !strings.Contains(text, "main") && !strings.Contains(text, "access.rules[0]") {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// TestAStreamEndsWithWhatLetItIn: a token that is revoked, an identity that has expired or signed out.
func TestAStreamEndsWithWhatLetItIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens, backend := &apitest.Tokens{}, apitest.New("main")
		out := &leaver{}
		handler, err := api.NewHandler(api.Options{Backend: backend, Tokens: tokens, Identity: out, Access: configuration.Access{
			Mode: configuration.AccessRequired, Logs: "viewer", Rate: 50, Issuers: map[string]configuration.Issuer{"company": {URL: issuer}},
			Rules: []configuration.AccessRule{{Role: "viewer", Issuer: "company", Any: []configuration.ClaimSet{{All: map[string]string{"sub": "*"}}}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		id, token := tokens.Make("bot", access.Grant{Role: access.Viewer, Queues: []string{"main"}}, time.Time{})
		_, lasting := tokens.Make("other", access.Grant{Role: access.Viewer, Queues: []string{"main"}}, time.Time{})
		ended := map[string]chan time.Duration{}
		began := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		for _, path := range []string{"/v1/queues/main/events", "/v1/watch"} {
			for name, authorization := range map[string]string{"a token that is revoked": "Bearer " + token, "a session that ends": "", "a token that stays": "Bearer " + lasting} {
				r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+path, nil)
				if authorization != "" {
					r.Header.Set("Authorization", authorization)
				}
				done := make(chan time.Duration, 1)
				ended[name+" "+path] = done
				go func() {
					handler.ServeHTTP(&flushed{ResponseRecorder: httptest.NewRecorder()}, r)
					done <- time.Since(began)
				}()
			}
		}
		time.Sleep(time.Minute)
		if err := tokens.Grant(t.Context(), &eventsv1.TokenRevoked{Token: id, StampUs: 1}); err != nil {
			t.Fatal(err)
		}
		out.gone.Store(true)
		time.Sleep(time.Minute)
		stop()
		synctest.Wait()
		for name, done := range ended {
			after, stays := <-done, strings.Contains(name, "stays")
			if stays && after < 2*time.Minute || !stays && (after < time.Minute || after > 76*time.Second) {
				t.Errorf("the stream of %s ends after %v", name, after)
			}
		}
		time.Sleep(time.Hour) // what is kept up for those who may come back ends
	})
}

// TestStrangersAreNotToldWhereTheBrokerIs: whether the gateway can work is told without proof.
func TestStrangersAreNotToldWhereTheBrokerIs(t *testing.T) {
	g := serveGuarded(t)
	g.SetHealthy(errors.New("the broker has not answered for 7s: dial tcp 10.1.2.3:9092: connection refused"))
	if r, text := g.do("GET", "/readyz", ""); r.StatusCode != 503 || !strings.Contains(text, "not_healthy") || strings.Contains(text, "10.1.2.3") {
		t.Errorf("%s %s", r.Status, text)
	}
}

// leaver is signed in until it has gone.
type leaver struct{ gone atomic.Bool }

func (l *leaver) Of(r *http.Request) (*identity.Identity, error) {
	if l.gone.Load() || r.Header.Get("Authorization") != "" {
		return nil, nil
	}
	return &identity.Identity{Issuer: issuer, Subject: "ada"}, nil
}

// flushed is a recorder that takes what a stream does to its connection.
type flushed struct{ *httptest.ResponseRecorder }

func (*flushed) FlushError() error                { return nil }
func (*flushed) SetWriteDeadline(time.Time) error { return nil }

// TestWhoHasNoRoleAsksNothingOfAQueue: how long its view is taken by others would tell that there is one.
func TestWhoHasNoRoleAsksNothingOfAQueue(t *testing.T) {
	var looks atomic.Int64
	g := serveGuarded(t, func(o *api.Options) { o.Backend = &looked{o.Backend, &looks} })
	for _, path := range []string{"/v1/queues/main/changes/a/cancel", "/v1/queues/main/changes/a/hold", "/v1/queues/main/changes/a/retry", "/v1/queues/main/pause"} {
		if status, code := g.codeOf("POST", path, "{}", http.Header{"X-Test-Session": {"eve nothing"}}); status != 403 {
			t.Errorf("%s: %d %s", path, status, code)
		}
	}
	if n := looks.Load(); n > 0 {
		t.Errorf("the view of the queue is read %d times", n)
	}
	if g.codeOf("POST", "/v1/queues/main/changes/a/cancel", "{}", http.Header{"X-Test-Session": {"ada contributor"}}); looks.Load() == 0 {
		t.Error("whose a change is was not asked")
	}
}

// looked counts how often views are read.
type looked struct {
	api.Backend
	looks *atomic.Int64
}

func (l *looked) Read(queue string, f func(*view.Queue)) bool {
	l.looks.Add(1)
	return l.Backend.Read(queue, f)
}

// BenchmarkARequest compares requests that prove who asks with those that are believed.
func BenchmarkARequest(b *testing.B) {
	g := serveGuarded(b)
	good := g.token(access.Viewer, "main")
	open, err := api.NewHandler(api.Options{Backend: g.Backend})
	if err != nil {
		b.Fatal(err)
	}
	c, err := configuration.Parse([]byte("version: 1\nrepositories: {a: {url: a}}\nqueues: {main: {repository: a}}\naccess: {mode: required, rate: 100000}\n"), "f.yaml", configuration.Defaults{Workers: 1})
	if err != nil {
		b.Fatal(err)
	}
	required, err := api.NewHandler(api.Options{Backend: g.Backend, Access: c.Access, Tokens: g.tokens})
	if err != nil {
		b.Fatal(err)
	}
	for name, h := range map[string]http.Handler{"open": open, "token": required} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := httptest.NewRequest("GET", "http://localhost/v1/queues/main", nil)
				r.Header.Set("Authorization", good)
				if name == "open" {
					r.Header.Del("Authorization")
				}
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 200 && w.Code != 429 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// FuzzHeadersLetNobodyIn sends headers as no client does, with a token of another queue: whatever they are, nobody pauses the queue.
func FuzzHeadersLetNobodyIn(f *testing.F) {
	g := serveGuarded(f)
	other := g.token(access.Admin, "tools")
	handler := g.Config.Handler
	f.Add(other, "", "", "", "")
	f.Add("Bearer", "10.0.0.1, unknown", "landfall=x", "localhost:1", "http://localhost")
	f.Add("bearer "+access.TokenPrefix+"_", "[::1]:7", "__Host-landfall=a; a=b", "[::1]", "null")
	f.Add("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.", "\x00", ";;;=", "localhost.", "")
	addresses := 0
	f.Fuzz(func(t *testing.T, authorization, forwarded, cookie, host, origin string) {
		r := httptest.NewRequest("POST", "http://localhost/v1/queues/main/pause", strings.NewReader("{}"))
		// Who asks often without proof is told to wait, and what is presented is not looked at.
		addresses++
		r.RemoteAddr = fmt.Sprintf("%d.%d.%d.%d:1", 16+addresses>>24, addresses>>16&255, addresses>>8&255, addresses&255)
		r.Host = host
		r.Header = http.Header{"Authorization": {authorization}, "X-Forwarded-For": {forwarded}, "Cookie": {cookie}, "Origin": {origin}, "Content-Type": {"application/json"}, api.UserHeader: {authorization}}
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code < 400 || w.Code >= 500 || w.Code == http.StatusTooManyRequests {
			t.Errorf("%q %q %q %q %q: %d %s", authorization, forwarded, cookie, host, origin, w.Code, w.Body)
		}
	})
}

// whenRead calls first when its client begins to send it, which it does once the server asks for it.
type whenRead struct {
	io.Reader
	first func()
}

func (b *whenRead) Read(p []byte) (int, error) {
	if b.first != nil {
		b.first()
		b.first = nil
	}
	return b.Reader.Read(p)
}

// Whoever has a token that is about to be revoked could keep requests open, and have one of them make another token afterwards.
func TestATokenThatIsRevokedBeforeTheBodyIsThereDoesNothing(t *testing.T) {
	g := serveGuarded(t)
	g.Client().Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
	for path, body := range map[string]string{
		"/v1/tokens": `{"name":"again","role":"admin","queues":["*"]}`, "/v1/queues/main/pause": `{"why":"x"}`, "/v1/queues/main/changes": `{"change":"c","entries":[{"ref":"c"}]}`,
	} {
		for _, revoked := range []bool{false, true} {
			id, token := g.tokens.Make("lost", access.Grant{Role: access.Admin, Queues: []string{"*"}}, time.Time{})
			request, err := http.NewRequest("POST", g.URL+path, &whenRead{strings.NewReader(body), func() {
				if !revoked {
					return
				}
				if err := g.tokens.Grant(t.Context(), &eventsv1.TokenRevoked{Token: id, StampUs: 1}); err != nil {
					t.Error(err)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			request.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Expect": {"100-continue"}}
			response, err := g.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if refused := response.StatusCode == 401; refused != revoked {
				t.Errorf("%s with a token that is revoked (%v) before its body is there: %d", path, revoked, response.StatusCode)
			}
		}
	}
}
