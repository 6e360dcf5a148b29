package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"landfall.build/events"
	"landfall.build/platform/journal"
)

// ErrDamaged is returned for a segment that is not as it was written.
var ErrDamaged = errors.New("a segment of the archive is damaged")

// magic opens every segment; its number rises with the layout.
const magic = "landfall archive 1\n"

// Bounds of a segment, in bytes: of the records in it, before they are compressed, and of its file. One record may be larger than
// segmentBytes by itself.
const (
	segmentBytes = 32 << 20
	mostBytes    = 256 << 20
)

// Place is one partition of a topic.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

func (p Place) String() string { return fmt.Sprintf("%s/%d", p.Topic, p.Partition) }

// header says what is in a segment.
type header struct {
	// Log is the log's id.
	Log string `json:"log"`
	Place
	span
	// Records is how many the segment has.
	Records int `json:"records"`
}

// span is the offsets that a segment is for: from First on, up to the one before End. Not each need have a record.
type span struct {
	First int64 `json:"first"`
	End   int64 `json:"end"`
}

const suffix = ".segment"

// folderOf returns the folder of a partition's segments in the store, nameOf the name of a segment.
func folderOf(p Place) string { return fmt.Sprintf("%s/%d/", p.Topic, p.Partition) }

func nameOf(p Place, s span) string {
	return fmt.Sprintf("%s%020d-%020d%s", folderOf(p), s.First, s.End, suffix)
}

// parseName returns what the name of a segment says; ok is false for any other name.
func parseName(name string) (p Place, s span, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 {
		return p, s, false
	}
	partition, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil {
		return p, s, false
	}
	first, end, _ := strings.Cut(strings.TrimSuffix(parts[2], suffix), "-")
	s.First, err = strconv.ParseInt(first, 10, 64)
	if err != nil {
		return p, s, false
	}
	if s.End, err = strconv.ParseInt(end, 10, 64); err != nil {
		return p, s, false
	}
	p = Place{parts[0], int32(partition)}
	return p, s, s.First >= 0 && s.First < s.End && nameOf(p, s) == name
}

// encode returns the file of a segment.
func encode(h header, records []journal.Record) ([]byte, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	file.WriteString(magic)
	file.Write(append(head, '\n'))
	w, err := zstd.NewWriter(&file, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	var b []byte
	for _, r := range records {
		b = appendRecord(b[:0], r)
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if file.Len() > mostBytes-sha256.Size {
		return nil, fmt.Errorf("a segment of %d bytes is above the bound of %d", file.Len(), mostBytes)
	}
	return sealed(file.Bytes()), nil
}

// sealed returns a segment's file with its checksum.
func sealed(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(body, sum[:]...)
}

// decode calls take with each record of a segment's file, in order. A record's bytes are its own.
func decode(file []byte, want header, take func(journal.Record) error) error {
	if len(file) < len(magic)+sha256.Size || !bytes.HasPrefix(file, []byte(magic)) {
		return fmt.Errorf("%w: it is no segment of this layout", ErrDamaged)
	}
	body, sum := file[:len(file)-sha256.Size], file[len(file)-sha256.Size:]
	if own := sha256.Sum256(body); !bytes.Equal(own[:], sum) {
		return fmt.Errorf("%w: its checksum differs", ErrDamaged)
	}
	head, packed, _ := bytes.Cut(body[len(magic):], []byte("\n"))
	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if want.Log == "" {
		want.Log = h.Log
	}
	want.Records = h.Records
	switch {
	case h.Log != want.Log:
		return fmt.Errorf("%w: it is of log %s, not of %s", ErrOtherLog, h.Log, want.Log)
	case h != want:
		return fmt.Errorf("%w: it is of records %d to %d of %s", ErrDamaged, h.First, h.End-1, h.Place)
	}
	unpacked, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostBytes))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	defer unpacked.Close()
	in := bufio.NewReader(unpacked)
	next := h.First
	for range h.Records {
		r, err := readRecord(in)
		if err == nil && (r.Offset < next || r.Offset >= h.End) {
			err = fmt.Errorf("record %d does not belong there", r.Offset)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		next = r.Offset + 1
		r.Topic, r.Partition = h.Topic, h.Partition
		if err := take(r); err != nil {
			return err
		}
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return fmt.Errorf("%w: there is more in it than %d records", ErrDamaged, h.Records)
	}
	return nil
}

// appendRecord appends a record: its offset, its time in milliseconds (0 where nobody has said), key, value, and the headers. Numbers
// are varints; of bytes the length comes first, one more than it is, and 0 for none at all.
func appendRecord(b []byte, r journal.Record) []byte {
	b = binary.AppendUvarint(b, uint64(r.Offset))
	ms := int64(0)
	if !r.Time.IsZero() {
		ms = r.Time.UnixMilli()
	}
	b = binary.AppendVarint(b, ms)
	b = appendBytes(appendBytes(b, r.Key), r.Value)
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for _, h := range r.Headers {
		b = appendBytes(appendBytes(b, []byte(h.Key)), h.Value)
	}
	return b
}

func appendBytes(b, value []byte) []byte {
	if value == nil {
		return binary.AppendUvarint(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(value))+1), value...)
}

func readRecord(in *bufio.Reader) (r journal.Record, err error) {
	offset, err := binary.ReadUvarint(in)
	if err != nil {
		return r, err
	}
	r.Offset = int64(offset)
	ms, err := binary.ReadVarint(in)
	if err != nil {
		return r, err
	}
	if ms != 0 {
		r.Time = time.UnixMilli(ms).UTC()
	}
	if r.Key, err = readBytes(in); err != nil {
		return r, err
	}
	if r.Value, err = readBytes(in); err != nil {
		return r, err
	}
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return r, err
	}
	r.Headers = make([]events.Header, 0, min(n, 64))
	for range n {
		key, err := readBytes(in)
		if err != nil {
			return r, err
		}
		value, err := readBytes(in)
		if err != nil {
			return r, err
		}
		r.Headers = append(r.Headers, events.Header{Key: string(key), Value: value})
	}
	return r, nil
}

func readBytes(in *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(in)
	if err != nil || n == 0 {
		return nil, err
	}
	if n > mostBytes {
		return nil, fmt.Errorf("a value of %d bytes", n-1)
	}
	// What is said to be long may not be there: it grows with what is.
	var value bytes.Buffer
	if _, err := io.CopyN(&value, in, int64(n-1)); err != nil {
		return nil, err
	}
	if n == 1 {
		return []byte{}, nil
	}
	return value.Bytes(), nil
}
