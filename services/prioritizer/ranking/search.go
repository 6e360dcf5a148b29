package ranking

import (
	"math/bits"
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
)

// slack makes up for the rounding in a bound, which is a product in another order than the value that it
// bounds: a bound must never be below it.
const slack = 1 + 1e-9

// none is the path of a change that has nothing ahead.
var none = memberset.New(0)

// search lists the paths of one change, best first, as far as they were asked for.
type search struct {
	front []partial // a heap
	*bounds
	listed []*eventsv1.RankedBuild
	// ways counts, by what becomes of the first members that matter, the ways of all of them that have been looked at:
	// the next path that goes one of these waits for the same versions and is worth less. It is nil if no two paths do.
	ways map[uint64]uint64
	// visited is how many nodes were visited since the last listed path, most the highest that it ever was.
	visited, most int
	// seen holds what the listed paths wait for, made when there is a second one.
	first partial
	seen  map[string]bool
	// likeliest is the first complete path that was come to, if compares; lateLosses[j] bounds what is lost by others that differ from it in
	// members from j on, nil if none of them waits.
	likeliest  partial
	compares   bool
	lateLosses []lateLoss
}

// partial is a path whose members before depth are decided: all land but the rejected ones.
type partial struct {
	rejected []int32
	// way has a bit for each member before depth that matters and may go both ways, behind a leading one.
	way      uint64
	depth    int32
	complete bool
	// needed is the product of w (M14), likely that of P.
	needed, likely float64
	// promise is likely with what it charges (bounds).
	promise float64
	// value is benefit · Ranking.ordering; bound is the most that a path which begins like this can be worth, most what
	// it can be needed with at most.
	value, bound, most float64
}

// before is the order of a change's paths: by the bounds, and of complete ones as M17 says, whose bounds are what they are
// worth and needed with. Of equal bounds, partial ones come first: one of them may still complete to something that M17
// puts before the complete one.
func (a *partial) before(b *partial) bool {
	switch {
	case a.bound != b.bound:
		return a.bound > b.bound
	case a.most != b.most:
		return a.most > b.most
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

// begin starts the search of a change.
func (r *Ranking) begin(c *change) {
	s := &search{bounds: r.limits(c)}
	c.search = s
	if s.bounds == nil {
		return // nothing is to be found
	}
	if s.repeats && s.choices <= maxChoices {
		s.ways = map[uint64]uint64{}
	}
	p := partial{way: 1, needed: 1, likely: 1, promise: 1, complete: len(c.members) == 0}
	r.weigh(c, s, &p)
	push(&s.front, p)
}

// weigh says what a path is worth, and at most.
func (r *Ranking) weigh(c *change, s *search, p *partial) {
	p.value = r.benefit(c) * r.ordering(p.needed, p.likely)
	p.bound, p.most = p.value, p.needed
	if p.complete {
		return
	}
	d := p.depth
	p.most = p.needed * s.rest[d] * slack
	likely := min(p.likely*s.likely[d], p.promise*s.promise[d]) * slack
	if !c.funded {
		p.most = min(p.most, likely)
	}
	p.bound = r.benefit(c) * r.ordering(p.most, likely) * slack
}

// maxChoices is how many choices fit in partial.way. Of so many versions no search sees the last.
const maxChoices = 62

// chooses says that a member matters and may go both ways.
func (c *change) chooses(j int) bool { return c.matters[j] && !c.members[j].sure }

// isDone says that all ways that begin like p's have been looked at.
func (s *search) isDone(p *partial) bool {
	return s.ways != nil && s.ways[p.way] == 1<<(s.choices+1-bits.Len64(p.way))
}

// finish notes that a complete path's way has been looked at.
func (s *search) finish(p *partial) {
	if s.ways != nil {
		for w := p.way; w > 0; w >>= 1 {
			s.ways[w]++
		}
	}
}

// step is where a search stands: at a listed path, before one that is worth at most a bound, at its end, or
// at the end of its budget.
type step struct {
	build *eventsv1.RankedBuild
	bound float64
	cut   bool
}

// advance looks for the i-th best path of a change as long as nothing that is worth less than enough is met.
func (r *Ranking) advance(c *change, i int, enough float64) step {
	s := c.search
	if i < len(s.listed) {
		return step{build: s.listed[i], bound: s.listed[i].Value}
	}
	for len(s.front) > 0 {
		if bound := s.front[0].bound; bound < enough {
			return step{bound: bound}
		} else if s.visited >= r.gap {
			return step{bound: bound, cut: true}
		}
		s.visited++
		s.most = max(s.most, s.visited)
		p := pop(&s.front)
		if s.isDone(&p) {
			continue
		}
		if !p.complete {
			if !r.allWait(c, s, &p) {
				r.extend(c, s, &p)
			}
			continue
		}
		if r.waits(c, s, &p) {
			continue // where a bypass is funded, a path that is less likely may be needed more, and wait for the same versions
		}
		s.finish(&p)
		if b := r.build(c, s, &p); b != nil {
			s.visited = 0
			s.listed = append(s.listed, b)
			return step{build: b, bound: b.Value}
		}
	}
	return step{bound: -1}
}

// scratch is a path's set of members that land, in the one form that the graph asks for.
type scratch struct {
	bits []byte
	// before is what a change's members were funded with.
	before []float64
}

// set makes the set of p's members that land, valid until the next call.
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

// extend decides the next member both ways, dropping what the evidence has killed and what is not worth a
// worker.
func (r *Ranking) extend(c *change, s *search, p *partial) {
	j := int(p.depth)
	m := &c.members[j]
	land, fail := r.may(c, p, j)
	q := r.lands(c, p, j, land, fail, &s.members[j].chance)
	// Every path with the one fails, and every path without the other (M5, M5a): there is nothing to build.
	// What is left is worth no more than it is likely.
	land, fail = land && !m.ahead.MergeConflict, fail && !m.ahead.Required
	if land && fail && !c.matters[j] && !s.bears[j] {
		land, fail = r.better(m, q)
	}
	if land {
		next := *p
		next.depth++
		if c.chooses(j) {
			next.way = next.way<<1 | 1
		}
		r.enqueue(c, s, &next, true, q)
	}
	if fail {
		next := *p
		next.depth++
		if c.chooses(j) {
			next.way <<= 1
		}
		next.rejected = append(slices.Clip(p.rejected), int32(j))
		r.enqueue(c, s, &next, false, q)
	}
}

// better says which way of a member to follow where nothing hangs on it but how likely the path is: by M17 it is the one
// that leaves more, or of equal ones landing. Both, where rounding may have made them equal.
func (r *Ranking) better(m *member, q float64) (land, fail bool) {
	lands, fails := m.before+(1-m.before)*q, m.before+(1-m.before)*(1-q)
	if r.byModel && lands >= fails || !r.byModel && q >= 0.5 {
		return true, false
	}
	return fails <= lands*slack || !r.byModel && 1-q <= q*slack, true
}

// may says what the evidence lets become of the next member of a path (M9).
func (r *Ranking) may(c *change, p *partial, j int) (land, fail bool) {
	if of := c.members[j].at(); of == nil || of.node.Unproven() {
		return true, true
	}
	return r.graph.May(c.node, r.scratch.set(len(c.members), p), j)
}

// enqueue multiplies w(j) of M14 onto a path whose last member was decided, and lists it for the search.
func (r *Ranking) enqueue(c *change, s *search, p *partial, lands bool, q float64) {
	j := p.depth - 1
	p.promise *= s.members[j].promised(lands, q)
	if !lands {
		q = 1 - q
	}
	before := c.members[j].before
	p.needed *= before + (1-before)*q
	p.likely *= q
	p.complete = int(p.depth) == len(c.members)
	r.weigh(c, s, p)
	if p.needed > 0 && p.most >= r.threshold() {
		push(&s.front, *p)
	}
}

// lands is q(j|S) of M8, or what the evidence says (M9). Where its beginning is known it is not worked out again.
func (r *Ranking) lands(c *change, p *partial, j int, land, fail bool, known *chance) float64 {
	switch {
	case land && !fail:
		return 1
	case fail && !land:
		return 0
	}
	of := c.members[j].at()
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
			q *= r.outside(c, m)
		} else if place < int32(j) && !m.ahead.Required && !p.rejects(place) {
			q *= 1 - m.conflict
		}
	}
	return q
}

// outside is what becomes of the chances of a member of c's by one that it has ahead and c has not.
func (r *Ranking) outside(c *change, m *member) float64 {
	if m.ahead.Required {
		return r.watch(c, m.of) * (1 - m.conflict) // M5a
	}
	return 1 - r.watch(c, m.of)*m.conflict
}

// rejects says that the path has the member rejected; few are.
func (p *partial) rejects(j int32) bool {
	for _, x := range p.rejected {
		if x == j {
			return true
		}
	}
	return false
}

// watch is the marginal of a change that c's search rests on.
func (r *Ranking) watch(c, of *change) float64 {
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

// build gives the complete path as a ranked build, nil if nothing of it is outstanding, or if a better
// path of the change waits for the very same versions.
func (r *Ranking) build(c *change, s *search, p *partial) *eventsv1.RankedBuild {
	n, set := c.node, r.scratch.set(len(c.members), p)
	if n.Path(set) != graph.Unknown || (n.Guard != nil && len(n.Guard.Missing) > 0 && len(p.rejected) == len(n.Ahead)) {
		return nil
	}
	if !n.Unproven() {
		if _, targets := n.Outstanding(set); len(targets) == 0 {
			return nil
		}
	}
	if !r.isNew(c, s, p) {
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

// isNew says whether no path of the change that was listed before waits for the same versions. Most
// changes have but one.
func (r *Ranking) isNew(c *change, s *search, p *partial) bool {
	if len(s.listed) == 0 {
		s.first = *p
		return true
	}
	if s.seen == nil {
		s.seen = map[string]bool{r.versionsOf(c, &s.first): true}
	}
	key := r.versionsOf(c, p)
	if s.seen[key] {
		return false
	}
	s.seen[key] = true
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

// gapFor is how many nodes a search may visit between two listed paths, so that all together stay within the
// budget of M18; it changes only as the queue doubles or halves, for what was listed under another one
// may not be what this one lists.
func gapFor(pending int) int { return searchNodes >> bits.Len(uint(pending)) }
