package course

import (
	"cmp"

	"landfall.build/engine/evidence"
)

// remembered is how many versions that no pending change's tree has keep their results, as services remember them by default
// (builder.remember): memory follows what is pending, not the trace.
const remembered = 1 << 14

// memory knows which versions may be forgotten.
type memory struct {
	keep int
	// trees counts the pending changes whose trees have a version. A version that none has any more waits in idle for the end of
	// what is known of it; idleAs is the turn in which it came there last.
	trees  map[evidence.Version]int
	idle   []idle
	idleAs map[evidence.Version]int
	turns  int
}

type idle struct {
	version evidence.Version
	turn    int
}

func newMemory(keep int) memory {
	return memory{keep: cmp.Or(keep, remembered), trees: map[evidence.Version]int{}, idleAs: map[evidence.Version]int{}}
}

// name notes that a tree of a pending change has a version.
func (m *memory) name(p *pending, v evidence.Version) {
	if p.named == nil {
		p.named = map[evidence.Version]bool{}
	}
	if p.named[v] {
		return
	}
	p.named[v] = true
	p.names = append(p.names, v)
	m.trees[v]++
	delete(m.idleAs, v)
}

// left releases the versions of a change that is no longer pending.
func (m *memory) left(p *pending) {
	for _, v := range p.names {
		if m.trees[v]--; m.trees[v] > 0 {
			continue
		}
		delete(m.trees, v)
		m.turns++
		m.idleAs[v] = m.turns
		m.idle = append(m.idle, idle{v, m.turns})
	}
	p.names, p.named = nil, nil
}

// forgettable takes out those that are idle beyond what is kept, the longest idle first.
func (m *memory) forgettable() (list []evidence.Version) {
	for len(m.idleAs) > m.keep {
		oldest := m.idle[0]
		m.idle = m.idle[1:]
		if m.idleAs[oldest.version] == oldest.turn { // else a tree has it again, or it was idle once more since
			delete(m.idleAs, oldest.version)
			list = append(list, oldest.version)
		}
	}
	return list
}

// forget makes all cores forget versions that are no longer of use.
func (c *course) forget() {
	list := c.memory.forgettable()
	if len(list) == 0 {
		return
	}
	record := evidence.ForgottenRecord(list)
	c.ledger.Forget(record, nil)
	c.report(record)
}
