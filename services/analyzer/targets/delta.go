package targets

import "slices"

// Delta says what turning the base's tree into the head's does to the targets.
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
		analysis.All, analysis.Reasons = true, slices.Clone(base.unknown)
		return analysis
	}
	d := difference{base: base, head: head, ends: make([]bool, len(head.labels))}
	return d.compare()
}

// difference merges two graphs, whose nodes are in the order of their labels.
type difference struct {
	base, head *Graph
	ends       []bool // by node of the head: some edge into it is new
	result     Analysis
}

func (d *difference) compare() Analysis {
	b, h := 0, 0
	for b < len(d.base.labels) || h < len(d.head.labels) {
		switch {
		case h == len(d.head.labels) || b < len(d.base.labels) && d.base.labels[b] < d.head.labels[h]:
			d.node(b, -1)
			b++
		case b == len(d.base.labels) || d.head.labels[h] < d.base.labels[b]:
			d.node(-1, h)
			h++
		default:
			d.node(b, h)
			b++
			h++
		}
	}
	for node, end := range d.ends {
		if end {
			d.result.Added = append(d.result.Added, d.head.labels[node])
		}
	}
	return d.result
}

// node compares one label; -1 where a graph does not have it. A node that is
// only referred to is not there.
func (d *difference) node(b, h int) {
	inBase := b >= 0 && d.base.defined[b]
	inHead := h >= 0 && d.head.defined[h]
	switch {
	case !inBase && !inHead, inBase && inHead && d.base.hashes[b] == d.head.hashes[h]:
		// Equal hashes have equal edges, so there is none to look for.
		return
	case !inHead:
		if d.base.kinds[b] == KindTarget {
			d.result.Deleted = append(d.result.Deleted, d.base.labels[b])
		} else {
			d.result.Leaves = append(d.result.Leaves, d.base.labels[b])
		}
		return
	}
	change, before := ChangeAdded, []int32(nil)
	if inBase {
		change, before = ChangeModified, d.base.dependencies(b)
	}
	if d.head.kinds[h] == KindTarget {
		d.result.Affected = append(d.result.Affected, TargetVersion{Name: d.head.labels[h], Hash: d.head.hashes[h], Change: change})
	} else {
		d.result.Leaves = append(d.result.Leaves, d.head.labels[h])
	}
	d.newEnds(before, d.head.dependencies(h))
}

// newEnds marks the dependencies that only the head has.
func (d *difference) newEnds(before, after []int32) {
	for _, end := range after {
		label := d.head.labels[end]
		for len(before) > 0 && d.base.labels[before[0]] < label {
			before = before[1:]
		}
		if len(before) == 0 || d.base.labels[before[0]] != label {
			d.ends[end] = true
		}
	}
}
