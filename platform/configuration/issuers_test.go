package configuration

import (
	"reflect"
	"testing"
)

func TestTokensAreTakenThatAreForTheClientsOrForAnAudience(t *testing.T) {
	c := mustParse(t, smallest+`access:
  issuers:
    a: {url: 'https://a', client_id: web, client_secret: {file: /x}}
    b: {url: 'https://b', client_id: web, client_secret: {file: /x}, command_client_id: command, audiences: [api, web]}
    c: {url: 'http://localhost:1', client_id: both}
    d: {url: 'http://[::1]:1', audiences: [x]}
`)
	for name, want := range map[string]struct {
		command string
		accepts []string
	}{"a": {"", []string{"web"}}, "b": {"command", []string{"api", "web", "command"}}, "c": {"both", []string{"both"}}, "d": {"", []string{"x"}}} {
		i := c.Access.Issuers[name]
		if i.CommandClient() != want.command || !reflect.DeepEqual(i.Accepts(), want.accepts) {
			t.Errorf("%s: %q %v", name, i.CommandClient(), i.Accepts())
		}
	}
}

func TestTheLoopbackIsOnlyWhatNoOtherMachineCanBe(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:80": true, "127.0.0.1": true, "127.8.9.1:80": true, "[::1]:80": true, "::1": true, "[::ffff:127.0.0.1]:1": true,
		"": false, "localhost.example.com": false, "127.0.0.1.example.com": false, "10.0.0.1": false, "[fe80::1]:1": false, "0.0.0.0": false, "2130706433": false,
	} {
		if IsLoopback(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}
