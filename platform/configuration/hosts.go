package configuration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Hosts are the code hosts at which people ask for landings.
type Hosts struct {
	// Listen is where webhooks of the hosts arrive.
	Listen string `yaml:"listen" minimum:"1" maximum:"300" pattern:"line"`
	// Poll is the time between two looks for what no webhook told of.
	Poll time.Duration `yaml:"poll" minimum:"1s" maximum:"1h"`
	// Gateway is where the service finds the gateway, for the places in the queue. Empty: gateway.url, and with landfall up its own.
	Gateway string `yaml:"gateway" maximum:"2000" pattern:"line"`
	// Token says where the token is that the gateway is given; it needs the verb read. Left out: none.
	Token SecretPlace `yaml:"token"`
	// Servers by name.
	Servers map[string]Host `yaml:"servers" maximum:"100" keys:"name"`
}

// Host is a code host.
type Host struct {
	Kind string `yaml:"kind" required:"true" enum:"gitea,github,gitlab"`
	// URL is its address.
	URL string `yaml:"url" required:"true" minimum:"1" maximum:"2000" pattern:"line"`
	// App is the client id of the GitHub App that answers, or its id. Empty: an account answers.
	App string `yaml:"app" maximum:"100" pattern:"line"`
	// Token says where the token is of the account that answers, or the App's private key; Secret where that of the webhooks is.
	Token  SecretPlace `yaml:"token"`
	Secret SecretPlace `yaml:"secret"`
	// Label is the one by which people ask.
	Label string `yaml:"label" minimum:"1" maximum:"50" pattern:"line"`
	// OnPush says what becomes of a change to whose pull request something is pushed.
	OnPush string `yaml:"on_push" enum:"withdraw,keep"`
	// Branches says what is done with the branch of a pull request that lands in other commits (squashed or rebased). move: it is moved to
	// them first, so that the host shows the pull request as merged. keep: it stays.
	Branches string `yaml:"branches" enum:"move,keep"`
	// Checks names jobs and statuses of a commit that must have passed, besides what the host asks for itself. A name may have *.
	Checks []string `yaml:"checks" maximum:"100"`
	// Queues has the repository of each queue, owner/name; at GitLab also group/group/name.
	Queues map[string]string `yaml:"queues" required:"true" minimum:"1" maximum:"1000" keys:"name"`
}

// Values of Host.Kind and Host.OnPush.
const (
	HostGitea      = "gitea"
	HostGitHub     = "github"
	HostGitLab     = "gitlab"
	OnPushWithdraw = "withdraw"
	OnPushKeep     = "keep"
	BranchesMove   = "move"
	BranchesKeep   = "keep"
)

// NewHost returns a host with the defaults.
func NewHost() Host { return Host{Label: "landfall", OnPush: OnPushWithdraw, Branches: BranchesMove} }

func newHosts() Hosts { return Hosts{Listen: "127.0.0.1:7879", Poll: 30 * time.Second} }

// ServerNames returns the names of all servers, sorted.
func (h Hosts) ServerNames() []string { return slices.Sorted(maps.Keys(h.Servers)) }

func checkHosts(c *Configuration, at *path, f *findings) {
	if where := at.child("gateway"); f.sound(where) && c.Hosts.Gateway != "" && !isEndpoint(c.Hosts.Gateway) {
		f.add(where, "is not the address of a gateway", "as in https://landfall.example.com")
	}
	if c.Hosts.Token.Given() {
		checkSecretPlace(c.Hosts.Token, at.child("token"), f)
	}
	of := map[string]string{}
	for _, name := range c.Hosts.ServerNames() {
		place, h := at.child("servers").child(name), c.Hosts.Servers[name]
		if where := place.child("url"); f.sound(where) && f.given(where) && !isEndpoint(h.URL) {
			f.add(where, "is not the address of a server", "as in https://git.example.com")
		}
		if where := place.child("app"); f.sound(where) && h.App != "" && h.Kind != HostGitHub {
			f.add(where, "is of a host that has no Apps", "leave it out, or set kind to github")
		}
		if where := place.child("checks"); f.sound(where) && len(h.Checks) > 0 {
			if h.Kind != HostGitLab {
				f.add(where, "is of a host whose branches say themselves which checks they ask for", "leave it out, and require them at the host")
			}
			for i, name := range h.Checks {
				if name == "" || len(name) > maxCheckName {
					f.add(where.index(i), fmt.Sprintf("must be a name of 1 to %d bytes", maxCheckName), "")
				}
			}
		}
		checkSecretPlace(h.Token, place.child("token"), f)
		checkSecretPlace(h.Secret, place.child("secret"), f)
		for _, queue := range slices.Sorted(maps.Keys(h.Queues)) {
			where := place.child("queues").child(queue)
			if _, known := c.Queues[queue]; !known {
				f.add(where, fmt.Sprintf("is of %s, which is not under queues", quote(queue)), adviseName(queue, c.QueueNames()))
			}
			if c.Queues[queue].Shadow == On {
				f.add(where, "is of a shadow, in which nobody asks for anything", "leave it out, or set shadow of the queue to off")
			}
			if other, twice := of[queue]; twice {
				f.add(where, fmt.Sprintf("is of a queue that has a repository at %s too", other), "a queue lands on one repository")
			}
			of[queue] = name
			if f.sound(where) && !isRepositoryPath(h.Queues[queue], h.Kind == HostGitLab) {
				f.add(where, "is not the name of a repository", "as in acme/shop")
			}
		}
	}
}

// maxCheckName bounds the name of a check, and maxGroups the groups above a repository, as GitLab does.
const (
	maxCheckName = 255
	maxGroups    = 20
)

// isRepositoryPath reports whether a text is owner/name; or nested, the groups and the name of a repository.
func isRepositoryPath(text string, nested bool) bool {
	parts := strings.Split(text, "/")
	return (len(parts) == 2 || nested && len(parts) > 2 && len(parts) <= maxGroups+1) && !slices.ContainsFunc(parts, func(part string) bool { return !isRepositoryName(part) })
}

// isRepositoryName reports whether a text is the name of an owner or of a repository, as it stands in an address.
func isRepositoryName(text string) bool {
	return text != "" && text != "." && text != ".." && len(text) <= 100 && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	})
}
