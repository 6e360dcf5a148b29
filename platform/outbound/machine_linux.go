package outbound

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ofThisMachine reports whether what is sent to an address comes back to this machine, or goes to all of a network: the kernel
// is asked. Addresses without an interface, such as those that a cloud's balancer is heard at, are in its routes alone.
func ofThisMachine(address netip.Addr) bool {
	if ofInterface(address) {
		return true
	}
	routes, err := netlink.RouteGet(address.AsSlice())
	if err != nil || len(routes) == 0 {
		return true // nothing leads there
	}
	for _, r := range routes {
		if r.Type != unix.RTN_UNICAST {
			return true
		}
	}
	return false
}
