package broker_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"landfall.build/tools/embedded/broker"
)

// TestAMemberThatDiesWhileItJoinsLeavesItsPartitions: its connection is gone when the broker tells it that it has joined.
func TestAMemberThatDiesWhileItJoinsLeavesItsPartitions(t *testing.T) {
	b, err := broker.Start(t.Context(), broker.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
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
	var mu sync.Mutex
	owned, changed := map[int32]bool{}, make(chan struct{}, 100)
	set := func(is bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			mu.Lock()
			defer mu.Unlock()
			for _, p := range partitions["shared"] {
				owned[p] = is
			}
			changed <- struct{}{}
		}
	}
	count := func() (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, is := range owned {
			if is {
				n++
			}
		}
		return n
	}
	member := func(more ...kgo.Opt) *kgo.Client {
		c, err := kgo.NewClient(append(append([]kgo.Opt{kgo.ConsumerGroup("group"), kgo.ConsumeTopics("shared"), kgo.Balancers(kgo.CooperativeStickyBalancer()),
			kgo.SessionTimeout(6 * time.Second), kgo.RebalanceTimeout(6 * time.Second), kgo.HeartbeatInterval(time.Second)}, more...), options...)...)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for ctx.Err() == nil && !c.PollFetches(ctx).IsClientClosed() {
			}
		}()
		return c
	}
	defer member(kgo.OnPartitionsAssigned(set(true)), kgo.OnPartitionsRevoked(set(false)), kgo.OnPartitionsLost(set(false))).CloseAllowingRebalance()
	await := func(want int) {
		t.Helper()
		for count() != want {
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatalf("%d of 4 partitions are owned, want %d", count(), want)
			}
		}
	}
	await(4)
	has := make(chan struct{})
	hasHalf := sync.OnceFunc(func() { close(has) })
	half := member(kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		if len(partitions["shared"]) == 2 {
			hasHalf()
		}
	}))
	await(2)
	select {
	case <-has:
	case <-ctx.Done():
		t.Fatal("the second member has no partitions")
	}

	// When half of the partitions are free, another one joins, as a process that is killed before the group has come together. By chance
	// the broker sees that in time to give it no session.
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = "group", "consumer", 6000, 6000
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "cooperative-sticky", kgo.CooperativeStickyBalancer().JoinGroupMetadata([]string{"shared"}, nil, -1)
	join.Protocols = append(join.Protocols, protocol)
	other, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := join.RequestWith(ctx, other)
	if err != nil || answer.MemberID == "" {
		t.Fatalf("no member's id: %+v %v", answer, err)
	}
	join.MemberID = answer.MemberID
	half.CloseAllowingRebalance() // what it had is free
	dying, die := context.WithTimeout(ctx, 200*time.Millisecond)
	_, err = join.RequestWith(dying, other)
	die()
	if other.Close(); err == nil {
		t.Skip("the group came together before the process could die")
	}
	await(4)
}
