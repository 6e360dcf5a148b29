package snapshot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// ErrNone is returned, with the reason, where there is no snapshot that can be used.
var ErrNone = errors.New("no usable snapshot")

// magic opens every file; its number rises with the layout.
const magic = "landfall snapshot 3\n"

// Format is the number of the messages in schemas/snapshots. It rises with every release that adds a field or means something
// else by one, so that a release refuses what a newer one has kept; a test compares the messages with those of the number.
// OldestFormat is the oldest that this release opens.
const (
	Format       = 2
	OldestFormat = 1
)

// digestBytes is the length of the digest at the end of a file. It is there for files that were torn or have rotted:
// who can write into the directory can write anything.
const digestBytes = 8

// maxBytes bounds a snapshot: beyond it, folding the log is no slower than reading it.
const maxBytes = 1 << 31

// Store keeps snapshots in a directory of one machine. A nil Store keeps none.
type Store struct {
	dir  string
	pace Pace
	// memory holds the states instead of files.
	memory map[Key][]byte
	mu     sync.Mutex
}

// DefaultPace costs little, and leaves little to be folded.
var DefaultPace = Pace{After: 5_000, Every: 10 * time.Second}

// Key says what a snapshot is of.
type Key struct {
	// Log is the log's id: a log made anew repeats no snapshot.
	Log string `json:"log"`
	// Service and Partition have one snapshot.
	Service   string `json:"service"`
	Partition int32  `json:"partition"`
}

// newFiles are the names of snapshots that are being written.
const newFiles = ".new-*"

type header struct {
	Key
	// Format is that of the messages in the state.
	Format int `json:"format"`
}

// abandonedAfter is when a file that nobody finished to write is removed: whoever wrote it was killed.
const abandonedAfter = time.Hour

// Open makes the directory, and removes from it what was abandoned. Processes may share it.
func Open(dir string, pace Pace) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("directory for snapshots: %w", err)
	}
	removeAbandoned(dir)
	return &Store{dir: dir, pace: pace}, nil
}

// removeAbandoned removes the temporary files that a killed writer left in a directory.
func removeAbandoned(dir string) {
	unfinished, _ := filepath.Glob(filepath.Join(dir, newFiles)) // the pattern is not malformed
	for _, name := range unfinished {
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			os.Remove(name) // or it is tried again at the next start
		}
	}
}

// InMemory is a store for tests and models: what it keeps is lost with it, and saved before Save returns. A pace that
// waits for no time makes it independent of clocks.
func InMemory(pace Pace) *Store { return &Store{pace: pace, memory: map[Key][]byte{}} }

func (s *Store) path(k Key) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%d.snapshot", k.Service, k.Partition))
}

// Save replaces the snapshot of a key. A crash leaves the old one or the new one.
func (s *Store) Save(k Key, state []byte) (err error) {
	if s == nil {
		return nil
	}
	if s.memory != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.memory[k] = state
		return nil
	}
	return write(s.path(k), header{k, Format}, state)
}

// write replaces a file. A crash leaves the old one or the new one.
func write(path string, h any, state []byte) (err error) {
	if len(state) > maxBytes {
		return fmt.Errorf("a snapshot of %d bytes is not kept; the limit is %d", len(state), maxBytes)
	}
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), newFiles)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	digest := xxhash.New()
	w := io.MultiWriter(f, digest)
	for _, part := range [][]byte{[]byte(magic), append(head, '\n'), state} {
		if _, err = w.Write(part); err != nil {
			return err
		}
	}
	if _, err = f.Write(digest.Sum(nil)); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Load gives the state that was saved last for a key, or ErrNone.
func (s *Store) Load(k Key) ([]byte, error) {
	if s == nil {
		return nil, ErrNone
	}
	if s.memory != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if state, kept := s.memory[k]; kept {
			return state, nil
		}
		return nil, fmt.Errorf("%w: %w", ErrNone, fs.ErrNotExist)
	}
	head, state, err := read(s.path(k))
	if err != nil {
		return nil, err
	}
	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	switch {
	case h.Key != k:
		return nil, fmt.Errorf("%w: the file is of partition %d of the %s on log %s", ErrNone, h.Partition, h.Service, h.Log)
	case h.Format < OldestFormat || h.Format > Format:
		return nil, fmt.Errorf("%w: it is of format %d, and this release opens %d to %d", ErrNone, h.Format, OldestFormat, Format)
	}
	return state, nil
}

// read returns the two parts of a file, or ErrNone if it is not as it was written.
func read(path string) (head, state []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if info.Size() > maxBytes+1<<16 {
		return nil, nil, fmt.Errorf("%w: %s has %d bytes", ErrNone, path, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	if len(b) < len(magic)+digestBytes || !strings.HasPrefix(string(b[:len(magic)]), magic) {
		return nil, nil, fmt.Errorf("%w: the file is not a snapshot of this layout", ErrNone)
	}
	body, digest := b[:len(b)-digestBytes], b[len(b)-digestBytes:]
	if xxhash.Sum64(body) != binary.BigEndian.Uint64(digest) {
		return nil, nil, fmt.Errorf("%w: the file is damaged", ErrNone)
	}
	head, state, _ = bytes.Cut(body[len(magic):], []byte("\n"))
	return head, state, nil
}

// Saved returns when a snapshot was last saved for a service and a partition, zero if never.
func (s *Store) Saved(service string, partition int32) time.Time {
	if s == nil || s.memory != nil {
		return time.Time{}
	}
	info, err := os.Stat(s.path(Key{Service: service, Partition: partition}))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Drop removes the snapshot of a key that did not hold what it promised.
func (s *Store) Drop(k Key) {
	switch {
	case s == nil:
	case s.memory != nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.memory, k)
	default:
		os.Remove(s.path(k))
	}
}
