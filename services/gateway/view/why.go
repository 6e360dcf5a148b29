package view

import (
	"fmt"
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/lineup"
)

func sortedUnique(of []string) []string {
	slices.Sort(of)
	return slices.Compact(of)
}

// standing is what a change's sentence and state are made from, gathered once.
type standing struct {
	position int
	running  []Build
	node     *eventsv1.Node
	state    string
}

func (q *Queue) standingOf(c *change, position int) standing {
	s := standing{position: position}
	if c.settled != 0 {
		s.state = c.settled.String()
		if c.dropped != nil {
			s.state = StateDropped
		}
		return s
	}
	s.node = q.nodes[c.ref()]
	for _, b := range q.ofChange[c.ref()] {
		if q.active(b) {
			s.running = append(s.running, q.shownBuild(b, false))
		}
	}
	switch {
	case q.lineup.Intended(c.admission.Change), q.decided[c.ref()].kind == StateLanded,
		onMainline(s.node) == eventsv1.OutcomeState_OUTCOME_STATE_GREEN:
		s.state = StatePassed
	case len(s.running) > 0:
		s.state = StateTesting
	default:
		s.state = StateWaiting
	}
	return s
}

// holdNamed names a hold where a release must: the usual one goes without.
func holdNamed(name string) string {
	if name == DefaultHold {
		return ""
	}
	return " (hold " + name + ")"
}

// reasons says what a change waits for, most decisive first, or how it ended. There is always one.
func (q *Queue) reasons(c *change, s standing) []Reason {
	if c.settled != 0 {
		return []Reason{q.ending(c)}
	}
	id := c.admission.Change
	if q.lineup.Intended(id) {
		return append(q.troubleReasons(), Reason{Code: ReasonLanding, Sentence: "It is being pushed to the mainline."})
	}
	out := q.troubleReasons()
	add := func(r ...Reason) { out = append(out, r...) }
	if p := q.lineup.Paused; p != nil {
		add(Reason{Code: ReasonPaused, Who: p.Who, Sentence: "The queue is paused by " + person(p.Who) + because(p.Why) + "; builds go on, nothing lands."})
	}
	entry := q.lineup.Pending(id)
	for _, h := range entry.Holds {
		add(Reason{Code: ReasonHeld, Who: h.Who, Sentence: "It is held by " + person(h.Who) + holdNamed(h.Name) + because(h.Why) + "; release it to let it land."})
	}
	if d := q.decided[c.ref()]; d.kind != "" {
		add(Reason{Code: ReasonDeciding, Sentence: "It is decided (" + d.kind + "); the lander checks this on the mainline as it stands."})
	}
	add(q.requirementReasons(c)...)
	add(q.analysisReasons(s)...)
	add(q.blockedReasons(s)...)
	ahead := q.aheadReasons(s)
	if s.state == StatePassed {
		add(ahead...)
		if len(out) == 0 {
			add(Reason{Code: ReasonDeciding, Sentence: "It passed on the mainline as it stands and is about to be decided."})
		}
		return out
	}
	add(q.buildReasons(c, s)...)
	add(ahead...)
	if len(out) == 0 {
		add(Reason{Code: ReasonDeciding, Sentence: "It waits for the next round of scheduling."})
	}
	return out
}

// blockedReasons are about targets in which the mainline itself keeps the change waiting (M23a).
func (q *Queue) blockedReasons(s standing) []Reason {
	targets := blockedTargets(s.node)
	if len(targets) == 0 {
		return nil
	}
	red := q.mainlineRed()
	text := "The mainline is not known to be green in " + names(targets) + " yet, since somebody pushed past the queue; it waits until that is built."
	if slices.ContainsFunc(targets, func(t string) bool { return slices.Contains(red, t) }) {
		text = "The mainline itself is red in " + names(targets) + ", since somebody pushed past the queue; it waits until that is repaired."
	}
	return []Reason{{Code: ReasonMainlineRed, Targets: targets, Sentence: text}}
}

func (q *Queue) requirementReasons(c *change) []Reason {
	var out []Reason
	for _, id := range c.admission.Requires {
		switch state := q.lineup.RequirementState(id); state {
		case lineup.Landed:
		case lineup.Pending:
			out = append(out, Reason{Code: ReasonRequires, Changes: []string{id}, Sentence: "It requires " + id + ", which has not landed yet."})
		default:
			out = append(out, Reason{Code: ReasonRequires, Changes: []string{id}, Sentence: "It requires " + id + ", which was " + state.String() + "; it cannot land."})
		}
	}
	return out
}

func (q *Queue) analysisReasons(s standing) []Reason {
	switch {
	case q.mainline != nil && !q.mainline.Analyzed && q.lineup.Head != "":
		return []Reason{{Code: ReasonMainline, Sentence: "Somebody pushed to the mainline past the queue; what that did is being analysed first."}}
	case s.node == nil || (!s.node.Analyzed && q.changes[s.node.Change.GetChange()].analysisMissing()):
		return []Reason{{Code: ReasonAnalysis, Sentence: "It is being analysed: which targets it affects, and whom it meets."}}
	case !s.node.Analyzed:
		return []Reason{{Code: ReasonAnalysis, Sentence: "Changes ahead of it are still being analysed."}}
	}
	return nil
}

func (c *change) analysisMissing() bool { return c == nil || c.analysis == nil }

func (q *Queue) buildReasons(c *change, s standing) []Reason {
	if len(s.running) > 0 {
		b := s.running[0]
		text := "Its build is being prepared"
		if b.State == BuildRunning {
			text = fmt.Sprintf("A build is running: %d of %s done", b.StepsDone, count(b.StepsTotal, "step"))
		}
		if len(b.Assumed) > 0 {
			text += ", assuming that " + names(b.Assumed) + " " + verb(len(b.Assumed), "lands", "land")
		}
		if more := len(s.running) - 1; more > 0 {
			text += fmt.Sprintf("; and %s more", count(more, "build"))
		}
		return []Reason{{Code: ReasonBuilding, Changes: b.Assumed, Sentence: text + "."}}
	}
	rank, wanted := q.rank(c.ref())
	if !wanted || s.node == nil || !s.node.Analyzed {
		return nil
	}
	if running := q.runningBuilds(); q.settings.GetWorkers() > 0 && running >= int(q.settings.GetWorkers()) {
		return []Reason{{Code: ReasonNoWorker, Sentence: fmt.Sprintf("Its build is wanted (place %d), but all %s are taken.", rank, count(running, "worker"))}}
	}
	return []Reason{{Code: ReasonNoWorker, Sentence: fmt.Sprintf("Its build is wanted (place %d) and about to start.", rank)}}
}

func (q *Queue) aheadReasons(s standing) []Reason {
	var pending, targets []string
	merge := false
	for _, a := range s.node.GetAhead() {
		if q.pendingAt(refOf(a.Change)) == nil || !(a.Conflicts || a.MergeConflict) {
			continue
		}
		pending = append(pending, a.Change.GetChange())
		targets = append(targets, a.Targets...)
		merge = merge || a.MergeConflict
	}
	if len(pending) == 0 {
		return nil
	}
	text := names(pending) + " " + verb(len(pending), "is", "are") + " ahead of it"
	targets = sortedUnique(targets)
	switch {
	case len(targets) > 0:
		text += " and " + verb(len(pending), "meets", "meet") + " it in " + names(targets)
	case merge:
		text += " and " + verb(len(pending), "does", "do") + " not merge with it"
	}
	return []Reason{{Code: ReasonAhead, Changes: pending, Targets: targets, Sentence: text + "."}}
}

func (q *Queue) ending(c *change) Reason {
	switch c.settled {
	case lineup.Landed:
		if c.dropped != nil {
			return Reason{Code: ReasonDropped, Sentence: c.droppedText()}
		}
		return Reason{Code: ReasonLanded, Sentence: landedText(c.landed), Changes: refNames(c.landed.GetBypasses())}
	case lineup.Rejected, lineup.Ejected:
		r := Reason{Code: c.settled.String()}
		r.Sentence = strings.ToUpper(r.Code[:1]) + r.Code[1:] + ": " + reasonText(c.reason, q.below(c.reason)) + "."
		if other := c.reason.GetOther(); other != "" {
			r.Changes = []string{other}
		}
		for _, p := range c.reason.GetFailed() {
			r.Targets = append(r.Targets, p.GetVersion().GetTarget())
		}
		r.Targets = sortedUnique(r.Targets)
		return r
	}
	return Reason{Code: ReasonCancelled, Who: c.cancelled.Who, Sentence: "Cancelled by " + person(c.cancelled.Who) + because(c.cancelled.Why) + "."}
}

// below names the changes that the builds behind a reason were made on top of.
func (q *Queue) below(r *eventsv1.Reason) []string {
	var out []string
	for _, p := range r.GetFailed() {
		if b := q.builds[p.Build]; b != nil {
			out = append(out, b.assumed()...)
		}
	}
	return sortedUnique(out)
}

// reasonText says what speaks against a change, in which targets, and on top of whom it was seen.
func reasonText(r *eventsv1.Reason, below []string) string {
	text := strings.TrimRight(r.GetMessage(), ".")
	var failed []string
	for _, p := range r.GetFailed() {
		if t := p.GetVersion().GetTarget(); !strings.Contains(text, t) {
			failed = append(failed, t)
		}
	}
	var where []string
	if failed = sortedUnique(failed); len(failed) > 0 {
		where = append(where, "in "+names(failed))
	}
	if len(below) > 0 {
		where = append(where, "built on top of "+names(below))
	}
	if len(where) > 0 {
		text += " (" + strings.Join(where, ", ") + ")"
	}
	return text
}

// runningBuilds counts the builds that hold a worker's slot.
func (q *Queue) runningBuilds() int {
	if q.running.seq == q.seq {
		return q.running.count
	}
	q.running.seq, q.running.count = q.seq, 0
	for of, mine := range q.ofChange {
		if of.change != "" && q.pendingAt(of) == nil {
			continue
		}
		for _, b := range mine {
			if q.active(b) {
				q.running.count++
			}
		}
	}
	return q.running.count
}
