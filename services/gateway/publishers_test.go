package gateway

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
)

// keyOf returns the private key of a seed, and its public key as the configuration has it.
func keyOf(t *testing.T, seed byte) (ed25519.PrivateKey, string) {
	t.Helper()
	of := make([]byte, ed25519.SeedSize)
	of[0] = seed
	private := ed25519.NewKeyFromSeed(of)
	der, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return private, base64.StdEncoding.EncodeToString(der)
}

// sign returns the headers of a request of a publisher.
func sign(name string, key ed25519.PrivateKey, content, value string) []events.Header {
	signature := ed25519.Sign(key, []byte("landfall land request\n"+content+"\n"+value))
	headers := []events.Header{{Key: "ce_publisher", Value: []byte(name)}, {Key: "ce_signature", Value: []byte(base64.StdEncoding.EncodeToString(signature))}}
	if content != "" {
		headers = append(headers, events.Header{Key: "content-type", Value: []byte(content)})
	}
	return headers
}

// TestASignedRequestIsItsPublishers writes records to Kafka as other programs do, signed and forged.
func TestASignedRequestIsItsPublishers(t *testing.T) {
	key, public := keyOf(t, 1)
	newKey, newPublic := keyOf(t, 2)
	strangers, _ := keyOf(t, 3)
	log, repo := newLog(1), newRepository(t)
	one := startGatewayWith(t, log, repo, "one", func(c *configuration.Configuration) {
		required(c)
		c.Access.Requests = configuration.RequestsSigned
		c.Access.Publishers = map[string]configuration.Publisher{
			"bot":       {Keys: []string{public, newPublic}, Role: "lander"},
			"release":   {Keys: []string{public}, Role: "operator", Queues: []string{testQueue}},
			"elsewhere": {Keys: []string{public}, Role: "lander", Queues: []string{"other"}},
		}
	})
	for i, c := range []struct {
		name    string
		fields  string // of the request besides its change and entries
		headers func(value string) []events.Header
		// asked is the publisher that has asked; "" if the request is refused.
		asked string
		role  string
	}{
		{"signed", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("bot", key, "", v) }, "bot", "lander"},
		{"signed by the newer key", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("bot", newKey, "application/json", v) }, "bot", "lander"},
		{"with more benefit", `"queue":"main","request_id":"r%d","benefit":5`, func(v string) []events.Header { return sign("release", key, "", v) }, "release", "operator"},
		{"with another actor", `"queue":"main","request_id":"r%d","actor":{"issuer":"landfall","subject":"root","role":"admin"}`, func(v string) []events.Header { return sign("bot", key, "", v) }, "bot", "lander"},
		{"with the benefit of another one", `"queue":"main","request_id":"r%d","benefit":5`, func(v string) []events.Header { return sign("bot", key, "", v) }, "", ""},
		{"unsigned", `"queue":"main","request_id":"r%d"`, func(string) []events.Header { return nil }, "", ""},
		{"with a publisher alone", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("bot", key, "", v)[:1] }, "", ""},
		{"with a signature alone", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("bot", key, "", v)[1:] }, "", ""},
		{"signed by a stranger", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("bot", strangers, "", v) }, "", ""},
		{"of nobody known", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("nobody", key, "", v) }, "", ""},
		{"of a publisher of another queue", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("elsewhere", key, "", v) }, "", ""},
		{"with a value of its own", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("bot", key, "", v+" ") }, "", ""},
		{"of another type", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header {
			return append(sign("bot", key, "", v), events.Header{Key: "content-type", Value: []byte("application/json")})
		}, "", ""},
		{"with two publishers", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header {
			return append(sign("bot", key, "", v), events.Header{Key: "CE_Publisher", Value: []byte("release")})
		}, "", ""},
		{"without a commit", `"queue":"main","request_id":"r%d"`, func(v string) []events.Header { return sign("bot", key, "", v) }, "", ""},
		{"without a queue", `"request_id":"r%d"`, func(v string) []events.Header { return sign("bot", key, "", v) }, "", ""},
		{"without a request id", `"queue":"main"`, func(v string) []events.Header { return sign("bot", key, "", v) }, "", ""},
	} {
		change := fmt.Sprintf("c%d", i)
		fields := c.fields
		if c.name != "without a request id" {
			fields = fmt.Sprintf(fields, i)
		}
		commit := repo.branch(change)
		if c.name == "without a commit" {
			commit = ""
		}
		value := fmt.Sprintf(`{%s,"change":%q,"entries":[{"ref":%q,"commit":%q,"review":{"branch":"refs/heads/main","shown":"refs/heads/main"}}]}`, fields, change, change, commit)
		if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Partition: 0, Key: []byte(testQueue), Value: []byte(value), Headers: c.headers(value)}); err != nil {
			t.Fatal(err)
		}
		var actor *eventsv1.Actor
		var code string
		one.eventually(c.name+" is answered", func() bool {
			for m := range everything(t, log) {
				if r, is := m.(*eventsv1.RequestRefused); is && r.Change == change {
					code = r.Code
				}
			}
			a := one.admission(change)
			if actor = a.GetActor(); a != nil && a.Entries[0].Review != nil {
				t.Errorf("%s: a branch is moved for it", c.name)
			}
			return actor != nil || code != ""
		})
		switch want := (&eventsv1.Actor{Issuer: access.IssuerPublisher, Subject: c.asked, Name: c.asked, Role: c.role}); {
		case c.asked == "" && (actor != nil || code != "forbidden"):
			t.Errorf("%s: asked for by %v, answered %q; want a refusal", c.name, actor, code)
		case c.asked != "" && !proto.Equal(actor, want):
			t.Errorf("%s: asked for by %v, answered %q; want %v", c.name, actor, code, want)
		}
	}

	// Whoever has claimed the id of another's request first has not had it answered.
	forged := fmt.Sprintf(`{"queue":"main","request_id":"mine","change":"of-eve","entries":[{"ref":"mine","commit":%q}]}`, repo.branch("mine"))
	mine := fmt.Sprintf(`{"queue":"main","request_id":"mine","change":"mine","entries":[{"ref":"mine","commit":%q}]}`, repo.branch("mine"))
	for value, headers := range map[string][]events.Header{forged: sign("bot", strangers, "", forged), forged + " ": nil} {
		if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Partition: 0, Value: []byte(value), Headers: headers}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Partition: 0, Value: []byte(mine), Headers: sign("bot", key, "", mine)}); err != nil {
		t.Fatal(err)
	}
	one.eventually("the publisher's own request is admitted", func() bool { return one.admission("mine") != nil })
}

// TestTheContentTypeTakesNoPartOfASignedRequest: what a request describes itself with is the text of others, and could be a request. Signed is
// the type, a line break and the value; whoever writes the record anew could have the value begin further on.
func TestTheContentTypeTakesNoPartOfASignedRequest(t *testing.T) {
	key, public := keyOf(t, 1)
	log, repo := newLog(1), newRepository(t)
	one := startGatewayWith(t, log, repo, "one", func(c *configuration.Configuration) {
		required(c)
		c.Access.Requests = configuration.RequestsSigned
		c.Access.Publishers = map[string]configuration.Publisher{"bot": {Keys: []string{public}, Role: "lander"}}
	})
	bytesOf := func(r *eventsv1.LandRequest) string {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(value)
	}
	evil := bytesOf(&eventsv1.LandRequest{Queue: testQueue, Change: "evil", RequestId: "evil", Entries: []*eventsv1.Entry{{Ref: "evil", Commit: repo.branch("evil")}}})
	good := bytesOf(&eventsv1.LandRequest{Queue: testQueue, Change: "good", Entries: []*eventsv1.Entry{{Ref: "good", Commit: repo.branch("good")}}, Description: "It mends it.\n" + evil, RequestId: "good"})
	const content = "application/protobuf; v=1"
	headers := sign("bot", key, content, good)
	before, after, _ := strings.Cut(good, "mends it.\n")
	forged := append(slices.Clone(headers[:2]), events.Header{Key: "content-type", Value: []byte(content + "\n" + before + "mends it.")})
	if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Value: []byte(after), Headers: forged}); err != nil {
		t.Fatal(err)
	}
	code := ""
	one.eventually("the forged record is answered", func() bool {
		for m := range everything(t, log) {
			if r, is := m.(*eventsv1.RequestRefused); is && r.Change == "evil" {
				code = r.Code
			}
		}
		return code != "" || one.admission("evil") != nil
	})
	if code != "forbidden" {
		t.Errorf("what stands in a description is answered %q; want a refusal", code)
	}
}

// TestAKeyThatIsTakenAwayCountsNoMore after the next start, for requests that were written before it either. Those that were answered are not
// answered again.
func TestAKeyThatIsTakenAwayCountsNoMore(t *testing.T) {
	key, public := keyOf(t, 1)
	newKey, newPublic := keyOf(t, 2)
	log, repo := newLog(1), newRepository(t)
	start := func(keys ...string) *running {
		return startGatewayWith(t, log, repo, "one", func(c *configuration.Configuration) {
			required(c)
			c.Access.Requests = configuration.RequestsSigned
			c.Access.Publishers = map[string]configuration.Publisher{"bot": {Keys: keys, Role: "lander"}}
		})
	}
	ask := func(change string, key ed25519.PrivateKey) {
		t.Helper()
		value := fmt.Sprintf(`{"queue":"main","request_id":%q,"change":%q,"entries":[{"ref":%q,"commit":%q}]}`, change, change, change, repo.branch(change))
		if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Partition: 0, Value: []byte(value), Headers: sign("bot", key, "", value)}); err != nil {
			t.Fatal(err)
		}
	}
	one := start(public, newPublic)
	ask("before", key)
	one.eventually("what the key signs is admitted", func() bool { return one.admission("before") != nil })
	one.stop()
	ask("meanwhile", key)
	one = start(newPublic)
	ask("after", key)
	ask("new", newKey)
	one.eventually("what the other key signs is admitted", func() bool { return one.admission("new") != nil })
	refused := map[string]string{}
	one.eventually("what the key signs is answered", func() bool {
		for m := range everything(t, log) {
			if r, is := m.(*eventsv1.RequestRefused); is {
				refused[r.Change] = r.Code
			}
		}
		return one.admission("meanwhile") != nil || one.admission("after") != nil || refused["meanwhile"] != "" && refused["after"] != ""
	})
	if one.admission("before") == nil || refused["before"] != "" || refused["meanwhile"] != "forbidden" || refused["after"] != "forbidden" {
		t.Errorf("refused: %v", refused)
	}
}

// TestAHeaderThatIsThereTwiceMattersToSignaturesAlone: clients may add a content type of their own.
func TestAHeaderThatIsThereTwiceMattersToSignaturesAlone(t *testing.T) {
	log, repo := newLog(1), newRepository(t)
	one := startGateway(t, log, repo, "one")
	repo.branch("a")
	content := events.Header{Key: "content-type", Value: []byte("application/json")}
	if err := log.Write(t.Context(), journal.Record{Topic: events.TopicLandRequests, Partition: 0, Value: []byte(`{"queue":"main","change":"a","entries":[{"ref":"a"}]}`), Headers: []events.Header{content, content}}); err != nil {
		t.Fatal(err)
	}
	one.eventually("it is admitted", func() bool { return one.admission("a") != nil })
}
