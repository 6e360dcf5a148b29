package api_test

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
)

// serveHTTP2 serves a handler as a gateway does, and returns what connects to it by HTTP/2.
func serveHTTP2(t *testing.T, handler http.Handler) (dial func() *http2.Framer) {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config, server.EnableHTTP2 = api.NewServer(t.Context(), handler, slog.New(slog.DiscardHandler)), true
	server.StartTLS()
	t.Cleanup(server.Close)
	return func() *http2.Framer {
		t.Helper()
		c, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(2 * time.Minute))
		if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
			t.Fatal(err)
		}
		framer := http2.NewFramer(c, c)
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		return framer
	}
}

// TestAConnectionOfHTTP2HasFewRequestsAtATime: one had 250, and a megabyte for the asking, before anybody has proven who it is, so that the
// bound of connections kept the memory of an open port from nothing.
func TestAConnectionOfHTTP2HasFewRequestsAtATime(t *testing.T) {
	handler, err := api.NewHandler(api.Options{Backend: apitest.New("main")})
	if err != nil {
		t.Fatal(err)
	}
	frame, err := serveHTTP2(t, handler)().ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, is := frame.(*http2.SettingsFrame)
	if !is {
		t.Fatalf("the first frame is %v", frame)
	}
	for setting, most := range map[http2.SettingID]uint32{http2.SettingMaxConcurrentStreams: 16, http2.SettingMaxFrameSize: 16 << 10, http2.SettingInitialWindowSize: 64 << 10} {
		if value, said := settings.Value(setting); !said || value > most {
			t.Errorf("%v is %d, want %d at most", setting, value, most)
		}
	}
}
