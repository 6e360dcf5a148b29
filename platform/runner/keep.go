package runner

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshotv1"
	"landfall.build/platform/journal"
	"landfall.build/platform/snapshot"
)

// acknowledged is how far a writer's records are known to be in the log.
type acknowledged struct {
	mu sync.Mutex
	// sent and durable count records; marked is how many had been sent when mark was last called.
	sent, durable, marked int
	// last is the offset of the last durable record, offset that of the last durable one among those marked.
	last, offset int64
}

func (a *acknowledged) sending() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent++
	return a.sent
}

func (a *acknowledged) got(n int, offset int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.durable, a.last = n, offset; n <= a.marked {
		a.offset = offset
	}
}

// mark remembers what has been sent so far.
func (a *acknowledged) mark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.marked, a.offset = a.sent, a.last
}

// end returns the offset after the records that were sent when mark was last called, fallback if there were none, and whether
// all of them are in the log.
func (a *acknowledged) end(fallback int64) (offset int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.marked == 0 {
		return fallback, true
	}
	return a.offset + 1, a.durable >= a.marked
}

// Kept is what a snapshot holds: the state of a core, which holds all records of the own topic before Own, written under Term.
type Kept struct {
	Term, Own int64
	State     []byte
}

func (k Kept) marshal() ([]byte, error) {
	return proto.Marshal(&snapshotv1.Kept{Term: k.Term, Own: k.Own, State: k.State})
}

func unmarshal(bytes []byte) (Kept, error) {
	m := &snapshotv1.Kept{}
	err := proto.Unmarshal(bytes, m)
	return Kept{Term: m.Term, Own: m.Own, State: m.State}, err
}

// Keeping keeps snapshots of a service that writes under a term. A state is saved only once every output in it is in
// the log and counts: no other claim lies between the term and the last of them.
type Keeping struct {
	*snapshot.Keeper
	w *Writer
	// frozen waits until its outputs are known to count.
	frozen []byte
}

// NewKeeping keeps snapshots of a writer's partition; nothing, without a store.
func NewKeeping(o Options, service string, partition int32) *Keeping {
	return &Keeping{Keeper: snapshot.NewKeeper(o.Snapshots, snapshot.Key{Log: o.Log.ID(), Service: service, Partition: partition}, o.Logger)}
}

// Last gives what was saved last, if it can be used by an owner under a term.
func (k *Keeping) Last(term int64) (kept Kept, ok bool) {
	state, ok := k.Load()
	if !ok {
		return Kept{}, false
	}
	kept, err := unmarshal(state)
	if err == nil && kept.Own > term {
		err = fmt.Errorf("it ends at offset %d of a topic that had %d records", kept.Own, term)
	}
	if err != nil {
		k.Drop(err)
		return Kept{}, false
	}
	return kept, true
}

// CaughtUp is called once the owner has caught up. Later calls do nothing.
func (k *Keeping) CaughtUp(w *Writer) {
	if k.w == nil {
		k.w = w
		k.Keeper.CaughtUp()
	}
}

// Offer is called between two inputs. It takes a snapshot when that is due, and saves it when it may be. Of a service that
// reads back it may at once: its state is a fold of what it has read. Of any other the own topic is read on for that, so it
// must not be needed for anything else.
func (k *Keeping) Offer(inputs int, own journal.Cursor, readsBack bool, freeze func() ([]byte, error)) error {
	if k.Keeper == nil || k.w == nil {
		return nil
	}
	due := k.Took(inputs)
	if k.frozen == nil {
		if !due {
			return nil
		}
		state, ok := k.Freeze(freeze)
		if !ok {
			return nil
		}
		if readsBack {
			return k.save(Kept{Term: k.w.term, Own: k.w.ownRead, State: state})
		}
		k.frozen = state
		k.w.acknowledged.mark()
	}
	end, durable := k.w.acknowledged.end(k.w.term + 1)
	if !durable {
		return nil
	}
	if err := k.w.CheckTerm(own); err != nil {
		return err
	}
	if k.w.ownRead < end {
		return nil
	}
	state := k.frozen
	k.frozen = nil
	return k.save(Kept{Term: k.w.term, Own: end, State: state})
}

func (k *Keeping) save(kept Kept) error {
	bytes, err := kept.marshal()
	if err != nil {
		return err
	}
	k.Save(bytes)
	return nil
}
