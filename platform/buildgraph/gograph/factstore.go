package gograph

import (
	"log/slog"
	"sync"

	"landfall.build/engine/lru"
)

// flushAt is how many facts wait to be written. A commit makes a few; they are
// cheap to find again, so they can wait for company or for Close.
const flushAt = 256

// Facts remembers what files say, by the ids of their blobs: in memory and, if
// it was opened with a folder, on disk. It may be used by several loaders and
// goroutines at once, its folder by several processes. What it remembers never
// changes a result; whatever goes wrong with the disk is logged and costs time,
// no more.
type Facts struct {
	mu     sync.Mutex
	known  *lru.Cache[factKey, *facts]
	keys   []factKey // to be written
	values []*facts
	disk   *segments // nil: memory only
}

// NewFacts remembers in memory only, up to that many bytes, roughly.
func NewFacts(memory int64) *Facts {
	return &Facts{known: lru.New[factKey, *facts](memory)}
}

// OpenFacts remembers in a folder as well, which is made if need be: at most
// disk bytes there, the oldest forgotten first. Facts that were damaged on disk
// are removed.
func OpenFacts(dir string, memory, disk int64, logger *slog.Logger) (*Facts, error) {
	f := NewFacts(memory)
	s, err := openSegments(dir, disk, logger, func(key factKey, value *facts) {
		f.known.Put(key, value, value.weight())
	})
	if err != nil {
		return nil, err
	}
	f.disk = s
	return f, nil
}

// Close writes what is not yet on disk.
func (f *Facts) Close() { f.flush(0) }

func (f *Facts) get(key factKey) *facts {
	f.mu.Lock()
	defer f.mu.Unlock()
	value, _ := f.known.Get(key)
	return value
}

// put remembers new facts.
func (f *Facts) put(key factKey, value *facts) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known.Put(key, value, value.weight())
	if f.disk != nil {
		f.keys, f.values = append(f.keys, key), append(f.values, value)
	}
}

// flush writes what waits if there is more than that.
func (f *Facts) flush(atLeast int) {
	f.mu.Lock()
	keys, values := f.keys, f.values
	if f.disk == nil || len(keys) == 0 || len(keys) < atLeast {
		f.mu.Unlock()
		return
	}
	f.keys, f.values = nil, nil
	f.mu.Unlock()
	f.disk.write(segmentOf(keys, values))
}
