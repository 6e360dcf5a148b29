package access

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/identity"
)

// Issuers that are no provider of OpenID Connect. None is a URL, so no provider can have such a name.
const (
	// IssuerToken vouches for tokens of Landfall.
	IssuerToken = "landfall"
	// IssuerOpen stands for callers whose name is believed (access.mode: open).
	IssuerOpen = "open"
	// IssuerLog is of those who can write the log themselves: commands with the account of an operator, programs on Kafka.
	IssuerLog = "log"
	// IssuerPublisher is of programs on Kafka that sign their requests, by the keys of the configuration.
	IssuerPublisher = "publisher"
)

// Bounds of what is kept of a caller.
const (
	MaxIssuerBytes  = 500
	MaxSubjectBytes = 300
	MaxNameBytes    = 300
	MaxClientBytes  = 200
)

// Caller is who asks. The zero value is nobody.
type Caller struct {
	// Issuer vouches for Subject, which is one person or machine for ever. Name and Email are for people.
	Issuer, Subject, Name, Email string
	// Token is the id of the token that was presented, "" for none; Client the program that asks.
	Token, Client string

	claims map[string]any
	grant  *Grant
}

// Identified returns the caller that an issuer vouches for. The email address is one that the issuer calls verified, else "": whoever
// can choose its address must not own the changes of another one.
func Identified(issuer, subject, name, email string, claims map[string]any) Caller {
	return Caller{Issuer: issuer, Subject: subject, Name: name, Email: email, claims: claims}
}

// FromIdentity returns the caller of an identity.
func FromIdentity(i identity.Identity) Caller {
	email := ""
	if verified := i.Claims["email_verified"]; verified == true || verified == "true" {
		email = i.Email
	}
	return Identified(i.Issuer, i.Subject, cmp.Or(i.Name, i.Email), email, i.Claims)
}

// Open returns the caller of a name that is believed.
func Open(name string) Caller {
	return Caller{Issuer: IssuerOpen, Subject: name, Name: name}
}

// Anonymous reports whether it is not known who asks.
func (c Caller) Anonymous() bool { return c.Issuer == "" }

// scope reports whether the caller's token is for a verb.
func (c Caller) scope(v Verb) bool {
	if c.grant == nil || len(c.grant.Verbs) == 0 {
		return true
	}
	for _, is := range c.grant.Verbs {
		if is == v {
			return true
		}
	}
	return false
}

// owns reports whether a change is the caller's: it asked for it, or is its author.
func (c Caller) owns(of Owner) bool {
	switch {
	case of.New:
		return true
	case of.Issuer != "" && of.Subject != "" && of.Issuer == c.Issuer && of.Subject == c.Subject:
		return true
	}
	return c.hasAddress(of.Author)
}

// hasAddress reports whether an author has the caller's address, in upper or lower case. Letters are folded as those of a quota are
// (quota.AuthorOf): what is taken for the caller's counts for it.
func (c Caller) hasAddress(author string) bool {
	own, named := strings.ToLower(c.Email), strings.ToLower(addressOf(author)) // strings.EqualFold folds more, such as ſ to s.
	return own != "" && own == named
}

// addressOf returns the address of "Name <address>", else the text.
func addressOf(author string) string {
	if from, to := strings.LastIndexByte(author, '<'), strings.LastIndexByte(author, '>'); from >= 0 && to > from {
		return author[from+1 : to]
	}
	return author
}

// Shown returns what people call the caller.
func (c Caller) Shown() string {
	for _, text := range []string{c.Name, c.Email, c.Subject} {
		if text != "" {
			return Clean(text, MaxNameBytes)
		}
	}
	return ""
}

// Author returns the caller as the author of its changes: with its address if that is verified, else without anything that could be
// taken for one. It is never empty: an empty author stands for the one that the commits name.
func (c Caller) Author() string {
	plain := func(text string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if strings.ContainsRune("<>@", r) {
				return -1
			}
			return r
		}, text))
	}
	name := plain(c.Shown())
	switch {
	case c.Email == "":
		return cmp.Or(name, plain(Clean(c.Subject, MaxNameBytes)), "unknown")
	case c.Shown() == c.Email:
		return c.Email
	}
	return name + " <" + c.Email + ">"
}

// IsAuthor reports whether an author that a request names is the caller.
func (c Caller) IsAuthor(author string) bool {
	return c.hasAddress(author) || author == c.Author()
}

// MayRevise reports whether who asks for a change may give it another revision: a contributor only its own. actor is nil for a request of
// an earlier release, and author the author that the request names.
func MayRevise(actor *eventsv1.Actor, author string, of Owner) bool {
	role, _ := ParseRole(actor.GetRole())
	if actor == nil || role >= Lander {
		return true
	}
	c := Caller{Issuer: actor.Issuer, Subject: actor.Subject}
	// A contributor names no other author than itself, and an address only if it is verified.
	if at := addressOf(author); at != author || strings.Contains(at, "@") {
		c.Email = at
	}
	return c.owns(of)
}

// MayHurry reports whether who asks for a change may give it a benefit. One above 1 takes the role that Urgent does.
func MayHurry(actor *eventsv1.Actor, benefit float64) bool {
	role, _ := ParseRole(actor.GetRole())
	n, _ := needOf(Urgent)
	return benefit <= 1 || role >= n.role
}

// Actor returns the caller as records hold it, with the role by which it was allowed; nil for nobody.
func (c Caller) Actor(role Role) *eventsv1.Actor {
	if c.Anonymous() {
		return nil
	}
	return &eventsv1.Actor{
		Issuer: Clean(c.Issuer, MaxIssuerBytes), Subject: Clean(c.Subject, MaxSubjectBytes), Name: c.Shown(), Role: role.String(),
		Client: Clean(c.Client, MaxClientBytes), Token: c.Token,
	}
}

// Clean returns text of untrusted origin as one line of printable text of a bounded size.
func Clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text[:min(len(text), 4*most)])
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// AtHost returns the caller of somebody at a code host, who has there a permission that stands for a role in a queue. The host's
// address vouches for the id of its account.
func AtHost(host, id, login string, role Role, queue string) Caller {
	return Caller{Issuer: host, Subject: id, Name: login, Client: "hosts", grant: &Grant{Role: role, Queues: []string{queue}}}
}
