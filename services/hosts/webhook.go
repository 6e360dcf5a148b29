package hosts

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// payload holds the fields that are read of a webhook's body, in the form of GitHub and of hosts that follow it.
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

// Bounds of the id of a delivery, of the name of its kind of event, and of the id of a commit, in bytes.
const (
	MaxDelivery = 100
	MaxEvent    = 100
	MaxCommit   = 64
)

// Errors of webhooks whose signature is good: one that is about no repository, and one whose number no pull request has.
var (
	ErrNoRepository = errors.New("it names no repository")
	ErrNumber       = errors.New("the number of its pull request is none")
)

// NewNotice returns a notice of a repository, owner/name. A header has the id of its delivery.
func NewNotice(header http.Header, idHeader, repository string) (Notice, error) {
	n := Notice{Repository: repository, Delivery: header.Get(idHeader)}
	if n.Delivery == "" || len(n.Delivery) > MaxDelivery {
		return n, errors.New("it has no " + idHeader)
	}
	if owner, name, both := strings.Cut(repository, "/"); !both || owner == "" || name == "" {
		return n, ErrNoRepository
	}
	return n, nil
}

// ReadNotice reads a webhook whose signature is verified, in the form of GitHub and of hosts that follow it. Its headers name the id of
// the delivery and the kind of event.
func ReadNotice(header http.Header, idHeader, eventHeader string, body []byte) (n Notice, err error) {
	var p payload
	if err := json.Unmarshal(body, &p); err != nil {
		return n, errors.New("its body is no JSON: set the webhook's content type to application/json")
	}
	if n, err = NewNotice(header, idHeader, p.Repository.FullName); err != nil {
		return n, err
	}
	event := header.Get(eventHeader)
	if len(event) > MaxEvent {
		return n, nil
	}
	name, commit := p.Context, p.SHA
	if event == "check_run" {
		name, commit = p.Run.Name, p.Run.SHA
	}
	switch {
	case event == "status" || event == "check_run":
		if !IsOwnStatus(name) && len(commit) <= MaxCommit {
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
		return n, ErrNumber
	}
	if n.Number > 0 {
		n.Event = event
	}
	return n, nil
}
