package archive

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"landfall.build/platform/journal"
)

var (
	// ErrOtherLog is returned for an archive that has records of another log.
	ErrOtherLog = errors.New("the archive is another log's")
	// ErrGap is returned where the archive does not have a record that is asked for.
	ErrGap = errors.New("records are missing from the archive")
)

// Archive reads a log's old records from a store. It is safe for concurrent use.
type Archive struct {
	store Store

	mu sync.Mutex
	// listed has the segments of each partition, in the order of their names, from the last look at the store.
	listed map[Place][]span
	// log is the id of the archive's log; "" until Of was called.
	log string
}

// New returns the archive in a store. It does not look there yet.
func New(store Store) *Archive { return &Archive{store: store, listed: map[Place][]span{}} }

// String names the store for people.
func (a *Archive) String() string { return a.store.String() }

// look lists the segments of some partitions: of all whose files are below a folder of the store.
func (a *Archive) look(ctx context.Context, folder string) error {
	names, err := a.store.Names(ctx, folder)
	if err != nil {
		return fmt.Errorf("list the archive: %w", err)
	}
	listed := map[Place][]span{}
	slices.Sort(names) // not every service of buckets lists them in order
	for _, name := range names {
		if p, s, ok := parseName(name); ok {
			listed[p] = append(listed[p], s)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(a.listed, listed)
	return nil
}

// Ends returns, for every partition of which the archive has records, the offset behind those that it has from the beginning on. It
// looks into the store.
func (a *Archive) Ends(ctx context.Context) (map[Place]int64, error) {
	if err := a.look(ctx, ""); err != nil {
		return nil, err
	}
	a.mu.Lock()
	places := slices.Collect(maps.Keys(a.listed))
	a.mu.Unlock()
	ends := map[Place]int64{}
	for _, p := range places {
		ends[p] = a.listedEnd(p)
	}
	return ends, nil
}

// End returns Ends of one partition, 0 if the archive has nothing of it.
func (a *Archive) End(ctx context.Context, p Place) (int64, error) {
	if err := a.look(ctx, folderOf(p)); err != nil {
		return 0, err
	}
	return a.listedEnd(p), nil
}

func (a *Archive) listedEnd(p Place) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	end := int64(0)
	for _, s := range a.listed[p] {
		if s.First <= end {
			end = max(end, s.End)
		}
	}
	return end
}

// at returns the segment that has an offset and reaches furthest.
func (a *Archive) at(p Place, offset int64) (best span, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.listed[p] {
		if s.First <= offset && offset < s.End && s.End > best.End {
			best, ok = s, true
		}
	}
	return best, ok
}

// Read calls take with each record of a partition that the archive has from an offset on, in order, and returns the offset behind
// the last. It returns ErrGap if the archive does not have that offset, and what take returned if that is an error.
func (a *Archive) Read(ctx context.Context, topic string, partition int32, from int64, take func(journal.Record) error) (next int64, err error) {
	p := Place{topic, partition}
	for next = from; ; {
		s, ok := a.at(p, next)
		if !ok {
			if err := a.look(ctx, folderOf(p)); err != nil {
				return next, err
			}
			s, ok = a.at(p, next)
		}
		switch {
		case !ok && next == from:
			return next, fmt.Errorf("%w: record %d of %s is not in %s", ErrGap, from, p, a.store)
		case !ok:
			return next, nil
		}
		if err := a.read(ctx, p, s, next, take); err != nil {
			return next, err
		}
		next = s.End
	}
}

// read gives the records of one segment, from an offset on.
func (a *Archive) read(ctx context.Context, p Place, s span, from int64, take func(journal.Record) error) error {
	name := nameOf(p, s)
	file, err := a.store.Get(ctx, name)
	if err != nil {
		return fmt.Errorf("read %s of the archive %s: %w", name, a.store, err)
	}
	a.mu.Lock()
	log := a.log
	a.mu.Unlock()
	err = decode(file, header{Log: log, Place: p, span: s}, func(r journal.Record) error {
		if r.Offset < from {
			return nil
		}
		return take(r)
	})
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrOtherLog) {
		return fmt.Errorf("%s of the archive %s: %w", name, a.store, err)
	}
	return err
}

// Same reports whether two records of one partition are the same in an archive.
func Same(a, b journal.Record) bool { return bytes.Equal(appendRecord(nil, a), appendRecord(nil, b)) }

// Of binds the archive to a log: segments of another one are refused from now on.
func (a *Archive) Of(log string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.log = log
}

// Writer writes the records of one partition into segments.
type Writer struct {
	archive *Archive
	place   Place
	log     string
	segment int
	next    int64
	pending []journal.Record
	bytes   int
	// Records and Bytes are how many were written, and how large their segments are.
	Records, Bytes int64
}

// Write returns a writer of a log's records of a partition from an offset on. A segment has so many bytes of records, about; 32 MiB
// if it is 0.
func (a *Archive) Write(log string, p Place, from int64, segment int) *Writer {
	return &Writer{archive: a, place: p, log: log, segment: cmp.Or(segment, segmentBytes), next: from}
}

// overhead is what a record takes beside its key, its value and its headers, about.
const overhead = 64

// Add takes the next record. From time to time it writes a segment.
func (w *Writer) Add(ctx context.Context, r journal.Record) error {
	w.pending = append(w.pending, r)
	w.bytes += len(r.Key) + len(r.Value) + overhead
	for _, h := range r.Headers {
		w.bytes += len(h.Key) + len(h.Value)
	}
	if w.bytes < w.segment {
		return nil
	}
	return w.Flush(ctx, r.Offset+1)
}

// Pending returns how many bytes were added since the last segment, and Next the offset behind that segment.
func (w *Writer) Pending() int64 { return int64(w.bytes) }
func (w *Writer) Next() int64    { return w.next }

// Flush writes what was added since the last segment, up to an offset.
func (w *Writer) Flush(ctx context.Context, end int64) error {
	if end <= w.next {
		return nil
	}
	h := header{Log: w.log, Place: w.place, span: span{w.next, end}, Records: len(w.pending)}
	file, err := encode(h, w.pending)
	if err != nil {
		return err
	}
	name := nameOf(w.place, h.span)
	if err := w.archive.store.Put(ctx, name, file); err != nil {
		return fmt.Errorf("write %s into the archive %s: %w", name, w.archive.store, err)
	}
	w.Records += int64(len(w.pending))
	w.Bytes += int64(len(file))
	w.next, w.pending, w.bytes = end, nil, 0
	return nil
}
