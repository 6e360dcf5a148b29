package sandbox

import "net/netip"

// The link between a network namespace and what carries its packets, with [Outbound]. Its addresses are
// of a network that is reserved for tests of network devices (RFC 2544), and of a random private one.
const (
	LinkMTU = 65520
	// LinkResolvers bounds the resolvers that are reached over it.
	LinkResolvers = 3
	// LinkCarried is the answer to who hands over a link; any other is what is wrong.
	LinkCarried = "carried"
)

// Addresses of the link. Resolvers have those that follow LinkResolver. The guest has no neighbour but the gateway, which all packets go
// to: the kernel has one table of neighbours for all namespaces, and who asks for many of its own would take those of the machine.
var (
	LinkGuest    = netip.MustParsePrefix("198.18.73.2/32")
	LinkGateway  = netip.MustParseAddr("198.18.73.1")
	LinkResolver = netip.MustParseAddr("198.18.73.53")
	LinkGuest6   = netip.MustParsePrefix("fd4c:616e:6466::2/128")
	LinkGateway6 = netip.MustParseAddr("fd4c:616e:6466::1")

	LinkGuestHardware   = [6]byte{0x02, 'l', 'a', 'n', 'd', 2}
	LinkGatewayHardware = [6]byte{0x02, 'l', 'a', 'n', 'd', 1}
)
