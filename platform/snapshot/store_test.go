package snapshot_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"landfall.build/platform/snapshot"
)

func TestOnlyWhatFitsIsGivenBack(t *testing.T) {
	dir := t.TempDir()
	s, err := snapshot.Open(filepath.Join(dir, "snapshots"), snapshot.DefaultPace)
	if err != nil {
		t.Fatal(err)
	}
	key := snapshot.Key{Log: "l", Service: "profiler", Partition: 3}
	if _, err := s.Load(key); !errors.Is(err, snapshot.ErrNone) {
		t.Fatalf("before anything was saved: %v", err)
	}
	for _, want := range []string{"first\nstate", ""} {
		if err := s.Save(key, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(key); err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
	}
	for _, other := range []snapshot.Key{{Log: "m", Service: "profiler", Partition: 3}, {Log: "l", Service: "profiler", Partition: 4}, {Log: "l", Service: "selector", Partition: 3}} {
		if _, err := s.Load(other); !errors.Is(err, snapshot.ErrNone) {
			t.Errorf("%v got the snapshot of %v: %v", other, key, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*"))
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= 1
		if err := os.WriteFile(files[0], damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(key); !errors.Is(err, snapshot.ErrNone) {
			t.Fatalf("byte %d is wrong and nobody noticed: %v", i, err)
		}
		if err := os.WriteFile(files[0], whole[:i], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(key); !errors.Is(err, snapshot.ErrNone) {
			t.Fatalf("cut off after %d bytes and nobody noticed: %v", i, err)
		}
	}
	s.Drop(key)
	if _, err := os.Stat(files[0]); err == nil {
		t.Error("a dropped snapshot is still there")
	}
	var none *snapshot.Store
	if err := none.Save(key, nil); err != nil {
		t.Error(err)
	}
	if _, err := none.Load(key); !errors.Is(err, snapshot.ErrNone) {
		t.Error(err)
	}
}

// TestASnapshotOfANewerReleaseIsRefused: it may hold what this release does not know, and would be opened without it.
func TestASnapshotOfANewerReleaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := snapshot.Open(dir, snapshot.DefaultPace)
	if err != nil {
		t.Fatal(err)
	}
	key := snapshot.Key{Log: "l", Service: "profiler", Partition: 3}
	if err := s.Save(key, []byte("state")); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Replace(string(whole[:len(whole)-8]), fmt.Sprintf(`"format":%d`, snapshot.Format), fmt.Sprintf(`"format":%d`, snapshot.Format+1), 1)
	if err := os.WriteFile(files[0], binary.BigEndian.AppendUint64([]byte(body), xxhash.Sum64String(body)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(key); !errors.Is(err, snapshot.ErrNone) || !strings.Contains(err.Error(), fmt.Sprintf("format %d", snapshot.Format+1)) {
		t.Errorf("it was opened: %v", err)
	}
}

// TestWhatAKilledProcessLeftIsRemoved at a later start; what another process may be writing now is not.
func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, ".new-1"), filepath.Join(dir, ".new-2")
	for _, name := range []string{old, young} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Open(dir, snapshot.Pace{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old file is there: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}
