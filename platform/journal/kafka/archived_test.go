package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/archive"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/kafka/kafkatest"
)

// archived is a log with an archive in a folder.
type archived struct {
	*testing.T
	brokers []string
	folder  string
}

func newArchived(t *testing.T) *archived { return &archived{t, cluster(t).ListenAddrs(), t.TempDir()} }

// open opens the log anew, with what the archive has now.
func (a *archived) open() *kafka.Log {
	a.Helper()
	return open(a.T, nil, func(o *kafka.Options) { o.Brokers, o.Archive = a.brokers, archive.New(archive.Folder(a.folder)) })
}

// fill appends n records to each of some topics, small ones and such of several parts.
func (a *archived) fill(l *kafka.Log, r *rand.Rand, n int) {
	a.Helper()
	var appended sync.WaitGroup
	for i := range n {
		for _, topic := range []string{events.TopicBuilds, events.TopicChanges} {
			for p := range l.Partitions() {
				size := r.IntN(2000)
				if r.IntN(200) == 0 {
					size = events.MaxRecordBytes + r.IntN(events.MaxRecordBytes)
				}
				e := events.Envelope{ID: fmt.Sprintf("%s-%d-%d-%d", topic, p, i, r.Int64()), Source: "builder", Instance: "i", Queue: "shop", Time: time.Now(),
					Message: &eventsv1.StepFinished{Target: "//t", Hash: "h", OutputTail: []byte(strings.Repeat("x", size))}}
				appended.Add(1)
				l.AppendAsync(a.Context(), topic, p, e, func(_ int64, err error) {
					defer appended.Done()
					if err != nil {
						a.Error(err)
					}
				})
			}
		}
	}
	appended.Wait()
}

// entries reads a partition from an offset to its end.
func entries(t testing.TB, l *kafka.Log, topic string, partition int32, from int64, follow func(context.Context, string, int32, int64) (journal.Cursor, error)) []journal.Entry {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end, err := l.End(ctx, topic, partition)
	if err != nil {
		t.Fatal(err)
	}
	c, err := follow(ctx, topic, partition, from)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out []journal.Entry
	for next := from; next < end; {
		e, err := c.Next(ctx)
		if err != nil {
			t.Fatalf("%s/%d behind %d: %v", topic, partition, next, err)
		}
		next = e.Offset + 1
		out = append(out, e)
	}
	return out
}

func sameEntries(t testing.TB, what string, got, want []journal.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d records, want %d", what, len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		if !proto.Equal(g.Message, w.Message) {
			t.Fatalf("%s: record %d differs", what, w.Offset)
		}
		g.Message, w.Message = nil, nil
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("%s: %+v, want %+v", what, g, w)
		}
	}
}

var bothTopics = []string{events.TopicBuilds, events.TopicChanges}

// all moves what there is.
var all = kafka.Move{Before: time.Now().Add(24 * time.Hour), Segment: 100_000, Kept: 50}

func (a *archived) begin(l *kafka.Log, topic string, p int32) int64 {
	a.Helper()
	offsets, err := l.Admin().ListStartOffsets(a.Context(), topic)
	if err != nil || offsets.Error() != nil {
		a.Fatal(err, offsets.Error())
	}
	return offsets[topic][p].Offset
}

// TestALogAndItsArchiveAreWhole runs on a real Kafka where one is named.
func TestALogAndItsArchiveAreWhole(t *testing.T) {
	a := &archived{t, kafkatest.Brokers(t), t.TempDir()}
	if a.brokers == nil {
		a = newArchived(t)
	}
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 0))
	l := a.open()
	a.fill(l, r, 400)
	type partition struct {
		topic string
		p     int32
	}
	before := map[partition][]journal.Entry{}
	for _, topic := range bothTopics {
		for p := range l.Partitions() {
			before[partition{topic, p}] = entries(t, l, topic, p, 0, l.Follow)
		}
	}
	id := l.ID()
	for round := range 2 {
		look := all
		look.Look = true
		look.Progress = func(m kafka.Moved) {
			if m.Bytes+m.Deleted != 0 {
				t.Errorf("a look has moved %+v", m)
			}
		}
		if err := l.MoveToArchive(t.Context(), look); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			a.fill(l, r, 300)
			for at := range before {
				before[at] = entries(t, l, at.topic, at.p, 0, l.Follow)
			}
		}
		deleted := int64(0)
		move := all
		move.Progress = func(m kafka.Moved) { deleted += m.Deleted }
		if err := l.MoveToArchive(t.Context(), move); err != nil {
			t.Fatal(err)
		}
		if deleted < 800 {
			t.Fatalf("%d records were deleted from the brokers", deleted)
		}
		anew := a.open()
		if anew.ID() != id {
			t.Fatalf("the log is %s, and was %s", anew.ID(), id)
		}
		for at, want := range before {
			first, end := a.begin(anew, at.topic, at.p), want[len(want)-1].Offset+1
			if first < 300 || first > end-50 {
				t.Fatalf("%v begins at %d of %d", at, first, end)
			}
			for _, from := range []int64{0, r.Int64N(first), first - 1, first, first + r.Int64N(end-first), end - 1} {
				rest := want
				for len(rest) > 0 && rest[0].Offset < from {
					rest = rest[1:]
				}
				sameEntries(t, fmt.Sprintf("seed %d, %v from %d, cut at %d", seed, at, from, first), entries(t, anew, at.topic, at.p, from, anew.Follow), rest)
			}
			sameEntries(t, fmt.Sprintf("%v sparingly", at), entries(t, anew, at.topic, at.p, 0, anew.FollowSparingly), want)
		}
	}
}

// TestALogThatWasCutAnywhereElseIsRefused: with no archive, with one that ends before the log begins, and with that of another log.
func TestALogThatWasCutAnywhereElseIsRefused(t *testing.T) {
	a := newArchived(t)
	l := a.open()
	a.fill(l, rand.New(rand.NewPCG(1, 0)), 500)
	if err := l.MoveToArchive(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	try := func(old *archive.Archive) error {
		o := kafka.Options{Brokers: a.brokers, Log: quiet(), Archive: old, Wait: 5 * time.Second}
		checked := kafka.Check(t.Context(), o)
		l, err := kafka.Open(t.Context(), o)
		if err == nil {
			l.Close()
		}
		if errors.Is(checked, kafka.ErrCut) != errors.Is(err, kafka.ErrCut) {
			t.Errorf("Open: %v, but Check: %v", err, checked)
		}
		return err
	}
	if err := try(archive.New(archive.Folder(a.folder))); err != nil {
		t.Error(err)
	}
	if err := try(nil); !errors.Is(err, kafka.ErrCut) || !strings.Contains(err.Error(), "broker.archive") {
		t.Errorf("no archive: %v", err)
	}
	if err := try(archive.New(archive.Folder(t.TempDir()))); !errors.Is(err, kafka.ErrCut) || !strings.Contains(err.Error(), "ends at 0") {
		t.Errorf("an empty archive: %v", err)
	}
	if err := try(archive.New(archive.Folder(filepath.Join(a.folder, "none")))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	other := newArchived(t)
	o := other.open()
	other.fill(o, rand.New(rand.NewPCG(2, 0)), 800)
	if err := o.MoveToArchive(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	// The archive of another log is as long, and its first record names that log.
	if l, err := kafka.Open(t.Context(), kafka.Options{Brokers: a.brokers, Log: quiet(), Archive: archive.New(archive.Folder(other.folder))}); err == nil {
		defer l.Close()
		t.Errorf("the archive of log %s is taken for that of %s", o.ID(), l.ID())
	} else if !errors.Is(err, archive.ErrOtherLog) {
		t.Errorf("the archive of another log: %v", err)
	}
	// A segment in the middle is gone.
	segments, err := filepath.Glob(filepath.Join(a.folder, events.TopicBuilds, "1", "*"))
	if err != nil || len(segments) < 3 {
		t.Fatal(segments, err)
	}
	hidden := filepath.Join(t.TempDir(), "hidden")
	if err := os.Rename(segments[1], hidden); err != nil {
		t.Fatal(err)
	}
	if err := try(archive.New(archive.Folder(a.folder))); !errors.Is(err, kafka.ErrCut) {
		t.Errorf("a segment is gone: %v", err)
	}
	if err := os.Rename(hidden, segments[1]); err != nil {
		t.Fatal(err)
	}
	// One that has rotted ends those who read it, and no others.
	text, err := os.ReadFile(segments[1])
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(segments[1], text, 0o600); err != nil {
		t.Fatal(err)
	}
	again := a.open()
	c, err := again.Follow(t.Context(), events.TopicBuilds, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for err == nil {
		_, err = c.Next(t.Context())
	}
	if !errors.Is(err, archive.ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(segments[1])) {
		t.Errorf("a damaged segment: %v", err)
	}
	entries(t, again, events.TopicBuilds, 0, 0, again.Follow)
}

// failing is a store that fails or lies from a file on.
type failing struct {
	archive.Folder
	puts int
	lie  bool
}

var errFull = errors.New("the disk is full")

func (f *failing) Put(ctx context.Context, name string, file []byte) error {
	f.puts--
	if f.puts < 0 && !f.lie {
		return errFull
	}
	if f.puts < 0 {
		file = append([]byte(nil), file...)
		file[len(file)/2]++
	}
	return f.Folder.Put(ctx, name, file)
}

// TestWhatIsNotInTheArchiveStaysWithTheBrokers: the store fails, or does not keep what it takes, after a few segments.
func TestWhatIsNotInTheArchiveStaysWithTheBrokers(t *testing.T) {
	for _, lie := range []bool{false, true} {
		a := newArchived(t)
		l := a.open()
		a.fill(l, rand.New(rand.NewPCG(3, 0)), 500)
		want := entries(t, l, events.TopicBuilds, 1, 0, l.Follow)
		store := &failing{Folder: archive.Folder(a.folder), puts: 7, lie: lie}
		troubled := open(t, nil, func(o *kafka.Options) { o.Brokers, o.Archive = a.brokers, archive.New(store) })
		err := troubled.MoveToArchive(t.Context(), all)
		if lie && !errors.Is(err, archive.ErrDamaged) || !lie && !errors.Is(err, errFull) {
			t.Fatalf("lie %v: %v", lie, err)
		}
		again := a.open()
		sameEntries(t, "after the failure", entries(t, again, events.TopicBuilds, 1, 0, again.Follow), want)
		if err := again.MoveToArchive(t.Context(), all); lie {
			// What was kept wrongly stands in the way until somebody has deleted it.
			if !errors.Is(err, archive.ErrDamaged) {
				t.Fatal(err)
			}
			if first := a.begin(again, events.TopicBuilds, 0); first != 0 {
				t.Fatalf("%d records were deleted", first)
			}
		} else if err != nil {
			t.Fatal(err)
		}
		sameEntries(t, "after a second try", entries(t, again, events.TopicBuilds, 1, 0, again.Follow), want)
	}
}

// TestAReaderGoesOnWhileMoreIsMoved: what it has yet to read leaves the brokers meanwhile. It begins in the archive, or with the brokers.
func TestAReaderGoesOnWhileMoreIsMoved(t *testing.T) {
	for _, archived := range []bool{true, false} {
		readWhileMoved(t, archived)
	}
}

func readWhileMoved(t *testing.T, archived bool) {
	a := newArchived(t)
	l := a.open()
	r := rand.New(rand.NewPCG(4, 0))
	a.fill(l, r, 400)
	if archived {
		if err := l.MoveToArchive(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	a.fill(l, r, 2000)
	want := entries(t, l, events.TopicBuilds, 1, 0, l.Follow)
	reader := a.open()
	c, err := reader.FollowSparingly(t.Context(), events.TopicBuilds, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got []journal.Entry
	for len(got) < len(want) {
		if len(got) == 10 {
			if err := l.MoveToArchive(t.Context(), all); err != nil {
				t.Fatal(err)
			}
		}
		e, err := c.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e)
	}
	sameEntries(t, fmt.Sprintf("while more was moved, from the archive: %v", archived), got, want)
}

// TestTheArchiveOfAnotherLogIsNotWritten, though nothing of either log was deleted yet.
func TestTheArchiveOfAnotherLogIsNotWritten(t *testing.T) {
	a, other := newArchived(t), newArchived(t)
	l := a.open()
	a.fill(l, rand.New(rand.NewPCG(6, 0)), 600)
	if err := l.MoveToArchive(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	ends, err := archive.New(archive.Folder(a.folder)).Ends(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other.folder = a.folder
	o := other.open()
	other.fill(o, rand.New(rand.NewPCG(7, 0)), 900)
	if err := o.MoveToArchive(t.Context(), all); !errors.Is(err, archive.ErrOtherLog) {
		t.Error(err)
	}
	if after, err := archive.New(archive.Folder(a.folder)).Ends(t.Context()); err != nil || !maps.Equal(ends, after) {
		t.Errorf("the archive ended at %v, and ends at %v, %v", ends, after, err)
	}
	if first := other.begin(o, events.TopicBuilds, 0); first != 0 {
		t.Errorf("%d records were deleted", first)
	}
}

// TestTwoRunsAtOnceDoNoHarm, nor does a log that is opened meanwhile.
func TestTwoRunsAtOnceDoNoHarm(t *testing.T) {
	a := newArchived(t)
	l := a.open()
	r := rand.New(rand.NewPCG(8, 0))
	for range 2 {
		a.fill(l, r, 700)
		var running sync.WaitGroup
		for range 2 {
			run := a.open()
			running.Go(func() {
				if err := run.MoveToArchive(t.Context(), all); err != nil {
					t.Error(err)
				}
			})
		}
		ended := make(chan struct{})
		go func() { running.Wait(); close(ended) }()
		for open := true; open; {
			a.open().Close()
			select {
			case <-ended:
				open = false
			default:
			}
		}
	}
	for p := range l.Partitions() {
		if got := entries(t, a.open(), events.TopicBuilds, p, 0, l.Follow); len(got) < 1400 {
			t.Errorf("partition %d has %d records", p, len(got))
		}
	}
}
