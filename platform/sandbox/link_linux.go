package sandbox

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The ends of the link. Both are in the namespace: a device file for such links, /dev/net/tun, is not on every system, nor for
// every user. What comes out of the far end is read by a socket that the outside is given.
const (
	nearEnd = "eth0"
	farEnd  = "outside"
)

// connect makes the link, hands it over, and waits until its packets are carried.
func (s Spec) connect() error {
	near, far, err := s.makeLink()
	if err != nil {
		return err
	}
	if err := s.route(near); err != nil {
		return err
	}
	const all = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00 // in the order of the network
	packets, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a socket for packets: %w", err)
	}
	defer unix.Close(packets)
	if err := unix.Bind(packets, &unix.SockaddrLinklayer{Protocol: all, Ifindex: far.Attrs().Index}); err != nil {
		return fmt.Errorf("a socket for packets: %w", err)
	}
	defer unix.Close(s.Uplink)
	if err := unix.Sendmsg(s.Uplink, []byte{0}, unix.UnixRights(packets), nil, 0); err != nil {
		return fmt.Errorf("hand over the link: %w", err)
	}
	answer := make([]byte, 1<<10)
	for {
		n, err := unix.Read(s.Uplink, answer)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait for the link: %w", err)
		case n == 0:
			return errors.New("what carries its packets has ended")
		case string(answer[:n]) == LinkCarried:
			return nil
		default:
			return errors.New(string(answer[:n]))
		}
	}
}

func (s Spec) makeLink() (near, far netlink.Link, err error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU, attributes.HardwareAddr = nearEnd, LinkMTU, LinkGuestHardware[:]
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: farEnd, PeerMTU: LinkMTU}); err != nil {
		return nil, nil, fmt.Errorf("a pair of network devices: %w", err)
	}
	if near, err = netlink.LinkByName(nearEnd); err != nil {
		return nil, nil, err
	}
	if far, err = netlink.LinkByName(farEnd); err != nil {
		return nil, nil, err
	}
	// The far end takes no part in what goes over it: it has no addresses, and its hardware address is not the gateway's. The near one
	// has those that it is given, and none by which all of fe80::/64 would be its neighbours.
	for _, end := range []netlink.Link{far, near} {
		_ = netlink.LinkSetIP6AddrGenMode(end, nl6AddressesNone) // a system without IPv6
	}
	return near, far, errors.Join(netlink.LinkSetUp(far), netlink.LinkSetUp(near))
}

// nl6AddressesNone is IN6_ADDR_GEN_MODE_NONE.
const nl6AddressesNone = 1

// route gives the near end its addresses, and sends all but what is for the namespace over it.
func (s Spec) route(near netlink.Link) error {
	via := func(guest netip.Prefix, gateway netip.Addr, flags int) error {
		address := &net.IPNet{IP: guest.Addr().AsSlice(), Mask: net.CIDRMask(guest.Bits(), guest.Addr().BitLen())}
		if err := netlink.AddrAdd(near, &netlink.Addr{IPNet: address, Flags: flags}); err != nil {
			return fmt.Errorf("the address %s: %w", guest, err)
		}
		index := near.Attrs().Index
		if err := netlink.NeighAdd(&netlink.Neigh{LinkIndex: index, State: unix.NUD_PERMANENT, IP: gateway.AsSlice(), HardwareAddr: LinkGatewayHardware[:]}); err != nil {
			return fmt.Errorf("the gateway %s: %w", gateway, err)
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)}); err != nil {
			return fmt.Errorf("the route by %s: %w", gateway, err)
		}
		return nil
	}
	if err := via(LinkGuest, LinkGateway, 0); err != nil {
		return err
	}
	if !s.IPv6 {
		return nil
	}
	return via(LinkGuest6, LinkGateway6, unix.IFA_F_NODAD)
}

// resolving returns the settings by which names are resolved over the link: those of this machine, with other resolvers.
func resolving(text string) string {
	var settings, servers strings.Builder
	address, count := LinkResolver, 0
	for line := range strings.Lines(text) {
		switch fields := strings.Fields(line); {
		case len(fields) == 0:
		case fields[0] != "nameserver":
			settings.WriteString(strings.TrimSpace(line) + "\n")
		case count < LinkResolvers:
			count++
			fmt.Fprintf(&servers, "nameserver %s\n", address)
			address = address.Next()
		}
	}
	if count == 0 {
		fmt.Fprintf(&servers, "nameserver %s\n", address)
	}
	return servers.String() + settings.String()
}

const resolvConf = "/etc/resolv.conf"

// resolveOutside returns what /etc/resolv.conf of the sandbox holds.
func resolveOutside() string {
	text, _ := os.ReadFile(resolvConf)
	return resolving(string(text))
}
