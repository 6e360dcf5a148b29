package stack_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"landfall.build/platform/certificate/certificatetest"
)

// TestTheGatewayServesWithTheCertificateOfItsConfiguration asks by the certificate's name, with HTTP/2, and in the clear.
func TestTheGatewayServesWithTheCertificateOfItsConfiguration(t *testing.T) {
	together(t)
	authority := certificatetest.NewAuthority(t)
	config := configured(t, newRepository(t), t.TempDir())
	config.Gateway.URL = "https://landfall.example"
	config.Gateway.TLS.Certificate, config.Gateway.TLS.Key = authority.Sign("landfall.example", time.Hour)
	s, _ := start(t, config)
	t.Cleanup(func() { s.Close() })
	if s.URL() != "https://landfall.example" {
		t.Errorf("its address is %s", s.URL())
	}
	trusting := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool(), ServerName: "landfall.example"}}}
	defer trusting.CloseIdleConnections()
	answer, err := trusting.Get("https://" + s.Address() + "/v1/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 2 || answer.TLS.Version != tls.VersionTLS13 {
		t.Errorf("it answers %s by %s", answer.Status, answer.Proto)
	}
	if _, err := http.Get("https://" + s.Address() + "/v1/openapi.yaml"); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("who does not know the authority reads %v", err)
	}
	clear, err := http.Get("http://" + s.Address() + "/v1/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	clear.Body.Close()
	if clear.StatusCode != http.StatusBadRequest {
		t.Errorf("in the clear it answers %s", clear.Status)
	}
}
