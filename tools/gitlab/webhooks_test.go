package gitlab_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

// described is the project as webhooks describe it.
func (f *fake) described() map[string]any {
	return map[string]any{"id": projectID, "name": "shop", "path_with_namespace": path, "default_branch": "main"}
}

func (f *fake) sendMerge(action string, m *gitlab.MergeRequest) {
	f.send("Merge Request Hook", map[string]any{"object_kind": "merge_request", "event_type": "merge_request", "project": f.described(),
		"object_attributes": map[string]any{"id": m.ID, "iid": m.IID, "action": action, "state": m.State, "target_branch": m.TargetBranch, "last_commit": map[string]any{"id": m.SHA}}})
}

func (f *fake) sendNote(action string, m *gitlab.MergeRequest, n *gitlab.Note) {
	f.send("Note Hook", map[string]any{"object_kind": "note", "event_type": "note", "project": f.described(), "project_id": projectID,
		"object_attributes": map[string]any{"id": n.ID, "note": n.Body, "noteable_type": "MergeRequest", "action": action}, "merge_request": map[string]any{"id": m.ID, "iid": m.IID}})
}

// wants reports whether the hook is for an event.
func wants(h *gitlab.ProjectHook, event string) bool {
	return map[string]bool{"Merge Request Hook": h.MergeRequestsEvents, "Note Hook": h.NoteEvents, "Job Hook": h.JobEvents, "Pipeline Hook": h.PipelineEvents, "Push Hook": h.PushEvents}[event]
}

// send has a webhook delivered, if the hook is for its event and works.
func (f *fake) send(event string, payload any) {
	if f.hook != nil && wants(f.hook, event) && time.Now().After(f.mended) {
		f.deliver(event, payload)
	}
}

// deliver delivers a webhook in the background, once. A hook that fails four times in a row rests for a minute.
func (f *fake) deliver(event string, payload any) {
	body := encode(payload)
	request, err := http.NewRequest(http.MethodPost, f.hook.URL, bytes.NewReader(body))
	if err != nil {
		f.t.Error(err)
		return
	}
	id := rand.Text()
	for name, value := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitLab/18.0", "X-Gitlab-Event": event, "X-Gitlab-Instance": f.URL,
		"Idempotency-Key": id, "X-Gitlab-Webhook-UUID": rand.Text(), "X-Gitlab-Event-UUID": "the same for all",
	} {
		request.Header.Set(name, value)
	}
	secret := f.secret
	if f.breaks == "signature" {
		secret += "x"
	}
	if key, signs := strings.CutPrefix(secret, "whsec_"); signs {
		key, _ := base64.StdEncoding.DecodeString(key)
		stamp := fmt.Sprint(time.Now().Unix())
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		request.Header.Set("webhook-id", id)
		request.Header.Set("webhook-timestamp", stamp)
		request.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	} else {
		request.Header.Set("X-Gitlab-Token", secret)
	}
	f.jobs.Go(func() {
		taken := false
		client := http.Client{Timeout: 10 * time.Second}
		if answer, err := client.Do(request); err == nil {
			answer.Body.Close()
			taken = answer.StatusCode < 400
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.failures++; taken {
			f.failures = 0
		}
		if f.failures >= 4 {
			f.failures, f.mended = 0, time.Now().Add(time.Minute)
		}
	})
}
