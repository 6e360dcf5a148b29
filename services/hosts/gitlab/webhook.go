package gitlab

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"landfall.build/services/hosts"
)

const (
	// signingPrefix begins a signing token, by which GitLab signs; another secret is sent with the webhook as it is.
	signingPrefix = "whsec_"
	// skew is how far the time at which a webhook was signed may be from ours.
	skew = 5 * time.Minute
)

var (
	errBody = errors.New("its body is no JSON of a webhook")
	errTime = errors.New("it was signed more than 5 minutes from now: set the clocks")
)

// payload holds the fields that are read of a webhook's body.
type payload struct {
	Kind    string `json:"object_kind"`
	Project struct {
		Path string `json:"path_with_namespace"`
	} `json:"project"`
	Attributes struct {
		IID    int64  `json:"iid"`
		SHA    string `json:"sha"`
		Status string `json:"status"`
	} `json:"object_attributes"`
	Merge *struct {
		IID int64 `json:"iid"`
	} `json:"merge_request"`
	// SHA and Status are of a job.
	SHA    string `json:"sha"`
	Status string `json:"build_status"`
}

// Notice implements hosts.Host.
func (r *Repository) Notice(header http.Header, body, secret []byte) (hosts.Notice, error) {
	return notice(header, body, secret, time.Now())
}

func notice(header http.Header, body, secret []byte, now time.Time) (n hosts.Notice, err error) {
	secret = []byte(strings.TrimSpace(string(secret)))
	if !isAuthentic(header, body, secret) {
		return n, hosts.ErrForged
	}
	if signed := header.Get("webhook-timestamp"); signed != "" && strings.HasPrefix(string(secret), signingPrefix) {
		seconds, err := strconv.ParseInt(signed, 10, 64)
		if err != nil || time.Unix(seconds, 0).Sub(now).Abs() > skew {
			return n, errTime
		}
	}
	var p payload
	if json.Unmarshal(body, &p) != nil {
		return n, errBody
	}
	// The id of an event (X-Gitlab-Event-UUID) may be that of several webhooks; a GitLab before 17.4 has no Idempotency-Key. Only webhook-id is
	// signed.
	id := "Idempotency-Key"
	switch {
	case strings.HasPrefix(string(secret), signingPrefix):
		id = "webhook-id"
	case header.Get(id) == "":
		id = "X-Gitlab-Webhook-UUID"
	}
	n, err = hosts.NewNotice(header, id, p.Project.Path)
	if errors.Is(err, hosts.ErrNoRepository) {
		return n, nil // it is of a group. GitLab switches a webhook off that is refused too often.
	}
	if err != nil {
		return n, err
	}
	commit, state := "", ""
	switch {
	case p.Kind == "merge_request":
		n.Number = p.Attributes.IID
	case p.Kind == "note" && p.Merge != nil, p.Kind == "pipeline" && p.Merge != nil && isOver(p.Attributes.Status):
		n.Number = p.Merge.IID
	case p.Kind == "pipeline":
		commit, state = p.Attributes.SHA, p.Attributes.Status
	case p.Kind == "build":
		commit, state = p.SHA, p.Status
	}
	switch {
	case n.Number < 0:
		return n, hosts.ErrNumber
	case n.Number > 0:
		n.Event = p.Kind
	case commit != "" && len(commit) <= hosts.MaxCommit && isOver(state):
		n.Event, n.Commit = p.Kind, commit
	}
	return n, nil
}

// isOver reports whether a job or a pipeline in a state goes on by itself no more.
func isOver(state string) bool {
	switch state {
	case "success", "failed", "canceled", "skipped", "manual":
		return true
	}
	return false
}

// isAuthentic reports whether a webhook is signed by the secret, if that is a signing token, or else whether it brings the secret.
func isAuthentic(header http.Header, body, secret []byte) bool {
	if len(secret) == 0 {
		return false
	}
	encoded, signs := strings.CutPrefix(string(secret), signingPrefix)
	if !signs {
		// Their hashes are of one length, so that the time of comparing says nothing of the secret's.
		given, want := sha256.Sum256([]byte(header.Get("X-Gitlab-Token"))), sha256.Sum256(secret)
		return hmac.Equal(given[:], want[:])
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(header.Get("webhook-id") + "." + header.Get("webhook-timestamp") + "."))
	mac.Write(body)
	want := mac.Sum(nil)
	// There may be several, while the token is changed.
	for signature := range strings.FieldsSeq(header.Get("webhook-signature")) {
		version, text, _ := strings.Cut(signature, ",")
		if given, err := base64.StdEncoding.DecodeString(text); err == nil && version == "v1" && hmac.Equal(given, want) {
			return true
		}
	}
	return false
}
