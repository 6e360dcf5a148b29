package listening

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"testing"
)

// short is a listener that fails a few times.
type short struct {
	net.Listener
	failures int
}

func (s *short) Accept() (net.Conn, error) {
	if s.failures--; s.failures >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.ENOSPC}
	}
	return s.Listener.Accept()
}

// TestAServerGoesOnAfterTheSystemWasShort: it ended for ever with the first connection that the kernel could not watch.
func TestAServerGoesOnAfterTheSystemWasShort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(Patient(&short{l, 3}, slog.New(slog.DiscardHandler))) }()
	answered := make(chan error, 1)
	go func() {
		answer, err := http.Get("http://" + l.Addr().String())
		if err == nil {
			answer.Body.Close()
		}
		answered <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("it has ended: %v", err)
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	}
	server.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("it ended with %v", err)
	}
}
