// Package identity finds out who sends a request: people by OpenID Connect, and workloads (GitHub Actions, GitLab, Buildkite,
// Kubernetes and others) by the tokens that their issuers sign. It says who somebody is. What they may do is decided elsewhere.
package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of an identity.
const (
	// MaxToken is the length of a token, in bytes.
	MaxToken = 16 << 10
	// MaxText is the length of each field of an Identity, in bytes.
	MaxText = 300
	// MaxDepth is how deep lists and objects in Claims are nested.
	MaxDepth = 8
	// MaxValues is how many values Claims has, with those in lists and objects.
	MaxValues = 2000
)

// GroupsClaim is the claim that has the groups of an Identity, whatever its issuer calls them.
const GroupsClaim = "groups"

var (
	// ErrRefused is returned for a token or session that is not valid. The same will be refused again; the caller has to sign in.
	ErrRefused = errors.New("not signed in")
	// ErrUnreachable is returned where the issuer does not answer and nothing in memory decides. Ask again later.
	ErrUnreachable = errors.New("the identity provider does not answer")
)

// Identity is who somebody is, as an issuer has signed it. Issuer and Subject together name them; Name and Email are for
// people to read.
type Identity struct {
	// Issuer is the URL of who vouches for it.
	Issuer string
	// Subject is never given to anybody else by the same issuer.
	Subject string
	// Name and Email may be empty. Email is one that the issuer has not called unverified.
	Name, Email string
	// Claims are all that the issuer says, decoded from JSON: string, bool, nil, json.Number, []any, map[string]any.
	// GroupsClaim has the groups, a []any of strings.
	Claims map[string]any
}

// String returns what people read: a name or an address, else the subject.
func (i Identity) String() string {
	for _, text := range []string{i.Name, i.Email} {
		if text != "" {
			return text
		}
	}
	return i.Subject
}

// Claim returns the claim of a name, nil if there is none. A name with dots leads into objects: realm_access.roles.
func (i Identity) Claim(name string) any { return find(i.Claims, name) }

// Verifier verifies tokens. It is safe for concurrent use.
type Verifier interface {
	// Verify returns whom a token (a JWT, without "Bearer") names. The error is ErrRefused or ErrUnreachable, wrapped with the
	// reason, which has no part of the token and may be shown to whoever sent it.
	Verify(ctx context.Context, token string) (Identity, error)
}

// Source finds who sends a request.
type Source interface {
	// Of returns who sends a request, by its bearer token or its session; nil if it has neither. The errors are those
	// of Verifier.
	Of(r *http.Request) (*Identity, error)
}

// ClaimNames says in which claims an issuer has what. A name with dots leads into objects: realm_access.roles.
type ClaimNames struct {
	Name, Email, Groups string
}

// FromClaims makes an identity of the claims of a verified token. The error is ErrRefused, with the reason.
func FromClaims(issuer string, claims []byte, names ClaimNames) (Identity, error) {
	refuse := func(why string) (Identity, error) { return Identity{}, fmt.Errorf("%w: %s", ErrRefused, why) }
	if len(claims) > MaxToken {
		return refuse(fmt.Sprintf("the claims have more than %d bytes", MaxToken))
	}
	d := json.NewDecoder(bytes.NewReader(claims))
	d.UseNumber()
	i := Identity{Issuer: issuer}
	if err := d.Decode(&i.Claims); err != nil || i.Claims == nil {
		return refuse("the claims are no JSON object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse("something follows the claims")
	}
	left := MaxValues
	if !bounded(i.Claims, MaxDepth, &left) {
		return refuse(fmt.Sprintf("the claims have more than %d values, or are nested more than %d deep", MaxValues, MaxDepth))
	}
	i.Subject, _ = i.Claims["sub"].(string)
	for name, text := range map[string]string{"issuer": i.Issuer, "subject": i.Subject} {
		if text == "" || len(text) > MaxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
			return refuse(fmt.Sprintf("the %s is not printable text of at most %d bytes", name, MaxText))
		}
	}
	i.Name = Shown(text(i.Claims, names.Name))
	if verified, said := i.Claims["email_verified"]; !said || verified == true || verified == "true" {
		i.Email = Shown(text(i.Claims, names.Email))
	}
	i.Claims[GroupsClaim] = list(find(i.Claims, names.Groups))
	return i, nil
}

// bounded reports whether a value is nested at most so deep, and takes its values from what is left.
func bounded(value any, depth int, left *int) bool {
	if *left--; *left < 0 || depth < 0 {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if !bounded(inner, depth-1, left) {
				return false
			}
		}
	case []any:
		for _, inner := range v {
			if !bounded(inner, depth-1, left) {
				return false
			}
		}
	}
	return true
}

// find returns the claim of a name, nil if there is none. A claim whose own name has the dots is found first.
func find(claims map[string]any, name string) any {
	if name == "" {
		return nil
	}
	if value, there := claims[name]; there {
		return value
	}
	for at, c := range name {
		if inner, isObject := claims[name[:at]].(map[string]any); c == '.' && isObject {
			if value := find(inner, name[at+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}

func text(claims map[string]any, name string) string {
	value, _ := find(claims, name).(string)
	return value
}

// list returns the texts of a claim that is a list, or one text.
func list(value any) []any {
	texts := []any{}
	switch v := value.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, inner := range v {
			if text, isText := inner.(string); isText {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// Shown returns a text as people may see it: printable, on one line, of MaxText bytes at most.
func Shown(text string) string {
	text = strings.Map(func(c rune) rune {
		if unprintable(c) {
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	for len(text) > MaxText {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return strings.TrimSpace(text)
}

// unprintable reports whether a character is none that people see, or changes how others are shown.
func unprintable(c rune) bool { return !unicode.IsPrint(c) }
