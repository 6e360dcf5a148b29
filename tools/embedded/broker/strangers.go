package broker

import (
	"bytes"
	"container/list"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// mostStrange bounds a request of a client that has not given the secret yet, in bytes, and mostRequest that of any other, as Kafka does
	// (socket.request.max.bytes).
	mostStrange = 16 << 10
	mostRequest = 100 << 20
	// leastRequest is how long a request is at least: its key, its version and its number.
	leastRequest = 8
	// strangeFor is how long a client may take to give the secret.
	strangeFor = 30 * time.Second
)

// guardedListener keeps requests from kfake that it cannot bear: it allocates as many bytes as a client announces, panics on a key that it
// does not know, and calls its owner's control functions before it has authenticated the client. Any program of the machine can connect.
type guardedListener struct {
	net.Listener
	// most is how many connections it has of clients that have not given the secret. Above it the one goes that is there for the longest time,
	// so that those who have the secret find room.
	most int

	mu        sync.Mutex
	strangers list.List // of *guardedConn, oldest first
}

// Accept waits for a connection.
func (l *guardedListener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	_ = accepted.SetReadDeadline(time.Now().Add(strangeFor)) // of a connection that is closed nothing is read
	c, oldest := &guardedConn{Conn: accepted, of: l}, (*guardedConn)(nil)
	l.mu.Lock()
	c.place = l.strangers.PushBack(c)
	if l.strangers.Len() > l.most {
		oldest = l.strangers.Remove(l.strangers.Front()).(*guardedConn)
	}
	l.mu.Unlock()
	if oldest != nil {
		oldest.Close()
	}
	return c, nil
}

// forget takes a client off the list of strangers. It reports whether the client was there, and so is not being closed for another.
func (l *guardedListener) forget(c *guardedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.strangers.Len()
	l.strangers.Remove(c.place)
	return l.strangers.Len() < before
}

// guardedConn is a connection of a guardedListener. One goroutine reads its requests, another writes the answers.
type guardedConn struct {
	net.Conn
	of    *guardedListener
	place *list.Element
	// head has those bytes of a request that were looked at and not returned yet, and left is how many follow them.
	head []byte
	left int

	mu sync.Mutex
	// known is set once the client has given the secret.
	known bool
	// asked is the request of a client that is not known, as long as it is not answered.
	asked kmsg.Request
}

var errStranger = errors.New("no request that the broker takes")

// Read returns bytes of one request at a time.
func (c *guardedConn) Read(p []byte) (int, error) {
	if len(c.head) == 0 && c.left == 0 {
		var head [8]byte
		if _, err := io.ReadFull(c.Conn, head[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(head[:])
		if err := c.ask(size, int16(binary.BigEndian.Uint16(head[4:])), int16(binary.BigEndian.Uint16(head[6:]))); err != nil {
			if size <= mostStrange { // what is not read resets the connection, and the client does not learn that it was ended
				_, _ = io.CopyN(io.Discard, c.Conn, int64(size)-4)
			}
			return 0, errors.Join(err, c.Close())
		}
		c.head, c.left = head[:], int(size)-4
	}
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// ask takes the beginning of a request. It returns an error if the request must not reach the broker.
func (c *guardedConn) ask(size uint32, key, version int16) error {
	r := kmsg.RequestForKey(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r == nil || size < leastRequest || size > mostRequest {
		return fmt.Errorf("%w: %d bytes with key %d", errStranger, size, key)
	}
	if c.known {
		return nil
	}
	switch kmsg.Key(key) {
	case kmsg.ApiVersions, kmsg.SASLHandshake, kmsg.SASLAuthenticate:
	default:
		return fmt.Errorf("%w: key %d without the secret", errStranger, key)
	}
	if size > mostStrange || c.asked != nil {
		return fmt.Errorf("%w: %d bytes without the secret", errStranger, size)
	}
	r.SetVersion(version)
	c.asked = r
	return nil
}

// Write sends an answer, which is written at once.
func (c *guardedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if asked := c.asked; asked != nil {
		c.asked = nil
		if c.known = letIn(asked, p) && c.of.forget(c); c.known {
			_ = c.SetReadDeadline(time.Time{})
		}
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

// Close closes the connection.
func (c *guardedConn) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

// letIn reports whether an answer says that the client has given the secret: it ends SCRAM with the proof that the broker has it, too.
func letIn(asked kmsg.Request, answer []byte) bool {
	r, is := asked.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	if !is {
		return false
	}
	r.SetVersion(asked.GetVersion())
	body := 8 // after the length and the number
	if r.IsFlexible() {
		body++ // and no tags
	}
	return len(answer) > body && r.ReadFrom(answer[body:]) == nil && r.ErrorCode == 0 && bytes.HasPrefix(r.SASLAuthBytes, []byte("v="))
}
