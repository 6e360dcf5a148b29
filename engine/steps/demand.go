package steps

import (
	"cmp"
	"slices"

	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// wanted is a version that live builds ask for.
type wanted struct {
	Version
	// claims is what running it takes besides a worker, without a place; nil for nothing.
	claims *eventsv1.StepClaims
	// us is how long its step is taken to last, and risk how likely it is to fail. Both were estimated when it was first asked
	// for; us again whenever the queue's mean moved, risk when an attempt failed.
	us   int64
	risk float64
	// askers are the live builds that ask for it, in the order in which they began to.
	askers []asker
	// offers is how many builds would have it started next.
	offers int `snapshot:"-"`
}

// asker is a build that asks for a version, and the version's place in asked.
type asker struct {
	*build
	place int
}

// asked is a version that a build asks for, at one of its landing commits.
type asked struct {
	Version
	part   uint32
	claims *eventsv1.StepClaims
	// needs are the places of the versions that it depends on.
	needs []int
	// waits is set if its step does not start before all of needs are settled.
	waits bool
	// group is the number of those that one invocation can verify together with it, 0 for none (M27a).
	group int
	// want is set while the build is live.
	want *wanted
}

// demand is what a build's tree has to be verified for.
type demand struct {
	asked []asked
	// index has the place of each version in asked.
	index map[Version]int
	// order holds the places in the order in which they are to be started (M34).
	order []int `snapshot:"index"`
	// ordered has, for each group from 1 on, whether its tool orders what depends on each other.
	ordered []bool

	// While the build is live, open[i] is set if asked[i] is not settled; outstanding counts those, workUs is how long their
	// steps are taken to last together, and first is how many of order come before the first of them.
	open        []bool
	outstanding int
	workUs      int64
	first       int
	// offer is the step that the build would have started next; it holds until stale is set.
	offer offer `snapshot:"-"`
	stale bool  `snapshot:"-"`
}

// offer is a step that could be started.
type offer struct {
	// at is the step's place in the order of its build; -1 is none.
	at int
	// ready reports whether all that its target depends on has passed.
	ready bool
}

func (d *demand) set(list []asked, ordered []bool) {
	d.ordered = ordered
	d.asked, d.index, d.order = list, make(map[Version]int, len(list)), make([]int, len(list))
	for i, a := range list {
		d.index[a.Version], d.order[i] = i, i
	}
}

// demandOf returns what has to be verified of a tree, in the order of the names, and which groups order it.
func demandOf(p *eventsv1.BuildPrepared) (list []asked, ordered []bool) {
	takes := map[int]*eventsv1.StepClaims{}
	for _, c := range p.GetClaims() {
		takes[int(c.GetVersion())] = &eventsv1.StepClaims{Exclusive: c.GetExclusive(), Resources: c.GetResources(), Labels: c.GetLabels()}
	}
	place := make([]int, len(p.GetVersions())) // in list, -1 for none
	first := make([]int, len(place))           // the same, but -1 for what is listed again
	had := map[Version]int{}
	for i, t := range p.GetVersions() {
		v := Version{Target: t.GetTarget(), Hash: t.GetHash()}
		at, repeated := had[v]
		first[i] = -1
		switch {
		case settledByItself(t):
			at = -1
		case !repeated:
			at, first[i] = len(list), len(list)
			had[v] = at
			list = append(list, asked{Version: v, part: t.GetPart(), claims: takes[i]})
		}
		place[i] = at
	}
	ordered = setGroups(list, first, p.GetGroups())
	if len(p.GetNeeds()) != len(p.GetVersions()) {
		return list, ordered
	}
	for i, n := range p.GetNeeds() {
		if place[i] >= 0 && n.GetGiven() {
			list[place[i]].waits = true
		}
		for _, of := range n.GetVersions() {
			if int(of) < len(place) && place[i] >= 0 && place[of] >= 0 && place[of] != place[i] {
				list[place[i]].needs = append(list[place[i]].needs, place[of])
			}
		}
	}
	return list, ordered
}

// settledByItself reports whether no step is needed for a version: no command verifies it, or the tree lacks the target.
func settledByItself(t *eventsv1.TargetVersion) bool {
	return t.GetTrivial() || t.GetAbsent() || t.GetHash() == ""
}

// sort orders the steps of a build so that it is decided soonest (M34): what probably fails first, by how likely that is over
// how long it takes; then the others in the same order, except for the last of them, which go by the longest chain of steps that
// begins with each.
func (d *demand) sort() {
	slices.SortFunc(d.order, func(x, y int) int {
		a, b := d.asked[x].want, d.asked[y].want
		if fails, failsToo := a.risk >= probable, b.risk >= probable; fails != failsToo {
			return cmp.Compare(boolean(failsToo), boolean(fails))
		}
		return cmp.Or(cmp.Compare(b.risk/float64(b.us), a.risk/float64(a.us)), byName(a, b))
	})
	chains := d.chains()
	slices.SortFunc(d.last(chains), func(x, y int) int {
		return cmp.Or(cmp.Compare(chains[y], chains[x]), byName(d.asked[x].want, d.asked[y].want))
	})
	d.first = 0
	d.skip()
	d.stale = true
}

// last returns the end of the order whose work is at most endChains times the longest chain that begins in it, and which has
// nothing that probably fails.
func (d *demand) last(chains []int64) []int {
	var work, longest int64
	from := len(d.order)
	for ; from > 0; from-- {
		at := d.order[from-1]
		w := d.asked[at].want
		work, longest = work+w.us, max(longest, chains[at])
		if w.risk >= probable || work > endChains*longest {
			break
		}
	}
	return d.order[from:]
}

// endChains is about how many workers a build has to itself. While it has more work than they do in the time of its longest
// chain, the order of its steps does not decide when it ends.
const endChains = 16

// probable is the risk from which on a step is looked at as one that fails.
const probable = 0.5

// failedOnce is the risk of a version of which an attempt has failed.
const failedOnce = 0.9

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func byName(a, b *wanted) int {
	return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Hash, b.Hash))
}

// chains returns for each place how long the longest chain of steps is that begins there and goes on with what depends on it.
// A cycle is cut where the walk meets itself. The walk is without recursion: chains can be long.
func (d *demand) chains() []int64 {
	dependants := make([][]int, len(d.asked))
	for i, a := range d.asked {
		for _, n := range a.needs {
			dependants[n] = append(dependants[n], i)
		}
	}
	const fresh, open, done = 0, 1, 2
	chain, state := make([]int64, len(d.asked)), make([]byte, len(d.asked))
	for from := range d.asked {
		for walk := []int{from}; len(walk) > 0; {
			at := walk[len(walk)-1]
			if state[at] == done {
				walk = walk[:len(walk)-1]
				continue
			}
			if state[at] == fresh {
				state[at] = open
				for _, next := range dependants[at] {
					if state[next] == fresh {
						walk = append(walk, next)
					}
				}
				continue
			}
			longest := int64(0)
			for _, next := range dependants[at] {
				longest = max(longest, chain[next])
			}
			chain[at], state[at] = longest+d.asked[at].want.us, done
			walk = walk[:len(walk)-1]
		}
	}
	return chain
}

// skip moves first to the first place that is open.
func (d *demand) skip() {
	for d.first < len(d.order) && !d.open[d.order[d.first]] {
		d.first++
	}
}

// setOpen notes that a version is settled or not.
func (d *demand) setOpen(i int, open bool) {
	if d.open[i] == open {
		return
	}
	d.open[i], d.stale = open, true
	if open {
		d.outstanding++
		d.workUs += d.asked[i].want.us
		d.first = 0
	} else {
		d.outstanding--
		d.workUs -= d.asked[i].want.us
	}
	d.skip()
}

// ready reports whether all that the version at a place depends on is settled.
func (d *demand) ready(place int) bool {
	for _, n := range d.asked[place].needs {
		if d.open[n] {
			return false
		}
	}
	return true
}

// at returns what an offer is of.
func (d *demand) at(o offer) *asked { return &d.asked[d.order[o.at]] }

// next returns the first step that may be started: the first that is ready, else the first that need not wait.
func (d *demand) next(may func(*asked) bool) offer {
	second := offer{at: -1}
	for at := d.first; at < len(d.order); at++ {
		i := d.order[at]
		if !d.open[i] || !may(&d.asked[i]) {
			continue
		}
		if d.ready(i) {
			return offer{at, true}
		}
		if second.at < 0 && !d.asked[i].waits {
			second.at = at
		}
	}
	return second
}

// want makes a live build ask for its versions, and counts those that are not settled.
func (q *Queue) want(b *build) {
	b.open, b.outstanding, b.workUs, b.first = make([]bool, len(b.asked)), 0, 0, 0
	q.enter(b)
	for i := range b.asked {
		a := &b.asked[i]
		w := q.wanted[a.Version]
		if w == nil {
			w = &wanted{Version: a.Version, us: q.estimates.durationUs(a.Target), risk: q.risk(a.Version)}
			q.wanted[a.Version] = w
		}
		if a.claims != nil {
			w.claims = a.claims
		}
		w.askers = append(w.askers, asker{b, i})
		if w.offers > 0 {
			b.shown = append(b.shown, w)
			q.changeOffers(w)
		}
		a.want = w
		b.setOpen(i, q.ledger.State(a.Version, b.policy()) == evidence.Unknown)
	}
}

// risk returns how likely the next attempt at a version is to fail.
func (q *Queue) risk(v Version) float64 {
	if r := q.ledger.Result(v); r != nil && r.FailedBy != nil {
		return failedOnce
	}
	return q.estimates.failureRate(v.Target)
}

// release takes a build out of what asks for its versions.
func (q *Queue) release(b *build) {
	q.leave(b)
	for _, w := range b.shown {
		q.changeOffers(w)
	}
	b.shown = nil
	for i := range b.asked {
		w := b.asked[i].want
		if w == nil {
			continue
		}
		b.asked[i].want = nil
		w.askers = slices.DeleteFunc(w.askers, func(o asker) bool { return o.build == b })
		if len(w.askers) == 0 {
			delete(q.wanted, w.Version)
		}
	}
	b.open, b.outstanding, b.workUs, b.first = nil, 0, 0, 0
}

// estimateAgain estimates how long the steps of all live builds take.
func (q *Queue) estimateAgain() {
	for _, w := range q.wanted {
		w.us = q.estimates.durationUs(w.Target)
	}
	for _, b := range q.order {
		b.workUs = 0
		for i, open := range b.open {
			if open {
				b.workUs += b.asked[i].want.us
			}
		}
		if len(b.asked) > 0 {
			b.sort()
		}
		q.changeEntry(b)
	}
}
