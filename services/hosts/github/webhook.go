package github

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-github/v93/github"

	"landfall.build/services/hosts"
)

// payload holds the fields that are read of a webhook's body.
type payload struct {
	Number int64 `json:"number"`
	Issue  struct {
		Number int64     `json:"number"`
		Pull   *struct{} `json:"pull_request"`
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
	Run     struct {
		Name string `json:"name"`
		SHA  string `json:"head_sha"`
	} `json:"check_run"`
}

// Bounds of the id of a delivery, and of that of a commit, in bytes.
const (
	maxDelivery = 100
	maxCommit   = 64
)

// Notice implements hosts.Host.
func (r *Repository) Notice(header http.Header, body, secret []byte) (hosts.Notice, error) {
	return notice(header, body, secret)
}

func notice(header http.Header, body, secret []byte) (n hosts.Notice, err error) {
	signature := header.Get(github.SHA256SignatureHeader)
	if len(secret) == 0 || !strings.HasPrefix(signature, "sha256=") || github.ValidateSignature(signature, body, secret) != nil {
		return n, hosts.ErrForged
	}
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return n, errors.New("its body is no JSON: set the webhook's content type to application/json")
	}
	n.Delivery, n.Repository = header.Get(github.DeliveryIDHeader), p.Repository.FullName
	if n.Delivery == "" || len(n.Delivery) > maxDelivery {
		return n, errors.New("it has no X-GitHub-Delivery")
	}
	event := header.Get(github.EventTypeHeader)
	if owner, name, both := strings.Cut(n.Repository, "/"); !both || owner == "" || name == "" {
		if event == "ping" || strings.HasPrefix(event, "installation") {
			return n, nil // it is of the App, or of a whole organization
		}
		return n, errors.New("it names no repository")
	}
	name, commit := p.Context, p.SHA
	if event == "check_run" {
		name, commit = p.Run.Name, p.Run.SHA
	}
	switch {
	case event == "status" || event == "check_run":
		if !strings.HasPrefix(name, "Landfall (") && len(commit) <= maxCommit {
			n.Event, n.Commit = event, commit
		}
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
