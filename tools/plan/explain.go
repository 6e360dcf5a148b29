package plan

import (
	"fmt"
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
	"landfall.build/services/profiler/bypass"
	"landfall.build/services/selector/decision"
)

// Factor is w(j) of M14 for one member of A(c): Factor = FinishesFirst + (1−FinishesFirst)·Probability.
type Factor struct {
	Change string `json:"change"`
	// Assumed is lands or rejected.
	Assumed string `json:"assumed"`
	// Probability that this becomes of it, on this path (M8, M9).
	Probability float64 `json:"probability"`
	// FinishesFirst is F of M11 where the member is bypassable (M13), else 0.
	FinishesFirst float64 `json:"finishes_first"`
	Factor        float64 `json:"factor"`
	// Terms multiply to the probability that the member lands.
	Terms []Term `json:"terms"`
}

// Term is a number with where it comes from.
type Term struct {
	Says  string  `json:"says"`
	Value float64 `json:"value"`
	// From is snapshot, default, evidence, marginal or rule.
	From string `json:"from"`
}

// Where a term comes from.
const (
	fromSnapshot = "snapshot"
	fromDefault  = "default"
	fromEvidence = "evidence"
	fromMarginal = "marginal"
	fromRule     = "rule"
)

// explainer takes the ranking's products apart: it works the factors out by the formulas of the model, one
// by one, so that what it shows is also a check on what the ranking says.
type explainer struct {
	q         *queue
	g         *graph.Graph
	marginals []float64
	start     []float64 // seconds from now
	left      []bypass.Duration
	// sparing: a bypass is funded only where it takes few builds (decision 0019).
	sparing bool
}

func newExplainer(q *queue, d *eventsv1.GraphDelta, sparing bool) *explainer {
	e := &explainer{q: q, g: graph.New(), sparing: sparing, start: make([]float64, len(q.changes)), left: make([]bypass.Duration, len(q.changes))}
	e.g.Fold(d)
	for place, c := range q.changes {
		e.marginals = append(e.marginals, e.marginal(c))
		e.left[place] = c.duration
	}
	for _, b := range q.builds {
		// A build whose path cannot come about any more says nothing about when its change is decided.
		if place, s := q.byID[b.change.id], -b.elapsed.Seconds(); b.state == stateRunning && s <= e.start[place] && e.open(b) {
			e.start[place] = s
			e.left[place] = b.change.duration.Beyond(-s)
		}
	}
	return e
}

// open says that a build's path can still come about, and is not known.
func (e *explainer) open(b *build) bool {
	n, prefix := e.node(b.change), memberset.New(len(b.change.ahead))
	for j := range b.change.ahead {
		land, fail := e.g.May(n, prefix, j)
		if in := b.assumed.Has(j); in && !land || !in && !fail {
			return false
		} else if in {
			prefix.Add(j)
		}
	}
	return n.Path(b.assumed) == graph.Unknown
}

func (e *explainer) node(c *change) *graph.Node { return e.g.Node(c.id) }

// marginal is m(c) of M7, where those of the changes before it are known.
func (e *explainer) marginal(c *change) float64 {
	if n := e.node(c); len(c.ahead) == 0 {
		switch state := n.Path(memberset.New(0)); {
		case state == graph.Green && !e.g.Held(n):
			return 1
		case state == graph.Red:
			return 0
		}
	}
	p := c.success
	for _, m := range c.ahead {
		if m.required {
			p *= e.marginals[m.at] * (1 - m.conflict) // M5a
		} else {
			p *= 1 - e.marginals[m.at]*m.conflict
		}
	}
	return p
}

// build explains a ranked build.
func (e *explainer) build(b *Build, c *change, set memberset.Set, why string) {
	prefix := memberset.New(len(c.ahead))
	for j := range c.ahead {
		b.Factors = append(b.Factors, e.factor(c, set, prefix, j))
		if set.Has(j) {
			prefix.Add(j)
		}
	}
	switch {
	case b.Action == actionKeep:
		b.Why = "it runs, and is among the best"
	case b.Action == actionStart:
		b.Why = why
	case e.covered(c, set):
		b.Why = "builds of other paths make what it waits for"
	default:
		b.Why = "no slot is free for it"
	}
}

// covered says that running builds make, on other paths, every version that this one waits for.
func (e *explainer) covered(c *change, set memberset.Set) bool {
	n := e.node(c)
	versions, _ := n.Outstanding(set)
	for _, v := range versions {
		made := false
		for _, b := range e.q.builds {
			made = made || b.change == c && b.state == stateRunning && n.Classes[v.Class].MakesOn(b.assumed, v.Members)
		}
		if !made {
			return false
		}
	}
	return true
}

func (e *explainer) factor(c *change, set, prefix memberset.Set, j int) Factor {
	m := c.ahead[j]
	of := e.q.changes[m.at]
	f := Factor{Change: of.id, Assumed: "rejected", FinishesFirst: e.before(c, m)}
	if e.sparing && !e.cheap(c, j) {
		f.FinishesFirst = 0
	}
	lands := 1.0
	f.Terms = e.terms(c, prefix, j)
	for _, t := range f.Terms {
		lands *= t.Value
	}
	if f.Probability = 1 - lands; set.Has(j) {
		f.Assumed, f.Probability = "lands", lands
	}
	f.Factor = f.FinishesFirst + (1-f.FinishesFirst)*f.Probability
	return f
}

// before is F(i,j) of M11 where j is bypassable (M13), else 0.
func (e *explainer) before(c *change, m member) float64 {
	of := e.q.changes[m.at]
	switch {
	case e.q.bypass == nil || m.required:
		return 0
	case of.held:
		return 1 // nobody waits for who holds it
	case !c.timed || !of.timed:
		return 0
	}
	i := e.q.byID[c.id]
	if f := bypass.FinishesBefore(e.start[i], e.left[i], e.start[m.at], e.left[m.at]); f >= *e.q.bypass {
		return f
	}
	return 0
}

// cheap says that no class of the member has another bypassable one, as far as something is unknown of it.
func (e *explainer) cheap(c *change, j int) bool {
	for i, k := range c.classes {
		if !slices.Contains(k, j) || e.node(c).Classes[i].Settled() {
			continue
		}
		for _, x := range k {
			if x != j && e.before(c, c.ahead[x]) > 0 && e.before(c, c.ahead[j]) > 0 {
				return false
			}
		}
	}
	return true
}

// terms multiply to q(j|S) of M8, or are what the evidence says (M9).
func (e *explainer) terms(c *change, prefix memberset.Set, j int) []Term {
	of := e.q.changes[c.ahead[j].at]
	land, fail := e.g.May(e.node(c), prefix, j)
	switch {
	case land && !fail:
		return []Term{{of.id + " is green with what this path lands before it", 1, fromEvidence}}
	case fail && !land:
		return []Term{{e.whyNot(c, of, prefix), 0, fromEvidence}}
	}
	list := []Term{{"success of " + of.id, of.success, givenOr(of.assumedSuccess)}}
	for _, m := range of.ahead {
		id, place := e.q.changes[m.at].id, c.indexOf(m.at)
		conflict := Term{fmt.Sprintf("no conflict of %s with %s", of.id, id), 1 - m.conflict, givenOr(m.assumed || !m.conflicts)}
		if m.unmerged {
			conflict = Term{fmt.Sprintf("%s does not merge with %s", of.id, id), 0, fromRule}
		}
		switch {
		case place >= 0 && m.required:
			list = append(list, Term{fmt.Sprintf("%s requires %s, which lands on this path", of.id, id), 1, fromRule})
		case place >= 0:
			if prefix.Has(place) {
				list = append(list, conflict)
			}
		case m.required:
			list = append(list, Term{fmt.Sprintf("%s, which %s requires, lands", id, of.id), e.marginals[m.at], fromMarginal}, conflict)
		default:
			list = append(list, Term{fmt.Sprintf("%s does not land, or %s has no conflict with it", id, of.id), 1 - e.marginals[m.at]*m.conflict, fromMarginal})
		}
	}
	return list
}

func givenOr(assumed bool) string {
	if assumed {
		return fromDefault
	}
	return fromSnapshot
}

// whyNot says what shows that a member does not land on a path.
func (e *explainer) whyNot(c, of *change, prefix memberset.Set) string {
	inside := memberset.New(len(of.ahead))
	for x, m := range of.ahead {
		place := c.indexOf(m.at)
		in := place >= 0 && prefix.Has(place)
		if in {
			inside.Add(x)
		}
		switch id := e.q.changes[m.at].id; {
		case in && m.unmerged:
			return fmt.Sprintf("%s does not merge with %s", of.id, id)
		case place >= 0 && !in && m.required:
			return fmt.Sprintf("%s requires %s", of.id, id)
		}
	}
	return fmt.Sprintf("%s is red with what this path lands before it (%s)", of.id, e.node(of).PathOutcome(inside).Message)
}

// maxWaits bounds the paths that are named for a change that waits.
const maxWaits = 8

// decisions explains the decisions.
func (e *explainer) decisions(list []Decision) {
	for i := range list {
		d, c := &list[i], e.q.changes[i]
		n := e.node(c)
		switch d.Decision {
		case decision.Land.String():
			d.Why = "every path that can still come about is green"
			continue
		case decision.Reject.String():
			d.Why = "every path is red: " + n.PathOutcome(memberset.New(len(c.ahead))).Message
			continue
		}
		red := 0
		e.g.EachPath(n, false, func(s memberset.Set) bool {
			switch n.Path(s) {
			case graph.Unknown:
				d.WaitsFor = append(d.WaitsFor, e.q.names(c, s))
			case graph.Red:
				red++
			}
			return len(d.WaitsFor) < maxWaits
		})
		d.Why = e.whyWait(c, n, d.WaitsFor, red)
	}
}

func (e *explainer) whyWait(c *change, n *graph.Node, unknown [][]string, red int) string {
	switch {
	case len(unknown) > 0 && len(c.ahead) == 0:
		return "no build of it has finished"
	case len(unknown) == maxWaits:
		return fmt.Sprintf("%d paths or more that can come about are not known", maxWaits)
	case len(unknown) == 1:
		return "one path that can come about is not known: on top of " + told(unknown[0])
	case len(unknown) > 1:
		return fmt.Sprintf("%d paths that can come about are not known", len(unknown))
	case e.g.Held(n) && n.Path(memberset.New(len(c.ahead))) == graph.Green:
		return "it is held"
	case red > 0:
		return "what is ahead of it decides: it is red on some paths that can come about"
	}
	return "what is ahead of it has to be decided first"
}

func told(ids []string) string {
	if len(ids) == 0 {
		return "the mainline alone"
	}
	return strings.Join(ids, ", ")
}
