package gitea

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"landfall.build/services/hosts"
)

// Notice implements hosts.Host.
func (r *Repository) Notice(header http.Header, body, secret []byte) (hosts.Notice, error) {
	return notice(header, body, secret)
}

func notice(header http.Header, body, secret []byte) (hosts.Notice, error) {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	given, err := hex.DecodeString(header.Get("X-Gitea-Signature"))
	if err != nil || len(secret) == 0 || !hmac.Equal(given, mac.Sum(nil)) {
		return hosts.Notice{}, hosts.ErrForged
	}
	return hosts.ReadNotice(header, "X-Gitea-Delivery", "X-Gitea-Event", body)
}
