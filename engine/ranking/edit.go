package ranking

import (
	"slices"
	"sort"

	eventsv1 "landfall.build/events/v1"
)

// maxEdits is how many edits follow a whole ranking at most, so that a reader that misses an edit has a whole ranking
// soon.
const maxEdits = 256

// publish writes how the best builds differ from the published ranking: nothing, an edit, or the whole ranking.
func (r *Ranking) publish(out *eventsv1.Priority, best *eventsv1.Ranking) {
	switch {
	case sameRanking(best, r.published):
		return
	case r.published != nil && r.editsSinceWhole < maxEdits:
		if e := editOf(r.published, best); e != nil {
			out.Edit = e
			return
		}
	}
	out.Ranking = best
}

// editOf returns the edit that turns one ranking into another, nil if it would be no shorter than the ranking. It
// compares builds by their content, never by identity.
func editOf(old, now *eventsv1.Ranking) *eventsv1.RankingEdit {
	a, b := old.Best, now.Best
	from := 0
	for from < len(a) && from < len(b) && sameBuild(a[from], b[from]) {
		from++
	}
	enda, endb := len(a), len(b)
	for enda > from && endb > from && sameBuild(a[enda-1], b[endb-1]) {
		enda--
		endb--
	}
	stays := longestRising(placesIn(a[from:enda], b[from:endb]))
	if endb-from-len(stays) > len(b)/2 {
		return nil
	}
	e := &eventsv1.RankingEdit{Exact: now.Exact}
	ata, atb := from, from
	splice := func(toa, tob int) {
		if toa > ata || tob > atb {
			e.Splices = append(e.Splices, &eventsv1.RankingSplice{At: uint32(ata), Removed: uint32(toa - ata), Inserted: b[atb:tob]})
		}
		ata, atb = toa+1, tob+1
	}
	for _, s := range stays {
		splice(from+s.old, from+s.now)
	}
	splice(enda, endb)
	return e
}

// stay is a build that is in both rankings, with its places.
type stay struct{ old, now int }

// placesIn finds the builds of b in a, in the order of b.
func placesIn(a, b []*eventsv1.RankedBuild) (list []stay) {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	of := make(map[string][]int, len(a))
	for i, x := range a {
		of[x.Change.GetChange()] = append(of[x.Change.GetChange()], i)
	}
	for j, y := range b {
		for _, i := range of[y.Change.GetChange()] {
			if sameBuild(a[i], y) {
				list = append(list, stay{i, j})
				break
			}
		}
	}
	return list
}

// longestRising returns the longest part of a list in which the old places rise with the new ones.
func longestRising(list []stay) []stay {
	var ends []int // ends[n] is the last of the rising part of n+1 that ends lowest
	before := make([]int, len(list))
	for x, s := range list {
		n := sort.Search(len(ends), func(n int) bool { return list[ends[n]].old >= s.old })
		before[x] = -1
		if n > 0 {
			before[x] = ends[n-1]
		}
		if n == len(ends) {
			ends = append(ends, x)
		} else {
			ends[n] = x
		}
	}
	var out []stay
	if len(ends) > 0 {
		for x := ends[len(ends)-1]; x >= 0; x = before[x] {
			out = append(out, list[x])
		}
		slices.Reverse(out)
	}
	return out
}
