package api

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestAClientsAddressIsBelievedOfProxiesAlone(t *testing.T) {
	h := &handler{Options: Options{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}}}
	for _, c := range []struct {
		name, from string
		forwarded  []string
		want       string
	}{
		{"no proxy", "192.0.2.7:1", nil, "192.0.2.7"},
		{"a client that forges the header", "192.0.2.7:1", []string{"198.51.100.1"}, "192.0.2.7"},
		{"by a proxy", "10.1.1.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"by a proxy that says nothing", "10.1.1.1:1", nil, "10.1.1.1"},
		{"by two", "10.1.1.1:1", []string{"198.51.100.1, 10.2.2.2"}, "198.51.100.1"},
		{"by two, in two lines", "10.1.1.1:1", []string{"198.51.100.1", "10.2.2.2"}, "198.51.100.1"},
		{"a client that forges before a proxy", "10.1.1.1:1", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1"},
		{"a client that claims to be a proxy", "10.1.1.1:1", []string{"203.0.113.9, 10.9.9.9, 198.51.100.1"}, "198.51.100.1"},
		{"text that is no address", "10.1.1.1:1", []string{"198.51.100.1, \x1b[2J"}, "10.1.1.1"},
		{"proxies all along", "10.1.1.1:1", []string{"10.3.3.3, 10.2.2.2"}, "10.3.3.3"},
		{"IPv6", "[fd00::1]:1", []string{"2001:db8:1:2:3::4"}, "2001:db8:1:2::/64"},
		{"IPv4 in IPv6", "[::ffff:10.1.1.1]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1"},
		{"many", "10.1.1.1:1", []string{strings.Repeat("10.2.2.2,", 10_000) + "10.2.2.2"}, "10.2.2.2"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.from
		r.Header["X-Forwarded-For"] = c.forwarded
		if got := h.addressOf(r); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
