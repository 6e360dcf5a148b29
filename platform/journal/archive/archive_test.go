package archive

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"landfall.build/events"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
)

// stores returns one store of each kind, empty.
func stores(t *testing.T) map[string]Store {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("shop"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), configuration.Archive{URL: "s3://shop/old/log", User: "ada", Password: configuration.SecretPlace{File: password},
		S3: configuration.SharedBucket{Endpoint: server.URL, Region: "us-east-1", Addressing: configuration.AddressingPath}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Store{"folder": Folder(t.TempDir()), "bucket": a.store}
}

func random(r *rand.Rand, most int) []byte {
	switch r.IntN(6) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	b := make([]byte, r.IntN(most))
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return b
}

// records returns n records from an offset on, of which some are left out.
func records(r *rand.Rand, p Place, first int64, n int) (list []journal.Record, end int64) {
	for range n {
		if r.IntN(50) == 0 {
			first += r.Int64N(4)
		}
		rec := journal.Record{Topic: p.Topic, Partition: p.Partition, Offset: first, Key: random(r, 20), Value: random(r, 400), Headers: []events.Header{}}
		if r.IntN(10) > 0 {
			rec.Time = time.UnixMilli(1_700_000_000_000 + r.Int64N(1e9)).UTC()
		}
		headers := r.IntN(4)
		if r.IntN(300) == 0 {
			headers = 70_000
		}
		for range headers {
			rec.Headers = append(rec.Headers, events.Header{Key: string(random(r, 10)), Value: random(r, 30)})
		}
		list = append(list, rec)
		first++
	}
	return list, first
}

func all(t testing.TB, a *Archive, p Place, from int64) []journal.Record {
	t.Helper()
	var list []journal.Record
	if _, err := a.Read(t.Context(), p.Topic, p.Partition, from, func(r journal.Record) error {
		list = append(list, r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func same(a, b []journal.Record) bool {
	return slices.EqualFunc(a, b, func(a, b journal.Record) bool {
		return Same(a, b) && a.Topic == b.Topic && a.Partition == b.Partition && a.Time.Equal(b.Time)
	})
}

// TestWhatIsWrittenIsRead: random records, in segments of several sizes, some of which were written twice with other ends.
func TestWhatIsWrittenIsRead(t *testing.T) {
	for name, store := range stores(t) {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 0))
				p := Place{"landfall.builds", int32(seed)}
				want, end := records(r, p, 0, 300)
				a := New(store)
				w := a.Write("log", p, 0, 1+r.IntN(20_000))
				for i := 0; i < len(want); i++ {
					if err := w.Add(t.Context(), want[i]); err != nil {
						t.Fatal(err)
					}
					// A run ended here, and the next goes on from what the archive has.
					if r.IntN(100) == 0 {
						ends, err := New(store).Ends(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						w = a.Write("log", p, ends[p], 1+r.IntN(20_000))
						i = slices.IndexFunc(want, func(rec journal.Record) bool { return rec.Offset >= ends[p] }) - 1
						if i < -1 {
							i = len(want)
						}
					}
				}
				if err := w.Flush(t.Context(), end); err != nil {
					t.Fatal(err)
				}
				again := New(store)
				again.Of("log")
				if got := all(t, again, p, 0); !same(got, want) {
					t.Fatalf("%d records, want %d", len(got), len(want))
				}
				from := r.Int64N(end)
				if got, rest := all(t, again, p, from), slices.DeleteFunc(slices.Clone(want), func(r journal.Record) bool { return r.Offset < from }); !same(got, rest) {
					t.Fatalf("from %d: %d records, want %d", from, len(got), len(rest))
				}
				if _, err := again.Read(t.Context(), p.Topic, p.Partition, end, nil); !errors.Is(err, ErrGap) {
					t.Errorf("behind the end: %v", err)
				}
				other := New(store)
				other.Of("another")
				if _, err := other.Read(t.Context(), p.Topic, p.Partition, 0, nil); !errors.Is(err, ErrOtherLog) {
					t.Errorf("of another log: %v", err)
				}
			})
		}
	}
}

// TestAnyByteThatHasChangedIsSeen: in every place of a segment's file, and where it ends.
func TestAnyByteThatHasChangedIsSeen(t *testing.T) {
	p := Place{"landfall.builds", 0}
	list, end := records(rand.New(rand.NewPCG(1, 0)), p, 7, 12)
	h := header{Log: "log", Place: p, span: span{7, end}, Records: len(list)}
	file, err := encode(h, list)
	if err != nil {
		t.Fatal(err)
	}
	want := header{Place: p, span: h.span}
	ignore := func(journal.Record) error { return nil }
	if err := decode(file, want, ignore); err != nil {
		t.Fatal(err)
	}
	for i := range file {
		changed := bytes.Clone(file)
		changed[i] ^= 0x10
		if err := decode(changed, want, ignore); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d: %v", i, err)
		}
		if err := decode(file[:i], want, ignore); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	want.End++
	if err := decode(file, want, ignore); !errors.Is(err, ErrDamaged) {
		t.Errorf("under another name: %v", err)
	}
}

// TestAFolderHasWholeFilesAlone: what a killed process left is none, nor is what others put there, and a folder that is not mounted is
// not taken for an empty one.
func TestAFolderHasWholeFilesAlone(t *testing.T) {
	dir := t.TempDir()
	p := Place{"landfall.changes", 3}
	list, end := records(rand.New(rand.NewPCG(2, 0)), p, 0, 5)
	a := New(Folder(dir))
	w := a.Write("log", p, 0, 0)
	for _, r := range list {
		if err := w.Add(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".new-1", "README", "00000000000000000000-x.segment", "00000000000000000009-00000000000000000002.segment"} {
		if err := os.WriteFile(filepath.Join(dir, p.Topic, "3", name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ends, err := New(Folder(dir)).Ends(t.Context())
	if err != nil || len(ends) != 1 || ends[p] != end {
		t.Errorf("ends %v, %v", ends, err)
	}
	info, err := os.Stat(filepath.Join(dir, nameOf(p, span{0, end})))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("others can read a segment: %v, %v", info, err)
	}
	gone := New(Folder(filepath.Join(dir, "gone")))
	if _, err := gone.Ends(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	w = gone.Write("log", p, 0, 1)
	if err := w.Add(t.Context(), list[0]); err == nil || !strings.Contains(err.Error(), "make it, or mount it") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// FuzzSegment: nothing that stands in a file makes a reader fail, or give records beside its span.
func FuzzSegment(f *testing.F) {
	p := Place{"landfall.builds", 0}
	list, end := records(rand.New(rand.NewPCG(3, 0)), p, 0, 9)
	file, err := encode(header{Log: "log", Place: p, span: span{0, end}, Records: len(list)}, list)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file[:len(file)-sha256.Size])
	f.Fuzz(func(t *testing.T, body []byte) {
		// The checksum is made to fit, so that what is behind it is reached.
		next := int64(0)
		err := decode(sealed(bytes.Clone(body)), header{Place: p, span: span{0, end}}, func(r journal.Record) error {
			if r.Offset < next || r.Offset >= end {
				t.Fatalf("record %d behind %d", r.Offset, next-1)
			}
			next = r.Offset + 1
			return nil
		})
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrOtherLog) {
			t.Fatal(err)
		}
	})
}
