package configuration

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"time"
)

// Access says who is known here, and who may do what by the gateway.
type Access struct {
	// Mode: open believes the name in a request, required asks for a token or for somebody who is signed in.
	Mode string `yaml:"mode" enum:"open,required"`
	// OpenNetwork lets a gateway be open that other machines reach, on or off.
	OpenNetwork string `yaml:"open_network" enum:"on,off"`
	// Logs is the least role that may read the output of steps. Whoever may read the queue sees up to three lines of it, which say why a
	// step failed.
	Logs string `yaml:"logs" enum:"viewer,contributor,lander,operator,admin"`
	// Requests says which records on landfall.land-requests are taken. accept: all; one without a signature has the role lander.
	// signed: those that one of Publishers has signed. refuse: none.
	Requests string `yaml:"requests" enum:"accept,signed,refuse"`
	// Publishers by name: who signs such records.
	Publishers map[string]Publisher `yaml:"publishers" maximum:"100" keys:"name"`
	// Rate is how many requests a second a caller may make, and ten times as many at once.
	Rate int `yaml:"rate" minimum:"1" maximum:"100000"`
	// Issuers by name: who vouches for people and workloads.
	Issuers  map[string]Issuer `yaml:"issuers" maximum:"100" keys:"name"`
	Sessions Sessions          `yaml:"sessions"`
	// Rules give roles to people and programs that an issuer vouches for.
	Rules []AccessRule `yaml:"rules" maximum:"1000"`
}

// Issuer is a provider of OpenID Connect, or another signer of tokens that OpenID Connect describes.
type Issuer struct {
	// URL is the issuer as its tokens name it, to the letter.
	URL string `yaml:"url" required:"true" minimum:"1" maximum:"300" pattern:"line"`
	// ClientID is as what the gateway signs people in. Empty: nobody signs in with it in a browser.
	ClientID string `yaml:"client_id" maximum:"300" pattern:"line"`
	// ClientSecret says where the client's secret is. Nothing: the client has none.
	ClientSecret SecretPlace `yaml:"client_secret"`
	// CommandClientID is as what `landfall login` signs in: a public client, without a secret. Empty: ClientID, if that has none.
	CommandClientID string `yaml:"command_client_id" maximum:"300" pattern:"line"`
	// Audiences are those of tokens that are taken besides ones for the clients.
	Audiences []string `yaml:"audiences" maximum:"100"`
	// Scopes are what is asked for when somebody signs in.
	Scopes []string      `yaml:"scopes" minimum:"1" maximum:"100"`
	Claims ClaimsOfUsers `yaml:"claims"`
	// CAFile has certificates of the authorities that are trusted for it. Empty: those of the system.
	CAFile string `yaml:"ca_file" maximum:"4096" pattern:"line"`
	// KeysFile has its keys (a JSON Web Key Set), for an issuer that cannot be reached. It is read again every ten minutes, and when
	// a token names a key that is not in it.
	KeysFile string `yaml:"keys_file" maximum:"4096" pattern:"line"`
}

// ClaimsOfUsers are the names of claims. Dots lead into objects.
type ClaimsOfUsers struct {
	Name   string `yaml:"name" maximum:"300" pattern:"line"`
	Email  string `yaml:"email" maximum:"300" pattern:"line"`
	Groups string `yaml:"groups" maximum:"300" pattern:"line"`
}

// Sessions are of people who have signed in with a browser.
type Sessions struct {
	// Idle is after how long without a request a session ends, Lifetime when it ends at the latest.
	Idle     time.Duration `yaml:"idle" minimum:"1m" maximum:"720h"`
	Lifetime time.Duration `yaml:"lifetime" minimum:"1m" maximum:"2160h"`
}

var defaultSessions = Sessions{Idle: 8 * time.Hour, Lifetime: 24 * time.Hour}

// NewIssuer returns an issuer with the defaults.
func NewIssuer() Issuer {
	return Issuer{Scopes: []string{"openid", "profile", "email"}, Claims: ClaimsOfUsers{Name: "name", Email: "email", Groups: "groups"}}
}

// IssuerNames returns the names of all issuers, sorted.
func (a Access) IssuerNames() []string { return slices.Sorted(maps.Keys(a.Issuers)) }

// HasSecret reports whether the client has one.
func (i Issuer) HasSecret() bool {
	return i.ClientSecret.File != "" || i.ClientSecret.Environment != "" || len(i.ClientSecret.Command) > 0
}

// CommandClient returns as what `landfall login` signs in; "" if it cannot.
func (i Issuer) CommandClient() string {
	if i.CommandClientID == "" && !i.HasSecret() {
		return i.ClientID
	}
	return i.CommandClientID
}

// Accepts returns the audiences of tokens that are taken.
func (i Issuer) Accepts() []string {
	list := slices.Clone(i.Audiences)
	for _, client := range []string{i.ClientID, i.CommandClientID} {
		if client != "" && !slices.Contains(list, client) {
			list = append(list, client)
		}
	}
	return list
}

func checkAccess(a Access, at *path, f *findings) {
	first := map[string]string{}
	for _, name := range a.IssuerNames() {
		place, issuer := at.child("issuers").child(name), a.Issuers[name]
		if where := place.child("url"); f.sound(where) && f.given(where) {
			earlier, twice := first[issuer.URL]
			switch {
			case !isIssuer(issuer.URL):
				f.add(where, fmt.Sprintf("is %s, must be the https address of an issuer", quote(issuer.URL)), "as in https://id.example.com/realms/main; http is for this machine alone")
			case twice:
				f.add(where, fmt.Sprintf("is that of %s as well", earlier), "give one of them all audiences")
			default:
				first[issuer.URL] = name
			}
		}
		if len(issuer.Accepts()) == 0 && f.sound(place.child("client_id"), place.child("audiences"), place.child("command_client_id")) {
			f.add(place, "has neither a client nor audiences", "a token that is for anybody would be taken from any program")
		}
		for i, text := range issuer.Audiences {
			if text == "" {
				f.add(place.child("audiences").index(i), "is empty", "remove it")
			}
		}
		if scopes := place.child("scopes"); f.sound(scopes) && !slices.Contains(issuer.Scopes, "openid") {
			f.add(scopes, "lacks openid", "without it there is no token that says who signs in")
		}
		if issuer.HasSecret() {
			checkSecretPlace(issuer.ClientSecret, place.child("client_secret"), f)
		}
		for field, file := range map[string]string{"ca_file": issuer.CAFile, "keys_file": issuer.KeysFile} {
			if file != "" && !filepath.IsAbs(file) && f.sound(place.child(field)) {
				f.add(place.child(field), fmt.Sprintf("is %s, must be an absolute path", quote(file)), "")
			}
		}
	}
	idle, lifetime := at.child("sessions").child("idle"), at.child("sessions").child("lifetime")
	if f.sound(idle, lifetime) && a.Sessions.Lifetime < a.Sessions.Idle {
		f.add(lifetime, fmt.Sprintf("is %v, must be at least idle, %v", a.Sessions.Lifetime, a.Sessions.Idle), "")
	}
}

// isIssuer reports whether a text is an https URL without query and user; http is for the loopback.
func isIssuer(text string) bool {
	at, err := url.Parse(text)
	if err != nil || at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.ForceQuery || at.Fragment != "" {
		return false
	}
	return at.Scheme == "https" || at.Scheme == "http" && IsLoopback(at.Host)
}

// IsLoopback reports whether a host, with a port or without, is this machine's loopback.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(trimBrackets(host))
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

func trimBrackets(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
