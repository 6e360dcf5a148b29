package view

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// foldChangeFact takes a fact of landfall.changes. One that the lineup did not apply changed nothing and is not shown.
func (q *Queue) foldChangeFact(e journal.Entry) lineup.Consequence {
	paused := q.lineup.Paused
	consequence := q.lineup.Apply(e.Message, e.Offset)
	if !consequence.Applied {
		return consequence
	}
	q.foldLeft(consequence, e)
	switch f := e.Message.(type) {
	case *eventsv1.ChangeAdmitted, *eventsv1.ChangeRevised:
		q.foldEntered(consequence, e.Time)
	case *eventsv1.ChangeMoved:
		q.noteOn(f.Change, stamp(f.StampUs, e.Time), "moved", moveText(f))
	case *eventsv1.ChangeHeld:
		q.noteOn(f.Change, stamp(f.StampUs, e.Time), "held", "Held by "+person(f.Who)+because(f.Why)+".")
	case *eventsv1.ChangeReleased:
		q.noteOn(f.Change, stamp(f.StampUs, e.Time), "released", "Released by "+person(f.Who)+because(f.Why)+".")
	case *eventsv1.LandIntended:
		if c := q.changes[f.Change.GetChange()]; c != nil && c.pushRefused() {
			break // how the push ends is told
		}
		q.noteOn(f.Change.GetChange(), written(e, f.StampUs), "landing", q.intendedText(f))
	case *eventsv1.LandVoid:
		q.answer(f.Change, f.Decision)
		if f.Refused {
			q.foldPushRefused(f, e.Time)
			break
		}
		q.noteOn(f.Change.GetChange(), stamp(f.StampUs, e.Time), "land_void", "It was not pushed ("+f.Reason+"); it is pending again.")
	case *eventsv1.Refused:
		q.foldRefused(f, e.Time)
	case *eventsv1.ChangeRetried:
		q.foldRetried(f, e.Time)
	case *eventsv1.MainlineMoved:
		q.foldMoved(f, e.Time)
		q.foldPush(f)
	case *eventsv1.ChangeLanded:
		q.landOverPushes(f)
	case *eventsv1.QueuePaused:
		q.notePause(stamp(f.StampUs, e.Time), "queue_paused", q.pauseText())
	case *eventsv1.QueueResumed:
		if paused != nil {
			q.notePause(stamp(f.StampUs, e.Time), "queue_resumed", "The queue is resumed by "+person(f.Who)+because(f.Why)+".")
			q.pauses = append(q.pauses, PauseOver{pauseOf(paused), stamp(f.StampUs, e.Time), f.Who, f.Why})
			q.pauses = q.pauses[max(0, len(q.pauses)-keptPauses):]
		}
	case *eventsv1.LandingsPaused:
		q.foldPauseByRemote(f.StampUs, e.Time)
	case *eventsv1.LandingsResumed:
		q.foldPauseByRemote(f.StampUs, e.Time)
	}
	return consequence
}

func (q *Queue) foldEntered(consequence lineup.Consequence, now time.Time) {
	a := consequence.Entered.Admission
	c := q.changes[a.Change]
	if c == nil {
		c = &change{}
		q.changes[a.Change] = c
	} else {
		q.forgetBuilds(ref{a.Change, max(keptRevisions, a.Revision) - keptRevisions})
		q.forgetHistory(c.ref())
		delete(q.open, c.ref())
		*c = change{timeline: c.timeline, omitted: c.omitted, earlier: c.replaced()}
	}
	c.admission, c.admittedAt = a, stamp(a.ReceivedUs, now)
	text := fmt.Sprintf("Admitted as revision %d, pinned to %s.", a.Revision, events.ShortID(headOf(a)))
	kind := "admitted"
	if consequence.Revised {
		kind = "revised"
		text = fmt.Sprintf("Revision %d, pinned to %s, takes its place at the end of the queue.", a.Revision, events.ShortID(headOf(a)))
	}
	q.note(c, c.admittedAt, kind, text)
	if t := q.trouble(); t != nil {
		q.note(c, c.admittedAt, ReasonUnreachable, t.Sentence)
	}
	if p := q.pausedByRemote(); p != nil {
		q.note(c, c.admittedAt, ReasonPausedByRemote, p.Sentence)
	}
	if q.lineup.Paused != nil {
		q.note(c, c.admittedAt, "queue_paused", q.pauseText())
	}
	q.noteEarly(c)
}

// foldLeft settles the revision that a fact took out of the queue. A revision that a newer one
// replaces does not count as finished: the change goes on.
func (q *Queue) foldLeft(consequence lineup.Consequence, e journal.Entry) {
	if consequence.Left == nil || consequence.Revised {
		return
	}
	c := q.keptAt(ref{consequence.Left.ID(), consequence.Left.Revision()})
	if c == nil {
		return
	}
	at := e.Time.UTC()
	switch f := e.Message.(type) {
	case *eventsv1.ChangeLanded:
		at = stamp(f.StampUs, at)
		c.end.landed = f
		q.note(c, at, StateLanded, q.landedText(c, f))
	case *eventsv1.ChangeRejected:
		at = written(e, f.StampUs)
		c.end.reason, c.end.base = f.Reason, f.Base
		q.note(c, at, StateRejected, stopped("Rejected: "+q.endText(f.Reason, nil)))
	case *eventsv1.ChangeEjected:
		at = written(e, f.StampUs)
		c.end.reason, c.end.base = f.Reason, f.Base
		q.note(c, at, StateEjected, stopped("Ejected: "+q.endText(f.Reason, nil)))
	case *eventsv1.ChangeCancelled:
		at = stamp(f.StampUs, at)
		c.end.who, c.end.why = f.Who, f.Why
		q.note(c, at, StateCancelled, "Cancelled by "+person(f.Who)+because(f.Why)+".")
	}
	q.finish(c, consequence.As, at)
}

func (q *Queue) foldRefused(f *eventsv1.Refused, now time.Time) {
	q.answer(f.Change, f.Decision)
	q.steps.outdate(f.BaseOutdated)
	q.flakes.TakeBack(f)
	c := q.pendingAt(refOf(f.Change))
	if c == nil {
		return
	}
	c.lastRefusal = &Refusal{Base: f.Base, Message: f.Message, At: stamp(f.StampUs, now)}
	for _, v := range f.Missing {
		if len(c.lastRefusal.Missing) < maxAnalysedShown {
			c.lastRefusal.Missing = append(c.lastRefusal.Missing, v.Target)
		}
	}
	q.note(c, c.lastRefusal.At, "refused", "The last check, on the mainline as it stands, does not allow that: "+f.Message)
}

func (q *Queue) foldAnalysis(f *eventsv1.ChangeAnalyzed, now time.Time) {
	c := q.pendingAt(refOf(f.Change))
	if c == nil {
		return
	}
	first := c.analysis == nil
	c.analysis = &Analysis{
		Base: f.Base, Outcome: lowerEnum(f.Outcome.String(), "ANALYSIS_OUTCOME_"), Message: f.Message,
		ConflictingPaths: f.ConflictingPaths, FilesChanged: f.FilesChanged, LinesAdded: f.LinesAdded, LinesDeleted: f.LinesDeleted,
		Everything: f.Affected.GetAll(), Uncovered: uncoveredOf(f.Affected.GetUncovered()),
	}
	// A change of several commits may affect a target at each of them.
	built := map[string]bool{}
	for _, t := range f.Affected.GetTargets() {
		if _, known := built[t.Target]; !known && len(c.analysis.Targets) < maxAnalysedShown {
			c.analysis.Targets = append(c.analysis.Targets, t.Target)
		}
		built[t.Target] = built[t.Target] || !t.Trivial
	}
	c.analysis.TargetsTotal = len(built)
	for _, has := range built {
		if !has {
			c.analysis.TargetsWithoutSteps++
		}
	}
	own := map[string]bool{} // besides those in built
	for _, label := range f.Affected.GetLeaves() {
		own[label] = true
	}
	for _, t := range f.Affected.GetAddedEdges() {
		if _, affected := built[t]; !affected && !own[t] && len(c.analysis.needs) < maxAnalysedShown {
			c.analysis.needs = append(c.analysis.needs, t)
		}
	}
	for _, place := range f.Affected.GetCreated() {
		if list := f.Affected.Targets; int(place) < len(list) && len(c.analysis.does.created) < maxAnalysedShown {
			c.analysis.does.created = append(c.analysis.does.created, list[place].Target)
		}
	}
	removed := f.Affected.GetDeleted()
	c.analysis.does.removed, c.analysis.does.removedTotal = slices.Clone(removed[:min(len(removed), maxAnalysedShown)]), len(removed)
	for _, label := range f.Affected.GetLeaves() {
		if path := targets.FileOf(label); path != "" && len(c.analysis.does.files) < maxAnalysedShown {
			c.analysis.does.files = append(c.analysis.does.files, path)
		}
	}
	if first {
		q.note(c, stamp(f.FinishedUs, now), "analysed", analysisText(c.analysis))
	}
}

// readOtherwise is told to every pending change once the mainline is surveyed with another reading (M23b).
const readOtherwise = "The configuration or a tool has changed, so that targets have other versions: it is analysed and built again."

func analysisText(a *Analysis) string {
	text := "Analysed on " + events.ShortID(a.Base) + ": "
	switch why := a.whyUnbuilt(); {
	case a.Outcome != "analyzed":
		return text + a.Message
	case a.Everything && a.Message != "":
		return stopped(text + "it affects everything: " + a.Message)
	case a.Everything:
		return text + "it affects everything."
	case why != "":
		return text + "nothing is built for it: " + why + "."
	}
	return text + joined(count(a.TargetsTotal, "target")+" affected", a.unbuiltFiles()) + "."
}

func (q *Queue) intendedText(f *eventsv1.LandIntended) string {
	commit := "its landing commit " + events.ShortID(last(f.Commits))
	var a *Analysis
	c := q.changes[f.Change.GetChange()]
	if c != nil {
		a = c.analysis
	}
	if why := a.whyNotBuilt(f.Proof); why != "" {
		return "Nothing was built for " + commit + " (" + why + "); it is being pushed."
	}
	return "All steps of " + commit + " passed" + exceptQuarantined(toleratedBy(f.Proof)) + q.untested(c, f.Proof) + "; it is being pushed."
}

func (q *Queue) noteOn(id string, at time.Time, kind, text string) {
	if c := q.changes[id]; c != nil {
		q.note(c, at, kind, text)
	}
}

// notePause notes a pause by a person, or its end, on the pending changes that were admitted by then.
func (q *Queue) notePause(at time.Time, kind, text string) {
	for _, entry := range q.lineup.Order() {
		if c := q.changes[entry.ID()]; c != nil && !at.Before(c.admittedAt) {
			q.note(c, at, kind, text)
		}
	}
}

func moveText(f *eventsv1.ChangeMoved) string {
	where := "to the front"
	if f.Before != "" {
		where = "before " + f.Before
	}
	return stopped("Moved " + where + " by " + person(f.Who) + because(f.Why))
}

func (q *Queue) landedText(c *change, f *eventsv1.ChangeLanded) string {
	a := c.analysis
	text := "Landed as " + events.ShortID(last(f.Commits))
	if len(f.Commits) > 1 {
		text = fmt.Sprintf("Landed as %d commits up to %s", len(f.Commits), events.ShortID(last(f.Commits)))
	}
	if len(f.Bypasses) > 0 {
		text += ", bypassing " + names(refNames(f.Bypasses))
	}
	switch nothing := q.addsNothing(c, f); {
	case nothing && len(f.Bypasses) > 0:
		return text + "; it changes nothing: the mainline held all of it already."
	case nothing:
		return text + ", which changes nothing: the mainline held all of it already."
	}
	if why := a.whyNotBuilt(f.GetProof()); why != "" {
		return text + "; nothing was built for it: " + why + "."
	}
	if list := toleratedBy(f.GetProof()); len(list) > 0 {
		text += "; " + names(list) + " did not pass and " + verb(len(list), "is", "are") + " quarantined"
	}
	text += q.untested(c, f.GetProof())
	if a != nil && !a.Everything {
		text = joined(text, a.Uncovered.warned())
	}
	return text + "."
}

// addsNothing reports whether a landing is known to have left the tree as it was: what another one had landed was the same.
// That is mostly the last that left the queue before this one.
func (q *Queue) addsNothing(c *change, f *eventsv1.ChangeLanded) bool {
	if f.Tree == "" {
		return false
	}
	own := len(q.finished)
	if !c.pending() {
		own = sort.Search(own, func(i int) bool { return q.finished[i].seq >= c.end.seq })
	}
	base := q.landedAs(q.finished[:own], f.Base)
	if base == nil {
		base = q.landedAs(q.finished[own:], f.Base)
	}
	return base != nil && base.Tree == f.Tree
}

// landedAs returns the last landing among some changes whose last commit is a given one, nil if there is none.
func (q *Queue) landedAs(among []finishedChange, commit string) *eventsv1.ChangeLanded {
	for _, x := range slices.Backward(among) {
		if c := q.stillFinished(x); c != nil && c.end.landed != nil && last(c.end.landed.Commits) == commit {
			return c.end.landed
		}
	}
	return nil
}

func headOf(a *eventsv1.Admission) string {
	if n := len(a.Entries); n > 0 && a.Entries[n-1].Commit != "" {
		return a.Entries[n-1].Commit
	}
	return a.LandingCommits[len(a.LandingCommits)-1].Head
}

func last(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ids[len(ids)-1]
}

func person(who string) string {
	if who == "" {
		return "somebody"
	}
	return who
}

// stopped returns a sentence with a full stop at its end, unless what it quotes there ends with another mark.
func stopped(text string) string {
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") {
		return text
	}
	return strings.TrimRight(text, ".") + "."
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + strings.TrimRight(why, ".")
}

func lowerEnum(name, prefix string) string {
	return strings.ToLower(strings.TrimPrefix(name, prefix))
}

func refNames(refs []*eventsv1.ChangeRef) []string {
	out := make([]string, 0, len(refs))
	for _, r := range refs {
		out = append(out, r.GetChange())
	}
	return out
}

// names lists a few for a sentence: "a", "a and b", "a, b, c and 4 more".
func names(of []string) string {
	switch n := len(of); {
	case n == 0:
		return "nothing"
	case n == 1:
		return of[0]
	case n <= maxNamesInSentences:
		return strings.Join(of[:n-1], ", ") + " and " + of[n-1]
	default:
		return strings.Join(of[:maxNamesInSentences], ", ") + fmt.Sprintf(" and %d more", n-maxNamesInSentences)
	}
}

// ordinal returns 1st, 2nd and so on.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n, suffix)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
