package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"landfall.build/platform/snapshot"
)

var seriesKey = snapshot.SeriesKey{Key: snapshot.Key{Log: "l", Service: "gateway"}, Name: "main", Made: "one"}

// TestASeriesKeepsSeveralStates, on disk and in memory, in the order of their numbers.
func TestASeriesKeepsSeveralStates(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), snapshot.DefaultPace)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*snapshot.Store{store, nil} {
		series, err := s.Series(seriesKey)
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range []int64{300, 20, 1000} {
			if err := series.Save(number, map[string]int64{"of": number}, fmt.Append(nil, "state\n", number)); err != nil {
				t.Fatal(err)
			}
		}
		series.Drop(20)
		moments, err := series.Moments()
		if err != nil || len(moments) != 2 || moments[0].Number != 300 || moments[1].Number != 1000 || string(moments[0].Head) != `{"of":300}` || moments[0].Bytes < 9 {
			t.Errorf("kept are %+v, %v", moments, err)
		}
		if state, err := series.Load(300); err != nil || string(state) != "state\n300" {
			t.Errorf("%q, %v", state, err)
		}
		if _, err := series.Load(20); !errors.Is(err, snapshot.ErrNone) {
			t.Errorf("what was dropped: %v", err)
		}
	}
}

// TestWhatIsNotOfASeriesIsRemoved: what another binary made, and what is damaged.
func TestWhatIsNotOfASeriesIsRemoved(t *testing.T) {
	dir := t.TempDir()
	store, err := snapshot.Open(dir, snapshot.DefaultPace)
	if err != nil {
		t.Fatal(err)
	}
	open := func(k snapshot.SeriesKey) *snapshot.Series {
		series, err := store.Series(k)
		if err != nil {
			t.Fatal(err)
		}
		return series
	}
	series := open(seriesKey)
	file := filepath.Join(dir, "gateway-0-main", "000000000007.moment")
	save := func() []byte {
		if err := series.Save(7, 7, []byte("a state")); err != nil {
			t.Fatal(err)
		}
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return whole
	}
	gone := func() bool { _, err := os.Stat(file); return os.IsNotExist(err) }
	whole := save()
	other := seriesKey
	other.Made = "two"
	if _, err := open(other).Load(7); !errors.Is(err, snapshot.ErrNone) || gone() {
		t.Errorf("of another binary: %v, removed: %v", err, gone())
	}
	if moments, err := open(other).Moments(); err != nil || len(moments) > 0 || !gone() {
		t.Errorf("of another binary there are %v, %v", moments, err)
	}
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1
		for _, b := range [][]byte{damaged, whole[:i]} {
			if err := os.WriteFile(file, b, 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := series.Moments(); err != nil { // it sees what is wrong with the head alone
				t.Fatal(err)
			}
			if _, err := series.Load(7); !errors.Is(err, snapshot.ErrNone) || !gone() {
				t.Fatalf("byte %d: %v, removed: %v", i, err, gone())
			}
		}
	}
}
