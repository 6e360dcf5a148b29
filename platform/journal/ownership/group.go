package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func stack() string { return string(debug.Stack()) }

// Group shares the partitions of a topic among all processes of a service: a Kafka consumer group of
// the service's name that fetches nothing and commits nothing, only membership is used. A process that
// dies is replaced after SessionTimeout, one that ends well at once.
type Group struct {
	Brokers  []string
	ClientID string
	Log      *slog.Logger
	// SessionTimeout is how long a silent process keeps its partitions; 6 s if 0, which is also the
	// least that Kafka allows by default. Heartbeats come six times as often.
	SessionTimeout time.Duration
	// Client is passed on to the client: TLS, SASL, a dialer.
	Client []kgo.Opt
	// Joined, if set, is called every second with whether the process is a member of the group.
	Joined func(service string, joined bool)
}

// joinedEvery is the time between two calls of Joined.
const joinedEvery = time.Second

// rebalanceTimeout is how long the group waits for a member that has to give up a partition.
const rebalanceTimeout = 30 * time.Second

// groupName returns the consumer group of a service.
func groupName(service string) string { return "landfall." + service }

// Run implements Owner. It returns an error if the broker refuses the group in a way that trying again does not mend.
func (g Group) Run(ctx context.Context, service, topic string, work Work) error {
	log := g.Log.With("service", service, "topic", topic)
	running := newPartitions(log, work)
	session := g.SessionTimeout
	if session == 0 {
		session = 6 * time.Second
	}
	client, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(g.Brokers...),
		kgo.ClientID(g.ClientID),
		kgo.ConsumerGroup(groupName(service)),
		kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(session / 6),
		kgo.RebalanceTimeout(max(rebalanceTimeout, session)),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(tries int) time.Duration { return min(time.Second, 20*time.Millisecond<<min(tries, 6)) }),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
			for _, p := range assigned[topic] {
				log.Info("partition assigned", "partition", p)
				running.start(ctx, p)
			}
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
			log.Info("partitions revoked", "partitions", revoked[topic])
			running.stop(revoked[topic]...)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
			log.Warn("partitions lost: the group went on without this process", "partitions", lost[topic])
			running.stop(lost[topic]...)
		}),
	}, g.Client...)...)
	if err != nil {
		return fmt.Errorf("group of %s: %w", service, err)
	}
	client.PauseFetchTopics(topic)
	stop := g.reportJoined(ctx, client, service)
	defer stop()
	err = membership(ctx, client, log)
	// Leaving revokes, and revoking waits for the work; stopAll covers a client that was never in.
	client.CloseAllowingRebalance()
	running.stopAll()
	return err
}

// reportJoined calls Joined until the function that it returns is called.
func (g Group) reportJoined(ctx context.Context, client *kgo.Client, service string) (stop func()) {
	if g.Joined == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			_, generation := client.GroupMetadata()
			g.Joined(service, generation >= 0)
			select {
			case <-ctx.Done():
			case <-time.After(joinedEvery):
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// membership lasts until ctx ends. With every topic paused a poll brings nothing but errors.
func membership(ctx context.Context, client *kgo.Client, log *slog.Logger) error {
	for ctx.Err() == nil {
		for _, e := range client.PollFetches(ctx).Errors() {
			switch {
			case ctx.Err() != nil || errors.Is(e.Err, context.Canceled):
			case errors.Is(e.Err, kgo.ErrClientClosed):
				return e.Err
			case errors.Is(e.Err, kerr.GroupAuthorizationFailed), errors.Is(e.Err, kerr.TopicAuthorizationFailed):
				return fmt.Errorf("join the group: %w", e.Err)
			default:
				log.Warn("consumer group", "error", e.Err)
			}
		}
	}
	return nil
}
