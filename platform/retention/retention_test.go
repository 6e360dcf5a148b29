package retention

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events/seedtest"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// simplest deletes one item after the other, looking at all of them each time.
func simplest(items []Item, size int64) (gone []string) {
	left := slices.Clone(items)
	for {
		total, first := int64(0), -1
		for i, item := range left {
			total += item.Size
			if item.InUse {
				continue
			}
			if first < 0 || cmp.Or(item.Used.Add(item.Age).Compare(left[first].Used.Add(left[first].Age)), cmp.Compare(item.Path, left[first].Path)) < 0 {
				first = i
			}
		}
		if first < 0 || total <= size && !left[first].Used.Add(left[first].Age).Before(now) {
			return gone
		}
		gone = append(gone, left[first].Path)
		left = slices.Delete(left, first, first+1)
	}
}

func TestWhatGoesIsWhatTheSimplestWayFinds(t *testing.T) {
	random := seedtest.Random(t)
	for range 2000 {
		var items []Item
		for i := range random.IntN(12) {
			items = append(items, Item{
				Path: fmt.Sprint(i), Size: random.Int64N(50), InUse: random.IntN(4) == 0,
				Used: now.Add(-time.Duration(random.IntN(40)) * time.Hour), Age: time.Duration(10+20*random.IntN(2)) * time.Hour,
			})
		}
		size := random.Int64N(400)
		var got []string
		for _, v := range Excess(items, size, "size", now) {
			got = append(got, v.Path)
		}
		if want := simplest(items, size); !slices.Equal(got, want) {
			t.Fatalf("of %+v with room for %d go %q, want %q", items, size, got, want)
		}
	}
}

func TestABoundSaysWhichSettingItIs(t *testing.T) {
	old := Item{Path: "old", Size: 1, Used: now.Add(-31 * 24 * time.Hour), Age: 720 * time.Hour, Setting: "retention.logs.age"}
	young := old
	young.Path, young.Used = "young", now
	got := Excess([]Item{young, old}, 0, "retention.logs.size", now)
	if len(got) != 2 || got[0].Bound != "older than 720h (retention.logs.age)" || got[1].Bound != "there was no more room for it (retention.logs.size)" {
		t.Errorf("%+v", got)
	}
	for d, want := range map[time.Duration]string{90 * time.Minute: "1h30m", 10 * time.Second: "10s", 100 * time.Hour: "100h", 10 * time.Minute: "10m"} {
		if got := Shown(d); got != want {
			t.Errorf("%v is shown as %s", d, got)
		}
	}
}

func TestADeletedFileIsRememberedAndTheMemoryIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DeletionsFile)
	if err := os.WriteFile(path, []byte(strings.Repeat("older.log\t1\twhy\n", maxDeletions/10)), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.log")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	deleted, err := Delete(dir, []Victim{{Item{Path: file}, "why"}, {Item{Path: file + ".gone"}, "why"}}, now)
	if err != nil || len(deleted) != 2 {
		t.Fatal(deleted, err)
	}
	content, err := os.ReadFile(path)
	if err != nil || len(content) > maxDeletions {
		t.Errorf("the memory has %d bytes, %v", len(content), err)
	}
	if d, found := FindDeletion(strings.NewReader(string(content)), "a.log"); !found || !d.At.Equal(now) || d.String() != "deleted on 2026-03-01 12:00 UTC: why" {
		t.Errorf("%v %v", d, found)
	}
	if _, found := FindDeletion(strings.NewReader(string(content)), "b.log"); found {
		t.Error("a file that was never there is remembered")
	}
	if _, err := os.Stat(file); !missing(err) {
		t.Error("the file is there")
	}
}

// On a disk without room nothing can be written down: room is made all the same.
func TestFilesAreDeletedThoughItCannotBeWrittenDown(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, DeletionsFile), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.log")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if deleted, err := Delete(dir, []Victim{{Item{Path: file}, "why"}}, now); err == nil || len(deleted) != 1 {
		t.Error(deleted, err)
	}
}
