package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
)

const issuer = "https://id.example.com"

// guarded is a server that asks who it is. Its log is what it writes.
type guarded struct {
	*server
	tokens *apitest.Tokens
	log    *lines
	// addresses counts requests, and is the address of those without proof.
	addresses int
}

type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// signedIn knows who has signed in by a header of tests: SUBJECT GROUP.
type signedIn struct{}

func (signedIn) Of(r *http.Request) (*identity.Identity, error) {
	subject, group, _ := strings.Cut(r.Header.Get("X-Test-Session"), " ")
	switch {
	case subject == "away":
		return nil, fmt.Errorf("%w: dial tcp: refused", identity.ErrUnreachable)
	case strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ey"):
		return nil, fmt.Errorf("%w: the token is signed by nobody\nlevel=ERROR msg=forged", identity.ErrRefused)
	case subject == "":
		return nil, nil
	case subject == "job":
		return &identity.Identity{Issuer: issuer, Subject: subject, Claims: map[string]any{"groups": []any{group}}}, nil
	}
	return &identity.Identity{Issuer: issuer, Subject: subject, Name: subject, Email: subject + "@example.com", Claims: map[string]any{"groups": []any{group}, "email_verified": true}}, nil
}

func serveGuarded(t testing.TB, change ...func(*api.Options)) *guarded {
	t.Helper()
	text := "version: 1\nrepositories: {a: {url: a}}\nqueues: {main: {repository: a}, tools: {repository: a, branch: tools}}\naccess:\n  mode: required\n  rate: 1000\n" +
		"  issuers: {company: {url: '" + issuer + "', audiences: [x]}}\n  rules:\n"
	for _, role := range access.Roles() {
		text += fmt.Sprintf("  - {role: %s, queues: [main], issuer: company, any: [{all: {groups: %s}}]}\n", role, role)
	}
	c, err := configuration.Parse([]byte(text), "f.yaml", configuration.Defaults{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{server: &server{t: t, Backend: apitest.New("main", "tools"), store: t.TempDir()}, tokens: &apitest.Tokens{}, log: &lines{}}
	o := api.Options{
		Backend: g.Backend, LogStore: g.store, Access: c.Access, Tokens: g.tokens, Identity: signedIn{}, Log: slog.New(slog.NewTextHandler(g.log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	handler, err := api.NewHandler(o)
	if err != nil {
		t.Fatal(err)
	}
	g.Server = httptest.NewServer(handler)
	t.Cleanup(func() { g.CloseClientConnections(); g.Close() })
	return g
}

func (g *guarded) token(role access.Role, queues ...string) (header string) {
	_, text := g.tokens.Make("a "+role.String(), access.Grant{Role: role, Queues: queues}, time.Time{})
	return "Bearer " + text
}

// codeOf sends a request and returns the status and the code of a failure. It reads no further than the beginning of a stream.
func (g *guarded) codeOf(method, path, body string, header http.Header) (status int, code string) {
	g.t.Helper()
	ctx, stop := context.WithCancel(g.t.Context())
	defer stop()
	request, err := http.NewRequestWithContext(ctx, method, g.URL+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header = header.Clone()
	if method == "POST" {
		request.Header.Set("Content-Type", "application/json")
	}
	client := g.Client()
	if g.addresses++; len(header.Values("Authorization"))+len(header.Values("X-Test-Session")) == 0 {
		// An address may not ask often without proof.
		from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(g.addresses>>8), byte(g.addresses))}}
		client = &http.Client{Transport: &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}}
	}
	response, err := client.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode < 400 {
		return response.StatusCode, ""
	}
	var failure api.Failure
	if err := json.NewDecoder(response.Body).Decode(&failure); err != nil || failure.Error.Message == "" || failure.Error.Advice == "" {
		g.t.Errorf("%s %s: %s without a reason and advice: %v", method, path, response.Status, err)
	}
	return response.StatusCode, failure.Error.Code
}

// mayDo is what each role may do: v whatever it is about, o only to its own changes. It stands here once more so that the table of roles
// in the package access cannot change without it.
var mayDo = map[access.Verb]string{
	//                     viewer contributor lander operator admin
	access.Read:         "vvvvv",
	access.ReadLogs:     "vvvvv",
	access.Land:         "-ovvv",
	access.Cancel:       "-ovvv",
	access.Retry:        "-ovvv",
	access.Verify:       "--vvv",
	access.Move:         "---vv",
	access.Hold:         "---vv",
	access.Pause:        "---vv",
	access.Quarantine:   "---vv",
	access.Models:       "---vv",
	access.Simulate:     "---vv",
	access.Deliveries:   "---vv",
	access.ManageTokens: "----v",
}

// documentedRoutes returns method and path of each operation of openapi.yaml.
func documentedRoutes(t *testing.T, g *guarded) (names [][2]string) {
	_, text := g.do("GET", "/v1/openapi.yaml", "")
	var d struct {
		Paths map[string]map[string]any `yaml:"paths"`
	}
	if err := yaml.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	for path, methods := range d.Paths {
		for method := range methods {
			if method != "parameters" {
				names = append(names, [2]string{strings.ToUpper(method), path})
			}
		}
	}
	return names
}

// TestEveryRouteLetsThroughWhomTheTableAllowsAndNobodyElse takes every route of the API and of its document through every role, by token
// and by identity, in the queue of the role and in another one, with a change of its own, of another one, and of nobody.
func TestEveryRouteLetsThroughWhomTheTableAllowsAndNobodyElse(t *testing.T) {
	g := serveGuarded(t)
	routes := api.RouteNames()
	for _, name := range documentedRoutes(t, g) {
		if !slices.Contains(routes, name) {
			routes = append(routes, name)
		}
	}
	type who struct {
		name    string
		role    int // its place in access.Roles, -1 for none
		header  http.Header
		subject string
		issuer  string
	}
	callers := []who{
		{"nobody", -1, http.Header{}, "", ""},
		{"a name", -1, http.Header{api.UserHeader: {"admin"}}, "", ""},
		{"somebody without a role", -1, http.Header{"X-Test-Session": {"eve nothing"}}, "eve", issuer},
	}
	for i, role := range access.Roles() {
		id, text := g.tokens.Make("a "+role.String(), access.Grant{Role: role, Queues: []string{"main"}}, time.Time{})
		callers = append(callers,
			who{"a token of " + role.String(), i, http.Header{"Authorization": {"Bearer " + text}}, id, access.IssuerToken},
			who{"somebody who is " + role.String(), i, http.Header{"X-Test-Session": {"ada-" + role.String() + " " + role.String()}}, "ada-" + role.String(), issuer})
	}
	changes, tried := 0, 0
	for _, route := range routes {
		method, path := route[0], route[1]
		door, known := access.RouteOf(method, path)
		if !known {
			t.Errorf("%s %s has no row in the table of doors", method, path)
			continue
		}
		for _, c := range callers {
			for _, queue := range []string{"main", "tools"} {
				for _, owner := range []string{"own", "another's", "nobody's"} {
					changes++
					change := fmt.Sprintf("c%d", changes)
					actor := &eventsv1.Actor{Issuer: c.issuer, Subject: c.subject}
					switch owner {
					case "another's":
						actor = &eventsv1.Actor{Issuer: issuer, Subject: "bob"}
					case "nobody's":
						actor = nil
					}
					g.Fold(queue, events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: queue, Change: change, Revision: 1, Author: "bob", Actor: actor, Entries: []*eventsv1.Entry{{Commit: apitest.Commit(change)}}, LandingCommits: []*eventsv1.LandingCommit{{Head: apitest.Commit(change), Base: apitest.Commit("main")}}}})
					want := door.For == access.Everybody || door.For == access.Known && c.issuer != ""
					if c.role >= 0 && (door.For == access.Somewhere || queue == "main") && mayDo[door.Verb] != "" {
						m := mayDo[door.Verb][c.role]
						want = want || m == 'v' || m == 'o' && owner == "own"
					}
					at := strings.NewReplacer("{queue}", queue, "{change}", change, "{token}", "abc").Replace(path)
					status, code := g.codeOf(method, at, fmt.Sprintf(`{"change":%q,"entries":[{"ref":%q}]}`, change, change), c.header)
					wantCode := string(access.Forbidden)
					if c.issuer == "" {
						wantCode = string(access.Unauthenticated)
					}
					tried++
					switch refused := code == string(access.Forbidden) || code == string(access.Unauthenticated); {
					case refused == want:
						t.Errorf("%s is let through to %s %s of %s (%s): %v, want %v (%d %s)", c.name, method, path, queue, owner, !refused, want, status, code)
					case refused && (code != wantCode || status != map[string]int{"forbidden": 403, "unauthenticated": 401}[code]):
						t.Errorf("%s at %s %s is refused with %d %s, want %s", c.name, method, path, status, code, wantCode)
					}
					if code == "too_many_requests" {
						t.Fatal("the test asks too often")
					}
				}
			}
		}
	}
	t.Logf("%d requests to %d routes", tried, len(routes))
}

// TestBenefitAndAuthorAreBoundByTheRole: only an operator gives a benefit above 1, and only a lander names another author, whose quotas the
// change then has.
func TestBenefitAndAuthorAreBoundByTheRole(t *testing.T) {
	g := serveGuarded(t)
	for _, role := range access.Roles() {
		header := http.Header{"X-Test-Session": {"ada " + role.String()}}
		for _, c := range []struct {
			what, body, least string
		}{
			{"benefit", `"benefit":5`, "operator"}, {"ordinary", `"benefit":1`, "contributor"}, {"author", `"author":"Bob <bob@example.com>"`, "contributor"},
		} {
			change := fmt.Sprintf("%s-%s", role, c.what)
			want := 403
			if least, _ := access.ParseRole(c.least); role >= least {
				want = 201
			}
			status, _ := g.codeOf("POST", "/v1/queues/main/changes", fmt.Sprintf(`{"change":%q,"entries":[{"ref":%q}],%s}`, change, change, c.body), header)
			if status != want {
				t.Errorf("%s with %s: %d, want %d", role, c.body, status, want)
			}
			var admitted *eventsv1.Admission
			for _, e := range g.Folded("main") {
				if m, is := e.Message.(*eventsv1.ChangeAdmitted); is && m.Admission.Change == change {
					admitted = m.Admission
				}
			}
			author := map[bool]string{true: "Bob <bob@example.com>", false: "ada <ada@example.com>"}[role >= access.Lander && c.what == "author"]
			_, text := g.do("POST", "/v1/queues/main/changes", fmt.Sprintf(`{"change":%q,"entries":[{"ref":%q}],%s}`, change+"-said", change, c.body), "X-Test-Session", "ada "+role.String())
			said := strings.Contains(text, `Its author is \"ada \u003cada@example.com\u003e\"`)
			if replaced := role == access.Contributor && c.what == "author"; said != replaced {
				t.Errorf("%s with %s is told of another author: %v, want %v", role, c.body, said, replaced)
			}
			if (admitted != nil) != (want == 201) || admitted != nil && admitted.Author != author {
				t.Errorf("%s with %s is admitted as %v, want the author %s", role, c.body, admitted, author)
			}
		}
	}
}

// TestWhatAWorkloadLandsHasTheAuthorOfItsCommits: a job has neither a name nor an address, and its subject is nobody's quota.
func TestWhatAWorkloadLandsHasTheAuthorOfItsCommits(t *testing.T) {
	g := serveGuarded(t)
	for subject, want := range map[string]string{"job": "Ada <ada@example.org>", "ada": "ada <ada@example.com>"} {
		change := "of-" + subject
		if response, text := g.do("POST", "/v1/queues/main/changes", fmt.Sprintf(`{"change":%q,"entries":[{"ref":%q}]}`, change, change), "X-Test-Session", subject+" lander"); response.StatusCode != 201 {
			t.Fatal(text)
		}
		for _, e := range g.Folded("main") {
			if m, is := e.Message.(*eventsv1.ChangeAdmitted); is && m.Admission.Change == change && m.Admission.Author != want {
				t.Errorf("what %s lands is %s's, want %s", subject, m.Admission.Author, want)
			}
		}
	}
}

// forgetful is a store whose list of tokens changes at each look, as it does once tokens that were revoked are forgotten.
type forgetful struct {
	api.TokenStore
	looks atomic.Int64
}

func (f *forgetful) Tokens() []access.Token {
	all := f.TokenStore.Tokens()
	return all[min(int(f.looks.Add(1))-1, len(all)):]
}

// TestATokenMakesNoMoreThanItMayWhateverIsForgottenMeanwhile: what binds it are its own verbs.
func TestATokenMakesNoMoreThanItMayWhateverIsForgottenMeanwhile(t *testing.T) {
	store := &apitest.Tokens{}
	g := serveGuarded(t, func(o *api.Options) { o.Tokens = &forgetful{TokenStore: store} })
	_, narrow := store.Make("narrow", access.Grant{Role: access.Admin, Queues: []string{"main"}, Verbs: []access.Verb{access.ManageTokens}}, time.Time{})
	store.Make("wide", access.Grant{Role: access.Admin, Queues: []string{"main"}}, time.Time{})
	if status, code := g.codeOf("POST", "/v1/tokens", `{"name":"more","role":"admin","queues":["main"]}`, http.Header{"Authorization": {"Bearer " + narrow}}); status != 403 || code != "forbidden" {
		t.Errorf("a token for tokens alone makes one for all: %d %s", status, code)
	}
}

// TestWhoAmIAnswersAsTheRoutesDo: what it says of each verb is what a route of that verb does.
func TestWhoAmIAnswersAsTheRoutesDo(t *testing.T) {
	g := serveGuarded(t)
	for i, author := range []string{"ada", "bob"} {
		id := fmt.Sprintf("c%d", i)
		g.Fold("main", events.TopicChanges, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Queue: "main", Change: id, Revision: 1, Author: author, Actor: &eventsv1.Actor{Issuer: issuer, Subject: author}, Entries: []*eventsv1.Entry{{Commit: apitest.Commit(id)}}, LandingCommits: []*eventsv1.LandingCommit{{Head: apitest.Commit(id), Base: apitest.Commit("main")}}}})
	}
	ask := func(role, query string) (api.WhoAmI, int) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), "GET", g.URL+"/v1/whoami?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Test-Session", "ada "+role)
		response, err := g.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var out api.WhoAmI
		if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out, response.StatusCode
	}
	place := map[string]int{}
	for i, role := range access.Roles() {
		place[role.String()] = i
	}
	for role, i := range place {
		for change, own := range map[string]bool{"": false, "c0": true, "c1": false} {
			who, _ := ask(role, "queue=main&change="+change)
			if len(who.May) != len(access.Verbs()) {
				t.Fatalf("%s is told of %d verbs, want %d", role, len(who.May), len(access.Verbs()))
			}
			for _, p := range who.May {
				marks, known := mayDo[access.Verb(p.Verb)]
				if !known {
					continue // no route has it
				}
				if want := marks[i] == 'v' || marks[i] == 'o' && own; p.Allowed != want {
					t.Errorf("%s may %s %q: %v, want %v", role, p.Verb, change, p.Allowed, want)
				}
				if want := change == "" && marks[i] == 'o'; p.Own != want {
					t.Errorf("%s may %s own changes, asked about %q: %v, want %v", role, p.Verb, change, p.Own, want)
				}
				if p.Allowed == (p.Message != "") || p.Allowed == (p.Advice != "") {
					t.Errorf("%s and %s: allowed is %v, and the reason %q with the advice %q", role, p.Verb, p.Allowed, p.Message, p.Advice)
				}
			}
		}
	}
	if who, _ := ask("viewer", ""); who.May != nil {
		t.Errorf("without a queue it says %v", who.May)
	}
	// Who may not read a queue is told the same of one that is not there.
	there, status := ask("operator", "queue=tools&change=c0")
	absent, also := ask("operator", "queue=absent&change=c0")
	if status != 200 || also != 200 || len(there.May) != len(absent.May) {
		t.Fatalf("a queue of others is answered with %d, one that is not there with %d", status, also)
	}
	for i, p := range there.May {
		if p.Allowed || strings.ReplaceAll(absent.May[i].Message, "absent", "tools") != p.Message {
			t.Errorf("of a queue of others it says %+v, of one that is not there %+v", p, absent.May[i])
		}
	}
}
