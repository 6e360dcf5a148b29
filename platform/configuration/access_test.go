package configuration

import (
	"encoding/base64"
	"testing"
)

// exampleKey is a public key of Ed25519.
const exampleKey = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="

func TestAccessRulesAreCheckedAgainstTheRest(t *testing.T) {
	for _, c := range []struct{ text, path, message string }{
		{"access: {mode: required, rules: [{role: viewer, issuer: b, any: [{all: {groups: dev}}]}]}\n", "access.rules[0].issuer", "not under access.issuers"},
		{"access: {mode: required, issuers: {a: {url: 'https://login.example.com', audiences: [x]}}, rules: [{role: viewer, queues: [mian], issuer: a, any: [{all: {groups: dev}}]}]}\n", "access.rules[0].queues[0]", "not under queues"},
		{"access: {mode: required, issuers: {a: {url: 'https://login.example.com', audiences: [x]}}, rules: [{role: viewer, issuer: a, any: [{all: {groups: ''}}]}]}\n", "access.rules[0].any[0].all.groups", "must be 1 to 1000"},
		{"access: {issuers: {a: {url: 'https://login.example.com', audiences: [x]}}, rules: [{role: viewer, issuer: a, any: [{all: {groups: dev}}]}]}\n", "access.rules", "has no effect with mode open"},
		{"access: {mode: required, issuers: {a: {url: 'https://login.example.com', audiences: [x]}}, rules: [{role: viewer, issuer: a, any: [{all: {'a b': dev}}]}]}\n", `access.rules[0].any[0].all."a b"`, "must be the name of a claim"},
	} {
		if problems := problemsOf(t, smallest+c.text); !find(problems, c.path, c.message) {
			t.Errorf("%s: no problem %q at %s in %v", c.text, c.message, c.path, problems)
		}
	}
	c := mustParse(t, smallest+"access: {mode: required, issuers: {a: {url: 'https://login.example.com', audiences: [x]}}, rules: [{role: admin, queues: ['*'], issuer: a, any: [{all: {groups: dev, email_verified: true}}]}]}\n")
	if got := c.Access.Rules[0].Any[0].All["email_verified"]; got != "true" {
		t.Errorf("a claim that is true is %q", got)
	}
}

func TestPublishersAreCheckedAgainstTheRest(t *testing.T) {
	ofRSA := base64.StdEncoding.EncodeToString([]byte("0\\0\r\x06\t*\x86H\x86\xf7\r\x01\x01\x01\x05\x00\x03K\x000H\x02A\x00"))
	for _, c := range []struct{ text, path, message string }{
		{"access: {requests: signed}\n", "access.requests", "there are no publishers"},
		{"access: {publishers: {bot: {keys: [" + exampleKey + "], queues: [mian]}}}\n", "access.publishers.bot.queues[0]", "not under queues"},
		{"access: {publishers: {bot: {keys: [" + exampleKey + ", x]}}}\n", "access.publishers.bot.keys[1]", "no public key of Ed25519"},
		{"access: {publishers: {bot: {keys: [" + exampleKey[:40] + "]}}}\n", "access.publishers.bot.keys[0]", "no public key of Ed25519"},
		{"access: {publishers: {bot: {keys: [" + ofRSA + "]}}}\n", "access.publishers.bot.keys[0]", "no public key of Ed25519"},
		{"access: {publishers: {bot: {keys: [" + exampleKey + "], role: admin}}}\n", "access.publishers.bot.role", "lander"},
	} {
		if problems := problemsOf(t, smallest+c.text); !find(problems, c.path, c.message) {
			t.Errorf("%s: no problem %q at %s in %v", c.text, c.message, c.path, problems)
		}
	}
	bot := mustParse(t, smallest+"access: {requests: signed, publishers: {bot: {keys: ["+exampleKey+"]}}}\n").Access.Publishers["bot"]
	if bot.Role != "lander" || len(bot.PublicKeys()) != 1 || len(bot.PublicKeys()[0]) != 32 {
		t.Errorf("the publisher is %+v with the keys %v", bot, bot.PublicKeys())
	}
}

// TestAGatewayThatOthersReachIsOpenOnlyIfTold names addresses of all forms.
func TestAGatewayThatOthersReachIsOpenOnlyIfTold(t *testing.T) {
	for listen, refused := range map[string]bool{
		"127.0.0.1:7878": false, "127.8.0.1:0": false, "localhost:7878": false, "[::1]:7878": false, "[::ffff:127.0.0.1]:7878": false,
		":7878": true, "0.0.0.0:7878": true, "[::]:7878": true, "10.0.0.1:7878": true, "landfall.example.com:7878": true, "localhost.example.com:7878": true,
	} {
		c := New(fourCores)
		c.Gateway.Listen = listen
		if err := c.CheckOpen(); (err != nil) != refused {
			t.Errorf("%s is refused: %v", listen, err)
		}
		c.Access.OpenNetwork = On
		if err := c.CheckOpen(); err != nil {
			t.Errorf("%s is refused although the configuration wants it: %v", listen, err)
		}
		c.Access.OpenNetwork, c.Access.Mode = "off", AccessRequired
		if err := c.CheckOpen(); err != nil {
			t.Errorf("%s is refused though access is required: %v", listen, err)
		}
	}
}
