package gitlab

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"landfall.build/services/hosts"
)

var signing = "whsec_" + base64.StdEncoding.EncodeToString([]byte("a key of thirty-two bytes, or so"))

// plain are the headers of a webhook that brings its secret.
func plain(secret string) http.Header {
	return http.Header{"X-Gitlab-Token": {secret}, "Idempotency-Key": {"d"}, "X-Gitlab-Webhook-Uuid": {"w"}, "X-Gitlab-Event-Uuid": {"e"}}
}

// signed are those of one that is signed.
func signed(body, token string, at time.Time) http.Header {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(token, "whsec_"))
	stamp := fmt.Sprint(at.Unix())
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("d." + stamp + "." + body))
	h := http.Header{"Idempotency-Key": {"d"}}
	h.Set("webhook-id", "d")
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

const project = `"project":{"path_with_namespace":"acme/team/shop"}`

func TestAWebhookNamesItsMergeRequest(t *testing.T) {
	for _, c := range []struct {
		body    string
		number  int64
		commit  string
		noticed bool
	}{
		{`{"object_kind":"merge_request",` + project + `,"object_attributes":{"iid":7,"action":"update"}}`, 7, "", true},
		{`{"object_kind":"note",` + project + `,"object_attributes":{"noteable_type":"MergeRequest"},"merge_request":{"iid":8}}`, 8, "", true},
		{`{"object_kind":"note",` + project + `,"object_attributes":{"noteable_type":"Issue"},"issue":{"iid":8}}`, 0, "", false},
		{`{"object_kind":"pipeline",` + project + `,"object_attributes":{"sha":"a1","status":"success"},"merge_request":{"iid":9}}`, 9, "", true},
		{`{"object_kind":"pipeline",` + project + `,"object_attributes":{"sha":"a1","status":"failed"},"merge_request":null}`, 0, "a1", true},
		{`{"object_kind":"pipeline",` + project + `,"object_attributes":{"sha":"a1","status":"running"},"merge_request":{"iid":9}}`, 0, "", false},
		{`{"object_kind":"build",` + project + `,"sha":"a1","build_status":"canceled"}`, 0, "a1", true},
		{`{"object_kind":"build",` + project + `,"sha":"a1","build_status":"created"}`, 0, "", false},
		{`{"object_kind":"push",` + project + `,"after":"a1"}`, 0, "", false},
	} {
		n, err := notice(plain("s"), []byte(c.body), []byte("s\n"), time.Now())
		if err != nil || n.Number != c.number || n.Commit != c.commit || (n.Event != "") != c.noticed || n.Repository != "acme/team/shop" || n.Delivery != "d" {
			t.Errorf("%s: %+v, %v", c.body, n, err)
		}
	}
	if n, err := notice(plain("s"), []byte(`{"event_name":"subgroup_create"}`), []byte("s"), time.Now()); err != nil || n.Event != "" {
		t.Errorf("one of a group: %+v, %v", n, err)
	}
	for what, body := range map[string]string{"no JSON": `token=x`, "no number": `{"object_kind":"merge_request",` + project + `,"object_attributes":{"iid":-7}}`} {
		if n, err := notice(plain("s"), []byte(body), []byte("s"), time.Now()); err == nil || n.Event != "" {
			t.Errorf("%s: %+v, %v", what, n, err)
		}
	}
}

// TestADeliveryHasAnIDOfItsOwn: GitLab gives all webhooks of an event one X-Gitlab-Event-UUID.
func TestADeliveryHasAnIDOfItsOwn(t *testing.T) {
	body := []byte(`{"object_kind":"merge_request",` + project + `,"object_attributes":{"iid":7}}`)
	header := plain("s")
	header.Del("Idempotency-Key")
	if n, err := notice(header, body, []byte("s"), time.Now()); err != nil || n.Delivery != "w" {
		t.Errorf("%+v, %v", n, err)
	}
	of := signed(string(body), signing, time.Now())
	of.Set("Idempotency-Key", "another") // nobody has signed it
	if n, err := notice(of, body, []byte(signing), time.Now()); err != nil || n.Delivery != "d" {
		t.Errorf("%+v, %v", n, err)
	}
	header.Del("X-Gitlab-Webhook-UUID")
	if n, err := notice(header, body, []byte("s"), time.Now()); err == nil {
		t.Errorf("it is taken for %q", n.Delivery)
	}
}

func TestAForgedWebhookIsRefused(t *testing.T) {
	now := time.Now()
	body := `{"object_kind":"merge_request",` + project + `,"object_attributes":{"iid":7}}`
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another key of thirty-two bytes."))
	twice := signed(body, signing, now)
	twice.Set("webhook-signature", "v1,AAAA v1a,xx "+twice.Get("webhook-signature"))
	later := signed(body, signing, now)
	later.Set("webhook-timestamp", fmt.Sprint(now.Unix()+1))
	for name, c := range map[string]struct {
		header http.Header
		secret string
		want   error
	}{
		"its secret":                     {plain("s"), "s", nil},
		"another secret":                 {plain("t"), "s", hosts.ErrForged},
		"the beginning of the secret":    {plain("s"), "st", hosts.ErrForged},
		"no secret":                      {plain(""), "", hosts.ErrForged},
		"its signature":                  {signed(body, signing, now), signing, nil},
		"one good signature of several":  {twice, signing, nil},
		"the signature of another key":   {signed(body, other, now), signing, hosts.ErrForged},
		"the signature of another body":  {signed(body+" ", signing, now), signing, hosts.ErrForged},
		"the signature of another time":  {later, signing, hosts.ErrForged},
		"the signing token, not used":    {plain(signing), signing, hosts.ErrForged},
		"a signing token that is none":   {signed(body, "whsec_", now), "whsec_", hosts.ErrForged},
		"signed long ago":                {signed(body, signing, now.Add(-6*time.Minute)), signing, errTime},
		"signed by a clock that is fast": {signed(body, signing, now.Add(6*time.Minute)), signing, errTime},
	} {
		n, err := notice(c.header, []byte(body), []byte(c.secret), now)
		if !errors.Is(err, c.want) || c.want != nil && n != (hosts.Notice{}) {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
}

func FuzzWebhooksOfGitLabAreReadOrRefused(f *testing.F) {
	f.Add([]byte(`{"object_kind":"merge_request",`+project+`,"object_attributes":{"iid":7}}`), "d")
	f.Add([]byte(`{"object_kind":"note",`+project+`,"merge_request":{"iid":-8}}`), "d")
	f.Add([]byte(`{"object_kind":"build",`+project+`,"sha":"a1","build_status":"success"}`), "")
	f.Add([]byte(`{"object_kind":"pipeline","project":{"path_with_namespace":"/"},"object_attributes":{"sha":"a1","status":"success"}}`), "d")
	f.Fuzz(func(t *testing.T, body []byte, delivery string) {
		now := time.Now()
		named := plain("s")
		named["Idempotency-Key"] = []string{delivery}
		for _, c := range []struct {
			header http.Header
			secret string
		}{{named, "s"}, {signed(string(body), signing, now), signing}} {
			n, err := notice(c.header, body, []byte(c.secret), now)
			if err == nil && n.Event != "" && (n.Number < 0 || n.Number == 0 && n.Commit == "" || len(n.Commit) > hosts.MaxCommit || !strings.Contains(n.Repository, "/") || n.Delivery == "" || len(n.Delivery) > hosts.MaxDelivery) {
				t.Errorf("%+v", n)
			}
			c.header.Set("X-Gitlab-Token", "t")
			c.header.Set("webhook-signature", "v1,AAAA")
			if _, err := notice(c.header, body, []byte(c.secret), now); !errors.Is(err, hosts.ErrForged) {
				t.Errorf("without a signature: %v", err)
			}
		}
	})
}
