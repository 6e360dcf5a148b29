package kafka

import (
	"context"
	"errors"
	"testing"
	"time"

	"landfall.build/services/journal"
)

// waits says whether a writer has to wait for a place, and gives what ends when it need not any more.
func waits(la *lane, ctx, open context.Context) (bool, <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		la.awaitRoom(ctx, open)
	}()
	select {
	case <-done:
		return false, done
	case <-time.After(20 * time.Millisecond):
		return true, done
	}
}

func ends(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Errorf("%s: it still waits", what)
	}
}

// TestAClaimedWriterWaitsForRoomInItsLane: for what is sent, for a failure, behind which nothing is, and no longer than a
// context.
func TestAClaimedWriterWaitsForRoomInItsLane(t *testing.T) {
	full := func(size, n int) *lane {
		la := newLane(writer{}, true)
		for range n {
			la.enter(&pendingAppend{records: []journal.Record{{Value: make([]byte, size)}}, done: func(int64, error) {}})
		}
		return la
	}
	for name, la := range map[string]*lane{"many": full(1, maxWaiting), "large": full(maxWaitingBytes/4, 4)} {
		ctx, cancel := context.WithCancel(t.Context())
		must, done := waits(la, ctx, t.Context())
		if !must {
			t.Fatalf("%s: nobody waits", name)
		}
		la.next()
		ends(t, name+", one was sent", done)
		if again, done := waits(la, ctx, t.Context()); again {
			t.Errorf("%s: there is a place, and it waits", name)
			ends(t, name, done)
		}
		la.enter(&pendingAppend{records: []journal.Record{{Value: make([]byte, maxWaitingBytes/4)}}, done: func(int64, error) {}})
		if must, done = waits(la, ctx, t.Context()); !must {
			t.Errorf("%s: nobody waits when it is full again", name)
		}
		cancel()
		ends(t, name+", its context has ended", done)
		if must, done = waits(la, t.Context(), t.Context()); !must {
			t.Errorf("%s: nobody waits after that", name)
		}
		la.fail(errors.New("no broker"))
		ends(t, name+", an append has failed", done)
	}
}
