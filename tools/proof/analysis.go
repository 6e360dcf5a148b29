package proof

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/agenda"
	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/analyzer/agendas"
)

// analyzerActor is one instance of the analyzer: the production agenda says what is wanted, the model
// what is found.
type analyzerActor struct {
	m      *machine
	x      *site
	name   string
	starts int
	cursor journal.Cursor
	folded *agendas.Partition
	agenda *agenda.Queue
	jobs   []*analysisJob
	// told is set once the log has had a survey with the reading of now.
	told bool
	// dir is where it keeps its snapshots.
	dir directory
	// sabotaged draws whether an analysis overlooks something, fails whether it cannot be made.
	sabotaged, fails func() bool
}

type analysisJob struct {
	task agenda.Task
	// peers are the pending changes as they were when it began.
	peers []*lineup.Change
	// offset is where its answer stands, -1 before it is written.
	offset int64
}

func newAnalyzerActor(x *site, number int) *analyzerActor {
	never := func() bool { return false }
	return &analyzerActor{m: x.m, x: x, name: strconv.Itoa(number + 1), sabotaged: never, fails: never}
}

func (a *analyzerActor) crash() {
	if a.cursor != nil {
		a.cursor.Close()
	}
	a.cursor, a.agenda, a.jobs, a.told = nil, nil, nil, false
}

func (a *analyzerActor) step() (did bool) {
	if a.cursor == nil {
		a.start()
	}
	limit := -1
	if a.m.r.IntN(3) == 0 {
		limit = a.m.r.IntN(4) // it may lag behind
	}
	if did = a.fold(limit); did {
		a.m.saves(&a.dir, a.folded.Marshal)
	}
	if len(a.jobs) > 0 && a.m.r.IntN(2) == 0 {
		a.finish(a.m.r.IntN(len(a.jobs)))
		return true
	}
	var open []agenda.Task
	reading := a.reading()
	if a.told = a.told || a.agenda.Reading() == reading; a.told {
		reading = a.agenda.Reading()
	}
	for _, t := range a.agenda.Wanted(reading) {
		if !slices.ContainsFunc(a.jobs, func(j *analysisJob) bool { return same(j.task, t) }) {
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return did || len(a.jobs) > 0
	}
	a.jobs = append(a.jobs, &analysisJob{
		task: open[a.m.r.IntN(len(open))], peers: slices.Clone(a.agenda.Lineup.Order()), offset: -1,
	})
	return true
}

// start reads the log, from the beginning or from a snapshot.
func (a *analyzerActor) start() {
	topic, queues := events.TopicChanges, []string{a.x.queue}
	a.folded, a.agenda = agendas.NewPartition(queues), agenda.New()
	if k, ok := a.m.kept(a.dir); ok {
		a.folded = must(agendas.Unmarshal(k, queues, a.m.end(topic, a.x.partition)))
		a.m.tally[Thaws]++
	}
	a.cursor = a.m.read(events.ServiceAnalyzer, topic, a.x.partition, max(a.folded.Next(), a.m.resume(a.starts, topic, a.x.partition)))
	a.starts++
	a.fold(-1)
}

// same says whether two tasks are about the same: there is one job at a time for each change and push.
func same(a, b agenda.Task) bool {
	if a.Push != nil || b.Push != nil {
		return a.Push != nil && b.Push != nil && a.Push.Offset == b.Push.Offset
	}
	if a.IsSurvey() || b.IsSurvey() {
		return a.IsSurvey() && b.IsSurvey()
	}
	return a.Change.ID() == b.Change.ID() && a.Change.Revision() == b.Change.Revision()
}

// fold reads up to a number of records, all for a negative one.
func (a *analyzerActor) fold(limit int) (did bool) {
	for ; limit != 0; limit-- {
		e, ok := next(a.cursor)
		if !ok {
			break
		}
		did = true
		a.folded.Read(e)
	}
	if q := a.folded.Queue(a.x.queue); q != nil {
		a.agenda = q
	}
	return did
}

// finish ends a job: its answer is written if it is still worth it, and forgotten once it was read back.
func (a *analyzerActor) finish(i int) {
	j := a.jobs[i]
	switch {
	case j.offset >= 0:
		if a.folded.Next() <= j.offset {
			a.fold(-1)
		}
	case a.agenda.Answers(j.task):
		if t := j.task; t.Push != nil {
			j.offset = a.write("push "+strconv.FormatInt(t.Push.Offset, 10), a.push(t.Push))
		} else if t.IsSurvey() {
			j.offset = a.write(fmt.Sprintf("survey %s/%d/%s", t.Base, t.Sequence, t.Reading), a.survey(t))
			a.m.tally[Surveys]++
		} else {
			j.offset = a.write(fmt.Sprintf("%s %s/%d", refString(t.Change.Ref()), t.Base, t.Sequence), a.change(j))
			a.m.tally[Analyses]++
		}
		return
	}
	a.jobs = slices.Delete(a.jobs, i, i+1)
}

func (a *analyzerActor) write(id string, fact proto.Message) int64 {
	return a.m.appendEffect(a.x, events.TopicChanges, events.ServiceAnalyzer, a.name, id, fact)
}

// change analyses a change on the head that its task names.
func (a *analyzerActor) change(j *analysisJob) *eventsv1.ChangeAnalyzed {
	r, c := a.x.main.repository, j.task.Change
	out := &eventsv1.ChangeAnalyzed{Change: c.Ref(), Base: j.task.Base, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED}
	if a.fails() {
		out.Affected = &eventsv1.Affected{All: true, Reasons: []string{"the targets could not be computed"}}
		a.m.tally[Unknown]++
		return out
	}
	base, edits := a.x.main.commits[j.task.Base].tree, r.editsOf(c.Admission.LandingCommits)
	s := r.study(base, edits)
	if a.m.leaves == M23EveryCommit && s.affected != nil {
		s.affected.Targets = ofLast(s.affected.Targets, len(edits))
	}
	switch {
	case s.obstacle != "":
		out.Outcome, out.Message = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE, "does not merge with "+s.obstacle
		a.m.tally[Unmergeable]++
	case s.invalid:
		out.Outcome, out.Message = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID, "its definitions are invalid"
		a.m.tally[Invalid]++
	default:
		out.Affected = s.affected
		a.count(s.affected)
	}
	out.Textual = a.textual(j, base, edits, out.Outcome)
	if a.sabotaged() {
		sabotage(out, a.m)
	}
	return out
}

func (a *analyzerActor) count(f *eventsv1.Affected) {
	for n, is := range map[Count]bool{Unknown: f.All, Deletions: len(f.Deleted) > 0, AddedEdges: len(f.AddedEdges) > 0} {
		if is {
			a.m.tally[n]++
		}
	}
}

// textual lists the neighbours with what a merge of each pair says (M5).
func (a *analyzerActor) textual(j *analysisJob, base *tree, edits []*atom, outcome eventsv1.AnalysisOutcome) (list []*eventsv1.Textual) {
	r := a.x.main.repository
	place := slices.IndexFunc(j.peers, func(c *lineup.Change) bool { return c.ID() == j.task.Change.ID() })
	for i, p := range j.peers {
		if i == place {
			continue
		}
		others := r.editsOf(p.Admission.LandingCommits)
		meets := slices.ContainsFunc(edits, func(x *atom) bool {
			return slices.ContainsFunc(others, func(y *atom) bool { return sharesPath(x, y) })
		})
		if outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_INVALID {
			meets = meets || slices.ContainsFunc(others, (*atom).defines)
		}
		if !meets {
			continue
		}
		t := &eventsv1.Textual{Other: p.Ref()}
		if outcome != eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE {
			ahead, behind := edits, others
			if i < place {
				ahead, behind = others, edits
			}
			if t.MergeConflict = r.collide(base, ahead, behind); t.MergeConflict {
				a.m.tally[Clashes]++
			}
		}
		list = append(list, t)
	}
	return list
}

// collide says that each merges alone and both do not.
func (r *repository) collide(base *tree, ahead, behind []*atom) bool {
	first, obstacle := r.apply(base, ahead)
	if obstacle != "" || len(first) == 0 {
		return false
	}
	if _, obstacle = r.apply(first[len(first)-1], behind); obstacle == "" {
		return false
	}
	_, obstacle = r.apply(base, behind)
	return obstacle == ""
}

// push analyses what came past the queue (M23a).
func (a *analyzerActor) push(p *agenda.Push) *eventsv1.MainlineAnalyzed {
	to := a.x.main.commits[p.To].tree
	out := &eventsv1.MainlineAnalyzed{From: p.From, To: p.To}
	if a.m.leaves == M23aVerifyPushes {
		return out
	}
	if !p.Forced {
		s := compare(a.x.main.commits[p.From].tree, to)
		out.Affected = s.affected
		if !s.invalid {
			return out
		}
	}
	out.Affected = &eventsv1.Affected{
		All: true, Reasons: []string{"rewritten, or invalid"}, Targets: []*eventsv1.TargetVersion{to.version(targets.Repository, 1)},
	}
	return out
}

// reading is how trees are read now.
func (a *analyzerActor) reading() string { return "read" + a.x.main.repository.reading }

// survey names the targets of a head (M23b), or none where they cannot be computed.
func (a *analyzerActor) survey(task agenda.Task) *eventsv1.MainlineSurveyed {
	out := &eventsv1.MainlineSurveyed{Commit: task.Base, Reading: task.Reading, Again: !task.First}
	t := a.x.main.commits[task.Base].tree
	if a.fails() || t.unknown() {
		out.Message = "the targets could not be computed"
		return out
	}
	out.Whole = t.version(targets.Repository, 0)
	for target := range t.truth().graph.Targets() {
		if v := t.version(target.Name, 0); !v.Trivial {
			out.Targets = append(out.Targets, &eventsv1.TargetVersion{Target: v.Target, Hash: v.Hash})
		}
	}
	return out
}

// sabotage makes an analysis overlook something: nothing that lands may rest on it.
func sabotage(f *eventsv1.ChangeAnalyzed, m *machine) {
	m.tally[Sabotages]++
	switch m.r.IntN(3) {
	case 0:
		f.Textual = nil
	case 1:
		if f.Affected != nil {
			f.Affected = proto.CloneOf(f.Affected)
			f.Affected.AddedEdges, f.Affected.Leaves = nil, nil
		}
	default:
		if n := len(f.GetAffected().GetTargets()); n > 0 {
			f.Affected = proto.CloneOf(f.Affected)
			i := m.r.IntN(n)
			f.Affected.Targets = slices.Delete(f.Affected.Targets, i, i+1)
		}
	}
}
