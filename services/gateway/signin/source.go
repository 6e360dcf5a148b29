package signin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
)

// Cookies. Over https their names have the prefix __Host-, with which a browser takes them from this very host alone, and sends
// them nowhere else.
const (
	sessionCookie = "landfall"
	attemptCookie = "landfall-signin"
	hostPrefix    = "__Host-"
)

// ErrPlain is returned where a cookie would travel for all to read.
var ErrPlain = errors.New("people sign in over https, or on the gateway's own machine")

// site is where a browser sees the gateway.
type site struct {
	// url has no slash at its end.
	url    string
	secure bool
}

// at returns where the sender of a request sees the gateway: what is configured, else what the request is for. The name of the host
// has been checked before. No header of a proxy is believed.
func (s *Service) at(r *http.Request) (site, error) {
	at := site{url: s.URL, secure: strings.HasPrefix(s.URL, "https://")}
	if s.URL == "" {
		at = site{url: "http://" + r.Host}
		if r.TLS != nil {
			at = site{url: "https://" + r.Host, secure: true}
		}
	}
	if parsed, err := url.Parse(at.url); !at.secure && (err != nil || !configuration.IsLoopback(parsed.Host)) {
		return site{}, ErrPlain
	}
	return at, nil
}

func (at site) name(cookie string) string {
	if at.secure {
		return hostPrefix + cookie
	}
	return cookie
}

// cookie returns one that no script reads and no other site's page sends along; without a value it takes the place of one there is.
func (at site) cookie(name, value string, lasts time.Duration) *http.Cookie {
	c := &http.Cookie{Name: at.name(name), Value: value, Path: "/", Secure: at.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(lasts.Seconds())}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}

// read returns the value of a cookie, "" if there is none, or more than one: then somebody else has put one beside it.
func (at site) read(r *http.Request, name string) string {
	if found := r.CookiesNamed(at.name(name)); len(found) == 1 {
		return found[0].Value
	}
	return ""
}

// Of implements identity.Source.
func (s *Service) Of(r *http.Request) (*identity.Identity, error) {
	refuse := func(why string) (*identity.Identity, error) {
		return nil, fmt.Errorf("%w: %s", identity.ErrRefused, why)
	}
	if strings.Contains(r.URL.RawQuery, "_token=") {
		if query := r.URL.Query(); query.Has("access_token") || query.Has("id_token") {
			return refuse("a token in an address is read by others; send it in the header Authorization")
		}
	}
	if given := r.Header["Authorization"]; len(given) > 0 {
		scheme, token, _ := strings.Cut(given[0], " ")
		if len(given) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return refuse("the header Authorization must be one, and Bearer")
		}
		who, err := s.Issuers.Verify(r.Context(), strings.TrimSpace(token))
		if err != nil {
			return nil, err
		}
		return &who, nil
	}
	at, err := s.at(r)
	if err != nil {
		return nil, nil // no session begins there, so there is none
	}
	id := at.read(r, sessionCookie)
	if id == "" {
		return nil, nil
	}
	if !at.ownPage(r) {
		return refuse("a session is for this site's own pages")
	}
	return s.sessions.get(id), nil
}

// ownPage reports whether a page of this site sends a request, or somebody goes to such a page. A request that changes something
// has to show it, by Sec-Fetch-Site or Origin: a browser that sends neither gets no further with a cookie. A page of this host that came over
// plain HTTP, where whoever is between can make it, is none of a site over https.
func (at site) ownPage(r *http.Request) bool {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	switch from := r.Header.Get("Sec-Fetch-Site"); from {
	case "same-origin":
		return true
	case "none":
		return read
	case "":
		if read {
			return true
		}
		origin, err := url.Parse(r.Header.Get("Origin"))
		return err == nil && origin.Host != "" && origin.Host == r.Host && (origin.Scheme == "https" || !at.secure)
	}
	return read && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}
