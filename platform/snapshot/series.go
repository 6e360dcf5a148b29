package snapshot

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
)

// SeriesKey identifies a series.
type SeriesKey struct {
	Key
	// Name tells the series of one service and partition apart. It is part of a file name.
	Name string `json:"name"`
	// Made names the code and the settings that made the states. States of other ones are removed.
	Made string `json:"made"`
}

// Series keeps states of one thing at several moments, by number. It is safe for concurrent use.
type Series struct {
	key SeriesKey
	// dir is where the files are; "" keeps the states in memory.
	dir    string
	mu     sync.Mutex
	memory map[int64]seriesState
}

type seriesState struct{ head, state []byte }

// Moment is one state of a series, without the state itself.
type Moment struct {
	Number int64
	Head   []byte
	// Bytes is the size of the state.
	Bytes int64
}

type seriesHeader struct {
	SeriesKey
	Format int             `json:"format"`
	Number int64           `json:"number"`
	Head   json.RawMessage `json:"head"`
}

const seriesFiles = ".moment"

// Series opens the series of a key, in the store's directory; that of a store without one is in memory.
func (s *Store) Series(k SeriesKey) (*Series, error) {
	if s == nil || s.memory != nil {
		return &Series{key: k, memory: map[int64]seriesState{}}, nil
	}
	dir := filepath.Join(s.dir, fmt.Sprintf("%s-%d-%s", k.Service, k.Partition, k.Name))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("directory for snapshots: %w", err)
	}
	removeAbandoned(dir)
	return &Series{key: k, dir: dir}, nil
}

// OnDisk reports whether the states outlive the process.
func (s *Series) OnDisk() bool { return s.dir != "" }

func (s *Series) path(number int64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%012d%s", number, seriesFiles))
}

// Save keeps a state under a number, with a head in JSON.
func (s *Series) Save(number int64, head any, state []byte) error {
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if !s.OnDisk() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.memory[number] = seriesState{text, state}
		return nil
	}
	return write(s.path(number), seriesHeader{s.key, Format, number, text}, state)
}

// Moments returns what is kept, in the order of the numbers, and removes the files of another key or format, and those that have no
// head. That a state is whole is seen when it is loaded.
func (s *Series) Moments() ([]Moment, error) {
	var out []Moment
	if !s.OnDisk() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for number, kept := range s.memory {
			out = append(out, Moment{number, kept.head, int64(len(kept.state))})
		}
	} else {
		files, err := os.ReadDir(s.dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if !strings.HasSuffix(f.Name(), seriesFiles) {
				continue
			}
			path := filepath.Join(s.dir, f.Name())
			h, size, err := headOf(path)
			if err != nil || h.SeriesKey != s.key || h.Format != Format || s.path(h.Number) != path {
				os.Remove(path) // or it is left out at the next start
				continue
			}
			out = append(out, Moment{h.Number, h.Head, size})
		}
	}
	slices.SortFunc(out, func(a, b Moment) int { return cmp.Compare(a.Number, b.Number) })
	return out, nil
}

// maxHead bounds the head of a file that Moments reads.
const maxHead = 1 << 16

func headOf(path string) (h seriesHeader, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return h, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return h, 0, err
	}
	r := bufio.NewReader(io.LimitReader(f, maxHead))
	if line, err := r.ReadString('\n'); err != nil || line != magic {
		return h, 0, fmt.Errorf("%w: the file is not a snapshot of this layout", ErrNone)
	}
	line, err := r.ReadBytes('\n')
	if err != nil {
		return h, 0, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return h, info.Size(), json.Unmarshal(line, &h)
}

// Load returns the state of a number, or ErrNone if it is gone, another's, or not as it was saved; then it is removed.
func (s *Series) Load(number int64) ([]byte, error) {
	if !s.OnDisk() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if kept, is := s.memory[number]; is {
			return kept.state, nil
		}
		return nil, ErrNone
	}
	text, state, err := read(s.path(number))
	if err != nil {
		os.Remove(s.path(number)) // or it is tried again at the next start
		return nil, err
	}
	var h seriesHeader
	if err := json.Unmarshal(text, &h); err != nil || h.SeriesKey != s.key || h.Format != Format || h.Number != number {
		return nil, fmt.Errorf("%w: the file is another's", ErrNone)
	}
	return state, nil
}

// Drop removes the state of a number.
func (s *Series) Drop(number int64) {
	if !s.OnDisk() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.memory, number)
		return
	}
	os.Remove(s.path(number)) // or it is left out once it is loaded
}

// ThisBinary names the code that runs.
var ThisBinary = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	digest := xxhash.New()
	if _, err := io.Copy(digest, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%016x", digest.Sum64()), nil
})
