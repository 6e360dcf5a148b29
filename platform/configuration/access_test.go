package configuration

import "testing"

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
