package gitea

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"landfall.build/services/hosts"
)

func signed(body, secret, event string) http.Header {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return http.Header{"X-Gitea-Signature": {hex.EncodeToString(mac.Sum(nil))}, "X-Gitea-Delivery": {"d"}, "X-Gitea-Event": {event}}
}

func TestAWebhookNamesItsPullRequest(t *testing.T) {
	for _, c := range []struct {
		event, body string
		number      int64
		noticed     bool
	}{
		{"pull_request", `{"number":7,"repository":{"full_name":"acme/shop"}}`, 7, true},
		{"pull_request_label", `{"number":7,"pull_request":{"number":7},"repository":{"full_name":"acme/shop"}}`, 7, true},
		{"pull_request_approved", `{"pull_request":{"number":8},"repository":{"full_name":"acme/shop"}}`, 8, true},
		{"issue_comment", `{"issue":{"number":9,"pull_request":{"merged":false}},"repository":{"full_name":"acme/shop"}}`, 9, true},
		{"issue_comment", `{"issue":{"number":9,"pull_request":null},"repository":{"full_name":"acme/shop"}}`, 0, false},
		{"status", `{"context":"ci","repository":{"full_name":"acme/shop"}}`, 0, true},
		{"status", `{"context":"Landfall (main)","repository":{"full_name":"acme/shop"}}`, 0, false},
		// The header of the kind is not signed, and what is of interest gets into the log.
		{"pull_request" + strings.Repeat("x", 20_000), `{"number":7,"repository":{"full_name":"acme/shop"}}`, 0, false},
		{"push", `{"repository":{"full_name":"acme/shop"}}`, 0, false},
	} {
		n, err := notice(signed(c.body, "s", c.event), []byte(c.body), []byte("s"))
		if err != nil || n.Number != c.number || (n.Event != "") != c.noticed || n.Repository != "acme/shop" {
			t.Errorf("%.50s %s: %+v, %v", c.event, c.body, n, err)
		}
	}
	body := `{"sha":"a1","context":"ci","repository":{"full_name":"acme/shop"}}`
	if n, err := notice(signed(body, "s", "status"), []byte(body), []byte("s")); err != nil || n.Commit != "a1" {
		t.Errorf("a status is of %q, %v", n.Commit, err)
	}
}

func TestAForgedWebhookIsRefused(t *testing.T) {
	body := `{"number":7,"repository":{"full_name":"acme/shop"}}`
	for name, c := range map[string]struct {
		header http.Header
		secret string
	}{
		"another secret":  {signed(body, "other", "pull_request"), "s"},
		"another body":    {signed(body+" ", "s", "pull_request"), "s"},
		"no signature":    {http.Header{"X-Gitea-Delivery": {"d"}}, "s"},
		"no hexadecimals": {http.Header{"X-Gitea-Signature": {"zz"}}, "s"},
		"no secret":       {signed(body, "", "pull_request"), ""},
	} {
		if n, err := notice(c.header, []byte(body), []byte(c.secret)); !errors.Is(err, hosts.ErrForged) || n != (hosts.Notice{}) {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

func FuzzWebhooksAreReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"number":7,"repository":{"full_name":"acme/shop"}}`), "pull_request", "d")
	f.Add([]byte(`{"issue":{"number":-9,"pull_request":{}},"repository":{"full_name":"a/b"}}`), "issue_comment", "d")
	f.Add([]byte(`{"pull_request":{"number":1e9}}`), "pull_request_sync", "")
	f.Fuzz(func(t *testing.T, body []byte, event, delivery string) {
		header := signed(string(body), "s", event)
		header["X-Gitea-Delivery"] = []string{delivery}
		n, err := notice(header, body, []byte("s"))
		if err == nil && (n.Number < 0 || n.Repository == "" || n.Delivery == "" || len(n.Delivery) > hosts.MaxDelivery || n.Number > 0 && n.Event == "") {
			t.Errorf("%+v", n)
		}
		header["X-Gitea-Signature"] = []string{"00"}
		if _, err := notice(header, body, []byte("s")); !errors.Is(err, hosts.ErrForged) {
			t.Errorf("without a signature: %v", err)
		}
	})
}
