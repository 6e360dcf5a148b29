package configuration

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

// Values of Steps.Isolation.
const (
	// IsolationRequired refuses to run steps on a system that cannot isolate them.
	IsolationRequired = "required"
	// IsolationBest isolates them as well as the system can.
	IsolationBest = "best"
	// IsolationOff lets steps do what the service's user may do.
	IsolationOff = "off"
)

// Values of Steps.Network.
const (
	// NetworkNone lets the processes of a step reach each other.
	NetworkNone = "none"
	// NetworkOutbound lets them reach what the machine reaches, but not the machine.
	NetworkOutbound = "outbound"
	// NetworkHost lets them reach what the machine reaches, itself among it.
	NetworkHost = "host"
)

// isolation is a part of a queue's hash. A queue without these has the hash that it had before there were any.
func (w fieldHash) isolation(s Steps) {
	if s.Isolation != IsolationBest {
		w.text("steps.isolation", s.Isolation)
	}
	if s.Network != NetworkOutbound {
		w.text("steps.network", s.Network)
	}
	if len(s.NetworkDeny) > 0 {
		w.list("steps.network_deny", s.NetworkDeny)
	}
	if len(s.Read) > 0 {
		w.list("steps.read", s.Read)
	}
	if len(s.Write) > 0 {
		w.list("steps.write", s.Write)
	}
}

// wholeFolders are those that a sandbox has its own of.
var wholeFolders = map[string]bool{"/": true, "/dev": true, "/proc": true, "/sys": true, "/run": true, "/etc": true}

// DeniedNetworks returns NetworkDeny, which is sound.
func (s Steps) DeniedNetworks() []netip.Prefix { return networks(s.NetworkDeny) }

// networks returns those of a list that are networks.
func networks(texts []string) (list []netip.Prefix) {
	for _, text := range texts {
		if network, err := netip.ParsePrefix(text); err == nil {
			list = append(list, network)
		}
	}
	return list
}

// checkNetwork adds a finding about a text that is no network.
func checkNetwork(text string, at *path, f *findings) {
	if network, err := netip.ParsePrefix(text); f.sound(at) && (err != nil || network != network.Masked()) {
		f.add(at, fmt.Sprintf("is %s, must be a network", quote(text)), "as in 10.20.0.0/16, or fd12:3456::/32; one address is 10.20.0.7/32")
	}
}

func checkIsolation(s Steps, at *path, f *findings) {
	for i, text := range s.NetworkDeny {
		checkNetwork(text, at.child("network_deny").index(i), f)
	}
	if len(s.NetworkDeny) > 0 && s.Network != NetworkOutbound {
		f.add(at.child("network_deny"), "is of no use with network: "+s.Network, "set network to outbound, or leave it out")
	}
	for field, paths := range map[string][]string{"read": s.Read, "write": s.Write} {
		for i, path := range paths {
			place := at.child(field).index(i)
			switch {
			case !f.sound(place):
			case !filepath.IsAbs(path) || filepath.Clean(path) != path:
				f.add(place, fmt.Sprintf("is %s, must be an absolute path", quote(path)), "as in /opt/android-sdk, without . and .. and a slash at the end")
			case wholeFolders[path]:
				f.add(place, fmt.Sprintf("is %s, which steps have their own of", quote(path)), "name what they need of it")
			}
		}
	}
}
