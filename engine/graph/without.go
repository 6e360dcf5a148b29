package graph

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// Without returns what becomes of a node when a change leaves: the node itself if it does not have the change ahead. Most nodes
// behind a change that leaves become just that, so the enumerator writes only that the change is gone; a node that becomes something
// else it writes as a whole.
//
// Evidence is about paths: if the change has landed, what is known of paths with it stays, else what is known of paths without it.
func Without(n *eventsv1.Node, gone *eventsv1.NodeGone) *eventsv1.Node {
	at := slices.IndexFunc(n.GetAhead(), func(a *eventsv1.Ahead) bool { return SameRef(a.Change, gone.Change) })
	if at < 0 {
		return n
	}
	return withoutMember(n, at, gone.How == eventsv1.GoneHow_GONE_HOW_LANDED)
}

// SameRef reports whether two references name the same revision of one change.
func SameRef(a, b *eventsv1.ChangeRef) bool {
	return a == b || a.GetChange() == b.GetChange() && a.GetRevision() == b.GetRevision()
}

// EachWithout yields what becomes of the nodes that lose a member by a delta and that the delta neither writes nor lists as gone.
func EachWithout(nodes iter.Seq[*eventsv1.Node], d *eventsv1.GraphDelta) iter.Seq[*eventsv1.Node] {
	return func(yield func(*eventsv1.Node) bool) {
		if len(d.GetGone()) == 0 {
			return
		}
		written := writtenBy(d)
		for old := range nodes {
			if written[old.Change.GetChange()] {
				continue
			}
			n := old
			for _, g := range d.Gone {
				n = Without(n, g)
			}
			if n != old && !yield(n) {
				return
			}
		}
	}
}

// writtenBy returns the changes whose state after a delta is written in it: as a node, or as gone.
func writtenBy(d *eventsv1.GraphDelta) map[string]bool {
	written := make(map[string]bool, len(d.Nodes)+len(d.Gone))
	for _, n := range d.Nodes {
		written[n.Change.GetChange()] = true
	}
	for _, g := range d.Gone {
		written[g.Change.GetChange()] = true
	}
	return written
}

// Copy returns a node that shares with n all that n holds.
func Copy(n *eventsv1.Node) *eventsv1.Node {
	return &eventsv1.Node{
		Change: n.Change, Position: n.Position, Analyzed: n.Analyzed, Ahead: n.Ahead, Classes: n.Classes, Paths: n.Paths,
		Holds: n.Holds, Guard: n.Guard, Benefit: n.Benefit, AdmittedUs: n.AdmittedUs, LandingCommits: n.LandingCommits,
		MissingRequirement: n.MissingRequirement, Epoch: n.Epoch, Intended: n.Intended, Mainline: n.Mainline,
		Inherited: n.Inherited, Urgent: n.Urgent, Author: n.Author,
	}
}

// withoutMember returns n without the member at a place. It shares with n what stays as it is: where many changes conflict, nearly
// everything.
func withoutMember(n *eventsv1.Node, at int, landed bool) *eventsv1.Node {
	out := Copy(n)
	out.Ahead, out.Paths, out.Classes = without(n.Ahead, at), nil, nil
	if landed {
		out.Guard = nil // it was asked on the mainline before
	}
	if len(n.Paths) > 0 {
		out.Paths = outcomesWithout(n.Paths, len(n.Ahead), at, landed)
	}
	if len(n.Classes) == 0 {
		return out
	}
	out.Classes = make([]*eventsv1.Class, 0, len(n.Classes))
	for _, k := range n.Classes {
		if k = classWithout(k, at, landed); k != nil {
			out.Classes = append(out.Classes, k)
		}
	}
	if len(out.Classes) > 1 {
		sortClasses(out)
	}
	return out
}

// without returns the list without one element. It shares the array if that is the first, as it is when the head of the queue lands.
func without[E any](list []E, at int) []E {
	if at == 0 {
		return slices.Clip(list[1:])
	}
	return slices.Concat(list[:at], list[at+1:])
}

// classWithout returns the class without member at of the node. It returns nil if the change affected the class's targets only
// through members that have left without landing.
func classWithout(k *eventsv1.Class, at int, landed bool) *eventsv1.Class {
	place, in := slices.BinarySearch(k.Members, uint32(at))
	out := &eventsv1.Class{Members: membersWithout(k.Members, place, in), Targets: k.Targets, Outcomes: k.Outcomes, Through: k.Through}
	if !in {
		return out
	}
	if len(k.Outcomes) > 0 {
		out.Outcomes = outcomesWithout(k.Outcomes, len(k.Members), place, landed)
	}
	if len(k.Through) == 0 {
		return out
	}
	i, through := slices.BinarySearch(k.Through, uint32(place))
	out.Through = membersWithout(k.Through, i, through)
	switch {
	case through && landed:
		out.Through = nil // the edge is on the mainline now
	case len(out.Through) == 0:
		return nil
	}
	return out
}

// membersWithout returns ascending places in a list that has lost an element: the one at a place goes if in is set, and those behind it
// count one less.
func membersWithout(members []uint32, place int, in bool) []uint32 {
	last := len(members) - 1
	if in && members[last]-members[place] == uint32(last-place) {
		return members[:last:last] // those behind it are consecutive, so each becomes the one before it
	}
	if !in && place > last {
		return members
	}
	out := make([]uint32, 0, len(members))
	out = append(out, members[:place]...)
	if in {
		place++
	}
	for _, m := range members[place:] {
		out = append(out, m-1)
	}
	return out
}

// outcomesWithout keeps the outcomes whose set, of n members, has the one at a place if it landed, and has it not if it did not. The place
// is removed from the sets.
func outcomesWithout(list []*eventsv1.Outcome, n, at int, landed bool) []*eventsv1.Outcome {
	var out []*eventsv1.Outcome
	for _, o := range list {
		set := memberset.FromBytes(n, o.Members)
		if set.Has(at) != landed {
			continue
		}
		fewer := memberset.New(n - 1)
		for i := range n - 1 {
			if i < at && set.Has(i) || i >= at && set.Has(i+1) {
				fewer.Add(i)
			}
		}
		out = append(out, &eventsv1.Outcome{Members: fewer.Bytes(), State: o.State, Version: o.Version, Message: o.Message, Class: o.Class})
	}
	slices.SortFunc(out, func(a, b *eventsv1.Outcome) int {
		return strings.Compare(memberset.FromBytes(n-1, a.Members).Key(), memberset.FromBytes(n-1, b.Members).Key())
	})
	return out
}

// sortClasses sorts classes as the enumerator writes them: by the sets of their members, then by those that they are affected through.
func sortClasses(n *eventsv1.Node) {
	type keyed struct {
		key string
		*eventsv1.Class
	}
	list := make([]keyed, len(n.Classes))
	for i, k := range n.Classes {
		set, through := memberset.New(len(n.Ahead)), memberset.New(len(n.Ahead))
		for x, m := range k.Members {
			if int(m) >= len(n.Ahead) {
				continue // no enumerator writes that, and it is no reason to panic
			}
			if set.Add(int(m)); slices.Contains(k.Through, uint32(x)) {
				through.Add(int(m))
			}
		}
		list[i] = keyed{set.Key() + through.Key(), k}
	}
	slices.SortStableFunc(list, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	for i, k := range list {
		n.Classes[i] = k.Class
	}
}
