package github_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"github.com/google/go-github/v93/github"
)

// send has a webhook delivered, if the hook is for its event. It is not sent again if nobody takes it.
func (f *fake) send(event string, payload any) {
	if f.hook == nil || event != "ping" && !slices.Contains(f.hook.Events, event) {
		return
	}
	d := &github.HookDelivery{ID: f.id(), GUID: new(rand.Text()), Event: &event, DeliveredAt: now()}
	f.bodies[d.GetID()] = encode(payload)
	f.deliver(d)
}

// deliver delivers a webhook in the background. A redelivery has the id of the first one.
func (f *fake) deliver(d *github.HookDelivery) {
	f.deliveries = append(f.deliveries, d)
	body := f.bodies[d.GetID()]
	secret := f.secret
	if f.breaks == "signature" {
		secret += "x"
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	request, err := http.NewRequest(http.MethodPost, f.hook.Config.GetURL(), bytes.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	request.Header.Set("X-GitHub-Delivery", d.GetGUID())
	request.Header.Set("X-GitHub-Event", d.GetEvent())
	f.sending.Go(func() {
		status := 0
		client := http.Client{Timeout: 10 * time.Second}
		if answer, err := client.Do(request); err == nil {
			answer.Body.Close()
			status = answer.StatusCode
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		d.StatusCode = &status
	})
}
