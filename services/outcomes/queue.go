package outcomes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

// The states of an outcome, those of events.OutcomeStates.
const (
	StateAdmitted  = "admitted"
	StateRevised   = "revised"
	StateRefused   = "refused"
	StateUnchanged = "unchanged"
	StateTesting   = "testing"
	StateHeld      = "held"
	StateReleased  = "released"
	StateLanded    = "landed"
	StateRejected  = "rejected"
	StateEjected   = "ejected"
	StateCancelled = "cancelled"
	StateDropped   = "dropped"
	StateRestored  = "restored"
)

// Values of OutcomeReason.whose.
const (
	whoseYours   = "yours"
	whoseAhead   = "ahead"
	whoseUnknown = "unknown"
)

// maxAnswered is how many answered requests of a queue are remembered. A later refusal of one of these makes no outcome.
const maxAnswered = 10_000

// Bounds of texts that others wrote, in bytes. An outcome is one record.
const (
	maxText    = 4 << 10
	maxCommits = 1000
)

// ref is a revision of a change.
type ref struct {
	change   string
	revision uint64
}

func refOf(c *eventsv1.ChangeRef) ref { return ref{c.GetChange(), c.GetRevision()} }

// trial holds the builds of a revision that is pending, or that landfall.builds names before landfall.changes does.
type trial struct {
	builds []string
	// leased is the time of the first lease of a step of these builds, in microseconds; 0 before it.
	leased int64
	// done is set once the outcome testing is written, or a later outcome of the change is.
	done bool
}

// queue folds one queue.
type queue struct {
	name   string
	links  links `snapshot:"-"`
	lineup *lineup.Queue
	// answered holds the subjects of the requests that were answered last, oldest first.
	answered   []string
	isAnswered map[string]bool `snapshot:"index"`
	// dropped are the landings that the last rewritten mainline lacks.
	dropped map[ref]bool
	trials  map[ref]*trial
	// builds maps each build in trials to its revision.
	builds map[string]ref `snapshot:"index"`
	// due holds the revisions with a lease whose outcome testing is to be written.
	due map[ref]bool `snapshot:"index"`
}

func newQueue(name string, l links) *queue {
	return &queue{name: name, links: l, lineup: lineup.New(), isAnswered: map[string]bool{}, dropped: map[ref]bool{},
		trials: map[ref]*trial{}, builds: map[string]ref{}, due: map[ref]bool{}}
}

func (q *queue) trial(of ref) *trial {
	t := q.trials[of]
	if t == nil {
		t = &trial{}
		q.trials[of] = t
	}
	return t
}

// foldChange folds a counted fact of landfall.changes, and returns the outcomes that it makes.
func (q *queue) foldChange(m proto.Message, offset int64, at time.Time) []*eventsv1.ChangeOutcome {
	if f, is := m.(*eventsv1.RequestRefused); is {
		return q.refused(f, offset, at)
	}
	consequence := q.lineup.Apply(m, offset)
	if !consequence.Applied {
		return nil
	}
	if left := consequence.Left; left != nil {
		q.forget(ref{left.ID(), left.Revision()})
	}
	out := &eventsv1.ChangeOutcome{}
	c := consequence.Left
	switch f := m.(type) {
	case *eventsv1.ChangeAdmitted:
		c, out.State = consequence.Entered, StateAdmitted
		q.answer(subjectOf(c.Admission.Place, c.Admission.RequestId))
	case *eventsv1.ChangeRevised:
		c, out.State = consequence.Entered, StateRevised
		q.answer(subjectOf(c.Admission.Place, c.Admission.RequestId))
	case *eventsv1.ChangeHeld:
		c, out.State, out.Who, out.Reason = q.lineup.Pending(f.Change), StateHeld, f.Who, because(f.Why)
	case *eventsv1.ChangeReleased:
		c, out.State, out.Who, out.Reason = q.lineup.Pending(f.Change), StateReleased, f.Who, because(f.Why)
	case *eventsv1.ChangeCancelled:
		out.State, out.Who, out.Reason = StateCancelled, f.Who, because(f.Why)
	case *eventsv1.ChangeLanded:
		out.State, out.Commits = StateLanded, f.Commits[max(0, len(f.Commits)-maxCommits):]
	case *eventsv1.ChangeRejected:
		out.State, out.Reason = StateRejected, q.reason(f.Change, f.Reason)
	case *eventsv1.ChangeEjected:
		out.State, out.Reason = StateEjected, q.reason(f.Change, f.Reason)
	case *eventsv1.MainlineMoved:
		return q.moved(f, offset, at)
	default:
		return nil
	}
	if of := (ref{c.ID(), c.Revision()}); consequence.Entered == nil && consequence.Left == nil {
		q.trial(of).done = true // testing must not be written after this outcome
		delete(q.due, of)
	}
	a := c.Admission
	out.Subject, out.Change, out.Revision, out.RequestId, out.Head = a.Change, a.Change, a.Revision, a.RequestId, headOf(a)
	out.Author, out.Title, out.Uri = a.Author, a.Title, a.Uri
	return []*eventsv1.ChangeOutcome{q.stamped(out, 2*offset, at)}
}

// stamped completes an outcome.
func (q *queue) stamped(out *eventsv1.ChangeOutcome, sequence int64, at time.Time) *eventsv1.ChangeOutcome {
	out.Queue, out.Sequence, out.Time = q.name, sequence, at.UTC().Format(time.RFC3339Nano)
	return out
}

// refused returns the answer to a request that changed nothing. The first answer to a request stands.
func (q *queue) refused(f *eventsv1.RequestRefused, offset int64, at time.Time) []*eventsv1.ChangeOutcome {
	subject := subjectOf(f.Place, f.RequestId)
	if !q.answer(subject) {
		return nil
	}
	out := &eventsv1.ChangeOutcome{Subject: subject, Change: f.Change, Revision: f.Revision, State: StateRefused, RequestId: f.RequestId,
		Reason: &eventsv1.OutcomeReason{Class: f.Code, Text: short(f.Message)}}
	if f.Code == StateUnchanged {
		out.State, out.Reason.Now = StateUnchanged, f.State
	}
	return []*eventsv1.ChangeOutcome{q.stamped(out, 2*offset, at)}
}

// answer notes that a request is answered, and reports whether it was not before.
func (q *queue) answer(subject string) (first bool) {
	if q.isAnswered[subject] {
		return false
	}
	q.isAnswered[subject] = true
	if q.answered = append(q.answered, subject); len(q.answered) > maxAnswered {
		delete(q.isAnswered, q.answered[0])
		q.answered = slices.Delete(q.answered, 0, 1)
	}
	return true
}

// subjectOf names a request by its place; records of earlier versions have its id alone. No change's id begins with a dash.
func subjectOf(place *eventsv1.RequestPlace, request string) string {
	if place == nil {
		return "-request/" + request
	}
	return fmt.Sprintf("-request/%d/%d", place.Partition, place.Offset)
}

// moved returns outcomes for the landings that a rewritten mainline has lost, and for those that it has regained.
func (q *queue) moved(f *eventsv1.MainlineMoved, offset int64, at time.Time) (list []*eventsv1.ChangeOutcome) {
	if !f.Forced {
		return nil
	}
	say := func(of ref, state string) {
		list = append(list, q.stamped(&eventsv1.ChangeOutcome{Subject: of.change, Change: of.change, Revision: of.revision, State: state}, 2*offset, at))
	}
	now := map[ref]bool{}
	for _, c := range f.Dropped {
		if now[refOf(c)] = true; !q.dropped[refOf(c)] {
			say(refOf(c), StateDropped)
		}
	}
	for _, of := range sortedRefs(q.dropped) {
		if !now[of] {
			say(of, StateRestored)
		}
	}
	q.dropped = now
	return list
}

func sortedRefs(of map[ref]bool) []ref {
	return slices.SortedFunc(maps.Keys(of), func(a, b ref) int {
		if a.change != b.change {
			return strings.Compare(a.change, b.change)
		}
		return int(int64(a.revision) - int64(b.revision))
	})
}

// reason returns why a change was rejected or ejected.
func (q *queue) reason(c *eventsv1.ChangeRef, r *eventsv1.Reason) *eventsv1.OutcomeReason {
	out := &eventsv1.OutcomeReason{
		Class: strings.ToLower(strings.TrimPrefix(r.GetClass().String(), "REASON_CLASS_")), Text: short(r.GetMessage()), Other: r.GetOther(),
	}
	switch r.GetClass() {
	case eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, eventsv1.ReasonClass_REASON_CLASS_INVALID:
		out.Whose = whoseYours
	case eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT, eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT:
		out.Whose = whoseAhead
	default:
		out.Whose = whoseUnknown
	}
	if failed := r.GetFailed(); len(failed) > 0 {
		p := failed[0]
		out.Target, out.Step, out.Log = p.GetVersion().GetTarget(), p.GetStep(), q.links.log(q.name, refOf(c), p)
	}
	return out
}

func because(why string) *eventsv1.OutcomeReason {
	if why == "" {
		return nil
	}
	return &eventsv1.OutcomeReason{Text: short(why)}
}

// short cuts a text to maxText.
func short(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

func headOf(a *eventsv1.Admission) string {
	if n := len(a.Entries); n > 0 && a.Entries[n-1].Commit != "" {
		return a.Entries[n-1].Commit
	}
	return a.LandingCommits[len(a.LandingCommits)-1].Head
}

// gone reports whether a revision was pending and is no longer.
func (q *queue) gone(of ref) bool {
	c := q.lineup.Pending(of.change)
	return (c == nil || c.Revision() != of.revision) && q.lineup.Known(of.change) >= of.revision
}

// foldBuild folds a fact of landfall.builds. Only builds that are scheduled for a revision itself count as its tests, so that they
// can be forgotten together with the revision, whichever of the two topics is read first.
func (q *queue) foldBuild(m proto.Message, at time.Time) {
	switch f := m.(type) {
	case *eventsv1.BuildPrepared:
		of := refOf(f.Change)
		if _, known := q.builds[f.Build]; known || of.change == "" || q.gone(of) {
			return
		}
		t := q.trial(of)
		if t.leased == 0 {
			t.builds = append(t.builds, f.Build)
			q.builds[f.Build] = of
		}
	case *eventsv1.StepLeased:
		of, known := q.builds[f.Build]
		if !known {
			return
		}
		t := q.trials[of]
		t.leased = at.UnixMicro()
		q.forgetBuilds(t)
		if !t.done {
			q.due[of] = true
		}
	}
}

func (q *queue) forgetBuilds(t *trial) {
	for _, b := range t.builds {
		delete(q.builds, b)
	}
	t.builds = nil
}

// forget drops what is kept of a revision that is no longer pending.
func (q *queue) forget(of ref) {
	if t := q.trials[of]; t != nil {
		q.forgetBuilds(t)
		delete(q.trials, of)
		delete(q.due, of)
	}
}

// takeDue returns the outcomes of revisions whose tests have begun. wrote reports whether the log has the outcome of a change
// with a sequence already.
func (q *queue) takeDue(wrote func(change string, sequence int64) bool) (list []*eventsv1.ChangeOutcome) {
	for _, of := range sortedRefs(q.due) {
		c := q.lineup.Pending(of.change)
		if c == nil || c.Revision() != of.revision {
			continue // landfall.changes has yet to name it
		}
		t := q.trials[of]
		t.done = true
		delete(q.due, of)
		sequence := 2*c.AdmittedOffset + 1
		if wrote(of.change, sequence) {
			continue
		}
		a := c.Admission
		list = append(list, q.stamped(&eventsv1.ChangeOutcome{Subject: a.Change, Change: a.Change, Revision: a.Revision, State: StateTesting,
			RequestId: a.RequestId, Head: headOf(a), Author: a.Author, Title: a.Title, Uri: a.Uri}, sequence, time.UnixMicro(t.leased)))
	}
	return list
}

// idOf returns the id of an outcome, the n-th of those of one record.
func idOf(m *eventsv1.ChangeOutcome, n int) string {
	id := m.Queue + "/" + strconv.FormatInt(m.Sequence, 10)
	switch {
	case m.State == StateRefused || m.State == StateUnchanged:
		return m.Queue + "/" + m.Subject[1:]
	case n > 0:
		return id + "/" + strconv.Itoa(n)
	}
	return id
}

// numberOf returns which of the outcomes of one record an outcome with an id is.
func numberOf(id string, m *eventsv1.ChangeOutcome) int {
	rest, found := strings.CutPrefix(id, m.Queue+"/"+strconv.FormatInt(m.Sequence, 10)+"/")
	n, err := strconv.Atoi(rest)
	if !found || err != nil {
		return 0
	}
	return n
}
