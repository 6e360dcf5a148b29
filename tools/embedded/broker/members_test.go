package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"landfall.build/tools/embedded/broker"
)

// sharing is a consumer group of two members that share the four partitions of a topic.
type sharing struct {
	t       *testing.T
	name    string
	options []kgo.Opt
	half    *kgo.Client // the second member
	hasHalf chan struct{}

	mu      sync.Mutex
	owned   map[int32]bool // by the first member
	changed chan struct{}
}

func (s *sharing) member(ctx context.Context, more ...kgo.Opt) *kgo.Client {
	s.t.Helper()
	c, err := kgo.NewClient(slices.Concat([]kgo.Opt{kgo.ConsumerGroup(s.name), kgo.ConsumeTopics("shared"), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(6 * time.Second), kgo.RebalanceTimeout(6 * time.Second), kgo.HeartbeatInterval(time.Second)}, more, s.options)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.CloseAllowingRebalance)
	go func() {
		for ctx.Err() == nil && !c.PollFetches(ctx).IsClientClosed() {
		}
	}()
	return c
}

// set returns a callback by which the first member gets partitions, or loses them.
func (s *sharing) set(is bool) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		s.mu.Lock()
		for _, p := range partitions["shared"] {
			s.owned[p] = is
		}
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
}

// await waits until the first member owns so many partitions.
func (s *sharing) await(ctx context.Context, want int) {
	s.t.Helper()
	for {
		s.mu.Lock()
		count := 0
		for _, is := range s.owned {
			if is {
				count++
			}
		}
		s.mu.Unlock()
		if count == want {
			return
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			s.t.Fatalf("%s: %d of 4 partitions are owned, want %d", s.name, count, want)
		}
	}
}

// dieJoining has the second member leave, and another one join as a process that is killed before the group has come together.
func (s *sharing) dieJoining(ctx context.Context) {
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = s.name, "consumer", 6000, 6000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "cooperative-sticky", kgo.CooperativeStickyBalancer().JoinGroupMetadata([]string{"shared"}, nil, -1)
	join.Protocols = append(join.Protocols, protocol)
	other, err := kgo.NewClient(s.options...)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer other.Close()
	answer, err := join.RequestWith(ctx, other)
	if err != nil || answer.MemberID == "" {
		s.t.Errorf("no member's id: %+v %v", answer, err)
		return
	}
	join.MemberID = answer.MemberID
	s.half.CloseAllowingRebalance() // what it had is free
	dying, die := context.WithTimeout(ctx, 200*time.Millisecond)
	defer die()
	_, _ = join.RequestWith(dying, other)
}

// TestAMemberThatDiesWhileItJoinsLeavesItsPartitions: its connection is gone when the broker tells it that it has joined. The library
// gives it a session in about half of the cases all the same, so there are eight groups.
func TestAMemberThatDiesWhileItJoinsLeavesItsPartitions(t *testing.T) {
	b, err := broker.Start(t.Context(), broker.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	options := append([]kgo.Opt{kgo.SeedBrokers(b.Addr())}, b.Client()...)
	admin, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	topic := kmsg.NewPtrCreateTopicsRequest()
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = "shared", 4, 1
	topic.Topics = append(topic.Topics, one)
	if _, err := topic.RequestWith(ctx, admin); err != nil {
		t.Fatal(err)
	}
	groups := make([]*sharing, 8)
	for i := range groups {
		s := &sharing{t: t, name: fmt.Sprintf("group-%d", i), options: options, hasHalf: make(chan struct{}), owned: map[int32]bool{}, changed: make(chan struct{}, 1)}
		groups[i] = s
		s.member(ctx, kgo.OnPartitionsAssigned(s.set(true)), kgo.OnPartitionsRevoked(s.set(false)), kgo.OnPartitionsLost(s.set(false)))
		s.await(ctx, 4)
		has := sync.OnceFunc(func() { close(s.hasHalf) })
		s.half = s.member(ctx, kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			if len(partitions["shared"]) == 2 {
				has()
			}
		}))
	}
	for _, s := range groups {
		s.await(ctx, 2)
		select {
		case <-s.hasHalf:
		case <-ctx.Done():
			t.Fatalf("%s: the second member has no partitions", s.name)
		}
	}
	var joined sync.WaitGroup
	for _, s := range groups {
		joined.Go(func() { s.dieJoining(ctx) })
	}
	joined.Wait()
	for _, s := range groups {
		s.await(ctx, 4)
	}
}
