package broker_test

import (
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"landfall.build/events"
	"landfall.build/platform/journal/kafka"
)

// TestAKilledBrokerKnowsWhereEachProducerIs sends what a client may send to a broker that was killed while several
// requests of one producer were under way: a later one first, and one again that was written before. Without the producers' places
// in the log the broker would take the later one, and then refuse those that belong before it.
func TestAKilledBrokerKnowsWhereEachProducerIs(t *testing.T) {
	dir := t.TempDir()
	addr, kill := child(t, dir)
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{addr}, Client: secretIn(dir, addr), Log: quiet(), Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	client, err := kgo.NewClient(append(secretIn(dir, addr)(), kgo.SeedBrokers(addr), kgo.MaxVersions(kversion.V3_0_0()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	id, epoch, err := client.ProducerID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	produce := func(sequence int32) (offset int64, err error) {
		t.Helper()
		part := kmsg.NewProduceRequestTopicPartition()
		part.Records = batchOf(id, epoch, sequence)
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic, topic.Partitions = events.TopicBuilds, append(topic.Partitions, part)
		request := kmsg.NewProduceRequest()
		request.Acks, request.TimeoutMillis = -1, 5000
		request.Topics = append(request.Topics, topic)
		answer, err := request.RequestWith(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		at := answer.Topics[0].Partitions[0]
		return at.BaseOffset, kerr.ErrorForCode(at.ErrorCode)
	}
	written := func(sequence int32, at int64) {
		t.Helper()
		if offset, err := produce(sequence); err != nil || offset != at {
			t.Fatalf("sequence %d is at %d, not at %d: %v", sequence, offset, at, err)
		}
	}
	for i := range int32(8) {
		written(i, int64(i))
	}
	for range 2 {
		kill()
		if addr, kill = child(t, dir); client.UpdateSeedBrokers(addr) != nil {
			t.Fatal(addr)
		}
		if offset, err := produce(9); err != kerr.OutOfOrderSequenceNumber {
			t.Fatalf("sequence 9 was taken before 8, at %d: %v", offset, err)
		}
		written(7, 7)
		written(4, 4)
	}
	written(8, 8)
}

// batchOf returns a batch of one record, as a producer numbers it.
func batchOf(producer int64, epoch int16, sequence int32) []byte {
	b := kmsg.RecordBatch{Magic: 2, ProducerID: producer, ProducerEpoch: epoch, FirstSequence: sequence, NumRecords: 1,
		// Its length, attributes, times and offset, no key, a value of one byte and no headers.
		Records: []byte{14, 0, 0, 0, 1, 2, 'x', 0}}
	const beforeLength, beforeSum = 12, 21
	raw := b.AppendTo(nil)
	b.Length = int32(len(raw) - beforeLength)
	b.CRC = int32(crc32.Checksum(raw[beforeSum:], crc32.MakeTable(crc32.Castagnoli)))
	return b.AppendTo(nil)
}
