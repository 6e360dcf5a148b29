package stack_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
)

// TestAWebhookIsToldOfALanding, and of a rejection with the step that failed; the one that fails first is told later. After a restart
// it is told of nothing again.
func TestAWebhookIsToldOfALanding(t *testing.T) {
	together(t)
	r := newRepository(t)
	r.branch("good", "f1/b.txt", "fine\n")
	r.branch("bad", "f2/b.txt", "a bug\n")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	var rejection string
	refused := false
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		content, _ := io.ReadAll(in.Body)
		var b struct {
			Type string
			Data struct{ Subject, State string }
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case json.Unmarshal(content, &b) != nil || !strings.HasPrefix(in.Header.Get("webhook-signature"), "v1,"):
			out.WriteHeader(http.StatusBadRequest)
		case !refused:
			refused = true
			out.WriteHeader(http.StatusServiceUnavailable)
		default:
			told = append(told, b.Data.Subject+" "+b.Data.State)
			if b.Data.State == "rejected" {
				rejection = string(content)
			}
		}
	}))
	defer server.Close()
	c := configured(t, r, t.TempDir())
	c.Webhooks = map[string]configuration.Webhook{"bot": {URL: server.URL, Secret: configuration.SecretPlace{File: secret},
		States: []string{"admitted", "landed", "rejected"}, AllowPrivate: configuration.On}}
	s, cl := start(t, c)
	await(t, "the endpoint is followed: what was before is not told", func() bool {
		return len(records[*eventsv1.WebhookFollowed](t, s, events.TopicDeliveries)) == 1
	})
	land(t, cl, "good", "good")
	land(t, cl, "bad", "bad")
	expect(t, cl, "good", "landed")
	expect(t, cl, "bad", "rejected")
	want := []string{"bad admitted", "bad rejected", "good admitted", "good landed"}
	all := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(slices.Values(told))
	}
	await(t, "the webhook is told of both", func() bool { return slices.Equal(all(), want) })
	mu.Lock()
	for _, part := range []string{`"class":"step_failed"`, `"target":"f2/f2"`, `"step":"has-no-bug"`, `"whose":"yours"`, `"log":"/v1/queues/main/changes/bad/logs?`} {
		if !strings.Contains(strings.ReplaceAll(rejection, `"//f2"`, `"f2/f2"`), part) {
			t.Errorf("no %s in %s", part, rejection)
		}
	}
	mu.Unlock()
	await(t, "the deliveries are recorded", func() bool {
		n := 0
		for _, d := range records[*eventsv1.WebhookDelivery](t, s, events.TopicDeliveries) {
			if d.State == eventsv1.DeliveryState_DELIVERY_STATE_DELIVERED {
				n++
			}
		}
		return n == len(want)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, cl = start(t, c)
	defer s.Close()
	r.branch("later", "f3/b.txt", "fine\n")
	land(t, cl, "later", "later")
	expect(t, cl, "later", "landed")
	await(t, "the webhook is told of the third", func() bool { return len(all()) >= 6 })
	if got := all(); !slices.Equal(got, append(want, "later admitted", "later landed")) {
		t.Errorf("it was told of %v", got)
	}
}
