package view

import (
	"sort"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
	"landfall.build/services/prioritizer/explanation"
)

// Ask calls its argument with the queue, which nobody changes meanwhile.
type Ask func(func(*Queue))

// Inquiry is a question why, in full. Making it costs the queue little; the answer is worked out on copies, by Now, and by Take for
// what was known when builds were scheduled and decisions taken. That is in the log: whoever reads gives Take the counted profiles of
// the queue from Offset on, which is that of one that counts, written under Term.
type Inquiry struct {
	Answer       *Full
	Offset, Term int64
	of           *eventsv1.ChangeRef
	// now is what is known; nil once the change is out of the queue.
	now     *explanation.State
	ranked  [][]*eventsv1.ChangeRef // what the paths in Answer.Ranked let land
	running map[int][]*eventsv1.ChangeRef
	// then is what was known at the last profile that was taken.
	then   *explanation.State
	wanted []wanted // by position
}

// wanted is a moment that is to be explained: of a build, or of a decision.
type wanted struct {
	position int64
	assumed  []*eventsv1.ChangeRef
	build    *BuildReasons
	ruling   *Ruling
}

// Inquire asks why a change is where it is; false if it is not kept.
func (q *Queue) Inquire(id string) (*Inquiry, bool) {
	c := q.changes[id]
	if c == nil {
		return nil, false
	}
	f := &Full{Position: q.known.Position(), At: stamp(q.known.Stamp(), time.Time{}), Ranked: []RankedPath{}, Builds: []BuildReasons{}, Decisions: []Ruling{}}
	i := &Inquiry{Answer: f, of: &eventsv1.ChangeRef{Change: c.admission.Change, Revision: c.admission.Revision}, running: map[int][]*eventsv1.ChangeRef{}}
	if c.settled == 0 {
		i.now = q.known.Clone()
		for rank, b := range q.ranking.GetBest() {
			if refOf(b.Change) == c.ref() && len(f.Ranked) < shownRanked {
				f.Ranked = append(f.Ranked, RankedPath{Rank: rank + 1, Build: q.runningOn(c.ref(), b.Assumed), Needed: b.Needed, Value: b.Value})
				i.ranked = append(i.ranked, b.Assumed)
			}
		}
	}
	builds := q.inOrder(c.ref())
	for x, b := range builds {
		shown := q.shownBuild(b, false)
		f.Builds = append(f.Builds, BuildReasons{
			Build: b.id, State: shown.State, Position: b.position, Why: b.fact.Why, Message: shown.Message, Needed: b.fact.Needed, Value: b.fact.Value,
		})
		if i.now != nil && q.active(b) {
			i.running[x] = b.assumedRefs()
		}
	}
	for _, r := range q.rulings[c.ref()] {
		f.Decisions = append(f.Decisions, Ruling{Decision: r.kind, Position: r.position, At: r.at})
	}
	i.want(builds)
	switch from := q.from[c.ref()]; {
	case len(i.wanted) == 0:
	case from != nil:
		i.Offset, i.Term, i.then = from.offset, from.term, explanation.New(from.settings, from.mainline)
	case c.settled == 0:
		i.Omit("What is predicted of it was not read yet; ask again.")
	default:
		i.Omit("Where the log began to tell of it is not known any more.")
	}
	return i, true
}

// want lists the moments of which only the log tells.
func (i *Inquiry) want(builds []*build) {
	for x, b := range builds {
		if b.scheduled {
			i.wanted = append(i.wanted, wanted{position: b.position, build: &i.Answer.Builds[x], assumed: b.assumedRefs()})
		}
	}
	for x := range i.Answer.Decisions {
		r := &i.Answer.Decisions[x]
		i.wanted = append(i.wanted, wanted{position: r.Position, ruling: r})
	}
	sort.SliceStable(i.wanted, func(a, b int) bool { return i.wanted[a].position < i.wanted[b].position })
}

func how(ask Ask) explanation.How {
	return explanation.How{
		Factors: shownFactors, Terms: shownTerms,
		Worthless: func(build string, position int64) (is bool) {
			ask(func(q *Queue) { is = q.wasWorthless(build, position) })
			return is
		},
		Proof: func(n *graph.Node, class int, members memberset.Set) (list []explanation.Proof) {
			ask(func(q *Queue) { list = q.proof(n, class, members) })
			return list
		},
	}
}

// Now answers what is known now.
func (i *Inquiry) Now(ask Ask) {
	if i.now == nil {
		return
	}
	now := how(ask)
	now.Active = func(c *eventsv1.ChangeRef) (list []explanation.Scheduled) {
		ask(func(q *Queue) { list = q.scheduledNow(c) })
		return list
	}
	e, f := i.now.Explainer(now), i.Answer
	f.Prediction, f.Verdict = e.Prediction(i.of), e.Verdict(i.of)
	for x, assumed := range i.ranked {
		f.Ranked[x].Worth = e.Worth(i.of, assumed)
	}
	for x, assumed := range i.running {
		b := &f.Builds[x]
		if b.Now = e.Running(b.Build); b.Now == nil { // that it is prepared was not read yet
			b.Now = e.Worth(i.of, assumed)
		}
	}
}

// Wants says that something is to be read from the log.
func (i *Inquiry) Wants() bool { return i.then != nil && len(i.wanted) > 0 }

// Take folds the next counted profile, and explains what was decided on it.
func (i *Inquiry) Take(m *eventsv1.Profile, ask Ask) {
	i.then.Apply(m)
	var e *explanation.Explainer
	for ; len(i.wanted) > 0 && i.wanted[0].position <= m.Position; i.wanted = i.wanted[1:] {
		w := i.wanted[0]
		if w.position < m.Position {
			i.Omit(notAll)
			continue
		}
		if e == nil {
			e = i.then.Explainer(how(ask))
		}
		if w.build != nil {
			w.build.Then = e.Worth(i.of, w.assumed)
		} else {
			w.ruling.Then = e.Verdict(i.of)
		}
	}
}

// notAll is said where a decision names a position of which no profile speaks.
const notAll = "The log does not tell all of what was known."

// End says that the log has no more.
func (i *Inquiry) End() {
	if i.Wants() {
		i.Omit(notAll)
	}
}

// Omit says why nothing more of the past is told.
func (i *Inquiry) Omit(why string) { i.Answer.Omitted = why }
