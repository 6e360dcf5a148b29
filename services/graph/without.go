package graph

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/memberset"
)

// Without is what a node becomes by a change leaving that it has ahead: the same node if it has not. It is what most of those
// behind become when a change leaves, so the enumerator tells no more of them than that; of those that become something
// else it tells the whole node.
//
// What is known is known of paths: if the change has landed, of those with it, else of those without.
func Without(n *eventsv1.Node, gone *eventsv1.NodeGone) *eventsv1.Node {
	at := slices.IndexFunc(n.GetAhead(), func(a *eventsv1.Ahead) bool { return SameRef(a.Change, gone.Change) })
	if at < 0 {
		return n
	}
	return withoutMember(n, at, gone.How == eventsv1.GoneHow_GONE_HOW_LANDED)
}

// SameRef says whether two name the same revision.
func SameRef(a, b *eventsv1.ChangeRef) bool {
	return a == b || a.GetChange() == b.GetChange() && a.GetRevision() == b.GetRevision()
}

// EachWithout gives what becomes of those nodes that lose a member by a delta and are not told anew by it, nor leave.
func EachWithout(nodes iter.Seq[*eventsv1.Node], d *eventsv1.GraphDelta) iter.Seq[*eventsv1.Node] {
	return func(yield func(*eventsv1.Node) bool) {
		if len(d.GetGone()) == 0 {
			return
		}
		told := toldBy(d)
		for old := range nodes {
			if told[old.Change.GetChange()] {
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

// toldBy are the changes of which a delta says what becomes of them.
func toldBy(d *eventsv1.GraphDelta) map[string]bool {
	told := make(map[string]bool, len(d.Nodes)+len(d.Gone))
	for _, n := range d.Nodes {
		told[n.Change.GetChange()] = true
	}
	for _, g := range d.Gone {
		told[g.Change.GetChange()] = true
	}
	return told
}

// withoutMember shares with the old node what stays as it is: where many meet, that is nearly all.
func withoutMember(n *eventsv1.Node, at int, landed bool) *eventsv1.Node {
	out := &eventsv1.Node{
		Change: n.Change, Position: n.Position, Analyzed: n.Analyzed, Ahead: without(n.Ahead, at), Holds: n.Holds, Guard: n.Guard,
		Benefit: n.Benefit, AdmittedUs: n.AdmittedUs, LandingCommits: n.LandingCommits, MissingRequirement: n.MissingRequirement,
		Epoch: n.Epoch, Intended: n.Intended, Mainline: n.Mainline,
	}
	if landed {
		out.Guard = nil // it speaks of the mainline before
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

// without shares the array where the first is left out, as it is when the queue's head lands.
func without[E any](list []E, at int) []E {
	if at == 0 {
		return slices.Clip(list[1:])
	}
	return slices.Concat(list[:at], list[at+1:])
}

// classWithout is nil if the change affects the class's targets only by members that have left without landing.
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
	way, through := slices.BinarySearch(k.Through, uint32(place))
	out.Through = membersWithout(k.Through, way, through)
	switch {
	case through && landed:
		out.Through = nil // now they are affected on the mainline
	case len(out.Through) == 0:
		return nil
	}
	return out
}

// membersWithout takes the one at a place out if in is set, and counts those behind it down, as the list that they are places in has
// lost one.
func membersWithout(members []uint32, place int, in bool) []uint32 {
	last := len(members) - 1
	if in && members[last]-members[place] == uint32(last-place) {
		return members[:last:last] // those behind it follow each other, so each becomes the one before it
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

// outcomesWithout keeps those of the sets of n that have the member at a place, or have it not, without that place.
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

// sortClasses puts them in the order in which the enumerator tells them: by the sets of their members, and of those through which.
func sortClasses(n *eventsv1.Node) {
	type keyed struct {
		key string
		*eventsv1.Class
	}
	list := make([]keyed, len(n.Classes))
	for i, k := range n.Classes {
		set, ways := memberset.New(len(n.Ahead)), memberset.New(len(n.Ahead))
		for x, m := range k.Members {
			if int(m) >= len(n.Ahead) {
				continue // no enumerator says that, and it is no reason to fall over it
			}
			if set.Add(int(m)); slices.Contains(k.Through, uint32(x)) {
				ways.Add(int(m))
			}
		}
		list[i] = keyed{set.Key() + ways.Key(), k}
	}
	slices.SortStableFunc(list, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	for i, k := range list {
		n.Classes[i] = k.Class
	}
}
