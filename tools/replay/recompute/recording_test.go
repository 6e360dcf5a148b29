package recompute_test

import (
	"bufio"
	"compress/bzip2"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
)

// recording is a log that was written by an earlier version of the code.
type recording struct {
	name       string
	id         string
	partitions int32
	records    []journal.Record // by topic, partition, offset
}

// recordingBegins is the line that each log of a file begins with; testdata/recorded/README.md has the format.
const recordingBegins = "landfall log 1\n"

// readRecordings reads a file of logs.
func readRecordings(t testing.TB, file string) (logs []recording) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewReader(bzip2.NewReader(f))
	fail := func(err error) {
		if err != nil {
			t.Fatalf("%s, log %d: %v", file, len(logs), err)
		}
	}
	number := func() int64 {
		n, err := binary.ReadUvarint(in)
		fail(err)
		return int64(n)
	}
	text := func() []byte {
		b := make([]byte, number())
		_, err := io.ReadFull(in, b)
		fail(err)
		return b
	}
	for {
		if _, err := in.Peek(1); err == io.EOF {
			return logs
		}
		first := make([]byte, len(recordingBegins))
		if _, err := io.ReadFull(in, first); err != nil || string(first) != recordingBegins {
			t.Fatalf("%s, log %d begins with %q (%v)", file, len(logs), first, err)
		}
		log := recording{name: fmt.Sprintf("%s, log %d", file, len(logs)), id: string(text()), partitions: int32(number())}
		for range number() {
			r := journal.Record{Topic: string(text()), Partition: int32(number()), Offset: number()}
			if at := number(); at != 0 {
				r.Time = time.UnixMicro(at).UTC()
			}
			r.Key, r.Value = text(), text()
			for range number() {
				r.Headers = append(r.Headers, events.Header{Key: string(text()), Value: text()})
			}
			log.records = append(log.records, r)
		}
		logs = append(logs, log)
	}
}

// open puts the records into a log in memory, where each has the offset that it had.
func (l recording) open(t testing.TB) *memory.Log {
	t.Helper()
	log := memory.New(memory.Options{ID: l.id, Partitions: l.partitions})
	for _, r := range l.records {
		if end, err := log.End(t.Context(), r.Topic, r.Partition); err != nil || end != r.Offset {
			t.Fatalf("%s: the record at %s/%d/%d would come to %d (%v)", l.name, r.Topic, r.Partition, r.Offset, end, err)
		}
		if err := log.Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return log
}
