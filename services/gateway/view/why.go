package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

func sortedUnique(of []string) []string {
	slices.Sort(of)
	return slices.Compact(of)
}

// standing is what a change's state and reasons are made from.
type standing struct {
	position int
	running  []Build
	node     *eventsv1.Node
	state    string
}

func (q *Queue) standingOf(c *change, position int) standing {
	s := standing{position: position}
	if !c.pending() {
		s.state = c.end.state.String()
		if c.end.dropped != nil {
			s.state = StateDropped
		}
		return s
	}
	s.node = q.node(c.ref())
	for _, b := range q.builds.ofChange[c.ref()] {
		if q.active(b) {
			s.running = append(s.running, q.shownBuild(b, false))
		}
	}
	switch {
	case q.lineup.Intended(c.admission.Change), q.open[c.ref()].kind == StateLanded,
		onMainline(s.node) == eventsv1.OutcomeState_OUTCOME_STATE_GREEN:
		s.state = StatePassed
	case len(s.running) > 0:
		s.state = StateTesting
	default:
		s.state = StateWaiting
	}
	return s
}

// told returns the build that the summary of a change that is tested is about: the first one with a running step, else the first one.
// Of any other change it returns the zero Build.
func (s standing) told() (b Build) {
	if s.state == StateTesting {
		b = s.running[max(0, slices.IndexFunc(s.running, func(b Build) bool { return b.StepsRunning > 0 }))]
	}
	return b
}

// awaitsSteps reports whether steps have to pass before a change can be decided: those are known.
func (s standing) awaitsSteps() bool {
	return s.state != StatePassed && s.node != nil && s.node.Analyzed && len(blockedTargets(s.node)) == 0
}

// pauseText says by whom the queue is paused, and why.
func (q *Queue) pauseText() string {
	p := q.lineup.Paused
	return "The queue is paused by " + person(p.Who) + because(p.Why) + "; builds continue, nothing lands."
}

// holdNamed names a hold that has to be named to be released: the default one need not be.
func holdNamed(name string) string {
	if name == DefaultHold {
		return ""
	}
	return " (hold " + name + ")"
}

// reasons returns what a change waits for, most decisive first, or how it ended. There is at least one.
func (q *Queue) reasons(c *change, s standing) []Reason {
	if !c.pending() {
		return []Reason{q.ending(c)}
	}
	id := c.admission.Change
	out := append(q.serviceReasons(s), q.remoteReasons(c)...)
	if q.lineup.Intended(id) {
		return append(out, Reason{Code: ReasonLanding, Sentence: "It is being pushed to the mainline."})
	}
	add := func(r ...Reason) { out = append(out, r...) }
	if a := c.analysis; a != nil && a.Outcome != "analyzed" {
		add(Reason{Code: ReasonCannotLand, Sentence: stopped("As it stands it cannot land: " + strings.ReplaceAll(a.Message, "\n", " "))})
	}
	if p := q.lineup.Paused; p != nil {
		add(Reason{Code: ReasonPaused, Who: p.Who, Sentence: q.pauseText()})
	}
	add(q.heldReasons(c)...)
	refused := q.lineup.RefusedByRemote != nil || c.pushRefused() // its push is tried again, and the reasons say so
	if d := q.open[c.ref()]; d.kind != "" && !(refused && d.kind == StateLanded) {
		text := "It is about to be " + d.kind
		if d.kind == StateLanded {
			text = "It is ready to land"
		}
		if !refused {
			text += "; the last check, on the mainline as it stands, is running"
		}
		add(Reason{Code: ReasonDeciding, Sentence: text + "."})
	}
	add(q.requirementReasons(c)...)
	add(q.analysisReasons(s)...)
	quota, runs := q.overQuota(c.ref())
	if quota != nil && !runs && s.awaitsSteps() {
		add(quota.reason())
	}
	if s.state == StateTesting {
		add(q.buildReasons(c, s)...) // perhaps on top of what repairs the mainline
		if quota != nil && runs {
			add(quota.reason())
		}
	}
	add(q.blockedReasons(s)...)
	ahead := q.aheadReasons(c, s)
	if s.state == StatePassed {
		add(ahead...)
		if why := c.analysis.whyUnbuilt(); len(out) == 0 && why != "" {
			add(Reason{Code: ReasonDeciding, Sentence: "Nothing is built for it: " + why + "; the decision is next."})
		} else if len(out) == 0 {
			add(Reason{Code: ReasonDeciding, Sentence: "All its steps passed on the mainline as it stands" + exceptQuarantined(q.toleratedNow(c.ref())) + "; the decision is next."})
		}
		return out
	}
	if s.state != StateTesting {
		add(q.buildReasons(c, s)...)
	}
	add(ahead...)
	if !slices.ContainsFunc(out, func(r Reason) bool { return ofQueue[r.Code] == "" }) {
		add(Reason{Code: ReasonDeciding, Sentence: "It waits for a build to be scheduled."})
	}
	return out
}

// remoteReasons returns what the remote, or what is between it and the lander, keeps a change waiting for.
func (q *Queue) remoteReasons(c *change) []Reason {
	return slices.Concat(q.pausedByRemoteReasons(), q.troubleReasons(), q.pushRefusedReasons(c))
}

// blockedReasons returns which targets keep the change waiting because of the mainline itself (M23a), and what helps.
func (q *Queue) blockedReasons(s standing) []Reason {
	targets := blockedTargets(s.node)
	if len(targets) == 0 {
		return nil
	}
	id := s.node.GetChange().GetChange()
	// in continues "It fails in" with the mainline's own targets: a change that affects everything fails as the whole repository.
	in := func(list []string, one, many string) string {
		text, joint := names(targets), ", which "
		if !slices.Equal(list, targets) {
			joint = ", and " + names(list) + " "
		}
		return text + joint + verb(len(list), one, many)
	}
	again := " If it failed by chance, or for something outside of the tree that is mended by now, `landfall retry " + id + "` runs it again there."
	reason := func(text, helps string, list []string) Reason {
		return Reason{Code: ReasonMainlineRed, Targets: sortedUnique(slices.Concat(targets, list)), Sentence: text + helps, brief: text}
	}
	var out []Reason
	unproven, red := holding(targets, q.redUnproven()), holding(targets, q.mainlineRed())
	if len(unproven) > 0 {
		said := in(unproven, "has", "have") + " been red on the mainline since before the queue"
		switch proved, quarantined := q.verifiedByLandings(unproven), q.landedQuarantined(unproven); {
		case len(proved) == len(unproven) && len(proved) == 1:
			said = in(unproven, "is", "are") + " red on the mainline, where it passed when " + proved[0].change + " landed"
		case len(proved) > 0:
			said = in(unproven, "is", "are") + " red on the mainline; " + proved[0].target + " passed there when " + proved[0].change + " landed"
		case len(quarantined) > 0:
			said = in(unproven, "is", "are") + " red on the mainline; " + quarantined[0].change + " landed while " + quarantined[0].target + " was quarantined"
		case len(without(unproven, q.redBeforeQueue())) > 0:
			said = in(unproven, "is", "are") + " red on the mainline, and nothing proves that " + verb(len(unproven), "it was", "they were") + " green there"
		}
		helps := " Once a commit repairs " + verb(len(unproven), "it", "them") + ", there or in this change, it goes on by itself." + again
		if at, passed := q.passedBefore(unproven[0]); passed && len(unproven) == 1 {
			said = in(unproven, "fails", "fail") + " on the mainline too by now, without this change; it passed there at " + at.Format(time.DateTime) + " UTC, so something else has changed that its steps need: outside of the tree, or a file that no target covers"
			helps = " Once that is back, `landfall retry " + id + "` runs it there again; a commit to its own files does so by itself."
			if known := q.knownFlake(unproven[0]); known != "" {
				said = unproven[0] + " (" + known + "), which fails on the mainline too by now, without this change; it passed there at " + at.Format(time.DateTime) + " UTC"
				helps = " `landfall retry " + id + "` runs it there again; a quarantine keeps it from blocking others."
			}
		}
		out = append(out, reason("It fails in "+said+"; nobody is rejected for that.", helps, unproven))
	}
	broken := map[string][]string{} // by what broke them
	for _, t := range without(red, unproven) {
		broken[q.brokenBy(t)] = append(broken[q.brokenBy(t)], t)
	}
	for _, by := range slices.Sorted(maps.Keys(broken)) {
		out = append(out, reason(strings.ToUpper(by[:1])+by[1:]+" broke "+names(broken[by])+" on the mainline itself; the change waits until that is repaired.", again, broken[by]))
	}
	switch {
	case len(out) > 0:
	case len(q.runsAgain(targets)) > 0:
		running := q.runsAgain(targets)
		out = append(out, reason("It fails in "+names(targets)+". Before it is rejected, "+names(running)+" "+verb(len(running), "runs", "run")+" once more on the mainline, without this change, where "+verb(len(running), "it", "they")+" passed before.", "", running))
	case q.needsRetry(s.node):
		out = append(out, reason(q.unverifiedText(id, targets), "", nil))
	case len(q.verifiedByLandings(holding(targets, q.check.GetInherited()))) > 0:
		proved := q.verifiedByLandings(holding(targets, q.check.GetInherited()))[0]
		out = append(out, reason("It fails in "+in([]string{proved.target}, "passed", "passed")+" on the mainline when "+proved.change+" landed; whether it still does is verified first.", "", nil))
	case len(holding(targets, q.check.GetInherited())) > 0:
		out = append(out, reason("It fails in "+names(targets)+", and the mainline itself has never been proven green there; that is being verified first.", "", nil))
	default:
		out = append(out, reason("A direct push"+q.pushOf(targets...)+" changed "+names(targets)+" on the mainline, and the steps for that have not finished; the change waits for them.", "", nil))
	}
	return out
}

// without returns the members of a list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(t string) bool { return slices.Contains(other, t) })
}

// stuckReasons returns what a pending change waits for that does not pass by itself: holds, and the mainline.
func (q *Queue) stuckReasons(c *change) []Reason {
	if c == nil || !c.pending() {
		return nil
	}
	return append(q.heldReasons(c), q.blockedReasons(q.standingOf(c, 0))...)
}

// heldReasons returns who holds a pending change.
func (q *Queue) heldReasons(c *change) (out []Reason) {
	for _, h := range q.lineup.Pending(c.admission.Change).Holds {
		out = append(out, Reason{Code: ReasonHeld, Who: h.Who, Sentence: "It is held by " + person(h.Who) + holdNamed(h.Name) + because(h.Why) + "; release it to let it land."})
	}
	return out
}

func (q *Queue) requirementReasons(c *change) []Reason {
	var out []Reason
	for _, id := range c.admission.Requires {
		switch state := q.lineup.RequirementState(id); state {
		case lineup.Landed:
		case lineup.Pending:
			out = append(out, Reason{Code: ReasonRequires, Changes: []string{id}, Sentence: "It requires " + id + ", which has not landed yet." + q.whatItWaitsFor(id)})
		default:
			out = append(out, Reason{Code: ReasonRequires, Changes: []string{id}, Sentence: "It requires " + id + ", which was " + state.String() + "; it cannot land."})
		}
	}
	return out
}

func (q *Queue) analysisReasons(s standing) []Reason {
	switch {
	case q.known.Mainline() != nil && !q.known.Mainline().Analyzed && q.lineup.Head != "":
		return []Reason{{Code: ReasonMainline, Sentence: "A direct push to the mainline" + q.pushBeingAnalyzed() + " is being analysed first."}}
	case s.node == nil || (!s.node.Analyzed && q.changes[s.node.Change.GetChange()].analysisMissing()):
		return []Reason{{Code: ReasonAnalysis, Sentence: "It is being analysed: which targets it affects, and which changes it conflicts with."}}
	case !s.node.Analyzed:
		text := "It is analysed; its conflicts with changes ahead are being computed."
		ahead := q.unanalyzedBefore(s.node.GetChange().GetChange())
		if len(ahead) > 0 {
			text = names(ahead) + " ahead of it " + verb(len(ahead), "is", "are") + " still being analysed."
		}
		return []Reason{{Code: ReasonAnalysis, Changes: ahead, Sentence: text}}
	}
	return nil
}

// unanalyzedBefore returns the pending changes ahead of another that are not analysed.
func (q *Queue) unanalyzedBefore(id string) (out []string) {
	for _, entry := range q.lineup.Order() {
		if entry.ID() == id {
			break
		}
		if q.changes[entry.ID()].analysisMissing() {
			out = append(out, entry.ID())
		}
	}
	return out
}

func (c *change) analysisMissing() bool { return c == nil || c.analysis == nil }

func (q *Queue) buildReasons(c *change, s standing) []Reason {
	if len(s.running) > 0 {
		b := s.told()
		text := "Its build is being prepared"
		switch {
		case b.State == BuildRunning && b.StepsRunning == 0:
			text = "A build waits for a worker"
			if b.StepsDone > 0 {
				text += fmt.Sprintf(": %d of %s done", b.StepsDone, count(b.StepsTotal, "step"))
			}
		case b.State == BuildRunning:
			text = fmt.Sprintf("A build is running: %d of %s done", b.StepsDone, count(b.StepsTotal, "step"))
			if cache := q.fillingFor(b.Build); cache != "" {
				text += "; the " + fillingText(cache)
			}
		}
		assumed := q.notLanded(b.Assumed)
		if len(assumed) > 0 {
			text += ", assuming that " + names(assumed) + " " + verb(len(assumed), "lands", "land")
		}
		if more := len(s.running) - 1; more > 0 {
			text += fmt.Sprintf("; and %d more %s", more, verb(more, "build", "builds"))
		}
		return []Reason{{Code: ReasonBuilding, Changes: assumed, Sentence: text + "."}}
	}
	place := q.inLine(c.ref())
	if place == 0 || s.node == nil || !s.node.Analyzed {
		return nil
	}
	text := "It is " + ordinal(place) + " in line to be built"
	running := q.runningBuilds()
	switch pool := q.pool(); {
	case pool != nil && pool.Busy >= pool.Workers:
		text += "; all " + count(pool.Workers, "worker") + " are busy"
	case pool == nil && q.known.Settings().GetWorkers() > 0 && running >= int(q.known.Settings().GetWorkers()):
		text += "; " + count(running, "build") + " run, as many as the queue may have"
	}
	return []Reason{{Code: ReasonNoWorker, Sentence: text + "."}}
}

func (c *change) affectsEverything() bool {
	return c != nil && c.analysis != nil && c.analysis.Everything
}

func (q *Queue) ending(c *change) Reason {
	switch c.end.state {
	case lineup.Landed:
		if c.end.dropped != nil {
			return Reason{Code: ReasonDropped, Sentence: c.droppedText()}
		}
		return Reason{Code: ReasonLanded, Sentence: q.landedText(c, c.end.landed), Changes: refNames(c.end.landed.GetBypasses())}
	case lineup.Rejected, lineup.Ejected:
		r := Reason{Code: c.end.state.String()}
		text := q.endText(c.end.reason, q.below(c.end.reason))
		if f := q.fault(c); f != nil {
			text, r.Changes = f.Sentence, f.With
		}
		r.Sentence = stopped(strings.ToUpper(r.Code[:1]) + r.Code[1:] + ": " + text)
		if other := c.end.reason.GetOther(); other != "" {
			r.Changes = sortedUnique(append(slices.Clone(r.Changes), other))
		}
		for _, p := range c.end.reason.GetFailed() {
			r.Targets = append(r.Targets, p.GetVersion().GetTarget())
		}
		r.Targets = sortedUnique(r.Targets)
		return r
	}
	return Reason{Code: ReasonCancelled, Who: c.end.who, Sentence: stopped("Cancelled by " + person(c.end.who) + because(c.end.why))}
}

// below returns the changes on top of which the steps failed that a reason names.
func (q *Queue) below(r *eventsv1.Reason) []string {
	var out []string
	for _, p := range r.GetFailed() {
		if b := q.builds.byID[p.Build]; b != nil {
			out = append(out, b.assumed()...)
		}
	}
	return sortedUnique(out)
}

// endText returns why a change has left the queue, and what to do about a merge conflict or a refused push.
func (q *Queue) endText(r *eventsv1.Reason, below []string) string {
	text := reasonText(r, below)
	switch r.GetClass() {
	case eventsv1.ReasonClass_REASON_CLASS_PUSH_REFUSED:
		return quoted(r.GetMessage()) + ": the remote goes on refusing its push; do what it asks, and land it again"
	case eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT:
		text += "; rebase it on " + cmp.Or(q.known.Settings().GetBranch(), "the mainline") + ", push it, and land it again"
	}
	return text
}

// reasonText returns why a change failed, in which targets, and on top of which changes.
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

// pool returns the workers of the queue, nil if its builds hold slots.
func (q *Queue) pool() *Pool {
	settings := q.known.Settings()
	if settings.GetPoolWorkers() == 0 {
		return nil
	}
	q.runningBuilds()
	running := q.steps.inForce()
	p := &Pool{Name: settings.GetPool(), Workers: int(settings.GetPoolWorkers()), Running: len(running)}
	invocations := map[string]bool{}
	for _, l := range running {
		invocations[l.Lease] = true
	}
	p.Busy = len(invocations)
	p.Open = max(0, q.builds.running.steps-p.Running)
	return p
}

// runningBuilds returns how many builds run. It counts again only if a record was folded since.
func (q *Queue) runningBuilds() int {
	if q.builds.running.seq == q.seq {
		return q.builds.running.count
	}
	q.builds.running.seq, q.builds.running.count, q.builds.running.steps = q.seq, 0, 0
	for of, mine := range q.builds.ofChange {
		if of.change != "" && q.pendingAt(of) == nil {
			continue
		}
		for _, b := range mine {
			if q.active(b) {
				q.builds.running.count++
				t := q.tallyOf(b)
				q.builds.running.steps += t.total - t.done
			}
		}
	}
	return q.builds.running.count
}
