package broker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// ErrDamaged is the error for a log that has lost records that were acknowledged. What is left of it must not be read as if it
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

// checkLog reads every partition before the broker opens it: the broker cuts off what it cannot read, which is
// right for a record that was being written when the process died, and for nothing else. On the way it finds out where the
// producers are.
func checkLog(dir string) error {
	partitions, err := os.ReadDir(filepath.Join(dir, "partitions"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var all []*producer
	for _, p := range partitions {
		if !p.IsDir() {
			continue
		}
		wrote := producers{}
		err := checkPartition(filepath.Join(dir, "partitions", p.Name()), wrote)
		if err != nil {
			return fmt.Errorf("%w: %s: %w; restore %s from a backup", ErrDamaged, p.Name(), err, dir)
		}
		last, err := wrote.lastOf(p.Name())
		if err != nil {
			return err
		}
		all = append(all, last...)
	}
	return saveProducers(dir, all)
}

// partitionsFile lists the partitions that were there, one folder's name a line: the broker takes a partition without a
// folder for one that nothing was written to yet.
const partitionsFile = "partitions"

// checkPartitions returns an error if a partition that was there is gone.
func checkPartitions(dir string) error {
	listed, err := os.ReadFile(filepath.Join(dir, partitionsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	known := strings.Fields(string(listed))
	if len(known) == 0 {
		return nil
	}
	log := filepath.Join(dir, "log")
	now, err := partitionsOf(log)
	if err != nil {
		return fmt.Errorf("%w: its list of topics cannot be read: %w; restore %s from a backup, or delete it to begin a new log", ErrDamaged, err, dir)
	}
	var gone []string
	for _, name := range known {
		_, err := os.Stat(filepath.Join(log, "partitions", name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && slices.Contains(now, name): // else its topic was deleted, by a client
			gone = append(gone, name)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if len(gone) > 0 {
		return fmt.Errorf("%w: there is no %s in %s any more; restore %s from a backup, or delete it to begin a new log",
			ErrDamaged, strings.Join(gone, ", "), filepath.Join(log, "partitions"), dir)
	}
	return nil
}

// partitionsOf names the folders of all partitions of the topics that a log has.
func partitionsOf(log string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(log, "topics.json"))
	if err != nil {
		return nil, err
	}
	var all struct {
		Topics []struct {
			Name       string `json:"name"`
			Partitions int    `json:"partitions"`
		} `json:"topics"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	var names []string
	for _, t := range all.Topics {
		for p := range t.Partitions {
			names = append(names, fmt.Sprintf("%s-%d", url.PathEscape(t.Name), p))
		}
	}
	sort.Strings(names)
	return names, nil
}

// listPartitions makes a folder for every partition that has none yet, and lists them all.
func listPartitions(dir string) error {
	log := filepath.Join(dir, "log")
	names, err := partitionsOf(log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no topic was ever made
	}
	for _, name := range names {
		err = errors.Join(err, os.MkdirAll(filepath.Join(log, "partitions", name), 0o755))
	}
	if err != nil {
		return fmt.Errorf("embedded broker: list the partitions: %w", err)
	}
	return writeWhole(filepath.Join(dir, partitionsFile), strings.Join(names, "\n")+"\n")
}

func checkPartition(dir string, wrote producers) error {
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
		next, rest := readableTo(raw, wrote)
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
		return nil // the broker makes it again
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

// readableTo returns the offset behind the last batch that can be read from the beginning on, and how many bytes
// follow it. It notes who wrote the batches.
func readableTo(raw []byte, wrote producers) (next int64, rest int) {
	for len(raw) >= batchHeader {
		size := beforeLength + int(int32(binary.BigEndian.Uint32(raw[lengthAt:])))
		if size < batchHeader || size > len(raw) || !isWhole(raw[:size]) {
			break
		}
		wrote.note(raw)
		next = int64(binary.BigEndian.Uint64(raw)) + int64(binary.BigEndian.Uint32(raw[lastOffsetAt:])) + 1
		raw = raw[size:]
	}
	return next, len(raw)
}

func isWhole(batch []byte) bool {
	return crc32.Checksum(batch[attributesAt:], castagnoli) == binary.BigEndian.Uint32(batch[checksumAt:])
}

// isTorn reports whether bytes may be a batch that was being written: it is the last one, or what there is of it.
func isTorn(rest []byte) bool {
	if len(rest) < batchHeader {
		return true
	}
	size := beforeLength + int(int32(binary.BigEndian.Uint32(rest[lengthAt:])))
	return size >= len(rest)
}
