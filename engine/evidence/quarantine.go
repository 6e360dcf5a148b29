package evidence

import (
	"cmp"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// MaxQuarantines bounds how many quarantines of a queue are in force at one time; what comes beyond is not folded.
const MaxQuarantines = 1000

// quarantines are those in force. The zero value has none. It is replaced, never changed.
type quarantines struct {
	list  []*eventsv1.TargetQuarantined // by name
	names *targets.NamePatterns         `snapshot:"index"`
}

// Has reports whether a target is quarantined.
func (q quarantines) Has(target string) bool { return len(q.list) > 0 && q.names.Has(target) }

func newQuarantines(list []*eventsv1.TargetQuarantined) quarantines {
	var names []string
	for _, f := range list {
		names = append(names, f.Target)
	}
	return quarantines{list, targets.NewNamePatterns(names)}
}

// with returns the quarantines after a TargetQuarantined or QuarantineEnded, and whether anything is different. Any other
// message changes nothing.
func (q quarantines) with(m proto.Message) (quarantines, bool) {
	at := func(name string) (int, bool) {
		return slices.BinarySearchFunc(q.list, name, func(f *eventsv1.TargetQuarantined, name string) int { return cmp.Compare(f.Target, name) })
	}
	switch f := m.(type) {
	case *eventsv1.TargetQuarantined:
		i, had := at(f.Target)
		switch {
		case f.Target == "" || f.Target == targets.Repository || !had && len(q.list) >= MaxQuarantines:
			return q, false
		case had:
			list := slices.Clone(q.list)
			list[i] = f
			return newQuarantines(list), true
		}
		return newQuarantines(slices.Insert(slices.Clone(q.list), i, f)), true
	case *eventsv1.QuarantineEnded:
		if i, had := at(f.Target); had {
			return newQuarantines(slices.Delete(slices.Clone(q.list), i, i+1)), true
		}
	}
	return q, false
}

// Quarantine folds a TargetQuarantined or QuarantineEnded, and returns the versions with a result whose targets were quarantined
// or are not any more, sorted. Of any other message it makes nothing.
//
// Facts of quarantines and results stand in different topics. So a reader may see a version red, then quarantined, and another
// one the other way round; what they hold in the end is the same.
func (l *Ledger) Quarantine(m proto.Message) []Version {
	next, changed := l.quarantines.with(m)
	if !changed {
		return nil
	}
	l.quarantines = next
	var versions []Version
	for v, r := range l.results {
		if is := next.Has(v.Target); is != r.quarantined {
			r.quarantined = is
			versions = append(versions, v)
		}
	}
	slices.SortFunc(versions, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Hash, b.Hash))
	})
	return versions
}

// Quarantines returns those in force, sorted by name. Not to be changed.
func (l *Ledger) Quarantines() []*eventsv1.TargetQuarantined { return l.quarantines.list }

// Quarantined reports whether a target is quarantined.
func (l *Ledger) Quarantined(target string) bool { return l.quarantines.Has(target) }
