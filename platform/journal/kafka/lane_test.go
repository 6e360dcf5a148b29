package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/kafka"
)

// hold keeps a broker from answering the next append until it is released: the one that a claimed writer has there.
// Only that one sleeps, as kfake now and then forgets one of thousands that do.
func hold(t *testing.T, c *kfake.Cluster) (release func()) {
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	c.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.SleepControl(func() { <-gate })
		c.DropControl()
		return nil, nil, false
	})
	return release
}

// calls are appends of one goroutine, one after the other. Both channels have room for all.
type calls struct {
	returned chan struct{} // closed after the last
	done     chan error
}

// appendAll appends intentions of the lander, numbered from 0 on.
func appendAll(ctx context.Context, l *kafka.Log, n, bytes int) calls {
	a := calls{make(chan struct{}, n), make(chan error, n)}
	go func() {
		defer close(a.returned)
		for i := range n {
			e := intention(fmt.Sprint(i))
			e.Message = &eventsv1.LandIntended{Tree: strings.Repeat("t", bytes)}
			l.AppendAsync(ctx, events.TopicChanges, 1, e, func(_ int64, err error) { a.done <- err })
			a.returned <- struct{}{}
		}
	}()
	return a
}

func waiting(l *kafka.Log) (appends, bytes int, full bool) {
	return kafka.Waiting(l, events.TopicChanges, 1, events.ServiceLander)
}

// soon waits for what takes no time but on a loaded machine.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// TestAClaimedWriterWaitsForASlowBroker with no more than the bound in memory, by its records or by its bytes.
func TestAClaimedWriterWaitsForASlowBroker(t *testing.T) {
	for _, c := range []struct {
		name     string
		n, bytes int
	}{
		{"many", kafka.MaxWaiting + 300, 10},
		{"large", kafka.MaxWaitingBytes/400_000 + 30, 400_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker := cluster(t)
			l := open(t, broker, nil)
			if _, err := l.Append(ctx, events.TopicChanges, 1, claim(events.ServiceLander)); err != nil {
				t.Fatal(err)
			}
			release := hold(t, broker)
			bounded := func() (full bool) {
				appends, bytes, full := waiting(l)
				if appends > kafka.MaxWaiting || bytes > kafka.MaxWaitingBytes+c.bytes+1000 {
					t.Fatalf("%d appends of %d bytes wait in memory", appends, bytes)
				}
				return full
			}
			all := appendAll(ctx, l, c.n, c.bytes)
			soon(t, "a call waits", bounded)
			appends, _, _ := waiting(l)
			time.Sleep(50 * time.Millisecond)
			// One more than what waits is at the broker.
			if returned := len(all.returned); returned != appends+1 || returned >= c.n {
				t.Errorf("%d calls of %d have returned, with %d appends in the lane", returned, c.n, appends)
			}
			if c.name == "many" && appends != kafka.MaxWaiting {
				t.Errorf("calls wait at %d appends", appends)
			}
			release()
			soon(t, "all appends are done", func() bool { bounded(); return len(all.done) == c.n })
			want := []string{"claim"}
			for i := range c.n {
				if err := <-all.done; err != nil {
					t.Fatalf("append %d: %v", i, err)
				}
				want = append(want, fmt.Sprint(i))
			}
			if got := read(t, l, events.TopicChanges, 1); !slices.Equal(got, want) {
				t.Errorf("%d records were written, or in another order; want %d", len(got), len(want))
			}
		})
	}
}

// TestAFullLaneHoldsNobodyForGood whatever ends the writer's term.
func TestAFullLaneHoldsNobodyForGood(t *testing.T) {
	const writers, each = 3, kafka.MaxWaiting/2 + 50
	for _, c := range []struct {
		name string
		end  func(t *testing.T, broker *kfake.Cluster, l *kafka.Log, release, cancel func())
		// written is how many of the appends are in the log.
		written int
		// failed lists what the others may get.
		failed func(error) bool
		// closed: nothing more can be appended, and nobody knows of the one at the broker.
		closed bool
	}{
		{"the claim is lost with a failed append", func(_ *testing.T, broker *kfake.Cluster, _ *kafka.Log, release, _ func()) {
			broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: events.TopicChanges, Err: kerr.MessageTooLarge})
			release()
		}, 0, func(err error) bool { return errors.Is(err, journal.ErrAppend) && errors.Is(err, kerr.MessageTooLarge) }, false},
		{"an append is given up while the broker says nothing", func(t *testing.T, _ *kfake.Cluster, l *kafka.Log, _, _ func()) {
			short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			defer cancel()
			if _, err := l.Append(short, events.TopicChanges, 1, intention("given up")); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the append ended with %v", err)
			}
		}, 1, func(err error) bool {
			return errors.Is(err, journal.ErrAppend) && errors.Is(err, context.DeadlineExceeded)
		}, false},
		{"the context ends", func(_ *testing.T, _ *kfake.Cluster, _ *kafka.Log, _, cancel func()) { cancel() },
			kafka.MaxWaiting + 1, func(err error) bool { return errors.Is(err, context.Canceled) }, false},
		{"the log is closed", func(_ *testing.T, _ *kfake.Cluster, l *kafka.Log, _, _ func()) { l.Close() },
			0, func(err error) bool { return errors.Is(err, journal.ErrClosed) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker := cluster(t)
			l := open(t, broker, nil)
			if _, err := l.Append(ctx, events.TopicChanges, 1, claim(events.ServiceLander)); err != nil {
				t.Fatal(err)
			}
			release := hold(t, broker)
			short, cancel := context.WithCancel(ctx)
			defer cancel()
			var all [writers]calls
			count := func(of func(calls) int) (n int) {
				for _, a := range all {
					n += of(a)
				}
				return n
			}
			for i := range all {
				all[i] = appendAll(short, l, each, 10)
			}
			soon(t, "a call waits", func() bool { _, _, full := waiting(l); return full })

			_, before, _ := waiting(l)
			c.end(t, broker, l, release, cancel)
			soon(t, "the calls return", func() bool { return count(func(a calls) int { return len(a.returned) }) == writers*each })
			if _, now, _ := waiting(l); now > before {
				t.Errorf("what will not be sent holds %d bytes", now-before)
			}
			release()
			soon(t, "all are told", func() bool { return count(func(a calls) int { return len(a.done) }) == writers*each })
			written := 0
			for _, a := range all {
				for range each {
					if err := <-a.done; err == nil {
						written++
					} else if !c.failed(err) {
						t.Fatalf("an append ended with %v", err)
					}
				}
			}
			if written != c.written {
				t.Errorf("%d appends succeeded, want %d", written, c.written)
			}
			if appends, bytes, full := waiting(l); appends != 0 || bytes != 0 || full {
				t.Errorf("%d appends of %d bytes are left, full: %v", appends, bytes, full)
			}
			if c.closed {
				if got := len(read(t, open(t, broker, nil), events.TopicChanges, 1)); got > 2 {
					t.Errorf("%d records are in the log, want the claim, and at most the one at the broker", got)
				}
				return
			}
			if got := len(read(t, l, events.TopicChanges, 1)); got != 1+c.written {
				t.Errorf("%d records are in the log, want the claim and %d", got, c.written)
			}
			if _, err := l.Append(ctx, events.TopicChanges, 1, intention("overtakes")); !errors.Is(err, journal.ErrAppend) {
				t.Errorf("an append of the term that has ended: %v", err)
			}
			if _, err := l.Append(ctx, events.TopicChanges, 1, claim(events.ServiceLander), intention("b")); err != nil {
				t.Errorf("a new term does not begin: %v", err)
			}
		})
	}
}
