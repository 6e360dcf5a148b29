package github

import (
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-github/v93/github"

	"landfall.build/services/hosts"
)

// Notice implements hosts.Host.
func (r *Repository) Notice(header http.Header, body, secret []byte) (hosts.Notice, error) {
	return notice(header, body, secret)
}

func notice(header http.Header, body, secret []byte) (hosts.Notice, error) {
	signature := header.Get(github.SHA256SignatureHeader)
	if len(secret) == 0 || !strings.HasPrefix(signature, "sha256=") || github.ValidateSignature(signature, body, secret) != nil {
		return hosts.Notice{}, hosts.ErrForged
	}
	n, err := hosts.ReadNotice(header, "X-GitHub-Delivery", github.EventTypeHeader, body)
	if event := header.Get(github.EventTypeHeader); errors.Is(err, hosts.ErrNoRepository) && (event == "ping" || strings.HasPrefix(event, "installation")) {
		return n, nil // it is of the App, or of a whole organization
	}
	return n, err
}
