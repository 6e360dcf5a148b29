package snapshot

import (
	"errors"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"
)

// keepShare is the share of its time that a service freezes, at most: one in so many.
const keepShare = 100

// Pace says how often a busy service keeps a snapshot.
type Pace struct {
	// After that many records, but not before that long; no clock is asked if Every is 0.
	After int
	Every time.Duration
}

// Keeper says when a partition of a service is to be frozen, and saves what was. It is for one goroutine; files are
// written by another. A nil Keeper keeps nothing.
type Keeper struct {
	store  *Store
	key    Key
	logger *slog.Logger

	records int
	// last is when a snapshot was taken, or opened, or the partition began to be read.
	last   time.Time
	cost   time.Duration
	saving atomic.Bool
}

// NewKeeper is for one partition. Without a store there is none.
func NewKeeper(store *Store, key Key, logger *slog.Logger) *Keeper {
	if store == nil {
		return nil
	}
	return &Keeper{store: store, key: key, last: time.Now(), logger: logger.With("partition", key.Partition)}
}

// Load gives the snapshot that was saved last, if one can be used.
func (k *Keeper) Load() (state []byte, ok bool) {
	if k == nil {
		return nil, false
	}
	state, err := k.store.Load(k.key)
	switch {
	case err == nil:
		k.last = time.Now()
		k.logger.Info("starting from a snapshot", "bytes", len(state))
		return state, true
	case !errors.Is(err, fs.ErrNotExist):
		k.logger.Warn("starting from the beginning of the log", "reason", err)
	}
	return nil, false
}

// Drop removes a snapshot that turned out to be of no use.
func (k *Keeper) Drop(reason error) {
	if k != nil {
		k.logger.Warn("a snapshot is dropped; starting from the beginning of the log", "reason", reason)
		k.store.Drop(k.key)
	}
}

// MakeDue makes a snapshot due whatever time has passed, if enough records have been counted. A service calls it once it has read
// what was in the log at its start: a quiet log may give no other occasion.
func (k *Keeper) MakeDue() {
	if k != nil {
		k.last = time.Time{}
	}
}

// Count counts records that were applied, and reports whether a snapshot is due.
func (k *Keeper) Count(records int) (due bool) {
	if k == nil {
		return false
	}
	k.records += records
	p := k.store.pace
	if k.records < p.After || k.saving.Load() {
		return false
	}
	return p.Every == 0 || time.Since(k.last) >= max(p.Every, keepShare*k.cost)
}

// Freeze runs what freezes a state, and counts what it takes. An error is logged: the next start takes longer, no more.
func (k *Keeper) Freeze(freeze func() ([]byte, error)) (state []byte, ok bool) {
	began := time.Now()
	state, err := freeze()
	k.records, k.last, k.cost = 0, time.Now(), time.Since(began)
	if err != nil {
		k.logger.Error("no snapshot", "error", err)
	}
	return state, err == nil
}

// Save writes a state in the background.
func (k *Keeper) Save(state []byte) {
	save := func() {
		if err := k.store.Save(k.key, state); err != nil {
			k.logger.Error("a snapshot could not be saved", "error", err)
		}
	}
	if k.store.memory != nil {
		save()
		return
	}
	k.saving.Store(true)
	go func() {
		defer k.saving.Store(false)
		save()
	}()
}
