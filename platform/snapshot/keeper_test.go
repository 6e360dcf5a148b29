package snapshot_test

import (
	"log/slog"
	"testing"
	"time"

	"landfall.build/platform/snapshot"
)

// TestASnapshotIsDueOnceAServiceHasCaughtUp, whenever the last one was taken, if more than a few records were read.
func TestASnapshotIsDueOnceAServiceHasCaughtUp(t *testing.T) {
	store, err := snapshot.Open(t.TempDir(), snapshot.Pace{After: 10, Every: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	k := snapshot.NewKeeper(store, snapshot.Key{Log: "l", Service: "lander"}, slog.New(slog.DiscardHandler))
	if k.Count(9) {
		t.Error("a snapshot is due of a few records")
	}
	k.MakeDue()
	if k.Count(0) {
		t.Error("a snapshot is due of a few records because they were all")
	}
	if !k.Count(1) {
		t.Error("no snapshot is due of what took long to read")
	}
	if _, ok := k.Freeze(func() ([]byte, error) { return nil, nil }); !ok {
		t.Fatal("not frozen")
	}
	if k.Count(100) {
		t.Error("the next one is due at once")
	}
	// One that is still reading takes none out of turn: it would be old when it is needed.
	if snapshot.NewKeeper(store, snapshot.Key{Log: "l", Service: "lander"}, slog.New(slog.DiscardHandler)).Count(100) {
		t.Error("a snapshot is due at the beginning")
	}
}
