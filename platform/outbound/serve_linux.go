package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"
	"gvisor.dev/gvisor/pkg/waiter"

	"landfall.build/platform/sandbox"
)

// Bounds on what one link may use.
const (
	// connections and flows bound those of TCP and of UDP. Who asks for more connections waits until others end; datagrams
	// of more flows are dropped.
	connections = 512
	flows       = 512
	// buffered bounds, in bytes, what a connection keeps in either direction.
	buffered = 512 << 10
	// dialLimit bounds how long a connection may take to be made.
	dialLimit = time.Minute
	// flowLimit ends a flow that nothing is sent over, resolveLimit one to a resolver.
	flowLimit    = time.Minute
	resolveLimit = 10 * time.Second
	// largest and resolveLargest are the sizes of the largest datagram, and of the largest to a resolver and from it.
	largest        = 64 << 10
	resolveLargest = 8 << 10
)

const (
	nic         = 1
	portOfNames = 53
)

// network carries the packets of one link.
type network struct {
	filter      Filter
	connections chan struct{} // has an entry for each
	flows       chan struct{}
}

// Serve carries the packets of a link, which are read from and written to a socket, until the process ends.
func Serve(link int, ipv6Too bool, filter Filter) error {
	n := &network{filter: filter, connections: make(chan struct{}, connections), flows: make(chan struct{}, flows)}
	device, err := fdbased.New(&fdbased.Options{
		FDs: []int{link}, MTU: sandbox.LinkMTU, EthernetHeader: true, Address: tcpip.LinkAddress(sandbox.LinkGatewayHardware[:]),
		// The kernel leaves checksums out of what never leaves it.
		RXChecksumOffload: true, PacketDispatchMode: fdbased.PacketMMap,
	})
	if err != nil {
		return fmt.Errorf("read the link: %w", err)
	}
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{arp.NewProtocol, ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, udp.NewProtocol},
	})
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: buffered, Max: buffered}
	send := tcpip.TCPSendBufferSizeRangeOption{Min: tcp.MinBufferSize, Default: buffered, Max: buffered}
	guest := tcpip.LinkAddress(sandbox.LinkGuestHardware[:])
	for _, err := range []tcpip.Error{
		s.SetTransportProtocolOption(tcp.ProtocolNumber, &receive),
		s.SetTransportProtocolOption(tcp.ProtocolNumber, &send),
		s.CreateNIC(nic, device),
		// It answers for each address that the other side asks for.
		s.SetPromiscuousMode(nic, true), s.SetSpoofing(nic, true),
		s.AddStaticNeighbor(nic, ipv4.ProtocolNumber, tcpip.AddrFromSlice(sandbox.LinkGuest.Addr().AsSlice()), guest),
		s.AddStaticNeighbor(nic, ipv6.ProtocolNumber, tcpip.AddrFromSlice(sandbox.LinkGuest6.Addr().AsSlice()), guest),
	} {
		if err != nil {
			return fmt.Errorf("set up the link: %v", err)
		}
	}
	routes := []tcpip.Route{{Destination: subnet(sandbox.LinkGuest), NIC: nic}}
	if ipv6Too {
		routes = append(routes, tcpip.Route{Destination: subnet(sandbox.LinkGuest6), NIC: nic})
	}
	s.SetRouteTable(routes)
	s.SetTransportProtocolHandler(tcp.ProtocolNumber, tcp.NewForwarder(s, buffered, connections, n.connect).HandlePacket)
	s.SetTransportProtocolHandler(udp.ProtocolNumber, udp.NewForwarder(s, n.flow).HandlePacket)
	return nil
}

func subnet(of netip.Prefix) tcpip.Subnet {
	prefix := tcpip.AddressWithPrefix{Address: tcpip.AddrFromSlice(of.Addr().AsSlice()), PrefixLen: of.Bits()}
	return prefix.Subnet()
}

// destination returns where to connect to for an address that was asked for. Names are resolved at the machine's own resolvers,
// which nothing else is reached at.
func (n *network) destination(id stack.TransportEndpointID) (to netip.AddrPort, resolver, allowed bool) {
	address, _ := netip.AddrFromSlice(id.LocalAddress.AsSlice())
	if id.LocalPort == portOfNames {
		given := sandbox.LinkResolver
		for i, outside := range resolvers() {
			if i == sandbox.LinkResolvers {
				break
			}
			if address == given {
				return netip.AddrPortFrom(outside, portOfNames), true, true
			}
			given = given.Next()
		}
	}
	return netip.AddrPortFrom(address.Unmap(), id.LocalPort), false, !n.filter.Refuses(address)
}

// connect makes a connection.
func (n *network) connect(request *tcp.ForwarderRequest) {
	select {
	case n.connections <- struct{}{}:
		defer func() { <-n.connections }()
	default:
		request.Complete(false) // it will be asked for again
		return
	}
	to, _, allowed := n.destination(request.ID())
	if !allowed {
		request.Complete(true)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialLimit)
	outside, err := new(net.Dialer).DialContext(ctx, "tcp", to.String())
	cancel()
	if err != nil {
		request.Complete(true)
		return
	}
	defer outside.Close()
	var queue waiter.Queue
	end, problem := request.CreateEndpoint(&queue)
	request.Complete(false)
	if problem != nil {
		return
	}
	inside := gonet.NewTCPConn(&queue, end)
	defer inside.Close()
	// What breaks one way breaks the other; what ends one way may go on the other.
	broken := func() {
		end.Abort()
		outside.Close()
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := io.Copy(outside, inside); err != nil || outside.(*net.TCPConn).CloseWrite() != nil {
			broken()
		}
	}()
	if _, err := io.Copy(inside, outside); err != nil || inside.CloseWrite() != nil {
		broken()
	}
	<-sent
}

// flow makes a flow of datagrams.
func (n *network) flow(request *udp.ForwarderRequest) (handled bool) {
	select {
	case n.flows <- struct{}{}:
	default:
		return true // dropped
	}
	to, resolver, allowed := n.destination(request.ID())
	var queue waiter.Queue
	var end tcpip.Endpoint
	problem := tcpip.Error(&tcpip.ErrHostUnreachable{})
	if allowed {
		end, problem = request.CreateEndpoint(&queue)
	}
	if problem != nil {
		<-n.flows
		return false // it is told so
	}
	go func() {
		defer func() { <-n.flows }()
		inside := gonet.NewUDPConn(&queue, end)
		defer inside.Close()
		outside, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		if err != nil {
			return
		}
		defer outside.Close()
		exchange(inside, outside, resolver)
	}()
	return true
}

// exchange carries datagrams until none came for a while; with a resolver, until each has been answered.
func exchange(inside, outside net.Conn, resolver bool) {
	limit, size := flowLimit, largest
	if resolver {
		limit, size = resolveLimit, resolveLargest
	}
	asked := make(chan struct{}, flows) // has an entry for each that waits for its answer
	go func() {
		defer outside.Close()
		datagram := make([]byte, size)
		for {
			size, err := inside.Read(datagram)
			if err != nil {
				return
			}
			select {
			case asked <- struct{}{}:
			default:
			}
			_ = outside.SetReadDeadline(time.Now().Add(limit))
			if _, err := outside.Write(datagram[:size]); err != nil && errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}()
	_ = outside.SetReadDeadline(time.Now().Add(limit))
	datagram := make([]byte, size)
	for {
		size, err := outside.Read(datagram)
		if err != nil {
			return
		}
		if _, err := inside.Write(datagram[:size]); err != nil {
			return
		}
		select {
		case <-asked:
		default:
		}
		if resolver && len(asked) == 0 {
			return
		}
		_ = outside.SetReadDeadline(time.Now().Add(limit))
	}
}
