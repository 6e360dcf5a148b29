package ranking

import (
	"math/bits"
	"slices"
	"strings"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// slack makes up for the rounding in a bound, which multiplies in another order than the value that it bounds. A bound
// must never be below the value.
const slack = 1 + 1e-9

// none is the path of a change with nothing ahead.
var none = memberset.New(0)

// search lists the paths of one change, best first, as far as they were needed.
type search struct {
	front []partial // a heap
	*bounds
	listed []*eventsv1.RankedBuild
	// doneWays counts, by the ways of the first members that matter, how many ways of all of them have been visited.
	// The next path with the same ways waits for the same versions and is worth less. It is nil if no two paths can
	// have the same ways.
	doneWays map[uint64]uint64
	// visited is how many nodes were visited since the last listed path, maxVisited the highest that it ever was.
	visited, maxVisited int
	// listedVersions holds the versions that the listed paths wait for. It is made with the second one; until then
	// firstListed is the first path.
	firstListed    partial
	listedVersions map[string]bool
	// likeliest is the first complete path that the search came to, if hasLikeliest. lateLosses[j] bounds the loss by
	// paths that differ from it in member j or later; it is nil if none of them waits.
	likeliest    partial
	hasLikeliest bool
	lateLosses   []lateLoss
}

// partial is a path whose members before depth are decided: all land but the rejected ones.
type partial struct {
	rejected []int32
	// way has a bit for each member before depth that is a choice, behind a leading one.
	way      uint64
	depth    int32
	complete bool
	// needed is the product of w (M14), likely the product of the probabilities.
	needed, likely float64
	// promise is likely with charges and refunds (bounds).
	promise float64
	// value is benefit · Ranking.ordering. bound bounds the value of all paths that begin like this, neededBound what
	// they are needed with.
	value, bound, neededBound float64
}

// before is the order of a change's paths: by the bounds, which for complete paths are their values, then as M17 says.
// A partial path comes before a complete one of the same bound, as it may still complete to one that M17 puts first.
func (a *partial) before(b *partial) bool {
	switch {
	case a.bound != b.bound:
		return a.bound > b.bound
	case a.neededBound != b.neededBound:
		return a.neededBound > b.neededBound
	case a.complete != b.complete:
		return !a.complete
	case len(a.rejected) != len(b.rejected):
		return len(a.rejected) < len(b.rejected)
	}
	for i := range a.rejected {
		if a.rejected[i] != b.rejected[i] {
			return a.rejected[i] > b.rejected[i] // where they differ first, a lands
		}
	}
	return a.depth > b.depth
}

// beginSearch starts the search of a change.
func (r *Ranking) beginSearch(c *change) {
	s := &search{bounds: r.newBounds(c)}
	c.search = s
	if s.bounds == nil {
		return // there is no path to be found
	}
	if s.repeats && s.choices <= maxChoices {
		s.doneWays = map[uint64]uint64{}
	}
	p := partial{way: 1, needed: 1, likely: 1, promise: 1, complete: len(c.members) == 0}
	r.weighPath(c, s, &p)
	push(&s.front, p)
}

// weighPath sets the value and the bounds of a path.
func (r *Ranking) weighPath(c *change, s *search, p *partial) {
	p.value = r.benefit(c) * r.ordering(p.needed, p.likely)
	p.bound, p.neededBound = p.value, p.needed
	if p.complete {
		return
	}
	d := p.depth
	p.neededBound = p.needed * s.rest[d] * slack
	likely := min(p.likely*s.likely[d], p.promise*s.promise[d]) * slack
	if !c.funded {
		p.neededBound = min(p.neededBound, likely)
	}
	p.bound = r.benefit(c) * r.ordering(p.neededBound, likely) * slack
}

// maxChoices is how many choices fit in partial.way. No search visits all versions of so many.
const maxChoices = 62

// isChoice reports whether a member matters and may go both ways.
func (c *change) isChoice(j int) bool { return c.matters[j] && !c.members[j].sure }

// isDone reports whether all ways that begin like p's have been visited.
func (s *search) isDone(p *partial) bool {
	return s.doneWays != nil && s.doneWays[p.way] == 1<<(s.choices+1-bits.Len64(p.way))
}

// markDone notes that a complete path's ways have been visited.
func (s *search) markDone(p *partial) {
	if s.doneWays != nil {
		for w := p.way; w > 0; w >>= 1 {
			s.doneWays[w]++
		}
	}
}

// step is where a search stops: at a listed path, before a path that is worth at most bound, at its end, or at the end
// of its budget (cut).
type step struct {
	build *eventsv1.RankedBuild
	bound float64
	cut   bool
}

// advance continues a search to the i-th best path of the change, unless all that is left is worth less than enough.
func (r *Ranking) advance(c *change, i int, enough float64) step {
	s := c.search
	if i < len(s.listed) {
		return step{build: s.listed[i], bound: s.listed[i].Value}
	}
	for len(s.front) > 0 {
		if bound := s.front[0].bound; bound < enough {
			return step{bound: bound}
		} else if s.visited >= r.searchGap {
			return step{bound: bound, cut: true}
		}
		s.visited++
		s.maxVisited = max(s.maxVisited, s.visited)
		p := pop(&s.front)
		if s.isDone(&p) {
			continue
		}
		if !p.complete {
			if !r.allCanWait(c, s, &p) {
				r.extend(c, s, &p)
			}
			continue
		}
		if !s.hasLikeliest {
			r.setLikeliest(c, s, &p)
		} else if r.canWait(c, s, &p) {
			continue // its versions are not noted: a less likely path may be needed more, for a bypass, and wait for the same ones
		}
		s.markDone(&p)
		if b := r.rankedBuild(c, s, &p); b != nil {
			s.visited = 0
			s.listed = append(s.listed, b)
			return step{build: b, bound: b.Value}
		}
	}
	return step{bound: -1}
}

// scratch is memory for a path's set of members, in the form that the graph needs.
type scratch struct {
	bits []byte
	// before is what the members of a change were funded with.
	before []float64
}

// set returns the set of p's members that land, valid until the next call.
func (x *scratch) set(members int, p *partial) memberset.Set {
	n := (members + 7) / 8
	if cap(x.bits) < n {
		x.bits = make([]byte, 2*n)
	}
	b := x.bits[:n]
	clear(b)
	for i := range p.depth / 8 {
		b[i] = 0xff
	}
	if rest := p.depth % 8; rest > 0 {
		b[p.depth/8] = 1<<rest - 1
	}
	for _, j := range p.rejected {
		b[j/8] &^= 1 << (j % 8)
	}
	return memberset.Over(b)
}

// extend decides the next member both ways, but for ways that the evidence rules out and paths that are not worth a
// slot.
func (r *Ranking) extend(c *change, s *search, p *partial) {
	j := int(p.depth)
	m := &c.members[j]
	land, fail := r.may(c, p, j)
	q := r.chanceToLand(c, p, j, land, fail, &s.members[j].chance)
	// By M5 every path with a merge conflict fails, and by M5a every path without a required change: there is nothing
	// to build.
	land, fail = land && !m.ahead.MergeConflict, fail && !m.ahead.Required
	if land && fail && !c.matters[j] && !s.bears[j] {
		land, fail = r.likelierWays(m, q)
	}
	if land {
		next := *p
		next.depth++
		if c.isChoice(j) {
			next.way = next.way<<1 | 1
		}
		r.enqueue(c, s, &next, true, q)
	}
	if fail {
		next := *p
		next.depth++
		if c.isChoice(j) {
			next.way <<= 1
		}
		next.rejected = append(slices.Clip(p.rejected), int32(j))
		r.enqueue(c, s, &next, false, q)
	}
}

// likelierWays returns which ways of a member to follow if nothing depends on it but the likelihood of the path: by M17
// the one that leaves more, or landing if both leave the same; both, if they may be the same but for rounding.
func (r *Ranking) likelierWays(m *member, q float64) (land, fail bool) {
	lands, fails := m.fundedBefore+(1-m.fundedBefore)*q, m.fundedBefore+(1-m.fundedBefore)*(1-q)
	if r.byModel && lands >= fails || !r.byModel && q >= 0.5 {
		return true, false
	}
	return fails <= lands*slack || !r.byModel && 1-q <= q*slack, true
}

// may returns whether the next member of a path may land, and whether it may fail, by the evidence (M9).
func (r *Ranking) may(c *change, p *partial, j int) (land, fail bool) {
	if of := c.members[j].pending(); of == nil || of.node.Unproven() {
		return true, true
	}
	return r.graph.May(c.node, r.scratch.set(len(c.members), p), j)
}

// enqueue multiplies w(j) of M14 for the last decided member onto a path, and adds the path to the front.
func (r *Ranking) enqueue(c *change, s *search, p *partial, lands bool, q float64) {
	j := p.depth - 1
	p.promise *= s.members[j].promised(lands, q)
	if !lands {
		q = 1 - q
	}
	before := c.members[j].fundedBefore
	p.needed *= before + (1-before)*q
	p.likely *= q
	p.complete = int(p.depth) == len(c.members)
	r.weighPath(c, s, p)
	if p.needed > 0 && p.neededBound >= r.threshold() {
		push(&s.front, *p)
	}
}

// chanceToLand returns q(j|S) of M8, or 1 or 0 by the evidence (M9). known is the beginning of the product if it is
// known.
func (r *Ranking) chanceToLand(c *change, p *partial, j int, land, fail bool, known *chance) float64 {
	switch {
	case land && !fail:
		return 1
	case fail && !land:
		return 0
	}
	of := c.members[j].pending()
	if of == nil {
		return 0
	}
	at := r.graph.Places(c.node, j)
	q, from := of.success, int32(0)
	if known != nil {
		q, from = known.q, known.from
	}
	for _, x := range of.coupled[from:] {
		m := &of.members[x]
		if place := at[x]; place < 0 {
			q *= r.chanceOutside(c, m)
		} else if place < int32(j) && !m.ahead.Required && !p.rejects(place) {
			q *= 1 - m.conflict
		}
	}
	return q
}

// chanceOutside returns the factor of a member's chances by a change that it has ahead and c has not.
func (r *Ranking) chanceOutside(c *change, m *member) float64 {
	if m.ahead.Required {
		return r.watchMarginal(c, m.of) * (1 - m.conflict) // M5a
	}
	return 1 - r.watchMarginal(c, m.of)*m.conflict
}

// rejects reports whether the path rejects a member. Few are rejected.
func (p *partial) rejects(j int32) bool {
	for _, x := range p.rejected {
		if x == j {
			return true
		}
	}
	return false
}

// watchMarginal returns the marginal of a change, and notes that c's search depends on it.
func (r *Ranking) watchMarginal(c, of *change) float64 {
	if of.lastWatcher != c && !of.watchers[c] {
		if of.watchers == nil {
			of.watchers = map[*change]bool{}
		}
		of.watchers[c] = true
		c.watched = append(c.watched, of)
	}
	of.lastWatcher = c
	return r.marginalOf(of)
}

// rankedBuild returns the complete path as a ranked build, nil if nothing of it is outstanding, or if a better path of
// the change waits for the same versions.
func (r *Ranking) rankedBuild(c *change, s *search, p *partial) *eventsv1.RankedBuild {
	n, set := c.node, r.scratch.set(len(c.members), p)
	if n.Path(set) != graph.Unknown || (n.Guard != nil && len(n.Guard.Missing) > 0 && len(p.rejected) == len(n.Ahead)) {
		return nil
	}
	if !n.Unproven() {
		if _, targets := n.Outstanding(set); len(targets) == 0 {
			return nil
		}
	}
	if !r.addVersions(c, s, p) {
		return nil
	}
	b := &eventsv1.RankedBuild{Change: n.Change, Needed: p.needed, Value: p.value}
	if lands := len(n.Ahead) - len(p.rejected); lands > 0 {
		b.Assumed = make([]*eventsv1.ChangeRef, 0, lands)
	}
	for i, a := range n.Ahead {
		if !p.rejects(int32(i)) {
			b.Assumed = append(b.Assumed, a.Change)
		}
	}
	return b
}

// addVersions adds the versions that a path waits for to those of the listed paths, and reports whether they are new.
// Most changes have but one path.
func (r *Ranking) addVersions(c *change, s *search, p *partial) bool {
	if len(s.listed) == 0 {
		s.firstListed = *p
		return true
	}
	if s.listedVersions == nil {
		s.listedVersions = map[string]bool{r.versionsOf(c, &s.firstListed): true}
	}
	key := r.versionsOf(c, p)
	if s.listedVersions[key] {
		return false
	}
	s.listedVersions[key] = true
	return true
}

func (r *Ranking) versionsOf(c *change, p *partial) string {
	versions, _ := c.node.Outstanding(r.scratch.set(len(c.members), p))
	var key strings.Builder
	for _, v := range versions {
		key.WriteString(string(rune(v.Class + 2)))
		key.WriteString(v.Members)
		key.WriteByte(0)
	}
	return key.String()
}

// gapFor returns how many nodes a search may visit between two listed paths, so that all together stay within the
// budget of M18. It changes only as the queue doubles or halves, because what was listed with one gap may not be listed
// with another.
func gapFor(pending int) int { return searchNodes >> bits.Len(uint(pending)) }
