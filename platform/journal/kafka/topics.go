package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/events"
)

// topicConfig returns what every topic is created with, and what Open demands of one that exists: a topic
// that forgets records would silently change every fold of it.
func topicConfig() map[string]*string {
	forever, keep := "-1", "delete"
	return map[string]*string{"retention.ms": &forever, "retention.bytes": &forever, "cleanup.policy": &keep}
}

// errNotMade is the error of a topic that does not exist and that this client may not make.
var errNotMade = errors.New("a topic does not exist")

// ensureTopics creates the topics of a new log and checks those that exist. A topic with another number of
// partitions, one that would lose records, or one that a log in use had and has no more, is an error: none can be
// mended without making a new log.
func ensureTopics(ctx context.Context, client *kgo.Client, partitions int32, replication int16) error {
	if partitions < 1 {
		return fmt.Errorf("kafka: %d partitions; at least 1 is needed", partitions)
	}
	if replication == 0 {
		replication = -1
	}
	admin := kadm.NewClient(client)
	// What was created may take a moment until every broker knows it.
	for deadline := time.Now().Add(15 * time.Second); ; {
		found, missing, err := countPartitions(ctx, admin)
		if err != nil {
			return err
		}
		for _, topic := range slices.Sorted(maps.Keys(found)) {
			if n := found[topic]; n != partitions {
				return wrongPartitions(topic, n, partitions)
			}
		}
		if len(missing) == 0 {
			return checkConfig(ctx, admin)
		}
		if slices.ContainsFunc(missing, func(topic string) bool { return !isMadeAgain(topic) }) {
			if err := refuseLost(ctx, admin, found); err != nil {
				return err
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("topics %s were created, but the brokers do not list them", strings.Join(missing, ", "))
		}
		created, err := admin.CreateTopics(ctx, partitions, replication, topicConfig(), missing...)
		if err != nil {
			return fmt.Errorf("create topics: %w", err)
		}
		for _, t := range created.Sorted() {
			if errors.Is(t.Err, kerr.TopicAuthorizationFailed) || errors.Is(t.Err, kerr.ClusterAuthorizationFailed) {
				return fmt.Errorf("%w: %s, which the gateway makes when it starts: %w", errNotMade, t.Topic, t.Err)
			}
			if t.Err != nil && !errors.Is(t.Err, kerr.TopicAlreadyExists) {
				return fmt.Errorf("create topic %s: %w %s", t.Topic, t.Err, t.ErrMessage)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func wrongPartitions(topic string, n, wanted int32) error {
	return fmt.Errorf("topic %s has %d partitions, wanted %d: the number never changes; use %d, or use other brokers", topic, n, wanted, n)
}

// countPartitions returns how many partitions each of Landfall's topics has, and which do not exist.
func countPartitions(ctx context.Context, admin *kadm.Client) (found map[string]int32, missing []string, err error) {
	var names []string
	for _, t := range events.Topics() {
		names = append(names, t.Name)
	}
	details, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, nil, fmt.Errorf("list topics: %w", err)
	}
	found = map[string]int32{}
	for _, name := range names {
		t, ok := details[name]
		switch {
		case !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			missing = append(missing, name)
		case t.Err != nil:
			return nil, nil, fmt.Errorf("topic %s: %w", name, t.Err)
		default:
			found[name] = int32(len(t.Partitions))
		}
	}
	return found, missing, nil
}

// isMadeAgain reports whether a log goes on though a topic is made anew: a log of an earlier version of Landfall lacks it. The
// outcomes are written again from the beginning, webhooks are told of what comes from then on, no token is known that was made before,
// and the hosts are asked for everything.
func isMadeAgain(topic string) bool {
	return topic == events.TopicOutcomes || topic == events.TopicDeliveries || topic == events.TopicAccess || topic == events.TopicHosts
}

// refuseLost returns an error if topics that are missing have existed: LogCreated is written
// when all exist, and everything else behind it. So in a log whose other topics hold records a missing one has been
// deleted; made again it would be empty, and whoever reads it would wait at positions that it does not reach.
// A topic that is new in a version of Landfall is none of those: logs of before must be given it in another way.
func refuseLost(ctx context.Context, admin *kadm.Client, found map[string]int32) error {
	// What another process has made meanwhile, brokers may show a moment later than its records.
	for look := 0; ; look++ {
		used, err := topicInUse(ctx, admin, found)
		if err != nil || used == "" {
			return err
		}
		var missing []string
		if found, missing, err = countPartitions(ctx, admin); err != nil || len(missing) == 0 {
			return err
		}
		if look == 3 {
			return fmt.Errorf("topics are missing from a log that is in use (%s holds records): %s; made again they would be empty, "+
				"and the queues would stand still: restore the whole log from a backup, or delete all topics landfall.* to begin a new log",
				used, strings.Join(missing, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// topicInUse names a topic that holds records, or held some; "" if none does. Land requests may have been written
// before there was a log.
func topicInUse(ctx context.Context, admin *kadm.Client, found map[string]int32) (string, error) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if name != events.TopicLandRequests {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", nil // asked for no topic by name, the brokers would list all
	}
	ends, err := admin.ListEndOffsets(ctx, names...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return "", fmt.Errorf("look for records in the topics that exist: %w", err)
	}
	for _, name := range names {
		for _, end := range ends[name] {
			if end.Offset > 0 {
				return name, nil
			}
		}
	}
	return "", nil
}

// commonPartitions returns the number of partitions that all topics have.
func commonPartitions(ctx context.Context, admin *kadm.Client) (int32, error) {
	found, missing, err := countPartitions(ctx, admin)
	if err != nil {
		return 0, err
	}
	if len(missing) > 0 {
		if err := refuseLost(ctx, admin, found); err != nil {
			return 0, err
		}
		return 0, fmt.Errorf("topics %s do not exist: the gateway, or landfall up, makes them when it starts", strings.Join(missing, ", "))
	}
	n := found[events.TopicChanges]
	for _, topic := range slices.Sorted(maps.Keys(found)) {
		if found[topic] != n {
			return 0, fmt.Errorf("topic %s has %d partitions, %s has %d: all topics need the same number",
				topic, found[topic], events.TopicChanges, n)
		}
	}
	return n, checkConfig(ctx, admin)
}

func checkConfig(ctx context.Context, admin *kadm.Client) error {
	var names []string
	for _, t := range events.Topics() {
		names = append(names, t.Name)
	}
	configs, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return fmt.Errorf("describe topics: %w", err)
	}
	for _, topic := range configs {
		if errors.Is(topic.Err, kerr.TopicAuthorizationFailed) {
			continue // This user may not see it: then the operator guarantees it.
		}
		if topic.Err != nil {
			return fmt.Errorf("describe topic %s: %w", topic.Name, topic.Err)
		}
		want := topicConfig()
		for _, c := range topic.Configs {
			if w := want[c.Key]; w != nil && c.MaybeValue() != *w {
				return fmt.Errorf("topic %s has %s=%s, which loses records: set it to %s", topic.Name, c.Key, c.MaybeValue(), *w)
			}
		}
	}
	return nil
}
