package evidence

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// MaxQuarantines bounds how many quarantines of a queue are in force at one time; what comes beyond is not folded.
const MaxQuarantines = 1000

// Quarantines are those of a queue that are in force. The zero value has none. It is replaced, never changed.
type Quarantines struct {
	list  []*eventsv1.TargetQuarantined // by name
	names *targets.NamePatterns         `snapshot:"index"`
}

// Has reports whether a target is quarantined.
func (q Quarantines) Has(target string) bool { return len(q.list) > 0 && q.names.Has(target) }

// List returns them, sorted by name. Not to be changed.
func (q Quarantines) List() []*eventsv1.TargetQuarantined { return q.list }

// Named returns the quarantine of exactly that name, nil if there is none.
func (q Quarantines) Named(name string) *eventsv1.TargetQuarantined {
	if i, had := q.at(name); had {
		return q.list[i]
	}
	return nil
}

// Of returns the quarantine of a target that ends last, nil if there is none.
func (q Quarantines) Of(target string) (last *eventsv1.TargetQuarantined) {
	if !q.Has(target) {
		return nil
	}
	for _, f := range q.list {
		if targets.NewNamePatterns([]string{f.Target}).Has(target) && (last == nil || f.UntilUs > last.UntilUs) {
			last = f
		}
	}
	return last
}

func (q Quarantines) at(name string) (int, bool) {
	return slices.BinarySearchFunc(q.list, name, func(f *eventsv1.TargetQuarantined, name string) int { return cmp.Compare(f.Target, name) })
}

// NewQuarantines returns those of a list that is sorted by name.
func NewQuarantines(list []*eventsv1.TargetQuarantined) Quarantines {
	var names []string
	for _, f := range list {
		names = append(names, f.Target)
	}
	return Quarantines{list, targets.NewNamePatterns(names)}
}

// With returns the quarantines after a TargetQuarantined or QuarantineEnded, and whether anything is different. Any other
// message changes nothing.
func (q Quarantines) With(m proto.Message) (Quarantines, bool) {
	switch f := m.(type) {
	case *eventsv1.TargetQuarantined:
		i, had := q.at(f.Target)
		switch {
		case f.Target == "" || f.Target == targets.Repository || !had && len(q.list) >= MaxQuarantines:
			return q, false
		case had:
			list := slices.Clone(q.list)
			list[i] = f
			return NewQuarantines(list), true
		}
		return NewQuarantines(slices.Insert(slices.Clone(q.list), i, f)), true
	case *eventsv1.QuarantineEnded:
		if i, had := q.at(f.Target); had {
			return NewQuarantines(slices.Delete(slices.Clone(q.list), i, i+1)), true
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
	next, changed := l.quarantines.With(m)
	if !changed {
		return nil
	}
	l.generation++
	name := m.(interface{ GetTarget() string }).GetTarget()
	renewed := l.quarantines.Named(name) != nil && next.Named(name) != nil
	if l.quarantines = next; renewed {
		return nil
	}
	one := !strings.Contains(name, "*")
	var versions []Version
	for v, r := range l.results {
		if one && v.Target != name {
			continue
		}
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
