package access_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"landfall.build/engine/quota"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
)

const issuer = "https://login.example.com"

func rules(t testing.TB, text string) *access.Rules {
	t.Helper()
	c, err := configuration.Parse([]byte("version: 1\nrepositories: {a: {url: a}}\nqueues: {shop: {repository: a}, tools: {repository: a, branch: tools}}\n"+text), "f.yaml", configuration.Defaults{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return access.NewRules(c.Access)
}

// person has a role in the queue shop by its group.
func person(subject, group string) access.Caller {
	return access.Identified(issuer, subject, "Name of "+subject, subject+"@example.com", map[string]any{"groups": []any{"all", group}})
}

const byGroup = `access:
  mode: required
  issuers: {company: {url: 'https://login.example.com', audiences: [x]}}
  rules:
  - {role: viewer, queues: [shop], issuer: company, any: [{all: {groups: viewer}}]}
  - {role: contributor, queues: [shop], issuer: company, any: [{all: {groups: contributor}}]}
  - {role: lander, queues: [shop], issuer: company, any: [{all: {groups: lander}}]}
  - {role: operator, queues: [shop], issuer: company, any: [{all: {groups: operator}}]}
  - {role: admin, queues: [shop], issuer: company, any: [{all: {groups: admin}}]}
`

// may is what each role may do: v a change of anybody or none, o only the caller's own.
var may = map[access.Verb]string{
	//                     viewer contributor lander operator admin
	access.Read:         "v v v v v",
	access.ReadLogs:     "v v v v v",
	access.Land:         "- o v v v",
	access.Cancel:       "- o v v v",
	access.Retry:        "- o v v v",
	access.Verify:       "- - v v v",
	access.Urgent:       "- - - v v",
	access.Move:         "- - - v v",
	access.Hold:         "- - - v v",
	access.Pause:        "- - - v v",
	access.Quarantine:   "- - - v v",
	access.Models:       "- - - v v",
	access.Simulate:     "- - - v v",
	access.Deliveries:   "- - - v v",
	access.ManageTokens: "- - - - v",
}

func TestEveryRoleMayDoWhatTheTableSaysAndNothingElse(t *testing.T) {
	r := rules(t, byGroup)
	for _, verb := range access.Verbs() {
		row := strings.Fields(may[verb])
		if len(row) != len(access.Roles()) {
			t.Fatalf("%s has no row", verb)
		}
		for i, role := range access.Roles() {
			c := person("ada", role.String())
			owners := map[string]access.Owner{
				"own": {Issuer: issuer, Subject: "ada"}, "own by author": {Issuer: "landfall", Subject: "bot", Author: "Ada <Ada@example.com>"}, "new": {New: true},
				"another's": {Issuer: issuer, Subject: "bob", Author: "bob@example.com"}, "nobody's": {}, "of another issuer": {Issuer: "https://evil.example.com", Subject: "ada"},
			}
			for name, of := range owners {
				own := name == "own" || name == "own by author" || name == "new"
				want := row[i] == "v" || row[i] == "o" && own
				d := r.Decide(c, verb, "shop", of)
				if d.Allowed != want {
					t.Errorf("%s %s a change that is %s: allowed %v, want %v", role, verb, name, d.Allowed, want)
				}
				if !d.Allowed && (d.Reason == "" || d.Advice == "" || d.Code != access.Forbidden) {
					t.Errorf("%s %s is refused without a reason: %+v", role, verb, d)
				}
				if r.Decide(c, verb, "tools", of).Allowed {
					t.Errorf("%s of shop may %s in tools", role, verb)
				}
			}
		}
		if d := r.Decide(access.Caller{}, verb, "shop", access.Owner{New: true}); d.Allowed || d.Code != access.Unauthenticated {
			t.Errorf("nobody may %s: %+v", verb, d)
		}
	}
	if len(may) != len(access.Verbs()) {
		t.Error("the table has verbs that are none")
	}
	if d := r.Decide(person("ada", "admin"), "fly", "shop", access.Owner{New: true}); d.Allowed {
		t.Error("an admin may do what is no verb")
	}
}

func TestClaimsFitAsTheRuleSays(t *testing.T) {
	for _, c := range []struct {
		claims, rule string
		want         bool
	}{
		{`{"groups":["a","dev"]}`, "{groups: dev}", true},
		{`{"groups":["a","dev"]}`, "{groups: dev, team: x}", false},
		{`{"groups":["a","dev"],"team":"x"}`, "{groups: dev, team: x}", true},
		{`{"groups":"dev"}`, "{groups: dev}", true},
		{`{"groups":"developers"}`, "{groups: dev}", false},
		{`{"groups":"developers"}`, "{groups: 'dev*'}", true},
		{`{"groups":["Dev"]}`, "{groups: dev}", false},
		{`{"repository":"org/shop","ref":"refs/heads/main"}`, "{repository: org/shop, ref: refs/heads/main}", true},
		{`{"realm_access":{"roles":["a","b"]}}`, "{realm_access.roles: b}", true},
		{`{"realm_access":{"roles":["a","b"]}}`, "{realm_access: b}", false},
		{`{"https://example.com/roles":["b"]}`, "{'https://example.com/roles': b}", true},
		{`{"kubernetes.io":{"namespace":"ci","serviceaccount":{"name":"lander"}}}`, "{kubernetes.io.namespace: ci, kubernetes.io.serviceaccount.name: lander}", true},
		{`{"kubernetes.io":{"namespace":"other"}}`, "{kubernetes.io.namespace: ci}", false},
		{`{"admin":true,"level":3}`, "{admin: true, level: 3}", true},
		{`{"admin":false}`, "{admin: true}", false},
		{`{"groups":null}`, "{groups: '*'}", false},
		{`{"groups":[]}`, "{groups: '*'}", false},
		{`{"groups":[["dev"]]}`, "{groups: dev}", false},
		{`{}`, "{groups: '*'}", false},
		// The email address is that which the provider has verified, and the subject that of the identity, whatever the claims say.
		{`{"email":"admin@example.com"}`, "{email: admin@example.com}", false},
		{`{"sub":"admin"}`, "{sub: admin}", false},
		{`{}`, "{sub: ada}", true},
	} {
		r := rules(t, "access: {mode: required, issuers: {company: {url: 'https://login.example.com', audiences: [x]}}, rules: [{role: viewer, issuer: company, any: [{all: "+c.rule+"}]}]}\n")
		claims := map[string]any{}
		if err := json.Unmarshal([]byte(c.claims), &claims); err != nil {
			t.Fatal(err)
		}
		who := access.Identified(issuer, "ada", "", "", claims)
		if got := r.RoleIn(who, "shop") == access.Viewer; got != c.want {
			t.Errorf("%s fits %s: %v", c.claims, c.rule, got)
		}
		other := access.Identified("https://other.example.com", "ada", "", "", claims)
		if r.RoleIn(other, "shop") != access.NoRole {
			t.Errorf("%s of another issuer fits %s", c.claims, c.rule)
		}
	}
}

func TestTheHighestRoleOfTheRulesCounts(t *testing.T) {
	r := rules(t, `access: {mode: required, issuers: {company: {url: 'https://login.example.com', audiences: [x]}}, rules: [{role: operator, queues: [tools], issuer: company, any: [{all: {groups: a}}, {all: {groups: b}}]},
  {role: viewer, issuer: company, any: [{all: {groups: b}}]}]}
`)
	if got := fmt.Sprint(r.RoleIn(person("ada", "a"), "shop"), r.RoleIn(person("ada", "a"), "tools"), r.RoleIn(person("ada", "b"), "shop"), r.RoleIn(person("ada", "b"), "tools")); got != "none operator viewer operator" {
		t.Errorf("roles are %s", got)
	}
	lines := r.Explain(person("ada", "a"), "shop")
	if len(lines) != 2 || lines[0].Applies || lines[0].Why != "it is for other queues" || lines[1].Applies || lines[1].Why != "groups is not b" {
		t.Errorf("explained as %+v", lines)
	}
}

// TestWhoeverIsBelievedMakesNoTokens: a token outlives the mode.
func TestWhoeverIsBelievedMakesNoTokens(t *testing.T) {
	r := rules(t, "")
	for _, verb := range access.Verbs() {
		if d := r.Decide(access.Open("ada"), verb, "shop", access.Owner{}); d.Allowed != (verb != access.ManageTokens) {
			t.Errorf("%s: %+v", verb, d)
		}
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// made makes a token.
func made(t testing.TB, tokens *access.Tokens, g access.Grant, expires time.Time) (id, text string) {
	t.Helper()
	id, hash, text := access.NewToken()
	m, err := access.Created(id, hash, "bot", g, expires, noon, nil)
	if err != nil {
		t.Fatal(err)
	}
	tokens.Apply(m)
	return id, text
}

func TestATokenIsGoodUntilItExpiresOrIsRevoked(t *testing.T) {
	var tokens access.Tokens
	id, text := made(t, &tokens, access.Grant{Role: access.Lander, Queues: []string{"shop"}}, noon.Add(time.Hour))
	if !strings.HasPrefix(text, "landfall_"+id+"_") {
		t.Errorf("the token is %s", text)
	}
	check := func(text string, at time.Time, want error) {
		t.Helper()
		if token, err := tokens.Check(text, at); err != want || err == nil && token.ID != id || err != nil && token.ID != "" {
			t.Errorf("%s at %v: %v, want %v", text, at, err, want)
		}
	}
	check(text, noon.Add(time.Hour-1), nil)
	check(text, noon.Add(time.Hour), access.ErrExpired)
	secret := text[len(text)-26:]
	for _, wrong := range []string{"", "landfall_", text[:len(text)-1], text + "a", strings.ToUpper(text), "landfall_" + id + "_", "landfall_" + id + "_" + strings.Repeat("a", 26),
		"landfall_" + strings.Repeat("a", 12) + "_" + secret, "landfall__" + secret, text + "\n", " " + text, strings.Repeat("landfall_", 1000), text + strings.Repeat("x", 1000)} {
		check(wrong, noon, access.ErrNoToken)
	}
	// A second record of the id gives it no other secret.
	_, hash, other := access.NewToken()
	m, _ := access.Created(id, hash, "evil", access.Grant{Role: access.Admin, Queues: []string{"*"}}, time.Time{}, noon, nil)
	tokens.Apply(m)
	check("landfall_"+id+"_"+other[len(other)-26:], noon, access.ErrNoToken)
	check(text, noon, nil)
	tokens.Apply(&eventsv1.TokenUsed{Token: id, StampUs: noon.UnixMicro()})
	tokens.Apply(&eventsv1.TokenRevoked{Token: id, StampUs: noon.UnixMicro()})
	check(text, noon, access.ErrRevoked)
	tokens.Apply(m)
	check(text, noon, access.ErrRevoked)
	if list := tokens.List(); len(list) != 1 || list[0].LastUse != noon || list[0].Revoked != noon || list[0].Role != access.Lander {
		t.Errorf("listed as %+v", list)
	}
}

func TestATokenIsForItsQueuesAndVerbsAlone(t *testing.T) {
	r := rules(t, byGroup)
	var tokens access.Tokens
	_, text := made(t, &tokens, access.Grant{Role: access.RoleFor([]access.Verb{access.Read, access.Land}), Queues: []string{"shop"}, Verbs: []access.Verb{access.Read, access.Land}}, time.Time{})
	token, err := tokens.Check(text, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range access.Verbs() {
		if got := r.Decide(token.Caller(), verb, "shop", access.Owner{}).Allowed; got != (verb == access.Read || verb == access.Land) {
			t.Errorf("it may %s: %v", verb, got)
		}
		if r.Decide(token.Caller(), verb, "tools", access.Owner{New: true}).Allowed {
			t.Errorf("it may %s in another queue", verb)
		}
	}
	for _, wrong := range []access.Grant{{Queues: []string{"*"}}, {Role: access.Viewer}} {
		if _, err := access.Created("a", nil, "bot", wrong, time.Time{}, noon, nil); err == nil {
			t.Errorf("%+v is a grant", wrong)
		}
	}
	for _, name := range []string{"", "a\nb", "a\x1b[31m", strings.Repeat("a", 301), "a\u202eb"} {
		if _, err := access.Created("a", nil, name, access.Grant{Role: access.Viewer, Queues: []string{"*"}}, time.Time{}, noon, nil); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

func TestTokensAreBounded(t *testing.T) {
	var tokens access.Tokens
	for range access.MaxTokens + 10 {
		made(t, &tokens, access.Grant{Role: access.Viewer, Queues: []string{"*"}}, time.Time{})
	}
	list := tokens.List()
	if len(list) != access.MaxTokens {
		t.Fatalf("%d tokens", len(list))
	}
	for _, token := range list {
		tokens.Apply(&eventsv1.TokenRevoked{Token: token.ID, StampUs: noon.UnixMicro()})
	}
	if n := len(tokens.List()); n != 1000 {
		t.Errorf("%d tokens that were revoked are kept", n)
	}
}

// TestTokensThatHaveExpiredLeaveRoomForOthers: a program that makes one an hour does not take all places in a year.
func TestTokensThatHaveExpiredLeaveRoomForOthers(t *testing.T) {
	var tokens access.Tokens
	grant := access.Grant{Role: access.Viewer, Queues: []string{"*"}}
	last, _ := made(t, &tokens, grant, time.Time{})
	for range access.MaxTokens - 1 {
		made(t, &tokens, grant, noon.Add(time.Hour))
	}
	create := func(at time.Time) bool {
		id, hash, _ := access.NewToken()
		m, err := access.Created(id, hash, "late", grant, time.Time{}, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		tokens.Apply(m)
		_, is := tokens.Get(id)
		return is
	}
	if create(noon.Add(time.Hour - time.Second)) {
		t.Error("there is room while all are in force")
	}
	if !create(noon.Add(time.Hour)) {
		t.Error("there is no room when all but one have expired")
	}
	if _, is := tokens.Get(last); !is {
		t.Error("the one that lasts is gone")
	}
	if n := len(tokens.List()); n > 1002 {
		t.Errorf("%d tokens are kept, two of which are in force", n)
	}
}

func TestNamesCannotForgeLines(t *testing.T) {
	c := access.Identified(issuer+"\n", "a\nlevel=ERROR", "\x1b[2Jroot\u202e\xff", "", nil)
	a := c.Actor(access.Lander)
	for _, text := range []string{a.Issuer, a.Subject, a.Name} {
		if strings.ContainsAny(text, "\n\x1b\u202e") || !utf8.ValidString(text) {
			t.Errorf("%q is shown", text)
		}
	}
	if long := access.Clean(strings.Repeat("é", 1000), 301); len(long) != 300 {
		t.Errorf("it is %d bytes long", len(long))
	}
	if got := access.Identified(issuer, "a", "Root <root@example.com>", "a@example.com", nil).Author(); got != "Root rootexample.com <a@example.com>" {
		t.Errorf("the author is %s", got)
	}
	// Without an author, that of the commits would be named: anybody.
	for _, name := range []string{"@", "<>", "@<@>"} {
		for _, subject := range []string{"7", "<@>"} {
			if got := access.Identified(issuer, subject, name, "", nil).Author(); got == "" || strings.ContainsAny(got, "<>@") {
				t.Errorf("%s, whose name is %q, is the author %q", subject, name, got)
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	r := rules(b, byGroup)
	c := person("ada", "admin")
	for b.Loop() {
		r.Decide(c, access.Pause, "shop", access.Owner{})
	}
}

func BenchmarkCheckToken(b *testing.B) {
	var tokens access.Tokens
	_, text := made(b, &tokens, access.Grant{Role: access.Viewer, Queues: []string{"*"}}, time.Time{})
	for b.Loop() {
		tokens.Check(text, noon)
	}
}

// FuzzAContributorCannotLeaveItsQuota: however it writes its address, its steps count for one author.
func FuzzAContributorCannotLeaveItsQuota(f *testing.F) {
	ada := access.Identified(issuer, "7", "Ada K. Sims", "ada.k.sims@example.com", nil)
	for _, author := range []string{
		"ada.k.sims@example.com", "Ada <ADA.K.SIMS@EXAMPLE.COM>", "Ada K. Sims <ada.k.sims@example.com>", "ada.k.\u017fims@example.com", "<ada.\u212a.sims@example.com>",
		"x <bob@example.com> <ada.k.sims@example.com>", "<ada.k.sims@example.com> >", "Ada < ada.k.sims@example.com>", "",
	} {
		f.Add(author)
	}
	f.Fuzz(func(t *testing.T, author string) {
		if ada.IsAuthor(author) && quota.AuthorOf(author) != quota.AuthorOf(ada.Author()) {
			t.Errorf("%q is taken for hers, and counts for %q", author, quota.AuthorOf(author))
		}
	})
}

// FuzzTokens presents what looks like a token: only the one that was made is taken.
func FuzzTokens(f *testing.F) {
	var tokens access.Tokens
	id, hash, good := access.NewToken()
	m, err := access.Created(id, hash, "bot", access.Grant{Role: access.Viewer, Queues: []string{"shop"}}, time.Time{}, time.Unix(1, 0), nil)
	if err != nil {
		f.Fatal(err)
	}
	tokens.Apply(m)
	f.Add(good)
	f.Add(good + " ")
	f.Add(access.TokenPrefix + id + "_")
	f.Add(access.TokenPrefix + "_" + good)
	f.Fuzz(func(t *testing.T, presented string) {
		token, err := tokens.Check(presented, time.Unix(2, 0))
		if (err == nil) != (presented == good) || err == nil && token.ID != id {
			t.Errorf("%q: %+v, %v", presented, token, err)
		}
	})
}

// FuzzClaims asks a rule about any claims: it gives its role only to whom it is for, and its words about the others are of one line.
func FuzzClaims(f *testing.F) {
	r := rules(f, `access:
  mode: required
  issuers: {company: {url: 'https://login.example.com', audiences: [x]}}
  rules:
  - {role: operator, queues: [shop], issuer: company, any: [{all: {groups: 'deploy', realm.roles: 'l*r'}}]}
`)
	f.Add("7", `{"groups":["deploy"],"realm":{"roles":["lander"]}}`)
	f.Add("7", `{"groups":"deploy","realm.roles":"lr"}`)
	f.Add("7", `{"groups":{"deploy":true},"realm":{"roles":{"lander":1}},"realm.roles":null}`)
	f.Fuzz(func(t *testing.T, subject, text string) {
		var claims map[string]any
		if json.Unmarshal([]byte(text), &claims) != nil {
			return
		}
		c := access.Identified(issuer, subject, "", "", claims)
		if role := r.RoleIn(c, "shop"); role != access.NoRole && !(strings.Contains(text, "deploy") || strings.Contains(text, "\\")) {
			t.Errorf("%q has the role %s", text, role)
		}
		if r.RoleIn(c, "tools") != access.NoRole || r.RoleIn(access.Identified("https://other.example.com", subject, "", "", claims), "shop") != access.NoRole {
			t.Errorf("%q has a role in another queue, or from another issuer", text)
		}
		for _, line := range r.Explain(c, "shop") {
			if line.Applies != (r.RoleIn(c, "shop") == line.Role) || strings.Contains(line.Why, "\n") {
				t.Errorf("%q: %+v", text, line)
			}
		}
	})
}
