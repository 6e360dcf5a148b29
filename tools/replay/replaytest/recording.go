package replaytest

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

// Recording is a log that was written by an earlier version of the code.
type Recording struct {
	Name       string
	ID         string
	Partitions int32
	// Records are in the order of topic, partition, offset.
	Records []journal.Record
}

// recordingBegins is the line that each log of a file begins with; recompute/testdata/recorded/README.md has the format.
const recordingBegins = "landfall log 1\n"

// ReadRecordings reads a file of logs.
func ReadRecordings(t testing.TB, file string) (logs []Recording) {
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
		log := Recording{Name: fmt.Sprintf("%s, log %d", file, len(logs)), ID: string(text()), Partitions: int32(number())}
		for range number() {
			r := journal.Record{Topic: string(text()), Partition: int32(number()), Offset: number()}
			if at := number(); at != 0 {
				r.Time = time.UnixMicro(at).UTC()
			}
			r.Key, r.Value = text(), text()
			for range number() {
				r.Headers = append(r.Headers, events.Header{Key: string(text()), Value: text()})
			}
			log.Records = append(log.Records, r)
		}
		logs = append(logs, log)
	}
}

// Open puts the records into a log in memory, where each has the offset that it had.
func (l Recording) Open(t testing.TB) *memory.Log {
	t.Helper()
	log := memory.New(memory.Options{ID: l.ID, Partitions: l.Partitions})
	for _, r := range l.Records {
		if end, err := log.End(t.Context(), r.Topic, r.Partition); err != nil || end != r.Offset {
			t.Fatalf("%s: the record at %s/%d/%d would come to %d (%v)", l.Name, r.Topic, r.Partition, r.Offset, end, err)
		}
		if err := log.Write(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	return log
}
