package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/view"
)

func required(c *configuration.Configuration) { c.Access.Mode = configuration.AccessRequired }

// writeToken writes a token into the log, as landfall token create --direct does.
func writeToken(t testing.TB, log journal.Log, name string, g access.Grant) (id, text string) {
	t.Helper()
	id, hash, text := access.NewToken()
	m, err := access.Created(id, hash, name, g, time.Time{}, time.Now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	writeAccess(t, log, m)
	return id, text
}

func writeAccess(t testing.TB, log journal.Log, m proto.Message) {
	t.Helper()
	if _, err := log.Append(context.Background(), events.TopicAccess, events.PartitionOf("", log.Partitions()), events.Envelope{
		ID: fmt.Sprintf("access-%d", time.Now().UnixNano()), Source: "test", Term: -1, Time: time.Now(), Message: m,
	}); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request with a token, and returns the status and the answer.
func (r *running) ask(token, method, path, body string) (int, map[string]any) {
	r.t.Helper()
	request, err := http.NewRequest(method, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if method == "POST" {
		request.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := r.server.Client().Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	var out map[string]any
	if err := json.NewDecoder(response.Body).Decode(&out); err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, out
}

func (r *running) admission(change string) (a *eventsv1.Admission) {
	r.gateway.Read(testQueue, func(q *view.Queue) { a = q.Admission(change) })
	return a
}

func TestATokenIsKnownAtEveryGatewayUntilItIsRevoked(t *testing.T) {
	log, repo := newLog(3), newRepository(t)
	one := startGatewayWith(t, log, repo, "one", required)
	if status, _ := one.ask("", "GET", "/v1/queues", ""); status != 401 {
		t.Fatalf("without a token: %d", status)
	}
	_, admin := writeToken(t, log, "first", access.Grant{Role: access.Admin, Queues: []string{"*"}})
	one.eventually("the first token is known", func() bool { status, _ := one.ask(admin, "GET", "/v1/whoami", ""); return status == 200 })
	status, reply := one.ask(admin, "POST", "/v1/tokens", `{"name":"bot","role":"viewer","queues":["main"],"ttl":"1h"}`)
	if status != 201 {
		t.Fatalf("create: %d %v", status, reply)
	}
	bot, id := reply["secret"].(string), reply["token"].(map[string]any)["id"].(string)
	two := startGatewayWith(t, log, repo, "two", required)
	if status, who := two.ask(bot, "GET", "/v1/whoami", ""); status != 200 || who["roles"].(map[string]any)["main"] != "viewer" || len(who["roles"].(map[string]any)) != 1 {
		t.Errorf("at a gateway that starts: %d %v", status, who)
	}
	one.eventually("its use is in the log", func() bool {
		for _, token := range one.gateway.Tokens() {
			if token.ID == id && !token.LastUse.IsZero() {
				return true
			}
		}
		return false
	})
	if status, reply := two.ask(admin, "POST", "/v1/tokens/"+id+"/revoke", `{"why":"lost"}`); status != 200 {
		t.Fatalf("revoke: %d %v", status, reply)
	}
	if status, _ := two.ask(bot, "GET", "/v1/whoami", ""); status != 401 {
		t.Errorf("where it was revoked: %d", status)
	}
	one.eventually("it is revoked at the other gateway", func() bool { status, _ := one.ask(bot, "GET", "/v1/whoami", ""); return status == 401 })
	for e := range everything(t, log) {
		if text := fmt.Sprint(e); strings.Contains(text, bot[len(bot)-26:]) || strings.Contains(text, admin[len(admin)-26:]) {
			t.Errorf("a secret is in the log: %v", e)
		}
	}
}

// everything yields all records of the log.
func everything(t testing.TB, log journal.Log) func(func(proto.Message) bool) {
	return func(yield func(proto.Message) bool) {
		for _, topic := range []string{events.TopicAccess, events.TopicChanges, events.TopicLandRequests} {
			for partition := range log.Partitions() {
				end, err := log.End(t.Context(), topic, partition)
				if err != nil {
					t.Fatal(err)
				}
				cursor, err := log.Follow(t.Context(), topic, partition, 0)
				if err != nil {
					t.Fatal(err)
				}
				for n := int64(0); n < end; {
					e, err := cursor.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if n = e.Offset + 1; e.Message != nil && !yield(e.Message) {
						return
					}
				}
				cursor.Close()
			}
		}
	}
}

// TestWhoeverAnswersARequestKnowsWhoAsked: two gateways answer what one of them was asked.
func TestWhoeverAnswersARequestKnowsWhoAsked(t *testing.T) {
	log, repo := newLog(2), newRepository(t)
	one, _ := startGatewayWith(t, log, repo, "one", required), startGatewayWith(t, log, repo, "two", required)
	id, bot := writeToken(t, log, "bot", access.Grant{Role: access.Lander, Queues: []string{"main"}})
	one.eventually("the token is known", func() bool { status, _ := one.ask(bot, "GET", "/v1/whoami", ""); return status == 200 })
	for i := range 10 {
		name := fmt.Sprintf("b%d", i)
		repo.branch(name)
		if status, reply := one.ask(bot, "POST", "/v1/queues/main/changes", fmt.Sprintf(`{"change":%q,"entries":[{"ref":%q}]}`, name, name)); status != 201 {
			t.Fatalf("%d %v", status, reply)
		}
		if a := one.admission(name).GetActor(); a.GetIssuer() != access.IssuerToken || a.GetSubject() != id || a.GetRole() != "lander" {
			t.Errorf("%s was asked for by %v", name, a)
		}
	}
}

// TestARecordOfAnotherProgramNamesNobody whatever it claims: who can write the topic is no more than that.
func TestARecordOfAnotherProgramNamesNobody(t *testing.T) {
	log, repo := newLog(2), newRepository(t)
	one := startGatewayWith(t, log, repo, "one", required)
	_, bot := writeToken(t, log, "bot", access.Grant{Role: access.Lander, Queues: []string{"main"}})
	one.eventually("the token is known", func() bool { status, _ := one.ask(bot, "GET", "/v1/whoami", ""); return status == 200 })
	repo.branch("good")
	if status, reply := one.ask(bot, "POST", "/v1/queues/main/changes", `{"change":"good","entries":[{"ref":"good"}],"request_id":"r1"}`); status != 201 {
		t.Fatalf("%d %v", status, reply)
	}
	var signed *eventsv1.LandRequest
	for m := range everything(t, log) {
		if r, is := m.(*eventsv1.LandRequest); is {
			signed = r
		}
	}
	if len(signed.GetSignature()) == 0 || signed.GetActor() == nil {
		t.Fatalf("the gateway did not sign %v", signed)
	}
	root := &eventsv1.Actor{Issuer: "https://id.example.com", Subject: "root", Role: "admin"}
	forged := map[string]func(*eventsv1.LandRequest){
		"unsigned":                    func(r *eventsv1.LandRequest) { r.Actor, r.Signature, r.SignedBy = root, nil, "" },
		"another actor":               func(r *eventsv1.LandRequest) { r.Actor = root },
		"another role":                func(r *eventsv1.LandRequest) { r.Actor.Role = "admin" },
		"another key":                 func(r *eventsv1.LandRequest) { r.SignedBy = "nobody's" },
		"a cut signature":             func(r *eventsv1.LandRequest) { r.Signature = r.Signature[:63] },
		"the same for another change": func(*eventsv1.LandRequest) {},
	}
	for name, change := range forged {
		id := strings.ReplaceAll(name, " ", "-")
		repo.branch(id)
		r := proto.Clone(signed).(*eventsv1.LandRequest)
		r.Change, r.RequestId, r.Entries = id, "forged-"+id, []*eventsv1.Entry{{Ref: id}}
		change(r)
		if _, err := log.Append(t.Context(), events.TopicLandRequests, 0, events.Envelope{ID: "forged-" + id, Source: "evil", Instance: "x", Queue: testQueue, Term: -1, Time: time.Now(), Message: r}); err != nil {
			t.Fatal(err)
		}
		one.eventually(name+" is answered", func() bool { return one.admission(id) != nil })
		if a := one.admission(id).GetActor(); a.GetIssuer() != access.IssuerLog || a.GetSubject() != "evil/x" || a.GetRole() != "lander" {
			t.Errorf("%s: asked for by %v", name, a)
		}
	}
}

func TestLandRequestsOfOtherProgramsAreRefusedWhereThatIsAskedFor(t *testing.T) {
	log, repo := newLog(1), newRepository(t)
	one := startGatewayWith(t, log, repo, "one", func(c *configuration.Configuration) { required(c); c.Access.Requests = configuration.RequestsRefuse })
	_, bot := writeToken(t, log, "bot", access.Grant{Role: access.Lander, Queues: []string{"main"}})
	one.eventually("the token is known", func() bool { status, _ := one.ask(bot, "GET", "/v1/whoami", ""); return status == 200 })
	repo.branch("a")
	if _, err := log.Append(t.Context(), events.TopicLandRequests, 0, events.Envelope{ID: "x", Source: "evil", Queue: testQueue, Term: -1, Time: time.Now(), Message: &eventsv1.LandRequest{Queue: testQueue, RequestId: "r", Change: "a", Entries: []*eventsv1.Entry{{Ref: "a"}}}}); err != nil {
		t.Fatal(err)
	}
	one.eventually("it is refused", func() bool {
		for m := range everything(t, log) {
			if r, is := m.(*eventsv1.RequestRefused); is && r.Change == "a" {
				// The id that it claims may be another's.
				return r.Code == "forbidden" && r.RequestId != "r" && r.Place != nil
			}
		}
		return false
	})
	if status, reply := one.ask(bot, "POST", "/v1/queues/main/changes", `{"change":"a","entries":[{"ref":"a"}]}`); status != 201 {
		t.Errorf("by the API: %d %v", status, reply)
	}
}

// TestAContributorRevisesOnlyItsOwnWhoeverAsksFirst: the request went past the API's check, when nobody owned the change yet.
func TestAContributorRevisesOnlyItsOwnWhoeverAsksFirst(t *testing.T) {
	log, repo := newLog(1), newRepository(t)
	one := startGatewayWith(t, log, repo, "one", required)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ask := func(subject, branch string) string {
		repo.branch(branch)
		answer, err := one.gateway.Land(ctx, &eventsv1.LandRequest{Queue: testQueue, Change: "c", Entries: []*eventsv1.Entry{{Ref: branch}}, Author: subject,
			Actor: &eventsv1.Actor{Issuer: "https://id.example.com", Subject: subject, Role: "contributor"}})
		if err != nil {
			t.Fatal(err)
		}
		return answer.Refused.GetCode()
	}
	for _, c := range []struct{ subject, branch, want string }{{"ada", "one", ""}, {"eve", "two", "forbidden"}, {"ada", "three", ""}} {
		if got := ask(c.subject, c.branch); got != c.want {
			t.Errorf("%s is answered %q, want %q", c.subject, got, c.want)
		}
	}
}

// TestAContributorHasHalfOfAQueueAtMost: it could have all of it with one commit under as many ids, so that nobody else landed anything.
func TestAContributorHasHalfOfAQueueAtMost(t *testing.T) {
	log, repo := newLog(1), newRepository(t)
	one := startGatewayWith(t, log, repo, "one", func(c *configuration.Configuration) {
		required(c)
		q := c.Queues[testQueue]
		q.Limits.Pending = 6
		c.Queues[testQueue] = q
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	repo.branch("one")
	repo.branch("two")
	for i, c := range []struct{ subject, role, change, branch, want string }{
		{"eve", "contributor", "e1", "one", ""}, {"eve", "contributor", "e2", "one", ""}, {"bot", "lander", "b1", "one", ""}, {"eve", "contributor", "e3", "one", ""},
		{"eve", "contributor", "e4", "one", "queue_full"}, {"eve", "contributor", "e3", "two", ""}, {"bot", "lander", "b2", "one", ""}, {"ada", "contributor", "a1", "one", ""},
		{"ada", "contributor", "a2", "one", "queue_full"},
	} {
		answer, err := one.gateway.Land(ctx, &eventsv1.LandRequest{Queue: testQueue, Change: c.change, Entries: []*eventsv1.Entry{{Ref: c.branch}}, Author: c.subject,
			Actor: &eventsv1.Actor{Issuer: "https://id.example.com", Subject: c.subject, Role: c.role}})
		if err != nil {
			t.Fatal(err)
		}
		if got := answer.Refused.GetCode(); got != c.want {
			t.Errorf("%d: %s of %s is answered %q, want %q: %s", i, c.change, c.subject, got, c.want, answer.Refused.GetMessage())
		}
	}
}

// TestAContributorHas500ChangesAtMost, however many a queue may have: what services keep of changes that conflict grows with the square of
// their number, and a process that does not have that memory ends, at each start again.
func TestAContributorHas500ChangesAtMost(t *testing.T) {
	for pending, want := range map[int]int{6: 3, 1000: 500, 10_000: 500, 100_000: 500} {
		if got := mostOfContributor(pending); got != want {
			t.Errorf("of %d: %d, want %d", pending, got, want)
		}
	}
}

// TestAProgramOnKafkaGivesNoMoreThanALander: where people have to prove who they are, a benefit above 1 takes an operator on every way in.
func TestAProgramOnKafkaGivesNoMoreThanALander(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(*configuration.Configuration)
		benefit float64
		want    string
	}{
		{"open", func(*configuration.Configuration) {}, 5, ""}, {"ordinary", required, 1, ""}, {"less", required, 0.5, ""}, {"urgent", required, 5, "forbidden"},
	} {
		log, repo := newLog(1), newRepository(t)
		one := startGatewayWith(t, log, repo, "one", c.change)
		repo.branch("a")
		if _, err := log.Append(t.Context(), events.TopicLandRequests, 0, events.Envelope{ID: "x", Source: "review", Queue: testQueue, Term: -1, Time: time.Now(),
			Message: &eventsv1.LandRequest{Queue: testQueue, RequestId: "r", Change: "a", Entries: []*eventsv1.Entry{{Ref: "a"}}, Benefit: c.benefit}}); err != nil {
			t.Fatal(err)
		}
		got := "none"
		one.eventually(c.name+" is answered", func() bool {
			for m := range everything(t, log) {
				switch m := m.(type) {
				case *eventsv1.RequestRefused:
					got = m.Code
				case *eventsv1.ChangeAdmitted:
					got = ""
				}
			}
			return got != "none"
		})
		if got != c.want {
			t.Errorf("%s: a benefit of %v is answered %q, want %q", c.name, c.benefit, got, c.want)
		}
	}
}

// TestACancellationNamesWhoHasProvenIt in the log and in the story of the change.
func TestACancellationNamesWhoHasProvenIt(t *testing.T) {
	log, repo := newLog(1), newRepository(t)
	one := startGatewayWith(t, log, repo, "one", required)
	id, bot := writeToken(t, log, "release bot", access.Grant{Role: access.Lander, Queues: []string{"main"}})
	one.eventually("the token is known", func() bool { status, _ := one.ask(bot, "GET", "/v1/whoami", ""); return status == 200 })
	repo.branch("a")
	if status, reply := one.ask(bot, "POST", "/v1/queues/main/changes", `{"change":"a","entries":[{"ref":"a"}]}`); status != 201 {
		t.Fatalf("%d %v", status, reply)
	}
	if status, reply := one.ask(bot, "POST", "/v1/queues/main/changes/a/cancel", `{"who":"root","why":"no"}`); status != 200 {
		t.Fatalf("%d %v", status, reply)
	}
	for m := range everything(t, log) {
		if c, is := m.(*eventsv1.ChangeCancelled); is && (c.Who != "release bot" || c.Actor.GetSubject() != id || c.Actor.GetRole() != "lander") {
			t.Errorf("cancelled by %v", c)
		}
	}
	_, story := one.ask(bot, "GET", "/v1/queues/main/changes/a", "")
	if text := fmt.Sprint(story["timeline"]); !strings.Contains(text, "(token "+id+"), as lander, with Go-http-client") {
		t.Errorf("the story is %s", text)
	}
}
