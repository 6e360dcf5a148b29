package gitrepo

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

const (
	// emptyTree is the id of the tree without entries, which git knows in every repository.
	emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

	idLength      = 40
	maxRefLength  = 1024
	remoteRefs    = "refs/remote/" // what the remote calls refs/X is refs/remote/X here
	keptRefs      = "refs/kept/"   // commits that were fetched by id
	remoteHeads   = remoteRefs + "heads/"
	remoteTags    = remoteRefs + "tags/"
	minAbbreviate = 4
)

// IsID reports whether s is a full object id: 40 lower-case hex digits.
func IsID(s string) bool { return len(s) == idLength && isHex(s) }

func isHex(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return s != ""
}

func checkID(what, id string) error {
	if !IsID(id) {
		return fmt.Errorf("%w: %s %q is not a full object id (40 lower-case hex digits)", ErrInvalid, what, clip(id))
	}
	return nil
}

// checkRefName applies the rules of git check-ref-format, and forbids a leading "-" so
// that no name can be read as an option.
func checkRefName(name string) error {
	refuse := func(why string) error {
		return fmt.Errorf("%w: ref name %q %s", ErrInvalid, clip(name), why)
	}
	switch {
	case name == "" || name == "@":
		return refuse("is empty")
	case len(name) > maxRefLength:
		return refuse(fmt.Sprintf("is longer than %d bytes", maxRefLength))
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.HasSuffix(name, "."):
		return refuse(`contains "..", "@{" or ends in "."`)
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c <= ' ' || c == 0x7f || strings.IndexByte(`~^:?*[\`, c) >= 0 {
			return refuse(fmt.Sprintf("contains %q", c))
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".lock") {
			return refuse(fmt.Sprintf("has the part %q", part))
		}
	}
	return nil
}

// branchRef returns the remote's full name of a branch; a name that begins with "refs/" is
// one already.
func branchRef(branch string) (string, error) {
	if err := checkRefName(branch); err != nil {
		return "", err
	}
	if strings.HasPrefix(branch, "refs/") {
		if strings.Count(branch, "/") < 2 {
			return "", fmt.Errorf("%w: ref %q names no namespace (refs/heads/…)", ErrInvalid, branch)
		}
		return branch, nil
	}
	return "refs/heads/" + branch, nil
}

func mirrorRef(ref string) string { return remoteRefs + strings.TrimPrefix(ref, "refs/") }

// settleRemote makes a path absolute and refuses what git could take for something else.
func settleRemote(remote string) (string, error) {
	if remote == "" || remote[0] == '-' || strings.ContainsFunc(remote, isControl) || strings.Contains(remote, "::") {
		return "", fmt.Errorf("%w: remote %q is neither a path nor a URL that git may use", ErrInvalid, redactURL(clip(remote)))
	}
	if strings.Contains(remote, "://") {
		return remote, nil
	}
	if colon, slash := strings.IndexByte(remote, ':'), strings.IndexByte(remote, '/'); colon >= 0 && (slash < 0 || colon < slash) {
		return remote, nil // host:path, over ssh
	}
	return filepath.Abs(remote)
}

// redactURL removes the user and password of a URL; other text it returns as it is.
func redactURL(remote string) string {
	scheme, rest, found := strings.Cut(remote, "://")
	if !found {
		return remote
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	if at < 0 {
		return remote
	}
	if user, _, secret := strings.Cut(rest[:at], ":"); scheme == "ssh" && !secret {
		return scheme + "://" + user + rest[at:] // an ssh login name is no secret
	}
	return scheme + "://" + rest[at+1:]
}

// secretsOf lists the parts of a remote's URL that no message may show.
func secretsOf(remote string) []string {
	parsed, err := url.Parse(remote)
	if err != nil || parsed.User == nil {
		return nil
	}
	var secrets []string
	if password, ok := parsed.User.Password(); ok && password != "" {
		secrets = append(secrets, parsed.User.String(), password, url.PathEscape(password))
	} else if parsed.Scheme != "ssh" && parsed.User.Username() != "" {
		secrets = append(secrets, parsed.User.Username())
	}
	return secrets
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
