package proof

import (
	"reflect"
	"slices"

	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
)

// directory is where a service's snapshots are: it has lost some of what was saved, and some of it is old.
type directory [][]byte

// maxKept bounds what a directory holds.
const maxKept = 4

// maxPace is how many records an instance takes at most between two snapshots.
const maxPace = 60

func (m *machine) put(dir *directory, state []byte) {
	m.tally[Snapshots]++
	if *dir = append(*dir, state); len(*dir) > maxKept {
		*dir = (*dir)[1:]
	}
}

// saves draws whether an instance saves a snapshot, for whom it needs no check that its outputs count: it folds nothing
// that it has not read back.
func (m *machine) saves(dir *directory, freeze func() ([]byte, error)) {
	if m.snapshots && m.r.IntN(40) == 0 {
		m.put(dir, must(freeze()))
	}
}

// kept draws what a starting instance finds: nothing, or one of those that were saved.
func (m *machine) kept(dir directory) (state []byte, ok bool) {
	if !m.snapshots || len(dir) == 0 || m.r.IntN(5) == 0 {
		return nil, false
	}
	return dir[len(dir)-1-min(m.r.IntN(len(dir)), m.r.IntN(len(dir)))], true
}

// has says that a state is in the directory already.
func (d directory) has(state []byte) bool {
	return slices.ContainsFunc(d, func(kept []byte) bool { return &kept[0] == &state[0] })
}

// opens gives an instance that starts a store of its own, others may have another disk, and what it finds there; no store
// where nobody keeps anything.
func (c *claimant) opens(i *instance) {
	if !c.m.snapshots {
		return
	}
	i.store = snapshot.InMemory(snapshot.Pace{After: 1 + c.m.r.IntN(maxPace)})
	if state, ok := c.m.kept(c.dir); ok {
		i.found = true
		if err := i.store.Save(c.key(), state); err != nil {
			panic(err)
		}
	}
}

// opened counts what became of what an instance found.
func (c *claimant) opened(i *instance) {
	if !i.found {
		return
	}
	if _, err := i.store.Load(c.key()); err != nil {
		c.m.tally[StaleSnapshots]++
	} else {
		c.m.tally[Thaws]++
	}
}

// keeps takes what an instance has saved by now into the directory.
func (c *claimant) keeps(i *instance) {
	if i.store == nil {
		return
	}
	if state, err := i.store.Load(c.key()); err == nil && !c.dir.has(state) {
		c.m.put(&c.dir, state)
	}
}

// sameCores says that two stages run the same code.
func sameCores(a, b runner.Stage) bool {
	return reflect.TypeOf(a.New("")) == reflect.TypeOf(b.New(""))
}
