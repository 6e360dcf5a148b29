package outputs

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// line is a TCP proxy before a store, whose faults are switched on and off.
type line struct {
	address string
	// fault is what happens to each connection.
	fault atomic.Pointer[fault]
	mu    sync.Mutex
	open  []net.Conn
}

// fault is of one direction after some bytes: up to the store, or down from it.
type fault struct {
	up    bool
	after int64
	// what is cut, stall or alter: one byte, and then the connection goes on.
	what string
}

func openLine(t *testing.T, to string) *line {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{address: listener.Addr().String()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			store, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, from, store)
			l.mu.Unlock()
			all.Go(func() { l.carry(store, from, true) })
			all.Go(func() { l.carry(from, store, false) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		l.drop()
		all.Wait()
	})
	return l
}

// drop ends all connections.
func (l *line) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		c.Close()
	}
	l.open = nil
}

// spoil gives all connections from now on a fault, nil for none.
func (l *line) spoil(f *fault) {
	l.fault.Store(f)
	l.drop()
}

func (l *line) carry(to, from net.Conn, up bool) {
	defer to.Close()
	defer from.Close()
	carried, altered := int64(0), false
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		data := buffer[:n]
		if f := l.fault.Load(); f != nil && f.up == up && n > 0 && carried+int64(n) > f.after {
			at := max(0, f.after-carried)
			switch {
			case f.what == "cut":
				_, _ = to.Write(data[:at])
				return
			case f.what == "stall":
				_, _ = io.Copy(io.Discard, from) // until somebody gives up
				return
			case !altered:
				altered = true
				data[at] ^= 1
			}
		}
		if carried += int64(n); n > 0 {
			if _, err := to.Write(data); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
