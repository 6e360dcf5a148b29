package listening

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// mostConnections is how many connections a listener has at most where the system allows many open files.
	mostConnections = 10_000
	// noticeEvery is the time between two lines about connections that are not taken.
	noticeEvery = 10 * time.Second
)

// Bounds are of the connections that a listener has at a time.
type Bounds struct {
	// All is how many there may be, OfOne how many of one address. Of IPv6 the first 64 bits count: one machine has as many of the rest as it
	// likes.
	All, OfOne int
	// Proxies are networks whose addresses stand for those of others: OfOne does not hold for them.
	Proxies []netip.Prefix
}

// Usual returns bounds that leave this process three quarters of its open files, and others three quarters of the connections.
func Usual(proxies []netip.Prefix) Bounds {
	all := max(16, min(mostConnections, openFiles()/4))
	return Bounds{All: all, OfOne: all / 4, Proxies: proxies}
}

// Bounded returns a listener that closes the connections above bounds at once: each takes an open file and memory before anybody has proven who
// it is, and without files neither other clients are served nor anything else goes on in the process.
func Bounded(l net.Listener, b Bounds, logger *slog.Logger) net.Listener {
	return &bounded{Listener: l, bounds: b, logger: logger, of: map[netip.Addr]int{}}
}

type bounded struct {
	net.Listener
	bounds Bounds
	logger *slog.Logger

	mu  sync.Mutex
	all int
	of  map[netip.Addr]int // by ownerOf
	// refused counts those since the last line, which was at noticed.
	refused int
	noticed time.Time
}

// Accept waits for a connection within the bounds. Its errors are the listener's.
func (l *bounded) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		owner, shared := l.ownerOf(c.RemoteAddr())
		if l.enter(owner, shared) {
			return &counted{Conn: c, leave: sync.OnceFunc(func() { l.leave(owner) })}, nil
		}
		c.Close()
	}
}

// ownerOf returns the address that a connection counts for, and reports whether it is that of a proxy, which many clients share.
func (l *bounded) ownerOf(a net.Addr) (owner netip.Addr, shared bool) {
	from, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}, true // no address of a network
	}
	owner = from.Addr().Unmap().WithZone("")
	shared = slices.ContainsFunc(l.bounds.Proxies, func(network netip.Prefix) bool { return network.Contains(owner) })
	if owner.Is6() {
		if network, err := owner.Prefix(64); err == nil {
			owner = network.Addr()
		}
	}
	return owner, shared
}

func (l *bounded) enter(owner netip.Addr, shared bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all < l.bounds.All && (shared || l.of[owner] < l.bounds.OfOne) {
		l.all++
		l.of[owner]++
		return true
	}
	l.refused++
	if now := time.Now(); now.Sub(l.noticed) >= noticeEvery {
		l.logger.Warn("connections are not taken: there are too many", "address", l.Addr().String(), "from", owner.String(), "of_it", l.of[owner], "all", l.all, "refused", l.refused)
		l.refused, l.noticed = 0, now
	}
	return false
}

func (l *bounded) leave(owner netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.of[owner]--; l.of[owner] == 0 {
		delete(l.of, owner)
	}
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// ReadFrom has the system copy files, where it can.
func (c *counted) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

// CloseWrite lets a server send the end of an answer before it closes.
func (c *counted) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return nil
}
