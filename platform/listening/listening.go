// Package listening keeps the service reachable while the system is short of what a connection takes.
package listening

import (
	"errors"
	"log/slog"
	"net"
	"time"
)

// Pauses between two tries to take a connection.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// Patient returns a listener that ends only by Close. Servers end with the first error that is no lack of open files. But another process
// of the same user, such as a step, may have taken all that the kernel lets a user have, as of the watches of epoll(7): then no
// connection can be taken until it ends. The first failure of each series is logged.
func Patient(l net.Listener, logger *slog.Logger) net.Listener { return &patient{l, logger} }

type patient struct {
	net.Listener
	logger *slog.Logger
}

// Accept waits for a connection. Its error is that the listener is closed.
func (p *patient) Accept() (net.Conn, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		c, err := p.Listener.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return c, err
		}
		if pause == firstPause {
			p.logger.Warn("no connection can be taken; trying again", "address", p.Addr().String(), "error", err)
		}
		time.Sleep(pause)
	}
}
