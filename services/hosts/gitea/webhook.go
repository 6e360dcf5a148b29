package gitea

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"landfall.build/services/hosts"
)

// payload holds the fields that are read of a webhook's body.
type payload struct {
	Number int64 `json:"number"`
	Issue  struct {
		Number int64 `json:"number"`
		Pull   *struct {
			Merged bool `json:"merged"`
		} `json:"pull_request"`
	} `json:"issue"`
	Pull *struct {
		Number int64 `json:"number"`
	} `json:"pull_request"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	// Context and SHA are of a status.
	Context string `json:"context"`
	SHA     string `json:"sha"`
}

// maxDelivery bounds the id of a delivery, and maxCommit that of a commit, in bytes.
const (
	maxDelivery = 100
	maxCommit   = 64
)

// Notice implements hosts.Host.
func (r *Repository) Notice(header http.Header, body, secret []byte) (hosts.Notice, error) {
	return notice(header, body, secret)
}

func notice(header http.Header, body, secret []byte) (n hosts.Notice, err error) {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	given, err := hex.DecodeString(header.Get("X-Gitea-Signature"))
	if err != nil || len(secret) == 0 || !hmac.Equal(given, mac.Sum(nil)) {
		return n, hosts.ErrForged
	}
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return n, errors.New("its body is no JSON")
	}
	n.Delivery, n.Repository = header.Get("X-Gitea-Delivery"), p.Repository.FullName
	if n.Delivery == "" || len(n.Delivery) > maxDelivery {
		return n, errors.New("it has no X-Gitea-Delivery")
	}
	if owner, name, both := strings.Cut(n.Repository, "/"); !both || owner == "" || name == "" {
		return n, errors.New("it names no repository")
	}
	event := header.Get("X-Gitea-Event")
	switch {
	case event == "status" && !strings.HasPrefix(p.Context, "Landfall (") && len(p.SHA) <= maxCommit:
		n.Event, n.Commit = event, p.SHA
	case strings.HasPrefix(event, "pull_request"):
		if n.Number = p.Number; n.Number == 0 && p.Pull != nil {
			n.Number = p.Pull.Number
		}
	case event == "issue_comment" && p.Issue.Pull != nil:
		n.Number = p.Issue.Number
	}
	if n.Number < 0 {
		return n, errors.New("the number of its pull request is none")
	}
	if n.Number > 0 {
		n.Event = event
	}
	return n, nil
}
