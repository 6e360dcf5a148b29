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

// savedState is what a snapshot holds: the state of a core, which holds all records of the own topic before Own, written under Term.
type savedState struct {
	Term, Own int64
	State     []byte
}

func (k savedState) marshal() ([]byte, error) {
	return proto.Marshal(&snapshotv1.Kept{Term: k.Term, Own: k.Own, State: k.State})
}

func unmarshal(bytes []byte) (savedState, error) {
	m := &snapshotv1.Kept{}
	err := proto.Unmarshal(bytes, m)
	return savedState{Term: m.Term, Own: m.Own, State: m.State}, err
}

// termSnapshots keeps the snapshots of a service that writes under a term. A state is saved only once every output in it is in
// the log and counts: no other claim lies between the term and the last of them.
type termSnapshots struct {
	*snapshot.Keeper
	w *writer
	// frozen waits until its outputs are known to count.
	frozen []byte
}

// newTermSnapshots is for one partition. Without a store it keeps nothing.
func newTermSnapshots(o Options, service string, partition int32) *termSnapshots {
	return &termSnapshots{Keeper: snapshot.NewKeeper(o.Snapshots, snapshot.Key{Log: o.Log.ID(), Service: service, Partition: partition}, o.Logger)}
}

// Last gives what was saved last, if it can be used by an owner under a term.
func (k *termSnapshots) Last(term int64) (kept savedState, ok bool) {
	state, ok := k.Load()
	if !ok {
		return savedState{}, false
	}
	kept, err := unmarshal(state)
	if err == nil && kept.Own > term {
		err = fmt.Errorf("it ends at offset %d of a topic that had %d records", kept.Own, term)
	}
	if err != nil {
		k.Drop(err)
		return savedState{}, false
	}
	return kept, true
}

// caughtUp is called once the owner has caught up. Later calls do nothing.
func (k *termSnapshots) caughtUp(w *writer) {
	if k.w == nil {
		k.w = w
		k.MakeDue()
	}
}

// maybeSave takes a snapshot if one is due, and saves it once every output in it counts. It is called between two inputs. The state
// of a service that reads back is a fold of what it has read, so it is saved at once. For any other service maybeSave reads the
// own topic on, which nothing else may need.
func (k *termSnapshots) maybeSave(inputs int, own journal.Cursor, readsBack bool, freeze func() ([]byte, error)) error {
	if k.Keeper == nil || k.w == nil {
		return nil
	}
	due := k.Count(inputs)
	if k.frozen == nil {
		if !due {
			return nil
		}
		state, ok := k.Freeze(freeze)
		if !ok {
			return nil
		}
		if readsBack {
			return k.save(savedState{Term: k.w.term, Own: k.w.ownRead, State: state})
		}
		k.frozen = state
		k.w.acknowledged.mark()
	}
	end, durable := k.w.acknowledged.end(k.w.term + 1)
	if !durable {
		return nil
	}
	if err := k.w.checkTerm(own); err != nil {
		return err
	}
	if k.w.ownRead < end {
		return nil
	}
	state := k.frozen
	k.frozen = nil
	return k.save(savedState{Term: k.w.term, Own: end, State: state})
}

func (k *termSnapshots) save(kept savedState) error {
	bytes, err := kept.marshal()
	if err != nil {
		return err
	}
	k.Save(bytes)
	return nil
}
