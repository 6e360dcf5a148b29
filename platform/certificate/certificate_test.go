package certificate

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/certificate/certificatetest"
)

func TestARenewedCertificateIsServedWithoutARestart(t *testing.T) {
	authority := certificatetest.NewAuthority(t)
	files := func() (certificate, key string, serial int64) {
		certificate, key = authority.Sign("127.0.0.1", time.Hour)
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			t.Fatal(err)
		}
		return certificate, key, pair.Leaf.SerialNumber.Int64()
	}
	certificate, key, first := files()
	c, err := Load(certificate, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c.clock = func() time.Time { return now }
	listener, err := tls.Listen("tcp", "127.0.0.1:0", c.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			if conn, err := listener.Accept(); err != nil {
				return
			} else {
				go func() { conn.(*tls.Conn).Handshake(); conn.Close() }()
			}
		}
	}()
	served := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: authority.Pool()})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if n := served(); n != first {
		t.Fatalf("number %d is served", n)
	}
	_, _, second := files()
	if n := served(); n != first {
		t.Errorf("number %d is served before the files are looked at", n)
	}
	now = now.Add(lookEvery)
	if n := served(); n != second {
		t.Errorf("number %d is served after a renewal", n)
	}
	if err := os.WriteFile(certificate, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	if n := served(); n != second {
		t.Errorf("number %d is served while the file is broken", n)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookEvery)
	if n := served(); n != second {
		t.Errorf("number %d is served while the key is gone", n)
	}
	_, _, third := files()
	now = now.Add(lookEvery)
	if n := served(); n != third {
		t.Errorf("number %d is served once both are there again", n)
	}
}

func TestWhatIsNoPairIsNamed(t *testing.T) {
	authority := certificatetest.NewAuthority(t)
	certificate, key := authority.Sign("one", time.Hour)
	_, other := authority.Sign("other", time.Hour)
	for _, c := range []struct{ certificate, key, said string }{
		{certificate, other, other}, {certificate, filepath.Join(t.TempDir(), "none"), "none"}, {key, key, key},
	} {
		if _, err := Load(c.certificate, c.key, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), c.said) {
			t.Errorf("%v", err)
		}
	}
}
