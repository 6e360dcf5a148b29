package proving

import (
	"errors"
	"fmt"
	"reflect"

	"landfall.build/services/enumerator"
	"landfall.build/services/journal"
	"landfall.build/services/stage"
)

// keptSnapshots is the directory of a service: it has lost some of what was saved, and some of it is old.
type keptSnapshots []stage.Kept

// maxKept bounds what a directory holds.
const maxKept = 4

// saves draws whether an instance saves a snapshot, for whom it needs no check that its outputs count: it folds nothing
// that it has not read back.
func (m *machine) saves(dir *keptSnapshots, freeze func() ([]byte, error)) {
	if m.snapshots && m.r.IntN(40) == 0 {
		m.put(dir, stage.Kept{State: must(freeze())})
	}
}

func (m *machine) put(dir *keptSnapshots, k stage.Kept) {
	m.tally[Snapshots]++
	if *dir = append(*dir, k); len(*dir) > maxKept {
		*dir = (*dir)[1:]
	}
}

// keeps draws whether an instance saves a snapshot, and makes sure that all of its outputs count: superseded says that
// it has found out that they do not. freeze fails for nobody who may be here.
func (m *machine) keeps(dir *keptSnapshots, service string, term, end int64, own journal.Cursor, freeze func() ([]byte, error)) (superseded bool) {
	if !m.snapshots || m.r.IntN(40) != 0 {
		return false
	}
	if m.leaves != SnapshotsCount && isSuperseded(own, service) {
		return true
	}
	m.put(dir, stage.Kept{Term: term, Own: end, State: must(freeze())})
	return false
}

// kept draws what a starting instance finds: nothing, or one of those that were saved.
func (m *machine) kept(dir keptSnapshots) (k stage.Kept, ok bool) {
	if !m.snapshots || len(dir) == 0 || m.r.IntN(5) == 0 {
		return k, false
	}
	return dir[len(dir)-1-min(m.r.IntN(len(dir)), m.r.IntN(len(dir)))], true
}

// sameCores says that two stages run the same code.
func sameCores(a, b stage.Stage) bool {
	return reflect.TypeOf(a.New("")) == reflect.TypeOf(b.New(""))
}

// thaw opens what the instance finds; it is nil if there is nothing, or nothing that fits.
func (a *stageActor) thaw(i *stageInstance, until int64) *stageInstance {
	k, ok := a.m.kept(a.dir)
	if !ok || !i.plain {
		return nil
	}
	p, err := stage.Thaw(a.stage, k)
	if err != nil {
		panic(fmt.Sprintf("the %s cannot open its own snapshot: %v", a.stage.Service, err))
	}
	t := *i
	t.p, t.in, t.own = p, a.read(a.stage.Input, p.Next()), a.read(a.stage.Output, k.Own)
	if err := a.fold(&t, until); err != nil {
		t.close()
		a.m.tally[StaleSnapshots]++
		return nil
	}
	a.m.tally[Thaws]++
	return &t
}

// thaw is that of the enumerator.
func (a *enumeratorActor) thaw(until int64) (*enumerator.Partition, journal.Cursor) {
	k, ok := a.m.kept(a.dir)
	if !ok {
		return nil, nil
	}
	p, err := enumerator.Thaw(k)
	if err != nil {
		panic(fmt.Sprintf("the enumerator cannot open its own snapshot: %v", err))
	}
	own, err := a.fold(p, k.Own, until)
	if err != nil {
		a.m.tally[StaleSnapshots]++
		return nil, nil
	}
	a.m.tally[Thaws]++
	return p, own
}

// errStale ends a start from a snapshot that does not fit.
var errStale = errors.New("the snapshot holds what does not count")
