package view

import (
	"sort"
	"time"

	"landfall.build/engine/explanation"
	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// Ask calls its argument with the queue, under the queue's lock.
type Ask func(func(*Queue))

// Inquiry is somebody's question for a full explanation. It holds copies, so that working out the answer does not hold up
// the queue: ExplainNow explains by what is known now; ExplainThen by what was known when builds were scheduled and
// decisions taken, which only the log has. While WantsLog, its caller reads landfall.profiles from Offset on.
type Inquiry struct {
	Answer *Full
	// Offset is that of the first counted profile to be read, Term the one that it was written under.
	Offset, Term int64
	of           *eventsv1.ChangeRef
	// now is what is known now; nil once the change is out of the queue.
	now *explanation.State
	// ranked has, for each path of Answer.Ranked, the changes that it assumes to land.
	ranked [][]*eventsv1.ChangeRef
	// running has, by index in Answer.Builds, the changes that a running build assumes to land.
	running map[int][]*eventsv1.ChangeRef
	// then is what was known at the last profile that was read.
	then *explanation.State
	// moments are still to be explained, by position.
	moments []moment
}

// moment is when a build was scheduled or a decision taken: one of build and decision is set.
type moment struct {
	position int64
	// assumed are the changes that the build assumes to land.
	assumed  []*eventsv1.ChangeRef
	build    *BuildReasons
	decision *DecisionTaken
}

// Inquire returns the question why a change is where it is; false if it is not kept.
func (q *Queue) Inquire(id string) (*Inquiry, bool) {
	c := q.changes[id]
	if c == nil {
		return nil, false
	}
	f := &Full{Position: q.known.Position(), At: stamp(q.known.Stamp(), time.Time{}), Ranked: []RankedPath{}, Builds: []BuildReasons{}, Decisions: []DecisionTaken{}}
	i := &Inquiry{Answer: f, of: &eventsv1.ChangeRef{Change: c.admission.Change, Revision: c.admission.Revision}, running: map[int][]*eventsv1.ChangeRef{}}
	if c.pending() {
		i.now = q.known.Clone()
		for rank, b := range q.priority.ranking.GetBest() {
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
			Build: b.id, State: shown.State, Position: b.position, Why: b.why(), Message: shown.Message, Needed: b.fact.Needed, Value: b.fact.Value,
		})
		if i.now != nil && q.active(b) {
			i.running[x] = b.assumedRefs()
		}
	}
	for _, r := range q.history.decisions[c.ref()] {
		f.Decisions = append(f.Decisions, DecisionTaken{Decision: r.kind, Position: r.position, At: r.at})
	}
	i.addMoments(builds)
	switch from := q.history.from[c.ref()]; {
	case len(i.moments) == 0:
	case from != nil:
		i.Offset, i.Term, i.then = from.offset, from.term, explanation.New(from.settings, from.mainline)
	case c.pending():
		i.Omit("The predictions for it were not read yet; ask again.")
	default:
		i.Omit("It is no longer known where in the log its history begins.")
	}
	return i, true
}

// addMoments lists when builds were scheduled and decisions taken.
func (i *Inquiry) addMoments(builds []*build) {
	for x, b := range builds {
		if b.scheduled {
			i.moments = append(i.moments, moment{position: b.position, build: &i.Answer.Builds[x], assumed: b.assumedRefs()})
		}
	}
	for x := range i.Answer.Decisions {
		r := &i.Answer.Decisions[x]
		i.moments = append(i.moments, moment{position: r.Position, decision: r})
	}
	sort.SliceStable(i.moments, func(a, b int) bool { return i.moments[a].position < i.moments[b].position })
}

// how returns what an explanation asks the view for.
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

// ExplainNow explains by what is known now.
func (i *Inquiry) ExplainNow(ask Ask) {
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

// WantsLog reports whether something is still to be read from the log.
func (i *Inquiry) WantsLog() bool { return i.then != nil && len(i.moments) > 0 }

// ExplainThen folds the next counted profile, and explains what was decided on it.
func (i *Inquiry) ExplainThen(p *eventsv1.Profile, ask Ask) {
	i.then.Apply(p)
	var e *explanation.Explainer
	for ; len(i.moments) > 0 && i.moments[0].position <= p.Position; i.moments = i.moments[1:] {
		m := i.moments[0]
		if m.position < p.Position {
			i.Omit(notAll)
			continue
		}
		if e == nil {
			e = i.then.Explainer(how(ask))
		}
		if m.build != nil {
			m.build.Then = e.Worth(i.of, m.assumed)
		} else {
			m.decision.Then = e.Verdict(i.of)
		}
	}
}

// notAll is said where no profile has the position on which a decision was taken.
const notAll = "The log does not hold everything that was known then."

// EndOfLog is called when the log has no more profiles.
func (i *Inquiry) EndOfLog() {
	if i.WantsLog() {
		i.Omit(notAll)
	}
}

// Omit notes why the answer leaves out what was known then.
func (i *Inquiry) Omit(why string) { i.Answer.Omitted = why }
