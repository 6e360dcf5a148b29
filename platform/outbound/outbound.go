// Package outbound gives processes in a network namespace of their own what this machine reaches, but not the machine itself.
//
// Their packets come over a link that [landfall.build/platform/sandbox] makes. A TCP/IP stack in user space, gVisor's, takes
// each connection and each flow of datagrams, and makes an ordinary one of this machine to the same destination, if [Filter]
// has nothing against it. Nothing is resolved here: names are asked for at the resolvers of this machine, which the
// processes reach at addresses of the link.
//
// A stack that strangers send packets to has a process of its own: what they find wrong in it ends that process alone, and the
// connections of one step are never taken from the service.
package outbound

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Filter decides which addresses are refused.
type Filter struct {
	// Deny are networks that are refused besides this machine.
	Deny []netip.Prefix
}

// denied are addresses that mean this machine, all machines of its network, or the settings and keys that a cloud gives it:
// these are at link-local addresses, and at those behind them.
var denied = prefixes(
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32", "198.18.73.0/24",
	"168.63.129.16/32", "100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/32",
	"::/96", "fe80::/10", "ff00::/8", "fd4c:616e:6466::/64",
)

func prefixes(list ...string) (parsed []netip.Prefix) {
	for _, text := range list {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}

// translated are the networks whose addresses end in that of an IPv4 host.
var translated = prefixes("64:ff9b::/96", "64:ff9b:1::/48")

// Refuses reports whether an address must not be reached. Those of this machine are looked up each time.
func (f Filter) Refuses(address netip.Addr) bool {
	address = address.Unmap()
	if f.lists(address) || ofThisMachine(address) {
		return true
	}
	if !contains(translated, address) {
		return false
	}
	all := address.As16()
	within := netip.AddrFrom4([4]byte(all[12:]))
	return f.lists(within) || ofInterface(within)
}

// lists reports whether an address must not be reached on any machine.
func (f Filter) lists(address netip.Addr) bool {
	return !address.IsValid() || address.Zone() != "" || contains(denied, address) || contains(f.Deny, address)
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(address) })
}

// ofInterface reports whether an interface of this machine has an address, or cannot be asked.
func ofInterface(address netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(a net.Addr) bool {
		of, ok := a.(*net.IPNet)
		return ok && of.IP.Equal(address.AsSlice())
	})
}

// HasIPv6 reports whether this machine has an address of IPv6 that others could reach.
func HasIPv6() bool {
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		of, ok := a.(*net.IPNet)
		return ok && of.IP.To4() == nil && of.IP.IsGlobalUnicast()
	})
}

// Unreachable returns the address of this machine that the value of a variable names, such as that of a proxy or of a package
// registry, "" if there is none.
func (f Filter) Unreachable(value string) string {
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" ,|", r) }) {
		if !strings.Contains(part, "://") {
			part = "any://" + part
		}
		u, err := url.Parse(part)
		if err != nil || u.Port() == "" && strings.HasPrefix(part, "any://") {
			continue
		}
		host := u.Hostname()
		if address, err := netip.ParseAddr(host); host == "localhost" || err == nil && f.Refuses(address) {
			return host
		}
	}
	return ""
}

// Reached returns the first of some addresses, host:port, that is not refused, "" if all are. A host without an address is none.
func (f Filter) Reached(ctx context.Context, addresses []string) string {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			continue
		}
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err == nil && slices.ContainsFunc(found, func(a netip.Addr) bool { return !f.lists(a.Unmap()) && !ofInterface(a.Unmap()) }) {
			return address
		}
	}
	return ""
}

// lookupLimit bounds how long names are looked up.
const lookupLimit = 5 * time.Second

// resolvers returns the addresses that this machine resolves names at.
func resolvers() (list []netip.Addr) {
	text, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if address, err := netip.ParseAddr(fields[1]); err == nil {
			list = append(list, address)
		}
	}
	if len(list) == 0 {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})} // as the C library does
	}
	return list
}
