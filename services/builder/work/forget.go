package work

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// memory says what is still of use of all versions that were ever named.
type memory struct {
	// named is when a version was last named, by a tree that has it or by the end of a step; mentions counts.
	named    map[Version]uint64
	mentions uint64
	// pending are the versions of the trees of each pending change. Trees of others are of no use: at a start all that
	// has left is read before what was built of it.
	pending map[string]*pinned
	// mainline are the last ones that were found on the mainline itself, by target: whether it is red there is asked
	// as long as nothing lands over it.
	mainline map[string]Version
}

type pinned struct {
	revision uint64
	versions map[Version]bool
}

func newMemory() memory {
	return memory{named: map[Version]uint64{}, pending: map[string]*pinned{}, mainline: map[string]Version{}}
}

func (m *memory) name(v Version) {
	m.mentions++
	m.named[v] = m.mentions
}

// entered begins a revision of a change.
func (m *memory) entered(a *eventsv1.Admission) {
	m.pending[a.GetChange()] = &pinned{a.GetRevision(), map[Version]bool{}}
}

// landed takes note that a target of the mainline is not what was last found of it any more.
func (m *memory) landed(f *eventsv1.ChangeLanded) {
	for _, p := range f.GetProof() {
		delete(m.mainline, p.GetVersion().GetTarget())
	}
	for _, t := range f.GetDeleted() {
		delete(m.mainline, t)
	}
}

// tree notes what a tree has.
func (m *memory) tree(p *eventsv1.BuildPrepared) {
	change := p.GetChange().GetChange()
	pin := m.pending[change]
	if pin != nil && pin.revision != p.GetChange().GetRevision() {
		pin = nil
	}
	for _, t := range p.GetVersions() {
		v := Version{Target: t.GetTarget(), Hash: t.GetHash()}
		if t.GetTrivial() || t.GetAbsent() || v.Hash == "" {
			continue
		}
		m.name(v)
		switch {
		case change == "":
			m.mainline[v.Target] = v
		case pin != nil:
			pin.versions[v] = true
		}
	}
}

// Remembered is the number of versions that are remembered.
func (q *Queue) Remembered() int { return len(q.memory.named) }

// Forgettable are the versions that may be forgotten, the longest unnamed first: no live build asks for one, no
// tree of a pending change has it, nobody runs it, it is not what the mainline itself was last found to have; and keep
// others like it were named since. A change that comes back after that – submitted once more, or a revert – has its
// steps run again.
func (q *Queue) Forgettable(keep int) []Version {
	of := map[Version]bool{}
	for _, p := range q.memory.pending {
		for v := range p.versions {
			of[v] = true
		}
	}
	var list []Version
	for v := range q.memory.named {
		if !of[v] && len(q.asking[v]) == 0 && q.leases[v] == nil && q.memory.mainline[v.Target] != v {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b Version) int { return cmp.Compare(q.memory.named[a], q.memory.named[b]) })
	return list[:max(0, len(list)-keep)]
}

// forget folds one. A build that asks for a version of it, or was over for one, has it run again: nobody else knows
// it either.
func (q *Queue) forget(f *eventsv1.EvidenceForgotten) {
	for _, t := range f.GetVersions() {
		delete(q.memory.named, Version{Target: t.GetTarget(), Hash: t.GetHash()})
	}
	q.ledger.Forget(f, func(v Version) {
		q.restateAll(v)
		q.reviveFor(v)
	})
}
