// Package kafka is the journal on a Kafka cluster, or on the embedded development broker.
//
// Writing: one idempotent client with acks=all for the whole log. It never waits to fill a batch, so
// one record is one round trip; records appended while a request is under way share the next one.
//
// Reading: cursors share as few clients as they can. A client reads a partition once, so as many
// clients are opened as there are cursors on the busiest partition of this process; all partitions of
// a client share one fetch request, which the broker answers with the first record of any of them. Who
// follows sparingly has other clients, which fetch less at a time.
package kafka

import (
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"landfall.build/platform/journal/archive"
	"landfall.build/platform/telemetry"
)

// Options say where the log is and what may be done to it.
type Options struct {
	// Brokers are host:port addresses; at least one.
	Brokers []string
	// ClientID is how the broker's own logs and metrics name this process.
	ClientID string
	// Log gets progress while waiting, and what goes wrong with the connection. Required.
	Log *slog.Logger
	// Partitions, if above 0, lets Open create the topics of a new log that are missing, with that many
	// partitions. Where all exist already it must be their number; in a log that is in use none is created.
	Partitions int32
	// Replication of topics that Open creates; 0 is the cluster's default.
	Replication int16
	// Wait bounds how long Open waits for a broker, and for all that it asks of brokers; 30 s if 0.
	Wait time.Duration
	// DeliveryTimeout bounds how long an append is tried again before it fails; 30 s if 0, at least 1 s. While a
	// broker keeps a request without an answer it can take 10 s more.
	DeliveryTimeout time.Duration
	// Client, if set, returns the options of every client: TLS, SASL, a dialer. Open calls it for each attempt to reach a
	// broker.
	Client func() []kgo.Opt
	// Archive, if set, has the records that were deleted from the brokers.
	Archive *archive.Archive

	// client is what it returned when a broker answered.
	client []kgo.Opt

	// last is how the last connection of the client that writes ended.
	last *lastConnection

	// opening is set until Open is through.
	opening *atomic.Bool
}

const (
	requestTimeout = 5 * time.Second
	// fetchWait is how long the broker keeps a fetch that finds nothing. A partition that is added
	// to a client takes part in its next fetch, so this is also the longest that Follow may need to
	// give its first record.
	fetchWait = 50 * time.Millisecond
	// maxBatch is below Kafka's default of message.max.bytes (1,048,588).
	maxBatch = 1_000_000
	// Appends beyond these bounds wait, AppendAsync included; see also maxWaiting.
	maxBufferedRecords = 1 << 16
	maxBufferedBytes   = 256 << 20
)

func (o Options) withDefaults() (Options, error) {
	if len(o.Brokers) == 0 {
		return o, fmt.Errorf("kafka: no broker's address is given")
	}
	if o.Log == nil {
		return o, fmt.Errorf("kafka: no logger is given")
	}
	if o.ClientID == "" {
		o.ClientID = "landfall"
	}
	if o.Wait == 0 {
		o.Wait = 30 * time.Second
	}
	if o.DeliveryTimeout == 0 {
		o.DeliveryTimeout = 30 * time.Second
	}
	o.Log = slog.New(telemetry.Limit(o.Log.Handler()))
	o.opening = &atomic.Bool{}
	o.opening.Store(true)
	if o.DeliveryTimeout < time.Second {
		return o, fmt.Errorf("kafka: a delivery timeout of %s; at least 1s is needed", o.DeliveryTimeout)
	}
	return o, nil
}

func (o Options) addresses() string { return strings.Join(o.Brokers, ", ") }

func (o Options) common() []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(o.Brokers...),
		kgo.ClientID(o.ClientID),
		kgo.WithLogger(clientLog{o.Log, o.opening}),
		kgo.DialTimeout(requestTimeout),
		kgo.RequestTimeoutOverhead(requestTimeout),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Second, 20*time.Millisecond<<min(tries, 6))
		}),
		// A partition's new leader is looked for at once, not after the default of seconds.
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, o.client...)
}

func (o Options) producer() []kgo.Opt {
	return append(o.common(),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(maxBatch),
		kgo.MaxBufferedRecords(maxBufferedRecords),
		kgo.MaxBufferedBytes(maxBufferedBytes),
		kgo.ProduceRequestTimeout(requestTimeout),
		kgo.RecordDeliveryTimeout(o.DeliveryTimeout),
		// Without it an append whose request got no answer would wait for the broker without a
		// bound. The caller is told that the outcome is not known (journal.ErrAppend), and terms
		// and ids make a second copy harmless.
		kgo.AllowIdempotentProduceCancellation(),
	)
}

func (o Options) reader(p pace) []kgo.Opt {
	return append(o.common(),
		kgo.FetchMinBytes(1),
		kgo.FetchMaxWait(fetchWait),
		kgo.FetchMaxBytes(p.fetched),
		kgo.FetchMaxPartitionBytes(p.ofEachPartition),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()),
		// A log that lost records must stop its readers, not move them.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
	)
}
