package journaltest

import (
	"context"
	"errors"
	"testing"

	"landfall.build/platform/journal"
)

var waiting = []claim{
	{"a cursor beyond the end waits for its offset", func(t *testing.T, p partition) {
		p.append(numbered(0))
		c := p.follow(p.base + 4)
		for i := 1; i <= 5; i++ {
			p.append(numbered(i))
		}
		p.expect(c, p.base+4, numbered(4).ID)
		p.expect(c, p.base+5, numbered(5).ID)
	}},
	{"a waiting cursor gets what is appended", func(t *testing.T, p partition) {
		c := p.follow(p.base)
		got := make(chan journal.Entry)
		go func() {
			defer close(got)
			for range 3 {
				e, err := c.Next(p.limit())
				if err != nil {
					t.Errorf("Next: %v", err)
					return
				}
				got <- e
			}
		}()
		for i := range 3 {
			p.append(numbered(i))
			if e := <-got; e.Offset != p.base+int64(i) {
				t.Fatalf("got %s at %d", e.ID, e.Offset-p.base)
			}
		}
	}},
	{"Ready tells that TryNext has something", func(t *testing.T, p partition) {
		p.append(numbered(0))
		c := p.follow(p.base)
		read := 0
		for read < 4 {
			select {
			case <-c.Ready():
			case <-p.limit().Done():
				t.Fatalf("not ready after %d", read)
			}
			for {
				e, ok, err := c.TryNext()
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if e.Offset != p.base+int64(read) {
					t.Fatalf("got offset %d as number %d", e.Offset-p.base, read)
				}
				read++
				if read < 4 {
					p.append(numbered(read))
				}
			}
		}
	}},
	{"Ready is told again while there is more", func(t *testing.T, p partition) {
		c := p.follow(p.base)
		p.append(numbered(0), numbered(1), numbered(2))
		for read := 0; read < 3; {
			select {
			case <-c.Ready():
			case <-p.limit().Done():
				t.Fatalf("not ready after %d of 3", read)
			}
			if _, ok, err := c.TryNext(); err != nil {
				t.Fatal(err)
			} else if ok {
				read++
			}
		}
	}},
	{"closing ends a wait", func(t *testing.T, p partition) {
		c := p.follow(p.base)
		failed := make(chan error)
		go func() {
			_, err := c.Next(p.limit())
			failed <- err
		}()
		c.Close()
		if err := <-failed; !errors.Is(err, journal.ErrClosed) {
			t.Errorf("got %v", err)
		}
		c.Close()
		if _, _, err := c.TryNext(); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}},
	{"a context ends a wait, and the cursor stays where it is", func(t *testing.T, p partition) {
		c := p.follow(p.base)
		ctx, cancel := context.WithCancel(context.Background())
		failed := make(chan error)
		go func() {
			_, err := c.Next(ctx)
			failed <- err
		}()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		p.append(numbered(0))
		p.expect(c, p.base, numbered(0).ID)
	}},
}
