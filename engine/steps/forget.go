package steps

import (
	"cmp"
	"maps"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// memory holds which versions were ever named, and which of them are still of use.
type memory struct {
	// named maps each version to the number of its last mention, by a tree that has it or by the end of a step; mentions
	// counts those.
	named    map[Version]uint64
	mentions uint64
	// trees has the versions of the trees of each pending change. Trees of others are of no use: at a start, who has left is
	// read before what was built of it.
	trees map[string]*trees
	// mainline has the versions that were last found on the mainline itself, by target: as long as nothing lands over one,
	// changes are held to it (M23a).
	mainline map[string]Version
	// leftHeads are the last heads that the mainline has left, oldest first.
	leftHeads []string
}

// trees is what is in the trees of a change at its present revision.
type trees struct {
	revision uint64
	versions map[Version]bool
	// sinceUs is when the first build of the change was scheduled, 0 if none was.
	sinceUs int64
}

func newMemory() memory {
	return memory{named: map[Version]uint64{}, trees: map[string]*trees{}, mainline: map[string]Version{}}
}

func (m *memory) mention(v Version) {
	m.mentions++
	m.named[v] = m.mentions
}

// addChange begins a revision of a change.
func (m *memory) addChange(a *eventsv1.Admission) {
	m.trees[a.GetChange()] = &trees{revision: a.GetRevision(), versions: map[Version]bool{}}
}

// waitingSince returns when the first build of a change was scheduled, given that one is scheduled now.
func (m *memory) waitingSince(c *eventsv1.ChangeRef, nowUs int64) int64 {
	of := m.trees[c.GetChange()]
	if of == nil || of.revision != c.GetRevision() {
		return nowUs
	}
	if of.sinceUs == 0 {
		of.sinceUs = nowUs
	}
	return of.sinceUs
}

// replaceOnMainline forgets what was found on the mainline of the targets that a landing replaces.
func (m *memory) replaceOnMainline(f *eventsv1.ChangeLanded) {
	for _, p := range f.GetProof() {
		delete(m.mainline, p.GetVersion().GetTarget())
	}
	for _, t := range f.GetDeleted() {
		delete(m.mainline, t)
	}
}

// addTree mentions the versions of a tree.
func (m *memory) addTree(p *eventsv1.BuildPrepared) {
	c := p.GetChange()
	ofMainline := c.GetChange() == ""
	of := m.trees[c.GetChange()]
	if of != nil && of.revision != c.GetRevision() {
		of = nil
	}
	for _, t := range p.GetVersions() {
		if settledByItself(t) {
			continue
		}
		v := Version{Target: t.GetTarget(), Hash: t.GetHash()}
		m.mention(v)
		switch {
		case ofMainline:
			m.mainline[v.Target] = v
		case of != nil:
			of.versions[v] = true
		}
	}
}

// Remembered returns the number of versions that are remembered.
func (q *Queue) Remembered() int { return len(q.memory.named) }

// Forgettable returns the versions that may be forgotten, the longest unnamed first: no live build asks for one, no tree of a
// pending change has it, nobody runs it, it is not what the mainline itself was last found to have; and keep others like
// it were named since. A change that comes back after that – submitted once more, or a revert – has its steps run again.
func (q *Queue) Forgettable(keep int) []Version {
	needed := q.Needed()
	var list []Version
	for v := range q.memory.named {
		if !needed[v] && q.memory.mainline[v.Target] != v {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b Version) int { return cmp.Compare(q.memory.named[a], q.memory.named[b]) })
	return list[:max(0, len(list)-keep)]
}

// Needed returns the versions that a live build asks for, that a tree of a pending change has at its present revision, or that
// somebody runs.
func (q *Queue) Needed() map[Version]bool {
	needed := map[Version]bool{}
	for _, of := range q.memory.trees {
		maps.Copy(needed, of.versions)
	}
	for v := range q.wanted {
		needed[v] = true
	}
	for v := range q.leases {
		needed[v] = true
	}
	return needed
}

// foldForgotten folds that versions are forgotten. A build that asks for one, or was over for one, has it run again: nobody
// else knows it either.
func (q *Queue) foldForgotten(f *eventsv1.EvidenceForgotten) {
	for _, t := range f.GetVersions() {
		delete(q.memory.named, Version{Target: t.GetTarget(), Hash: t.GetHash()})
	}
	q.ledger.Forget(f, func(v Version) {
		q.updateAll(v)
		q.reviveFor(v, false)
	})
}
