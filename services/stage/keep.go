package stage

import (
	"fmt"
	"sync"

	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
)

// acknowledged is how far a writer's records are known to be in the log.
type acknowledged struct {
	mu sync.Mutex
	// sent and durable count records, last is the offset of the last durable one, offset that of the last of the
	// first wanted.
	sent, durable, wanted int
	last, offset          int64
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
	if a.durable, a.last = n, offset; n <= a.wanted {
		a.offset = offset
	}
}

// want fixes what has been sent so far.
func (a *acknowledged) want() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wanted, a.offset = a.sent, a.last
}

// end is the offset behind what was wanted, behind if that is nothing; ok once all of it is in the log.
func (a *acknowledged) end(behind int64) (offset int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wanted == 0 {
		return behind, true
	}
	return a.offset + 1, a.durable >= a.wanted
}

// Kept is what is saved of a service that writes under terms: its state, which holds all outputs up to Own, written
// under Term.
type Kept struct {
	Term, Own int64
	State     []byte
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
	err := snapshot.Thaw(state, &kept)
	if err == nil && kept.Own > term {
		err = fmt.Errorf("it ends at offset %d of a topic that had %d records", kept.Own, term)
	}
	if err != nil {
		k.Drop(err)
		return Kept{}, false
	}
	return kept, true
}

// Live is called once the owner writes, which it does only when it has caught up; again is nothing.
func (k *Keeping) Live(w *Writer) {
	if k.w == nil {
		k.w = w
		k.CaughtUp()
	}
}

// Offer is called between two inputs. It freezes when that is due, and saves what was frozen when it may be. own is
// read on for that, so it must not be needed for anything else.
func (k *Keeping) Offer(inputs int, own journal.Cursor, freeze func() ([]byte, error)) error {
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
		k.frozen = state
		k.w.acknowledged.want()
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
	state, err := snapshot.Freeze(&Kept{Term: k.w.term, Own: end, State: k.frozen})
	if k.frozen = nil; err != nil {
		return err
	}
	k.Save(state)
	return nil
}
