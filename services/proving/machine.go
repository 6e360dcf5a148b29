package proving

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/targets"
	"landfall.build/services/enumerator"
	"landfall.build/services/evidence"
	"landfall.build/services/journal"
	"landfall.build/services/journal/memory"
	"landfall.build/services/lander"
	"landfall.build/services/lineup"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
	"landfall.build/services/stage"
)

const queueName = "main"

// machine is all services on one log, each doing a little when the schedule says so.
type machine struct {
	r     *rand.Rand
	w     *world
	log   *memory.Log
	clock int64
	quiet *slog.Logger

	enumerator *enumeratorActor
	stages     []*stageActor
	lander     *landerActor
	analyzer   *analyzerActor
	builder    *builderActor
	crashes    int
}

func newMachine(r *rand.Rand, w *world, settings *eventsv1.QueueSettings) *machine {
	m := &machine{r: r, w: w, log: memory.New(memory.Options{ID: "proving", Partitions: 1}), clock: 1_000_000,
		quiet: slog.New(slog.NewTextHandler(io.Discard, nil))}
	m.enumerator = &enumeratorActor{m: m, settings: settings}
	for _, s := range []stage.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage(m.log.ID())} {
		m.stages = append(m.stages, &stageActor{m: m, stage: s})
	}
	m.lander = &landerActor{m: m}
	m.analyzer = &analyzerActor{m: m, done: map[string]bool{}}
	m.builder = newBuilderActor(m)
	return m
}

func (m *machine) now() time.Time { return time.UnixMicro(m.clock).UTC() }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (m *machine) follow(topic string, from int64) journal.Cursor {
	return must(m.log.Follow(context.Background(), topic, 0, from))
}

func (m *machine) append(topic, service string, term int64, id string, msg proto.Message) int64 {
	return must(m.log.Append(context.Background(), topic, 0, events.Envelope{
		ID: id, Source: service, Instance: "1", Queue: queueName, Time: m.now(), Term: term, Message: msg,
	}))[0]
}

func next(c journal.Cursor) (journal.Entry, bool) {
	e, ok, err := c.TryNext()
	if err != nil {
		panic(err)
	}
	return e, ok
}

// stageActor is profiler, prioritizer or selector.
type stageActor struct {
	m       *machine
	stage   stage.Stage
	p       *stage.Partition
	in, own journal.Cursor
	term    int64
}

func (a *stageActor) start() {
	a.term = must(stage.Claim(context.Background(), a.m.log, a.stage.Service, "1", "test", a.stage.Output, 0, a.m.now()))
	a.p = stage.NewPartition(a.stage)
	a.in, a.own = a.m.follow(a.stage.Input, 0), a.m.follow(a.stage.Output, 0)
	for {
		e, _ := next(a.own)
		a.p.Own(e)
		if e.Offset >= a.term {
			a.p.Live()
			break
		}
	}
	for a.p.Behind() {
		if e, ok := next(a.in); ok {
			a.p.Input(e)
		}
	}
}

func (a *stageActor) crash() { a.p = nil }

func (a *stageActor) step() bool {
	if a.p == nil {
		a.start()
	}
	e, ok := next(a.in)
	if !ok {
		return false
	}
	if _, out := a.p.Input(e); out != nil {
		a.m.append(a.stage.Output, a.stage.Service, a.term, strconv.FormatInt(e.Offset, 10), out)
	}
	return true
}

type enumeratorActor struct {
	m               *machine
	p               *enumerator.Partition
	changes, builds journal.Cursor
	term            int64
	settings        *eventsv1.QueueSettings
}

func (a *enumeratorActor) start() {
	a.term = must(stage.Claim(context.Background(), a.m.log, events.ServiceEnumerator, "1", "test", events.TopicSpeculations, 0, a.m.now()))
	a.p = enumerator.NewPartition()
	own := a.m.follow(events.TopicSpeculations, 0)
	for {
		e, _ := next(own)
		a.p.Own(e)
		if e.Offset >= a.term {
			break
		}
	}
	from := a.p.Positions()
	a.changes, a.builds = a.m.follow(events.TopicChanges, from.Changes), a.m.follow(events.TopicBuilds, from.Builds)
	if a.p.Queue(queueName).Settings().GetHash() != a.settings.Hash {
		a.write(a.p.Say(queueName, &eventsv1.Fact{Fact: &eventsv1.Fact_Settings{Settings: a.settings}}, a.m.clock))
	}
}

func (a *enumeratorActor) crash() { a.p = nil }

func (a *enumeratorActor) write(s *eventsv1.Speculation) {
	a.m.append(events.TopicSpeculations, events.ServiceEnumerator, a.term, "", s)
}

func (a *enumeratorActor) step() bool {
	if a.p == nil {
		a.start()
	}
	cursors := []journal.Cursor{a.changes, a.builds}
	if a.m.r.IntN(2) == 0 {
		slices.Reverse(cursors)
	}
	took := false
	for _, c := range cursors {
		for range 1 + a.m.r.IntN(3) {
			e, ok := next(c)
			if !ok {
				break
			}
			took = true
			for !a.p.Take(e) {
				_, s := a.p.Flush(a.m.clock)
				a.write(s)
			}
		}
	}
	if a.p.Gathered() {
		_, s := a.p.Flush(a.m.clock)
		a.write(s)
	}
	return took
}

type landerActor struct {
	m *machine
	p *lander.Partition
}

func (a *landerActor) crash() { a.p = nil }

func (a *landerActor) step() bool {
	ctx := context.Background()
	if a.p == nil {
		a.p = must(lander.Take(ctx, lander.Options{
			Options:   stage.Options{Log: a.m.log, Instance: "1", Version: "test", Logger: a.m.quiet},
			Mainlines: map[string]lander.Mainline{queueName: modelMainline{a.m.w}},
			Clock:     a.m.now,
		}, 0))
		must(a.p.Fold())
		must(a.p.Step(ctx))
		if err := a.p.Follow(ctx, queueName); err != nil {
			panic(err)
		}
	}
	read := must(a.p.Fold())
	if a.m.r.IntN(4) == 0 {
		if err := a.p.Follow(ctx, queueName); err != nil {
			panic(err)
		}
	}
	did := must(a.p.Step(ctx))
	return read || did
}

// lineupFold is a fold of landfall.changes for the actors that answer it.
type lineupFold struct {
	cursor journal.Cursor
	terms  *journal.Terms
	queue  *lineup.Queue
	each   func(e journal.Entry, counts bool, eff lineup.Effect)
}

func (m *machine) newLineupFold() *lineupFold {
	return &lineupFold{cursor: m.follow(events.TopicChanges, 0), terms: journal.NewTerms(events.TopicChanges), queue: lineup.New()}
}

func (f *lineupFold) read() (any bool) {
	for {
		e, ok := next(f.cursor)
		if !ok {
			return any
		}
		any = true
		counts := f.terms.Counts(e)
		var eff lineup.Effect
		if counts {
			eff = f.queue.Apply(e.Message, e.Offset)
		}
		if f.each != nil {
			f.each(e, counts, eff)
		}
	}
}

// analyzerActor analyses every pending revision on every head that it may depend on.
type analyzerActor struct {
	m    *machine
	fold *lineupFold
	done map[string]bool
	// pushes are the direct pushes that are not analysed yet.
	pushes []*eventsv1.MainlineMoved
}

func (a *analyzerActor) step() bool {
	if a.fold == nil {
		a.fold = a.m.newLineupFold()
		a.fold.each = func(e journal.Entry, counts bool, _ lineup.Effect) {
			if mm, ok := e.Message.(*eventsv1.MainlineMoved); ok && counts && !mm.Initial {
				a.pushes = append(a.pushes, mm)
			}
		}
	}
	read := a.fold.read()
	if len(a.pushes) > 0 {
		a.push(a.pushes[0])
		a.pushes = a.pushes[1:]
		return true
	}
	head := a.fold.queue.Head
	if head == "" {
		return read
	}
	order := slices.Clone(a.fold.queue.Order())
	a.m.r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, c := range order {
		key := fmt.Sprintf("%s/%d/%s", c.ID(), c.Revision(), head)
		if a.done[key] {
			continue
		}
		a.done[key] = true
		a.m.append(events.TopicChanges, events.ServiceAnalyzer, -1, key, a.analyze(c, head))
		return true
	}
	return read
}

func affected(versions []*eventsv1.TargetVersion, a targets.Analysis) *eventsv1.Affected {
	return &eventsv1.Affected{Targets: versions, Deleted: a.Deleted, Leaves: a.Leaves, AddedEdges: a.Added, All: a.All, Adapter: "model"}
}

func (a *analyzerActor) analyze(c *lineup.Change, head string) *eventsv1.ChangeAnalyzed {
	w := a.m.w
	out := &eventsv1.ChangeAnalyzed{Change: c.Ref(), Base: head, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED}
	tree := w.commits[head].atoms
	atoms := atomsOf(c.Admission.LandingCommits)
	trees, clash := w.apply(tree, atoms)
	for _, k := range a.fold.queue.Order() {
		if k == c {
			continue
		}
		for _, x := range atomsOf(k.Admission.LandingCommits) {
			if _, ok := w.merges(atoms, x); !ok {
				out.Textual = append(out.Textual, &eventsv1.Textual{Other: k.Ref(), MergeConflict: clash == ""})
				break
			}
		}
	}
	if clash != "" {
		out.Outcome, out.Message = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE, "does not merge with "+clash
		return out
	}
	versions, an := w.delta(tree, trees)
	out.Affected = affected(versions, an)
	return out
}

func (a *analyzerActor) push(mm *eventsv1.MainlineMoved) {
	w := a.m.w
	versions, an := w.delta(w.commits[mm.From].atoms, [][]string{w.commits[mm.To].atoms})
	aff := affected(versions, an)
	aff.All = aff.All || mm.Forced
	a.m.append(events.TopicChanges, events.ServiceAnalyzer, -1, mm.To, &eventsv1.MainlineAnalyzed{From: mm.From, To: mm.To, Affected: aff})
}

// builderActor prepares builds and runs their steps, in random order.
type builderActor struct {
	m         *machine
	decisions journal.Cursor
	terms     *journal.Terms
	own       journal.Cursor
	live      map[string]*eventsv1.BuildScheduled
	prepared  map[string][]*stepToRun
	ledger    *evidence.Ledger
	withdrawn *lineupFold
	steps     int
	// outcome draws how an attempt ends that would tell the truth.
	outcome func(red bool) eventsv1.StepOutcome
	broken  func() bool
}

type stepToRun struct {
	version evidence.Version
	red     bool
	policy  *eventsv1.StepPolicy
	build   string
}

func newBuilderActor(m *machine) *builderActor {
	return &builderActor{m: m, terms: journal.NewTerms(events.TopicDecisions), live: map[string]*eventsv1.BuildScheduled{},
		prepared: map[string][]*stepToRun{}, ledger: evidence.NewLedger()}
}

func (a *builderActor) step() bool {
	if a.decisions == nil {
		a.decisions, a.own = a.m.follow(events.TopicDecisions, 0), a.m.follow(events.TopicBuilds, 0)
		a.withdrawn = a.m.newLineupFold()
		a.withdrawn.each = func(e journal.Entry, counts bool, eff lineup.Effect) {
			var r *eventsv1.Reason
			switch f := e.Message.(type) {
			case *eventsv1.ChangeRejected:
				r = f.Reason
			case *eventsv1.ChangeEjected:
				r = f.Reason
			}
			if counts && eff.Applied {
				for _, p := range r.GetFailed() {
					a.ledger.Withdraw(evidence.Version{Target: p.Version.Target, Hash: p.Version.Hash})
				}
			}
		}
	}
	did := a.withdrawn.read()
	for {
		e, ok := next(a.own)
		if !ok {
			break
		}
		if f, is := e.Message.(*eventsv1.StepFinished); is {
			a.ledger.Apply(f)
		}
	}
	for range 1 + a.m.r.IntN(2) {
		e, ok := next(a.decisions)
		if !ok {
			break
		}
		did = true
		d, is := e.Message.(*eventsv1.Decision)
		if !a.terms.Counts(e) || !is {
			continue
		}
		for _, i := range d.Items {
			switch x := i.Item.(type) {
			case *eventsv1.DecisionItem_BuildScheduled:
				a.live[x.BuildScheduled.Build] = x.BuildScheduled
			case *eventsv1.DecisionItem_BuildAborted:
				delete(a.live, x.BuildAborted.Build)
				delete(a.prepared, x.BuildAborted.Build)
			}
		}
	}
	return a.work() || did
}

// work does one thing for one live build.
func (a *builderActor) work() bool {
	ids := make([]string, 0, len(a.live))
	for id := range a.live {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	a.m.r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		steps, ready := a.prepared[id]
		if !ready {
			a.prepare(a.live[id])
			return true
		}
		for _, s := range steps {
			if a.ledger.State(s.version, s.policy) == evidence.Unknown {
				a.run(s)
				return true
			}
		}
	}
	return false
}

func (a *builderActor) prepare(b *eventsv1.BuildScheduled) {
	w := a.m.w
	out := &eventsv1.BuildPrepared{Build: b.Build, Change: b.Change.Change, Base: b.Base, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	a.prepared[b.Build] = nil
	tree := w.commits[b.Base].atoms
	clash := ""
	for _, k := range b.Assumed {
		out.Assumed = append(out.Assumed, k.Change)
		if clash == "" {
			var trees [][]string
			if trees, clash = w.apply(tree, atomsOf(k.LandingCommits)); clash == "" {
				tree = trees[len(trees)-1]
			}
		}
	}
	var trees [][]string
	if clash == "" {
		trees, clash = w.apply(tree, atomsOf(b.Change.LandingCommits))
	}
	switch {
	case a.broken != nil && a.broken():
		out.Outcome, out.Message = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE, "no disk"
	case clash != "":
		out.Outcome, out.Message = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE, "does not merge with "+clash
	default:
		for _, t := range b.Targets {
			at := tree
			if t.Part > 0 {
				at = trees[t.Part-1]
			}
			v := &eventsv1.TargetVersion{Target: t.Target, Part: t.Part}
			if t.Target == targets.Repository {
				v.Hash = treeID(at)
			} else if node, ok := w.graph(at).Target(t.Target); ok {
				v.Hash = node.Hash.String()
			} else {
				v.Absent = true
			}
			out.Versions = append(out.Versions, v)
			red := w.redTargets(at)[t.Target]
			if t.Target == targets.Repository {
				for _, r := range w.redTargets(at) {
					red = red || r
				}
			}
			if !v.Absent {
				a.prepared[b.Build] = append(a.prepared[b.Build], &stepToRun{evidence.Version{Target: v.Target, Hash: v.Hash}, red, b.Steps, b.Build})
			}
		}
	}
	a.m.append(events.TopicBuilds, events.ServiceBuilder, -1, b.Build, out)
}

func (a *builderActor) run(s *stepToRun) {
	a.steps++
	f := &eventsv1.StepFinished{
		Target: s.version.Target, Hash: s.version.Hash, Attempt: a.ledger.NextAttempt(s.version), Build: s.build,
		Outcome: a.outcome(s.red), Reason: "the model said so", StartedUs: a.m.clock, FinishedUs: a.m.clock + 1_000_000,
	}
	a.ledger.Apply(f)
	a.m.append(events.TopicBuilds, events.ServiceBuilder, -1, fmt.Sprintf("%s@%s#%d", f.Target, f.Hash, f.Attempt), f)
}
