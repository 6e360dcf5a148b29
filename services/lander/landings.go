package lander

import (
	"context"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// maxLandings is how many of the newest landings are remembered, to name those that a rewritten mainline drops.
const maxLandings = 256

// landedChange is a change that landed, and the last commit that it became.
type landedChange struct {
	change *eventsv1.ChangeRef
	tip    string
	// dropped: the mainline does not contain it any more.
	dropped bool
}

// landings are the newest, in the order of the log. They are a fold of ChangeLanded and MainlineMoved.
type landings []landedChange

func (l *landings) add(f *eventsv1.ChangeLanded) {
	// A change that is landed again is looked for where it stands now.
	kept := slices.DeleteFunc(*l, func(x landedChange) bool { return x.change.Change == f.Change.Change })
	kept = append(kept, landedChange{change: f.Change, tip: f.Commits[len(f.Commits)-1]})
	*l = slices.Delete(kept, 0, max(0, len(kept)-maxLandings))
}

// moved folds which landings a forced push dropped, and which came back with a commit.
func (l landings) moved(f *eventsv1.MainlineMoved) {
	for i := range l {
		if f.Forced {
			l[i].dropped = slices.ContainsFunc(f.Dropped, func(c *eventsv1.ChangeRef) bool {
				return c.Change == l[i].change.Change && c.Revision == l[i].change.Revision
			})
		} else if l[i].tip == f.To {
			l[i].dropped = false
		}
	}
}

// missing returns the landings that a rewritten mainline does not contain. Those that it contained before were each made on
// top of the one before, so a binary search finds the first that is missing.
func (l landings) missing(ctx context.Context, m Mainline, head string) (list []*eventsv1.ChangeRef, err error) {
	isMissing := make([]bool, len(l))
	var before []int
	for i, x := range l {
		if !x.dropped {
			before = append(before, i)
			continue
		}
		there, err := m.Contains(ctx, head, x.tip)
		if err != nil {
			return nil, err
		}
		isMissing[i] = !there
	}
	from, to := 0, len(before)
	for from < to {
		middle := (from + to) / 2
		there, err := m.Contains(ctx, head, l[before[middle]].tip)
		if err != nil {
			return nil, err
		}
		if there {
			from = middle + 1
		} else {
			to = middle
		}
	}
	for _, i := range before[from:] {
		isMissing[i] = true
	}
	for i, x := range l {
		if isMissing[i] {
			list = append(list, x.change)
		}
	}
	return list, nil
}
