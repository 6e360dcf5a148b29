package listening

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// TestOneAddressHasAShareOfTheConnections: whoever opened as many as the process may have files kept all others out, and the queue from landing.
func TestOneAddressHasAShareOfTheConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	bounded := Bounded(Patient(l, slog.New(slog.DiscardHandler)), Bounds{All: 8, OfOne: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}}, slog.New(slog.NewTextHandler(&log, nil)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := bounded.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.WriteString(c, "served")
				_, _ = io.Copy(io.Discard, c)
			}()
		}
	}()
	// open reports whether a connection from an address is served.
	open := func(from string) (net.Conn, bool) {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_, err = io.ReadFull(c, make([]byte, len("served")))
		return c, err == nil
	}
	var last net.Conn
	for i, c := range []struct {
		from string
		want bool
	}{
		{"127.0.0.2", true}, {"127.0.0.2", true}, {"127.0.0.2", false}, {"127.0.0.2", false}, {"127.0.0.3", true},
		{"127.0.0.9", true}, {"127.0.0.9", true}, {"127.0.0.9", true}, {"127.0.0.9", true}, {"127.0.0.4", true},
		{"127.0.0.4", false}, {"127.0.0.9", false},
	} {
		conn, served := open(c.from)
		if served != c.want {
			t.Errorf("%d from %s: served %v", i, c.from, served)
		}
		if i == 1 {
			last = conn
		}
	}
	last.Close()
	for served := false; !served; { // the server sees soon that it is closed
		_, served = open("127.0.0.2")
	}
	l.Close()
	<-ended
	if got := strings.Count(log.String(), "\n"); got < 1 || got > 4 { // one each ten seconds, of five refusals and more
		t.Errorf("%d lines:\n%s", got, log.String())
	}
}

func TestAnAddressOfIPv6IsItsNetwork(t *testing.T) {
	l := &bounded{bounds: Bounds{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	for from, want := range map[string]string{
		"[2001:db8::1]:1": "2001:db8::", "[2001:db8:0:0:ffff::2]:9": "2001:db8::", "[fe80::1%eth0]:1": "fe80::", "192.0.2.1:5": "192.0.2.1",
		"[::ffff:192.0.2.1]:5": "192.0.2.1", "[::ffff:10.1.2.3]:5": "10.1.2.3",
	} {
		got, shared := l.ownerOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from)))
		if got.String() != want || shared != strings.Contains(from, "10.1") {
			t.Errorf("%s is %v, shared %v", from, got, shared)
		}
	}
	if b := Usual(nil); b.All < 16 || b.All > 10_000 || b.OfOne < 4 || b.OfOne > b.All/4 {
		t.Errorf("%+v", b)
	}
}
