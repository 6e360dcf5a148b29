package ownership_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"landfall.build/platform/journal/ownership"
)

const (
	service = "selector"
	topic   = "landfall.decisions"
)

// board records who works on what, and fails the test if two members of one board do at one time.
type board struct {
	t       *testing.T
	mu      sync.Mutex
	at      map[int32]string
	changed chan struct{}
}

func newBoard(t *testing.T) *board {
	return &board{t: t, at: map[int32]string{}, changed: make(chan struct{}, 1)}
}

func (b *board) set(partition int32, from, to string) {
	b.mu.Lock()
	if got := b.at[partition]; got != from {
		b.t.Errorf("partition %d goes from %q to %q, but %q works on it", partition, from, to, got)
	}
	b.at[partition] = to
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *board) member(name string) ownership.Work {
	return func(ctx context.Context, partition int32) error {
		b.set(partition, "", name)
		<-ctx.Done()
		b.set(partition, name, "")
		return nil
	}
}

// wait until a condition on the number of partitions of each member holds.
func (b *board) wait(what string, holds func(counts map[string]int) bool) {
	b.t.Helper()
	limit := time.After(time.Minute)
	for {
		counts := map[string]int{}
		b.mu.Lock()
		for _, who := range b.at {
			counts[who]++
		}
		b.mu.Unlock()
		if holds(counts) {
			return
		}
		select {
		case <-b.changed:
		case <-limit:
			b.t.Fatalf("never: %s; now %v", what, counts)
		}
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// begin runs an owner until the returned function is called.
func begin(t *testing.T, owner ownership.Owner, work ownership.Work) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- owner.Run(ctx, service, topic, work) }()
	var once sync.Once
	end = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(end)
	return end
}

func TestStaticOwnsAll(t *testing.T) {
	b := newBoard(t)
	end := begin(t, ownership.Static{Log: quiet(), Partitions: 3}, b.member("a"))
	b.wait("a has 3", func(n map[string]int) bool { return n["a"] == 3 })
	end()
	b.wait("a has none", func(n map[string]int) bool { return n["a"] == 0 })
}

func TestFailedWorkStartsAgain(t *testing.T) {
	starts := make(chan int32, 10)
	tries := 0
	end := begin(t, ownership.Static{Log: quiet(), Partitions: 1}, func(ctx context.Context, p int32) error {
		starts <- p
		switch tries++; tries {
		case 1:
			return errors.New("broken")
		case 2:
			panic("worse")
		}
		<-ctx.Done()
		return ctx.Err()
	})
	for range 3 {
		<-starts
	}
	end()
	if len(starts) != 0 {
		t.Error("work that ended with its context started again")
	}
}

func broker(t *testing.T) []string {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(4, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.ListenAddrs()
}

func TestAGroupSharesAndTakesOver(t *testing.T) {
	group := ownership.Group{Brokers: broker(t), ClientID: "test", Log: quiet()}
	b := newBoard(t)
	endA := begin(t, group, b.member("a"))
	b.wait("a has 4", func(n map[string]int) bool { return n["a"] == 4 })
	endB := begin(t, group, b.member("b"))
	b.wait("each has 2", func(n map[string]int) bool { return n["a"] == 2 && n["b"] == 2 })
	endA()
	b.wait("b has 4", func(n map[string]int) bool { return n["b"] == 4 })
	endB()
	b.wait("nobody has any", func(n map[string]int) bool { return n["a"] == 0 && n["b"] == 0 })
}

func TestAPartitionIsHandedOverOnlyWhenItsWorkHasEnded(t *testing.T) {
	group := ownership.Group{Brokers: broker(t), ClientID: "test", Log: quiet()}
	b := newBoard(t)
	slow := func(ctx context.Context, p int32) error {
		b.set(p, "", "slow")
		<-ctx.Done()
		time.Sleep(300 * time.Millisecond) // finishing takes a while; the board sees an overlap
		b.set(p, "slow", "")
		return nil
	}
	begin(t, group, slow)
	b.wait("slow has 4", func(n map[string]int) bool { return n["slow"] == 4 })
	begin(t, group, b.member("b"))
	b.wait("each has 2", func(n map[string]int) bool { return n["slow"] == 2 && n["b"] == 2 })
}
