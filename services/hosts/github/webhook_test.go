package github

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"testing"

	"landfall.build/services/hosts"
)

func signed(body, secret, event string) http.Header {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return http.Header{"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac.Sum(nil))}, "X-Github-Delivery": {"d"}, "X-Github-Event": {event}}
}

func TestAWebhookNamesItsPullRequest(t *testing.T) {
	for _, c := range []struct {
		event, body string
		want        hosts.Notice
	}{
		{"pull_request", `{"action":"labeled","number":7,"pull_request":{"number":7},"repository":{"full_name":"acme/shop"}}`, hosts.Notice{Number: 7}},
		{"pull_request_review", `{"pull_request":{"number":8},"repository":{"full_name":"acme/shop"}}`, hosts.Notice{Number: 8}},
		{"issue_comment", `{"issue":{"number":9,"pull_request":{"url":"x"}},"repository":{"full_name":"acme/shop"}}`, hosts.Notice{Number: 9}},
		{"issue_comment", `{"issue":{"number":9},"repository":{"full_name":"acme/shop"}}`, hosts.Notice{}},
		{"issues", `{"issue":{"number":9},"repository":{"full_name":"acme/shop"}}`, hosts.Notice{}},
		{"status", `{"context":"ci","sha":"a1","repository":{"full_name":"acme/shop"}}`, hosts.Notice{Commit: "a1", Event: "status"}},
		{"status", `{"context":"Landfall (main)","sha":"a1","repository":{"full_name":"acme/shop"}}`, hosts.Notice{}},
		{"check_run", `{"check_run":{"name":"ci","head_sha":"a2"},"repository":{"full_name":"acme/shop"}}`, hosts.Notice{Commit: "a2", Event: "check_run"}},
		{"check_run", `{"check_run":{"name":"Landfall (main)","head_sha":"a2"},"repository":{"full_name":"acme/shop"}}`, hosts.Notice{}},
		{"push", `{"repository":{"full_name":"acme/shop"}}`, hosts.Notice{}},
		{"ping", `{"zen":"Keep it logically awesome.","repository":{"full_name":"acme/shop"}}`, hosts.Notice{}},
	} {
		if c.want.Number > 0 {
			c.want.Event = c.event
		}
		c.want.Repository, c.want.Delivery = "acme/shop", "d"
		if n, err := notice(signed(c.body, "s", c.event), []byte(c.body), []byte("s")); err != nil || n != c.want {
			t.Errorf("%s %s: %+v, %v", c.event, c.body, n, err)
		}
	}
	// A ping to the webhook of an App is of no repository.
	body := `{"zen":"Keep it logically awesome.","hook":{"type":"App"}}`
	if n, err := notice(signed(body, "s", "ping"), []byte(body), []byte("s")); err != nil || n != (hosts.Notice{Delivery: "d"}) {
		t.Errorf("a ping: %+v, %v", n, err)
	}
}

func TestAForgedWebhookIsRefused(t *testing.T) {
	body := `{"number":7,"repository":{"full_name":"acme/shop"}}`
	old := hmac.New(sha1.New, []byte("s"))
	old.Write([]byte(body))
	for name, c := range map[string]struct {
		header http.Header
		secret string
	}{
		"another secret":  {signed(body, "other", "pull_request"), "s"},
		"another body":    {signed(body+" ", "s", "pull_request"), "s"},
		"no signature":    {http.Header{"X-Github-Delivery": {"d"}}, "s"},
		"no hexadecimals": {http.Header{"X-Hub-Signature-256": {"sha256=zz"}}, "s"},
		"no secret":       {signed(body, "", "pull_request"), ""},
		"sha1 in place":   {http.Header{"X-Hub-Signature-256": {"sha1=" + hex.EncodeToString(old.Sum(nil))}}, "s"},
		"sha1 alone":      {http.Header{"X-Hub-Signature": {"sha1=" + hex.EncodeToString(old.Sum(nil))}}, "s"},
	} {
		if n, err := notice(c.header, []byte(body), []byte(c.secret)); !errors.Is(err, hosts.ErrForged) || n != (hosts.Notice{}) {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

func FuzzWebhooksOfGitHubAreReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"number":7,"repository":{"full_name":"acme/shop"}}`), "pull_request", "d")
	f.Add([]byte(`{"issue":{"number":-9,"pull_request":{}},"repository":{"full_name":"a/b"}}`), "issue_comment", "d")
	f.Add([]byte(`{"check_run":{"name":"ci","head_sha":"a"},"repository":{"full_name":"a/b"}}`), "check_run", "d")
	f.Add([]byte(`{"hook":{}}`), "ping", "d")
	f.Add([]byte(`{"pull_request":{"number":1e9}}`), "pull_request", "")
	f.Fuzz(func(t *testing.T, body []byte, event, delivery string) {
		header := signed(string(body), "s", event)
		header["X-Github-Delivery"] = []string{delivery}
		n, err := notice(header, body, []byte("s"))
		if err == nil && (n.Number < 0 || n.Delivery == "" || len(n.Delivery) > hosts.MaxDelivery || len(n.Commit) > hosts.MaxCommit || n.Event != "" && n.Repository == "" || n.Number > 0 && n.Event == "") {
			t.Errorf("%+v", n)
		}
		header["X-Hub-Signature-256"] = []string{"sha256=00"}
		if _, err := notice(header, body, []byte("s")); !errors.Is(err, hosts.ErrForged) {
			t.Errorf("without a signature: %v", err)
		}
	})
}
