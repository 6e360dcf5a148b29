package work

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
)

// keptGone bounds how many changes are remembered that are no longer pending: a tree that was being made when its
// change left is not the beginning of a memory without an end.
const keptGone = 1024

// memory says what is still of use of all versions that were ever named.
type memory struct {
	// named is when a version was last named, by a tree that has it or by the end of a step; mentions counts.
	named    map[Version]uint64
	mentions uint64
	// pending are the versions of the trees of each pending change, at the newest revision that has one.
	pending map[string]*pinned
	// mainline are the last ones that were found on the mainline itself, by target: whether it is red there is asked
	// as long as nothing lands over it.
	mainline map[string]Version
	// gone is up to which revision changes have left, the longest ago first in the order.
	gone      map[string]uint64
	goneOrder []string
}

type pinned struct {
	revision uint64
	versions map[Version]bool
}

func newMemory() memory {
	return memory{named: map[Version]uint64{}, pending: map[string]*pinned{}, mainline: map[string]Version{}, gone: map[string]uint64{}}
}

func (m *memory) name(v Version) {
	m.mentions++
	m.named[v] = m.mentions
}

// tree notes what a tree has.
func (m *memory) tree(p *eventsv1.BuildPrepared) {
	change, revision := p.GetChange().GetChange(), p.GetChange().GetRevision()
	var pin *pinned
	if gone, left := m.gone[change]; change != "" && !(left && revision <= gone) {
		if pin = m.pending[change]; pin == nil || pin.revision < revision {
			pin = &pinned{revision, map[Version]bool{}}
			m.pending[change] = pin
		}
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
		case pin != nil && pin.revision == revision:
			pin.versions[v] = true
		}
	}
}

// left lets go of what the trees of a change have, up to a revision of it; 0 is whichever is pending.
func (m *memory) left(change string, revision uint64) {
	p := m.pending[change]
	if revision == 0 && p != nil {
		revision = p.revision
	}
	if p != nil && p.revision <= revision {
		delete(m.pending, change)
	}
	if _, had := m.gone[change]; !had {
		m.goneOrder = append(m.goneOrder, change)
		if len(m.goneOrder) > keptGone {
			delete(m.gone, m.goneOrder[0])
			m.goneOrder = slices.Delete(m.goneOrder, 0, 1)
		}
	}
	m.gone[change] = max(m.gone[change], revision)
}

// Remembered is the number of versions that are remembered.
func (q *Queue) Remembered() int { return len(q.memory.named) }

// Forgettable are the versions that may be forgotten, the longest unnamed first: no live build asks for one, no
// tree of a pending change has it, nobody runs it, it is not what the mainline itself was last found to have, and
// more were named since than are to be kept. A change that comes back after that – submitted once more, or a revert –
// has its steps run again.
func (q *Queue) Forgettable(keep int) []Version {
	of := map[Version]bool{}
	for _, p := range q.memory.pending {
		for v := range p.versions {
			of[v] = true
		}
	}
	var list []Version
	for v, at := range q.memory.named {
		if at+uint64(keep) <= q.memory.mentions && !of[v] && len(q.asking[v]) == 0 && q.leases[v] == nil && q.memory.mainline[v.Target] != v {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b Version) int { return cmp.Compare(q.memory.named[a], q.memory.named[b]) })
	return list
}

// Forgetting is the record that makes everybody forget versions.
func (q *Queue) Forgetting(versions []Version) *eventsv1.EvidenceForgotten {
	return q.ledger.Forgetting(versions)
}

// forget folds one. A build that asks for a version of it, or was over for one, has it run again: nobody else knows
// it either.
func (q *Queue) forget(f *eventsv1.EvidenceForgotten) {
	for _, t := range f.GetVersions() {
		delete(q.memory.named, evidence.Version{Target: t.GetTarget(), Hash: t.GetHash()})
	}
	q.ledger.Forget(f, q.lost)
}

// lost has a version run again for whom it is not settled any more.
func (q *Queue) lost(v Version) {
	q.restateAll(v)
	for _, b := range slices.Clone(q.closed) {
		if _, asks := b.index[v]; asks && !q.over(b) {
			q.revive(b)
		}
	}
}
