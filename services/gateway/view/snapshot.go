package view

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/evidence"
	"landfall.build/engine/explanation"
	"landfall.build/engine/flakes"
	"landfall.build/engine/lineup"
	"landfall.build/engine/snapshotv1"
	"landfall.build/engine/steps"
	eventsv1 "landfall.build/events/v1"
)

// Snapshot returns the view as a message. It shares the messages of events, which are never changed.
func (q *Queue) Snapshot() *snapshotv1.GatewayView {
	w := &writer{}
	m := &snapshotv1.GatewayView{
		Lineup: q.lineup.Snapshot(), Sequence: q.seq, Offset: q.offset, DroppedSequence: q.droppedSeq, Unreachable: q.unreachable, SurveyedAgain: q.surveyedAgain,
		Known: q.known.Snapshot(), Check: q.check, Ranking: q.priority.ranking,
		History: w.history(&q.history), Builds: w.builds(&q.builds), Attempts: w.attempts(q.steps.order),
		Flakes: q.flakes.Snapshot(), Quarantines: q.quarantines.List(), Owners: q.ownersSnapshot(), Choice: q.choice.Snapshot(), Survey: q.survey,
		Pushes: q.pushesSnapshot(), Outdated: q.steps.outdated.snapshot(), Withdrawn: q.steps.withdrawn.snapshot(),
	}
	for _, c := range q.changes {
		m.Changes = append(m.Changes, w.change(c))
	}
	for _, f := range q.finished {
		m.Finished = append(m.Finished, &snapshotv1.GatewayFinished{Change: w.Number(f.id), Sequence: f.seq, Offset: f.offset})
	}
	for of, d := range q.open {
		m.Open = append(m.Open, &snapshotv1.GatewayDecision{Revision: w.revision(of), Kind: w.Number(d.kind), Decision: d.decision})
	}
	for _, e := range q.priority.estimates {
		m.Estimates = append(m.Estimates, e)
	}
	for _, use := range q.priority.models {
		m.Models = append(m.Models, use)
	}
	for _, l := range q.steps.leases {
		m.Leases = append(m.Leases, l)
	}
	m.Lost = slices.Clone(q.steps.lost)
	for of, events := range q.early.events {
		m.Early = append(m.Early, &snapshotv1.GatewayEarly{Revision: w.revision(of), Events: w.events(events)})
	}
	m.Answered = w.numbers(q.early.order)
	for _, p := range q.pauses {
		pause := &snapshotv1.GatewayPause{Who: p.Who, Why: p.Why, Until: timeMessage(p.Until), ResumedBy: p.ResumedBy, ResumedWhy: p.ResumedWhy}
		if !p.Since.IsZero() {
			pause.Since = timeMessage(p.Since)
		}
		m.EarlierPauses = append(m.EarlierPauses, pause)
	}
	if last := len(m.EarlierPauses) - 1; last >= 0 {
		m.LastPause, m.EarlierPauses = m.EarlierPauses[last], m.EarlierPauses[:last]
	}
	m.Texts = w.List
	return m
}

// Restore returns the view of a queue that a message was made of, under the limits that it was folded under.
func Restore(m *snapshotv1.GatewayView, name string, limits Limits) (*Queue, error) {
	q, r := New(name, limits), &reader{TextsOf: snapshotv1.TextsOf{List: m.GetTexts()}}
	q.surveyedAgain = m.GetSurveyedAgain()
	q.seq, q.offset, q.droppedSeq, q.unreachable = m.GetSequence(), m.GetOffset(), m.GetDroppedSequence(), m.GetUnreachable()
	var err error
	if q.lineup, err = lineup.Restore(m.GetLineup()); err != nil {
		return nil, err
	}
	if q.known, err = explanation.Restore(m.GetKnown()); err != nil {
		return nil, err
	}
	if q.choice, err = steps.Restore(m.GetChoice()); err != nil {
		return nil, err
	}
	q.flakes, q.quarantines = flakes.Restore(m.GetFlakes()), evidence.NewQuarantines(m.GetQuarantines())
	for _, t := range m.GetFlakes().GetTargets() {
		q.owners[t.Target] = nil // an older snapshot does not say
	}
	for _, o := range m.GetOwners() {
		q.owners[o.Target] = o.Owners
	}
	q.restorePushes(m.GetPushes())
	for _, p := range append(m.GetEarlierPauses(), m.GetLastPause()) {
		if p != nil {
			q.pauses = append(q.pauses, PauseOver{Pause{p.Who, p.Why, timeIn(p.Since)}, timeIn(p.Until), p.ResumedBy, p.ResumedWhy})
		}
	}
	q.check, q.survey, q.priority.ranking = m.GetCheck(), m.GetSurvey(), m.GetRanking()
	for _, c := range m.GetChanges() {
		r.change(q, c)
	}
	for _, f := range m.GetFinished() {
		q.finished = append(q.finished, finishedChange{r.At(f.Change), f.Sequence, f.Offset})
	}
	for _, c := range q.changes {
		if c.late() {
			q.lateSeq = max(q.lateSeq, c.modified)
		}
	}
	for _, d := range m.GetOpen() {
		q.open[r.revision(d.Revision)] = openDecision{r.At(d.Kind), d.Decision}
	}
	for _, e := range m.GetEstimates() {
		q.priority.estimates[refOf(e.Change)] = e
	}
	for _, use := range m.GetModels() {
		q.priority.models[use.Kind] = use
	}
	r.history(&q.history, m.GetHistory())
	r.builds(&q.builds, m.GetBuilds())
	q.steps.outdate(m.GetOutdated())
	q.steps.withdraw(m.GetWithdrawn())
	r.attempts(&q.steps, m.GetAttempts())
	for _, l := range m.GetLeases() {
		q.steps.leases[version{l.Target, l.Hash}] = l
	}
	for _, l := range m.GetLost() {
		q.steps.lose(l)
	}
	for _, e := range m.GetEarly() {
		q.early.events[r.revision(e.Revision)] = r.events(e.Events)
	}
	for _, decision := range r.texts(m.GetAnswered()) {
		q.early.answered[decision] = true
		q.early.order = append(q.early.order, decision)
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return q, nil
}

// writer makes the parts of a message.
type writer struct{ snapshotv1.Texts }

// reader reads the parts of a message. Its Err is the first thing that is wrong with them.
type reader struct{ snapshotv1.TextsOf }

// differ reports whether lists differ in length, which is an error.
func (r *reader) differ(n int, lengths ...int) bool {
	for _, length := range lengths {
		if length != n {
			r.refuse(errors.New("lists of one length have different lengths"))
			return true
		}
	}
	return false
}

func (r *reader) refuse(err error) {
	if r.Err == nil {
		r.Err = err
	}
}

func (w *writer) revision(of ref) *snapshotv1.GatewayRevision {
	return &snapshotv1.GatewayRevision{Change: w.Number(of.change), Revision: of.revision}
}

func (r *reader) revision(m *snapshotv1.GatewayRevision) ref {
	return ref{r.At(m.GetChange()), m.GetRevision()}
}

func (w *writer) numbers(texts []string) []uint32 {
	out := make([]uint32, len(texts))
	for i, text := range texts {
		out[i] = w.Number(text)
	}
	return out
}

func (r *reader) texts(numbers []uint32) []string {
	if len(numbers) == 0 {
		return nil
	}
	out := make([]string, len(numbers))
	for i, n := range numbers {
		out[i] = r.At(n)
	}
	return out
}

func nanosBeyond(t time.Time) uint32 { return uint32(t.Nanosecond() % 1000) }

func timeOf(us int64, ns uint32) time.Time {
	return time.UnixMicro(us).Add(time.Duration(ns)).UTC()
}

func timeMessage(t time.Time) *snapshotv1.GatewayTime {
	return &snapshotv1.GatewayTime{Us: t.UnixMicro(), Ns: nanosBeyond(t)}
}

func timeIn(m *snapshotv1.GatewayTime) time.Time {
	if m == nil {
		return time.Time{}
	}
	return timeOf(m.Us, m.Ns)
}

func (w *writer) events(list []Event) *snapshotv1.GatewayEvents {
	m := &snapshotv1.GatewayEvents{}
	for _, e := range list {
		m.AtUs, m.AtNs = append(m.AtUs, e.At.UnixMicro()), append(m.AtNs, nanosBeyond(e.At))
		m.Kind, m.Text, m.Sequence = append(m.Kind, w.Number(e.Kind)), append(m.Text, w.Number(e.Text)), append(m.Sequence, e.seq)
		m.By = append(m.By, w.Number(e.By))
	}
	return m
}

func (r *reader) events(m *snapshotv1.GatewayEvents) []Event {
	n := len(m.GetAtUs())
	if n == 0 || r.differ(n, len(m.AtNs), len(m.Kind), len(m.Text), len(m.Sequence)) {
		return nil
	}
	out := make([]Event, n)
	for i := range out {
		out[i] = Event{At: timeOf(m.AtUs[i], m.AtNs[i]), Kind: r.At(m.Kind[i]), Text: r.At(m.Text[i]), seq: m.Sequence[i]}
		if len(m.By) == n { // else of an earlier version
			out[i].By = r.At(m.By[i])
		}
	}
	return out
}

func (w *writer) change(c *change) *snapshotv1.GatewayChange {
	m := &snapshotv1.GatewayChange{
		AdmittedAt: timeMessage(c.admittedAt), Timeline: w.events(c.timeline), Omitted: uint32(c.omitted), Modified: c.modified, Earlier: revisionMessages(c.earlier),
	}
	if a := c.analysis; a != nil {
		m.Analysis = &snapshotv1.GatewayAnalysis{
			Base: a.Base, Outcome: w.Number(a.Outcome), Targets: w.numbers(a.Targets), TargetsTotal: uint32(a.TargetsTotal), Everything: a.Everything,
			Message: a.Message, ConflictingPaths: a.ConflictingPaths, FilesChanged: a.FilesChanged, LinesAdded: a.LinesAdded, LinesDeleted: a.LinesDeleted,
			TargetsWithoutSteps: uint32(a.TargetsWithoutSteps), Uncovered: a.Uncovered.message(), Needs: w.numbers(a.needs), Created: w.numbers(a.does.created), Files: w.numbers(a.does.files),
			Removed: w.numbers(a.does.removed), RemovedTotal: uint32(a.does.removedTotal),
		}
	}
	if f := c.lastRefusal; f != nil {
		m.LastRefusal = &snapshotv1.GatewayRefusal{Base: f.Base, Message: f.Message, Missing: f.Missing, At: timeMessage(f.At), Pushes: uint32(f.Pushes)}
	}
	if c.pending() {
		m.Pending = c.admission.Change
		return m
	}
	m.Admission = c.admission
	e := &c.end
	m.Ending = &snapshotv1.GatewayEnding{
		State: uint32(e.state), At: timeMessage(e.at), Sequence: e.seq, Who: e.who, Why: e.why, Landed: e.landed, Reason: e.reason, Base: e.base,
	}
	if e.dropped != nil {
		m.Ending.DroppedAt, m.Ending.DroppedHead = timeMessage(e.dropped.At), e.dropped.Head
	}
	return m
}

// change puts a change into the view, whose lineup is there already.
func (r *reader) change(q *Queue, m *snapshotv1.GatewayChange) {
	c := &change{
		admission: m.Admission, admittedAt: timeIn(m.AdmittedAt), timeline: r.events(m.Timeline), omitted: int(m.Omitted), modified: m.Modified, earlier: revisionsIn(m.Earlier),
	}
	if a := m.Analysis; a != nil {
		c.analysis = &Analysis{
			Base: a.Base, Outcome: r.At(a.Outcome), Targets: r.texts(a.Targets), TargetsTotal: int(a.TargetsTotal), Everything: a.Everything,
			Message: a.Message, ConflictingPaths: a.ConflictingPaths, FilesChanged: a.FilesChanged, LinesAdded: a.LinesAdded, LinesDeleted: a.LinesDeleted,
			TargetsWithoutSteps: int(a.TargetsWithoutSteps), Uncovered: uncoveredOf(a.Uncovered), needs: r.texts(a.Needs),
			does: alterations{created: r.texts(a.Created), files: r.texts(a.Files), removed: r.texts(a.Removed), removedTotal: int(a.RemovedTotal)},
		}
	}
	if f := m.LastRefusal; f != nil {
		c.lastRefusal = &Refusal{Base: f.Base, Message: f.Message, Missing: f.Missing, At: timeIn(f.At), Pushes: int(f.Pushes)}
	}
	if e := m.Ending; e != nil {
		c.end = ending{
			state: lineup.State(e.State), at: timeIn(e.At), seq: e.Sequence, who: e.Who, why: e.Why, landed: e.Landed, reason: e.Reason, base: e.Base,
		}
		if e.DroppedAt != nil {
			c.end.dropped = &Dropped{At: timeIn(e.DroppedAt), Head: e.DroppedHead}
		}
	} else if pending := q.lineup.Pending(m.Pending); pending != nil {
		c.admission = pending.Admission
	}
	if c.admission == nil {
		r.refuse(fmt.Errorf("nothing has the admission of change %q", m.Pending))
		return
	}
	q.changes[c.admission.Change] = c
}

func (w *writer) history(h *history) *snapshotv1.GatewayHistory {
	m := &snapshotv1.GatewayHistory{}
	numbers := map[*start]uint32{}
	add := func(of ref, s *start) *snapshotv1.GatewayNamed {
		n, known := numbers[s]
		if !known {
			n = uint32(len(m.Starts))
			numbers[s] = n
			m.Starts = append(m.Starts, &snapshotv1.GatewayStart{Offset: s.offset, Term: s.term, Settings: s.settings, Mainline: s.mainline})
		}
		return &snapshotv1.GatewayNamed{Revision: w.revision(of), Start: n}
	}
	for _, n := range h.named {
		m.Named = append(m.Named, add(n.of, n.start))
	}
	for of, s := range h.from {
		m.From = append(m.From, add(of, s))
	}
	for of, decisions := range h.decisions {
		for _, d := range decisions {
			m.Decisions = append(m.Decisions, &snapshotv1.GatewayDecision{
				Revision: w.revision(of), Kind: w.Number(d.kind), Decision: d.id, Position: d.position, AtUs: d.at.UnixMicro(),
			})
		}
	}
	return m
}

func (r *reader) history(h *history, m *snapshotv1.GatewayHistory) {
	starts := make([]*start, len(m.GetStarts()))
	for i, s := range m.GetStarts() {
		starts[i] = &start{s.Offset, s.Term, s.Settings, s.Mainline}
	}
	of := func(n *snapshotv1.GatewayNamed) *start {
		if int64(n.Start) >= int64(len(starts)) {
			r.refuse(fmt.Errorf("there are %d starts, and start %d is named", len(starts), n.Start))
			return &start{}
		}
		return starts[n.Start]
	}
	for _, n := range m.GetNamed() {
		h.named = append(h.named, named{r.revision(n.Revision), of(n)})
	}
	for _, n := range m.GetFrom() {
		h.from[r.revision(n.Revision)] = of(n)
	}
	for _, d := range m.GetDecisions() {
		of := r.revision(d.Revision)
		h.decisions[of] = append(h.decisions[of], decision{r.At(d.Kind), d.Decision, d.Position, timeOf(d.AtUs, 0)})
	}
}

func (w *writer) builds(s *buildStore) *snapshotv1.GatewayBuilds {
	m := &snapshotv1.GatewayBuilds{Order: w.numbers(s.order)}
	for of, builds := range s.ofChange {
		for _, b := range builds {
			m.Builds = append(m.Builds, &snapshotv1.GatewayBuild{
				Build: w.Number(b.id), Revision: w.revision(of), Fact: b.fact, Scheduled: b.scheduled, AtUs: b.at.UnixMicro(), Position: b.position, Item: uint32(b.item),
				Prepared: b.prepared, Aborted: w.Number(b.aborted), EndedUs: b.endedAt.UnixMicro(), Finished: b.finished, Passed: b.passed,
			})
		}
	}
	for build, list := range s.worthless {
		flags := &snapshotv1.GatewayWorthless{Build: w.Number(build)}
		for _, f := range list {
			flags.Position, flags.Worthless = append(flags.Position, f.position), append(flags.Worthless, f.is)
		}
		m.Worthless = append(m.Worthless, flags)
	}
	return m
}

func (r *reader) builds(s *buildStore, m *snapshotv1.GatewayBuilds) {
	s.order = r.texts(m.GetOrder())
	for _, x := range m.GetBuilds() {
		b := &build{
			id: r.At(x.Build), of: r.revision(x.Revision), fact: x.Fact, at: timeOf(x.AtUs, 0), position: x.Position, item: int(x.Item), prepared: x.Prepared,
			aborted: r.At(x.Aborted), endedAt: timeOf(x.EndedUs, 0), finished: x.Finished, scheduled: x.Scheduled, passed: x.Passed,
		}
		if b.fact == nil {
			b.fact = &eventsv1.BuildScheduled{}
		}
		s.byID[b.id] = b
		s.ofChange[b.of] = append(s.ofChange[b.of], b)
		s.index(b)
		s.count(b)
	}
	for _, flags := range m.GetWorthless() {
		if r.differ(len(flags.Position), len(flags.Worthless)) {
			return
		}
		list := make([]worthless, len(flags.Position))
		for i := range list {
			list[i] = worthless{flags.Position[i], flags.Worthless[i]}
		}
		s.worthless[r.At(flags.Build)] = list
	}
}

func (w *writer) attempts(list []*attempt) *snapshotv1.GatewayAttempts {
	m := &snapshotv1.GatewayAttempts{}
	for _, a := range list {
		m.Target, m.Hash = append(m.Target, w.Number(a.version.target)), append(m.Hash, w.Number(a.version.hash))
		m.Build, m.Command, m.Reason = append(m.Build, w.Number(a.build)), append(m.Command, w.Number(a.command)), append(m.Reason, w.Number(a.reason))
		m.Worker, m.Log = append(m.Worker, w.Number(a.worker)), append(m.Log, w.Number(a.log))
		m.Number, m.Outcome, m.Forgotten = append(m.Number, a.number), append(m.Outcome, uint32(a.outcome)), append(m.Forgotten, a.forgotten)
		m.Tail, m.Bytes = append(m.Tail, a.tail), append(m.Bytes, a.bytes)
		m.Decisive = append(m.Decisive, w.Number(strings.Join(a.decisive, "\n")))
		m.StartedUs, m.FinishedUs = append(m.StartedUs, a.started.UnixMicro()), append(m.FinishedUs, a.finished.UnixMicro())
		m.LeasedUs = append(m.LeasedUs, a.leasedUs)
	}
	return m
}

func (r *reader) attempts(s *stepStore, m *snapshotv1.GatewayAttempts) {
	n := len(m.GetTarget())
	if n == 0 || r.differ(n, len(m.Hash), len(m.Build), len(m.Command), len(m.Reason), len(m.Worker), len(m.Log), len(m.Number),
		len(m.Outcome), len(m.Forgotten), len(m.Tail), len(m.Bytes), len(m.StartedUs), len(m.FinishedUs)) {
		return
	}
	s.attempts, s.order = make(map[version][]*attempt, n), make([]*attempt, 0, n)
	for i := range n {
		a := &attempt{
			version: version{r.At(m.Target[i]), r.At(m.Hash[i])}, number: m.Number[i], forgotten: m.Forgotten[i], outcome: eventsv1.StepOutcome(m.Outcome[i]),
			build: r.At(m.Build[i]), command: r.At(m.Command[i]), reason: r.At(m.Reason[i]), worker: r.At(m.Worker[i]), log: r.At(m.Log[i]),
			bytes: m.Bytes[i], started: timeOf(m.StartedUs[i], 0), finished: timeOf(m.FinishedUs[i], 0),
		}
		if len(m.Tail[i]) > 0 {
			a.tail = m.Tail[i]
		}
		if i < len(m.LeasedUs) {
			a.leasedUs = m.LeasedUs[i]
		}
		if i < len(m.Decisive) {
			if lines := r.At(m.Decisive[i]); lines != "" {
				a.decisive = strings.Split(lines, "\n")
			}
		}
		s.add(a)
	}
}
