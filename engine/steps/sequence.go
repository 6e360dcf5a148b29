package steps

import (
	"cmp"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// ordered returns what has to be verified of a tree: the longest by what is predicted now first (M27), and before each what it
// depends on, so that the fault of a dependency is known before those that it causes. What has no prediction counts as
// longest: it may be. Nothing waits for a dependency to end.
func (q *Queue) ordered(versions []*eventsv1.TargetVersion, needs []*eventsv1.VersionNeeds, claims []*eventsv1.StepClaims) []asked {
	places := make([]int, len(versions))
	for i := range places {
		places[i] = i
	}
	byLength := func(x, y int) int {
		a, b := versions[x], versions[y]
		return cmp.Or(cmp.Compare(q.predictedUs(b.GetTarget()), q.predictedUs(a.GetTarget())),
			cmp.Compare(a.GetTarget(), b.GetTarget()), cmp.Compare(a.GetHash(), b.GetHash()))
	}
	slices.SortStableFunc(places, byLength)

	takes := map[int]*eventsv1.StepClaims{}
	for _, c := range claims {
		takes[int(c.GetVersion())] = &eventsv1.StepClaims{Exclusive: c.GetExclusive(), Resources: c.GetResources()}
	}
	var list []asked
	had := make(map[Version]bool, len(versions))
	emit := func(i int) {
		t := versions[i]
		if v := (Version{Target: t.GetTarget(), Hash: t.GetHash()}); !had[v] && !settledByItself(t) {
			had[v] = true
			list = append(list, asked{v, t.GetPart(), takes[i]})
		}
	}
	before := func(i int) []int {
		if len(needs) != len(versions) {
			return nil
		}
		var of []int
		for _, n := range needs[i].GetVersions() {
			if int(n) < len(versions) {
				of = append(of, int(n))
			}
		}
		slices.SortStableFunc(of, byLength)
		return of
	}
	// A walk in depth, without recursion: chains of dependencies can be long. A cycle is cut where the walk meets itself.
	type visit struct {
		at   int
		left []int
	}
	seen := make([]bool, len(versions))
	for _, from := range places {
		if seen[from] {
			continue
		}
		seen[from] = true
		for pending := []visit{{from, before(from)}}; len(pending) > 0; {
			top := &pending[len(pending)-1]
			if len(top.left) == 0 {
				emit(top.at)
				pending = pending[:len(pending)-1]
				continue
			}
			next := top.left[0]
			if top.left = top.left[1:]; !seen[next] {
				seen[next] = true
				pending = append(pending, visit{next, before(next)})
			}
		}
	}
	return list
}
