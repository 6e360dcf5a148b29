package broker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// ErrDamaged says that the log has lost records that were acknowledged. What is left of it must not be read as if it
// were all: finished changes would be pending again. Restore the directory from a backup.
var ErrDamaged = errors.New("the log is damaged")

// Layout of a record batch, as Kafka has it: its base offset, its length from there on, and behind 17 bytes a checksum
// of everything behind that.
const (
	batchHeader   = 61
	lengthAt      = 8
	checksumAt    = 17
	attributesAt  = 21
	lastOffsetAt  = 23
	beforeLength  = 12
	segmentSuffix = ".dat"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checkLog looks at every partition before the broker opens it: the broker cuts off what it cannot read, which is
// right for a record that was being written when the process died, and for nothing else.
func checkLog(dir string) error {
	partitions, err := os.ReadDir(filepath.Join(dir, "partitions"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range partitions {
		if !p.IsDir() {
			continue
		}
		if err := checkPartition(filepath.Join(dir, "partitions", p.Name())); err != nil {
			return fmt.Errorf("%w: %s: %w; restore %s from a backup", ErrDamaged, p.Name(), err, dir)
		}
	}
	return nil
}

func checkPartition(dir string) error {
	segments, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil {
		return err
	}
	sort.Slice(segments, func(i, j int) bool { return baseOf(segments[i]) < baseOf(segments[j]) })
	end := int64(0)
	for i, path := range segments {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		next, rest := readableTo(raw)
		if next > 0 {
			end = next
		}
		if rest > 0 && (i < len(segments)-1 || !isTorn(raw[len(raw)-rest:])) {
			return fmt.Errorf("%s cannot be read from offset %d on, and there are records behind that", filepath.Base(path), end)
		}
	}
	var snapshot struct {
		HighWatermark int64 `json:"high_watermark"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "snapshot.json"))
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(text, &snapshot) != nil {
		return nil // the broker makes it anew
	}
	if err != nil {
		return err
	}
	if end < snapshot.HighWatermark {
		return fmt.Errorf("it ends at offset %d, and %d records were acknowledged", end, snapshot.HighWatermark)
	}
	return nil
}

func baseOf(path string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), segmentSuffix), 10, 64)
	return n
}

// readableTo gives the offset behind the last batch that can be read from the beginning on, and how many bytes
// follow it.
func readableTo(raw []byte) (next int64, rest int) {
	for len(raw) >= batchHeader {
		size := beforeLength + int(int32(binary.BigEndian.Uint32(raw[lengthAt:])))
		if size < batchHeader || size > len(raw) || !isWhole(raw[:size]) {
			break
		}
		next = int64(binary.BigEndian.Uint64(raw)) + int64(binary.BigEndian.Uint32(raw[lastOffsetAt:])) + 1
		raw = raw[size:]
	}
	return next, len(raw)
}

func isWhole(batch []byte) bool {
	return crc32.Checksum(batch[attributesAt:], castagnoli) == binary.BigEndian.Uint32(batch[checksumAt:])
}

// isTorn says that bytes may be a batch that was being written: it is the last one, or what there is of it.
func isTorn(rest []byte) bool {
	if len(rest) < batchHeader {
		return true
	}
	size := beforeLength + int(int32(binary.BigEndian.Uint32(rest[lengthAt:])))
	return size >= len(rest)
}
