package targets

import "slices"

// Delta returns what turning the base's tree into the head's does to the targets.
// Both graphs must come from the same adapter for the result to be useful; if
// they do not, every target counts as altered.
//
// When the head is unknown, its one version is (repository, tree id). When only
// the base is, everything in the head counts as created. Either way the change
// conflicts with everything (M4).
func Delta(base, head *Graph) Analysis {
	if len(head.unknown) > 0 {
		// Only the whole tree's version may stand for an unknown head: a target
		// that happens to be known proves nothing about the others.
		whole := head
		if _, ok := head.Target(Repository); !ok {
			whole = Unknown(head.tree, nil, head.unknown...)
		}
		t, _ := whole.Target(Repository)
		return Analysis{
			Affected: []TargetVersion{{Name: t.Name, Hash: t.Hash, Change: ChangeModified}},
			All:      true, Reasons: slices.Clone(head.unknown),
		}
	}
	if len(base.unknown) > 0 {
		analysis := Delta(NewBuilder("", "").arrange(), head)
		analysis.All, analysis.Reasons, analysis.Uncovered = true, slices.Clone(base.unknown), nil
		return analysis
	}
	d := difference{base: base, head: head, twin: make([]int32, len(head.labels)), ends: make([]bool, len(head.labels))}
	d.match()
	return d.compare()
}

// difference merges two graphs, whose nodes are in the order of their labels.
type difference struct {
	base, head *Graph
	twin       []int32 // by node of the head: the base's node of that label, or -1
	ends       []bool  // by node of the head: some edge into it is new
	gone       []int32 // nodes of the base whose labels the head does not have
	result     Analysis
}

// match finds the nodes that both graphs have.
func (d *difference) match() {
	b := 0
	for h, label := range d.head.labels {
		for b < len(d.base.labels) && d.base.labels[b] < label {
			d.gone = append(d.gone, int32(b))
			b++
		}
		d.twin[h] = -1
		if b < len(d.base.labels) && d.base.labels[b] == label {
			d.twin[h] = int32(b)
			b++
		}
	}
	for ; b < len(d.base.labels); b++ {
		d.gone = append(d.gone, int32(b))
	}
}

func (d *difference) compare() Analysis {
	for h := range d.head.labels {
		d.node(h)
	}
	for _, b := range d.gone {
		d.remove(b)
	}
	for node, end := range d.ends {
		if end {
			d.result.Added = append(d.result.Added, d.head.labels[node])
		}
	}
	d.result.Deleted, d.result.Leaves = Normal(d.result.Deleted), Normal(d.result.Leaves)
	d.result.Uncovered = uncovered(d.base, d.head, d.result.Leaves)
	return d.result
}

// node compares a node of the head. One that is only referred to is not there.
func (d *difference) node(h int) {
	b := d.twin[h]
	inBase := b >= 0 && d.base.defined[b]
	inHead := d.head.defined[h]
	switch {
	case !inHead:
		if inBase {
			d.remove(b)
		}
		return
	case inBase && d.base.hashes[b] == d.head.hashes[h]:
		// Equal hashes have equal edges, so none of them is new.
		return
	}
	change, before := ChangeAdded, []int32(nil)
	if inBase {
		change, before = ChangeModified, d.base.dependencies(int(b))
	}
	if d.head.kinds[h] == KindTarget {
		d.result.Affected = append(d.result.Affected, TargetVersion{Name: d.head.labels[h], Hash: d.head.hashes[h], Change: change})
	} else {
		d.result.Leaves = append(d.result.Leaves, d.head.labels[h])
	}
	d.newEnds(before, d.head.dependencies(h))
}

// remove notes a node of the base that the head does not have.
func (d *difference) remove(b int32) {
	switch {
	case !d.base.defined[b]:
	case d.base.kinds[b] == KindTarget:
		d.result.Deleted = append(d.result.Deleted, d.base.labels[b])
	default:
		d.result.Leaves = append(d.result.Leaves, d.base.labels[b])
	}
}

// newEnds marks the dependencies that only the head has. Both lists are in the
// order of the labels.
func (d *difference) newEnds(before, after []int32) {
	for _, end := range after {
		twin := d.twin[end]
		for len(before) > 0 && before[0] < twin {
			before = before[1:]
		}
		if twin < 0 || len(before) == 0 || before[0] != twin {
			d.ends[end] = true
		}
	}
}
