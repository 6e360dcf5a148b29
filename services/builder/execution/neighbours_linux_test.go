package execution

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"landfall.build/platform/sandbox"
)

func init() {
	// helper-neighbours sends to the first addresses of each network of the link, and prints which of them the kernel looks for.
	helpers["helper-neighbours"] = func([]string) {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			panic(err)
		}
		index := link.Attrs().Index
		for _, first := range []netip.Addr{sandbox.LinkResolver, sandbox.LinkGateway6, netip.MustParseAddr("fe80::1").WithZone("eth0")} {
			for range 50 {
				first = first.Next()
				// Each has a socket of its own: a datagram waits for its neighbour, and counts for its socket.
				if c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(first, 9))); err == nil {
					_, _ = c.Write([]byte("is anybody there?"))
					defer c.Close()
				}
			}
		}
		found, err := netlink.NeighList(index, netlink.FAMILY_ALL)
		if err != nil {
			panic(err)
		}
		for _, n := range found {
			if n.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) == 0 {
				fmt.Println(n.IP)
			}
		}
		fmt.Println("sent")
	}
}

// TestTheKernelLooksForNoNeighbourOfAStep: it has one table of them for all namespaces, with 1024 places, and a machine that finds none
// in it reaches no other one.
func TestTheKernelLooksForNoNeighbourOfAStep(t *testing.T) {
	apart(t, func(t *testing.T) {
		result := Run(t.Context(), outward(t, "./helper helper-neighbours"))
		mustEnd(t, result, Passed, "")
		if got := string(result.Tail); got != "sent\n" {
			t.Errorf("it looks for neighbours:\n%s", got)
		}
	})
}
