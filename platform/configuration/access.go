package configuration

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"fmt"
)

// AccessRule gives a role in some queues to whom one of its sets of claims fits.
type AccessRule struct {
	Role string `yaml:"role" required:"true" enum:"viewer,contributor,lander,operator,admin"`
	// Queues are names; none, or *, means all.
	Queues []string `yaml:"queues" maximum:"1000"`
	// Issuer names one of Access.Issuers, which vouches for the claims.
	Issuer string `yaml:"issuer" required:"true" pattern:"name"`
	// Any are sets of claims, one of which fits.
	Any []ClaimSet `yaml:"any" required:"true" minimum:"1" maximum:"100"`
}

// ClaimSet is claims that all have to be there.
type ClaimSet struct {
	// All has values by the name of the claim, with * for any text. Of a list one has to fit. A name with dots is a path.
	All map[string]string `yaml:"all" required:"true" minimum:"1" maximum:"20" keys:"claim"`
}

// Publisher is a program that signs what it writes to landfall.land-requests.
type Publisher struct {
	// Keys are its public keys (Ed25519), any of which counts: the DER form (SubjectPublicKeyInfo) in base64.
	Keys []string `yaml:"keys" required:"true" minimum:"1" maximum:"10"`
	// Role is what it may do: lander, or operator, which may give a benefit above 1.
	Role string `yaml:"role" enum:"lander,operator"`
	// Queues are names; none, or *, means all.
	Queues []string `yaml:"queues" maximum:"1000"`
}

// NewPublisher returns a publisher with the defaults.
func NewPublisher() Publisher { return Publisher{Role: "lander"} }

// PublicKeys returns the keys of a publisher. Those that are none are left out: they are findings.
func (p Publisher) PublicKeys() []ed25519.PublicKey {
	var keys []ed25519.PublicKey
	for _, text := range p.Keys {
		if key := publicKey(text); key != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// publicKey returns the Ed25519 key that a text is, nil if it is none.
func publicKey(text string) ed25519.PublicKey {
	der, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil
	}
	key, _ := parsed.(ed25519.PublicKey)
	return key
}

// Values of Access.Mode and Access.Requests.
const (
	AccessOpen     = "open"
	AccessRequired = "required"
	RequestsAccept = "accept"
	RequestsSigned = "signed"
	RequestsRefuse = "refuse"
)

// checkRoles checks the rules by which callers have roles.
func checkRoles(c *Configuration, at *path, f *findings) {
	queues := func(names []string, at *path) {
		for i, queue := range names {
			where := at.child("queues").index(i)
			if _, known := c.Queues[queue]; !known && queue != "*" && f.sound(where) {
				f.add(where, fmt.Sprintf("is %s, which is not under queues", quote(queue)), adviseName(queue, c.QueueNames()))
			}
		}
	}
	for name, publisher := range c.Access.Publishers {
		place := at.child("publishers").child(name)
		queues(publisher.Queues, place)
		for i, text := range publisher.Keys {
			if where := place.child("keys").index(i); publicKey(text) == nil && f.sound(where) {
				f.add(where, "is no public key of Ed25519 in base64", "openssl pkey -in key.pem -pubout -outform DER | base64 prints one")
			}
		}
	}
	if where := at.child("requests"); c.Access.Requests == RequestsSigned && len(c.Access.Publishers) == 0 && f.sound(where, at.child("publishers")) {
		f.add(where, "is signed, and there are no publishers", "name them under access.publishers, or set refuse")
	}
	for i, rule := range c.Access.Rules {
		place := at.child("rules").index(i)
		queues(rule.Queues, place)
		issuer := place.child("issuer")
		if _, known := c.Access.Issuers[rule.Issuer]; !known && f.given(issuer) && f.sound(issuer) {
			f.add(issuer, fmt.Sprintf("is %s, which is not under access.issuers", quote(rule.Issuer)), adviseName(rule.Issuer, c.Access.IssuerNames()))
		}
		for j, set := range rule.Any {
			for name, value := range set.All {
				if where := place.child("any").index(j).child("all").child(name); f.sound(where) && (value == "" || len(value) > 1000) {
					f.add(where, fmt.Sprintf("is %d bytes long, must be 1 to 1000", len(value)), "* stands for any text")
				}
			}
		}
	}
	if mode := at.child("mode"); c.Access.Mode == AccessOpen && len(c.Access.Rules) > 0 && f.sound(mode) {
		f.add(at.child("rules"), "has no effect with mode open, must be empty", "set mode: required")
	}
}

// CheckOpen returns an error for an open gateway that other machines reach, unless the configuration wants it, and for one that
// listens on no address: flags may have named it.
func (c *Configuration) CheckOpen() error {
	if problem := checkAddress(c.Gateway.Listen, true); problem != "" {
		return fmt.Errorf("the address that the gateway is to listen on %s, as in %s", problem, listenExample)
	}
	if c.Access.Mode != AccessOpen || c.Access.OpenNetwork == On || IsLoopback(c.Gateway.Listen) {
		return nil
	}
	return fmt.Errorf("the gateway listens on %s, where whoever reaches it could land and steer: set access.mode: required (and make a token: landfall token create --direct), "+
		"or, on a network on which everybody is trusted, access.open_network: on", c.Gateway.Listen)
}
