package configuration

import "fmt"

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

// Values of Access.Mode and Access.Requests.
const (
	AccessOpen     = "open"
	AccessRequired = "required"
	RequestsAccept = "accept"
	RequestsRefuse = "refuse"
)

// checkRoles checks the rules by which callers have roles.
func checkRoles(c *Configuration, at *path, f *findings) {
	for i, rule := range c.Access.Rules {
		place := at.child("rules").index(i)
		for j, queue := range rule.Queues {
			where := place.child("queues").index(j)
			if _, known := c.Queues[queue]; !known && queue != "*" && f.sound(where) {
				f.add(where, fmt.Sprintf("is %s, which is not under queues", quote(queue)), adviseName(queue, c.QueueNames()))
			}
		}
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
