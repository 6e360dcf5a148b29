package explanation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// Worth is the worth of a build of a path with what it is made of: Needed is the product of the factors' Factor, Likely that of their
// Probability, and Value is Benefit · Soon · Likely (by the model, Benefit · Needed).
type Worth struct {
	// Assumed and Rejected are the members of A(c) that land on the path, and that do not, in queue order.
	Assumed  []string `json:"assumed"`
	Rejected []string `json:"rejected"`
	// State of the path: unknown, green, red, exhausted or blocked.
	State string `json:"state"`
	// Needed is the probability that the build is needed (M14), Likely that the path comes about; builds are ranked by Value (M15).
	Needed float64 `json:"needed"`
	Likely float64 `json:"likely"`
	Value  float64 `json:"value"`
	// InPool is what the build is worth to the workers of a pool (M15a); 0 if the queue has none.
	InPool float64 `json:"in_pool,omitempty"`
	// Benefit is the change's; Soon falls with the number of changes that it has ahead (decision 0027).
	Benefit float64 `json:"benefit"`
	Soon    float64 `json:"soon"`
	// Threshold is what Needed must reach for a slot (M16). It does not bind a change with nothing ahead.
	Threshold float64 `json:"threshold"`
	// Rule is why the build comes before all others whatever it is worth, empty if it does not.
	Rule    string   `json:"rule,omitempty"`
	Factors []Factor `json:"factors"`
}

// Factor is w(j) of M14 for one member of A(c): Factor = FinishesFirst + (1−FinishesFirst)·Probability.
type Factor struct {
	// Change is the member, empty for several together.
	Change string `json:"change,omitempty"`
	// Others is the number of members whose factors are multiplied to this one.
	Others int `json:"others,omitempty"`
	// Assumed is lands or rejected.
	Assumed string `json:"assumed,omitempty"`
	// Probability that the member does what is assumed of it, on this path (M8, M9).
	Probability float64 `json:"probability"`
	// FinishesFirst is F of M11 if the member is bypassable (M13), else 0.
	FinishesFirst float64 `json:"finishes_first"`
	Factor        float64 `json:"factor"`
	// Terms are the factors of the probability that the member lands.
	Terms []Term `json:"terms,omitempty"`
}

// What a path assumes of a member.
const (
	Lands    = "lands"
	Rejected = "rejected"
)

// Term is a number with its source.
type Term struct {
	Says  string  `json:"says"`
	Value float64 `json:"value"`
	// From is evidence, marginal, rule, several, or what predicted it: the name of a model with its version, prior, and so on.
	From string `json:"from"`
	// Of is what the value is computed from, if it is not a prediction itself: M7 for the marginals.
	Of []Term `json:"of,omitempty"`
	// Proof are the steps behind evidence.
	Proof []Proof `json:"proof,omitempty"`
}

// Sources of terms, besides predictions.
const (
	FromEvidence = "evidence"
	FromMarginal = "marginal"
	FromRule     = "rule"
	FromSeveral  = "several"
)

// stateNames are those of paths.
var stateNames = map[eventsv1.OutcomeState]string{
	graph.Unknown: "unknown", graph.Green: "green", graph.Red: "red", graph.Exhausted: "exhausted", graph.Blocked: "blocked",
}

// Worth returns the worth of a build of a change on the path that assumes these changes to land, nil if that is not a path of a pending
// change.
func (e *Explainer) Worth(c *eventsv1.ChangeRef, assumed []*eventsv1.ChangeRef) *Worth {
	n := e.g.NodeAt(c)
	if n == nil {
		return nil
	}
	path := memberset.New(len(n.Ahead))
	for _, a := range assumed {
		j := n.IndexOf(a.Change)
		if j < 0 || n.Ahead[j].Change.Revision != a.Revision {
			return nil
		}
		path.Add(j)
	}
	return e.worth(n, path, true)
}

// Running returns the worth of a running build, on its path as it is now: what has landed is part of the mainline. It returns nil if no
// such build runs, or its path is no longer one of the change.
func (e *Explainer) Running(build string) *Worth {
	x := e.s.runs[build]
	if x == nil || !slices.ContainsFunc(e.active(x.change.GetChange()), func(o active) bool { return o.run == x }) {
		return nil
	}
	n, path, ok := e.members(x)
	if !ok {
		return nil
	}
	return e.worth(n, path, false)
}

// worth returns the worth of a build of a path. Rule is set only for a build of the ranking.
func (e *Explainer) worth(n *graph.Node, path memberset.Set, ranked bool) *Worth {
	w := e.ofPath(n, path, ranked)
	if e.g.Settings.GetPoolWorkers() > 0 && !e.how.ByModel {
		w.InPool = graph.PoolWorth(n, w.Value, w.Needed) * e.g.PoolFactor(n)
	}
	return w
}

func (e *Explainer) ofPath(n *graph.Node, path memberset.Set, ranked bool) *Worth {
	w := &Worth{
		Assumed: []string{}, Rejected: []string{}, Factors: []Factor{}, State: stateNames[n.Path(path)], Threshold: e.g.Settings.GetThreshold(),
		Needed: 1, Likely: 1, Benefit: n.Benefit, Soon: 1,
	}
	if w.Benefit == 0 {
		w.Benefit = 1
	}
	if !e.how.ByModel {
		w.Soon = 1 / math.Sqrt(float64(1+len(n.Ahead)))
	}
	for j, a := range n.Ahead {
		if path.Has(j) {
			w.Assumed = append(w.Assumed, a.Change.Change)
		} else {
			w.Rejected = append(w.Rejected, a.Change.Change)
		}
	}
	if ranked && n.Guard != nil && len(n.Guard.Missing) > 0 && path.Empty() && n.Path(path) == graph.Unknown {
		w.Rule = "the land guard needs " + several(targetsOf(n.Guard.Missing)) + " verified on the mainline as it is: such builds come first (M21)"
		w.Benefit, w.Soon, w.Value = 1, 1, 1
		return w
	}
	funded, prefix := e.fundedBefore(n), memberset.New(len(n.Ahead))
	factors := make([]Factor, len(n.Ahead))
	for j := range factors {
		factors[j], _ = e.factor(n, path, prefix, j, funded[j])
		w.Needed *= factors[j].Factor
		w.Likely *= factors[j].Probability
		if path.Has(j) {
			prefix.Add(j)
		}
	}
	if w.Value = w.Benefit * w.Soon * w.Likely; e.how.ByModel {
		w.Value = w.Benefit * w.Needed
	}
	w.Factors = e.listFactors(n, path, factors)
	return w
}

func (e *Explainer) factor(n *graph.Node, path, prefix memberset.Set, j int, finishes float64) (f Factor, parts []part) {
	f = Factor{Change: n.Ahead[j].Change.Change, Assumed: Rejected, FinishesFirst: finishes}
	lands := 1.0
	parts = e.parts(n, prefix, j)
	for _, p := range parts {
		lands *= p.value
	}
	if f.Probability = 1 - lands; path.Has(j) {
		f.Assumed, f.Probability = Lands, lands
	}
	f.Factor = f.FinishesFirst + (1-f.FinishesFirst)*f.Probability
	return f, parts
}

// part is a term whose text is made only if it is shown: where a thousand changes conflict with each other, one path has half a million
// terms.
type part struct {
	value float64
	// term is the term itself. If it is nil, the fields below describe the term, by kind.
	term       *Term
	kind       kind
	id, other  string
	r, m       float64
	conflictBy string
}

type kind int

const (
	noConflict kind = iota
	required
	requiredLands
	eitherWay
)

func (p part) shown() Term {
	if p.term != nil {
		return *p.term
	}
	switch p.kind {
	case required:
		return Term{Says: fmt.Sprintf("%s requires %s, which lands on this path", p.id, p.other), Value: p.value, From: FromRule}
	case requiredLands:
		return Term{Says: fmt.Sprintf("%s, which %s requires, lands", p.other, p.id), Value: p.value, From: FromMarginal}
	case eitherWay:
		return Term{
			Says: fmt.Sprintf("%s does not land, or %s has no conflict with it", p.other, p.id), Value: p.value, From: FromMarginal,
			Of: []Term{{Says: p.other + " lands", Value: p.m, From: FromMarginal}, {Says: fmt.Sprintf("%s conflicts with %s", p.id, p.other), Value: p.r, From: p.conflictBy}},
		}
	}
	return Term{Says: fmt.Sprintf("no conflict of %s with %s", p.id, p.other), Value: p.value, From: p.conflictBy}
}

func whole(t Term) part { return part{value: t.Value, term: &t} }

// parts returns the terms of q(j|S) of M8, or the evidence about member j (M9). They are valid until the next call.
func (e *Explainer) parts(n *graph.Node, prefix memberset.Set, j int) []part {
	of := n.Member(j)
	land, fail := e.g.May(n, prefix, j)
	switch {
	case land && !fail:
		inside := inside(of, n, prefix)
		return []part{whole(Term{Says: of.Change.Change + " passes on top of what this path lands before it", Value: 1, From: FromEvidence, Proof: e.proof(of, inside, graph.Green)})}
	case fail && !land:
		return []part{whole(e.whyNot(n, of, prefix))}
	case of == nil:
		return []part{whole(Term{Says: n.Ahead[j].Change.Change + " is not pending at that revision", Value: 0, From: FromRule})}
	}
	id := of.Change.Change
	list := append(e.scratch[:0], whole(e.success(id)))
	places, pairs := e.g.Places(n, j), e.s.pairs[id]
	for x, a := range of.Ahead {
		other, place := a.Change.Change, int(places[x])
		inside := place >= 0 && place < j && prefix.Has(place)
		if place >= 0 && !inside {
			continue // a change that is rejected, or was moved behind the member, has no influence on it
		}
		r, source := conflictOf(pairs, of, a)
		p := part{id: id, other: other, r: r, conflictBy: source}
		switch {
		case inside && a.Required:
			p.value, p.kind = 1, required
		case inside:
			p.value = 1 - r
		case a.Required:
			list = append(list, part{value: e.marginal(other), kind: requiredLands, id: id, other: other})
			p.value = 1 - r
		case r > 0:
			p.m, p.kind = e.marginal(other), eitherWay
			p.value = 1 - p.m*r
		default:
			continue
		}
		list = append(list, p)
	}
	e.scratch = list
	return list
}

// inside returns the part of a path of n that is ahead of its member of.
func inside(of, n *graph.Node, path memberset.Set) memberset.Set {
	set := memberset.New(len(of.Ahead))
	for x, a := range of.Ahead {
		if place := n.IndexOf(a.Change.Change); place >= 0 && path.Has(place) {
			set.Add(x)
		}
	}
	return set
}

// whyNot returns the evidence that a member does not land on a path.
func (e *Explainer) whyNot(n, of *graph.Node, prefix memberset.Set) Term {
	id := of.Change.Change
	if of.MissingRequirement != "" {
		return Term{Says: fmt.Sprintf("%s requires %s, which will not land", id, of.MissingRequirement), From: FromEvidence}
	}
	set := inside(of, n, prefix)
	for x, a := range of.Ahead {
		switch other := a.Change.Change; {
		case set.Has(x) && a.MergeConflict:
			return Term{Says: fmt.Sprintf("%s does not merge with %s", id, other), From: FromEvidence}
		case !set.Has(x) && a.Required && n.IndexOf(other) >= 0:
			return Term{Says: fmt.Sprintf("%s requires %s", id, other), From: FromEvidence}
		}
	}
	says, why := id+" fails on top of what this path lands before it", strings.TrimRight(of.PathOutcome(set).Message, ".")
	if why != "" {
		says += " (" + why + ")"
	}
	return Term{Says: says, From: FromEvidence, Proof: e.proof(of, set, of.Path(set))}
}

// maxProof bounds the steps that are named for one path.
const maxProof = 8

// proof returns the steps that settled the versions of a path: all versions if it is green, else those that keep it from being green.
func (e *Explainer) proof(n *graph.Node, path memberset.Set, state eventsv1.OutcomeState) (list []Proof) {
	if e.how.Proof == nil {
		return nil
	}
	for i, k := range n.Classes {
		set := k.Restrict(path)
		if k.Outcome(set).GetState() != state || len(list) >= maxProof {
			continue
		}
		list = append(list, e.how.Proof(n, i, set)...)
	}
	return list[:min(len(list), maxProof)]
}

// listFactors returns the smallest factors with their terms, and the others multiplied to one.
func (e *Explainer) listFactors(n *graph.Node, path memberset.Set, list []Factor) []Factor {
	few := smallest(list, e.how.Factors, func(f Factor) float64 { return f.Factor })
	out, prefix := []Factor{}, memberset.New(len(n.Ahead))
	others := Factor{Probability: 1, Factor: 1}
	for j, f := range list {
		if few == nil || few[j] {
			_, parts := e.factor(n, path, prefix, j, f.FinishesFirst)
			f.Terms = e.listTerms(parts)
			out = append(out, f)
		} else {
			others.Others++
			others.Probability *= f.Probability
			others.Factor *= f.Factor
		}
		if path.Has(j) {
			prefix.Add(j)
		}
	}
	if others.Others > 0 {
		out = append(out, others)
	}
	return out
}

// listTerms returns the smallest terms, and the others multiplied to one.
func (e *Explainer) listTerms(list []part) (out []Term) {
	few := smallest(list, e.how.Terms, func(p part) float64 { return p.value })
	others, count := 1.0, 0
	for i, p := range list {
		if few == nil || few[i] {
			out = append(out, p.shown())
			continue
		}
		count++
		others *= p.value
	}
	if count > 0 {
		out = append(out, Term{Says: fmt.Sprintf("%d more terms, each nearer to 1", count), Value: others, From: FromSeveral})
	}
	return out
}

// smallest marks the elements of a list with the smallest values, nil if all are to be shown.
func smallest[T any](list []T, most int, value func(T) float64) []bool {
	if most <= 0 || len(list) <= most {
		return nil
	}
	places := make([]int, len(list))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(value(list[a]), value(list[b])) })
	few := make([]bool, len(list))
	for _, i := range places[:most] {
		few[i] = true
	}
	return few
}

// maxNamed bounds the names in a sentence, and the targets that are listed for one path.
const maxNamed = 8

func targetsOf(versions []*eventsv1.TargetVersion) (names []string) {
	for _, v := range versions {
		names = append(names, v.Target)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// several joins names, at most maxNamed of them.
func several(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}
