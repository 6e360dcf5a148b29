package recompute_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/prediction/predictiontest"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
)

// world is a log that random people, machines and the production cores write, with instances that are replaced
// and go on writing for a while.
type world struct {
	// withdrawals: some changes are cancelled when the lander is about to land them.
	withdrawals bool
	t           testing.TB
	r           *rand.Rand
	log         *memory.Log
	clock       int64
	version     string
	queues      []string
	writers     []writer
	crew        map[string]*crew // by queue
	claims      int
}

// writer is a service on one partition.
type writer interface {
	step() bool
	replace()
}

func newWorld(t testing.TB, seed uint64, queues ...string) *world {
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 0)), clock: 1_700_000_000_000_000, version: "one", queues: queues, crew: map[string]*crew{},
		log: memory.New(memory.Options{ID: "world", Partitions: 2}),
	}
	for p := range w.log.Partitions() {
		w.writers = append(w.writers, &enumeratorWriter{w: w, partition: p})
		for _, s := range []runner.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage(w.log.ID())} {
			w.writers = append(w.writers, &stageWriter{w: w, stage: s, partition: p})
		}
	}
	for _, q := range queues {
		w.crew[q] = &crew{w: w, queue: q, partition: events.PartitionOf(q, w.log.Partitions()), head: "root", known: map[string]bool{}, passed: map[string]string{}, rejected: map[string]bool{}, term: -1}
		w.crew[q].cursor = w.follow(events.TopicDecisions, w.crew[q].partition)
		w.crew[q].terms = journal.NewTerms(events.TopicDecisions)
		w.crew[q].say(events.TopicChanges, "gateway", &eventsv1.MainlineMoved{To: "root", Initial: true})
	}
	for _, x := range w.writers {
		x.replace()
	}
	return w
}

// run lets n changes come to each queue, and goes on until nobody has anything to do.
func (w *world) now() time.Time { return time.UnixMicro(w.clock) }

func (w *world) run(n int) {
	for range n {
		for _, q := range w.queues {
			w.crew[q].arrive()
		}
		for range 40 {
			w.step()
		}
	}
	for w.step() {
	}
	w.settle()
}

// settle lets everybody finish.
func (w *world) settle() {
	for busy := true; busy; {
		busy = false
		for _, x := range w.writers {
			busy = x.step() || busy
		}
		for _, q := range w.queues {
			busy = w.crew[q].step() || busy
		}
	}
}

func (w *world) step() (did bool) {
	w.clock += int64(w.r.IntN(100_000))
	if w.r.IntN(15) == 0 {
		w.writers[w.r.IntN(len(w.writers))].replace()
	}
	for _, i := range w.r.Perm(len(w.writers)) {
		did = w.writers[i].step() || did
	}
	for _, q := range w.queues {
		did = w.crew[q].step() || did
	}
	return did
}

func (w *world) follow(topic string, partition int32) journal.Cursor {
	c, err := w.log.Follow(w.t.Context(), topic, partition, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func next(c journal.Cursor) (journal.Entry, bool) {
	e, ok, err := c.TryNext()
	if err != nil {
		panic(err)
	}
	return e, ok
}

func (w *world) append(topic string, partition int32, source, queue string, term int64, m proto.Message) int64 {
	offsets, err := w.log.Append(w.t.Context(), topic, partition, events.Envelope{
		ID: "x", Source: source, Instance: "i", Queue: queue, Time: w.now(), Term: term, Message: m,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return offsets[0]
}

func (w *world) claim(topic string, partition int32, service string) int64 {
	w.claims++
	term, err := runner.Claim(w.t.Context(), w.log, service, fmt.Sprint(w.claims), w.version, topic, partition, w.now())
	if err != nil {
		w.t.Fatal(err)
	}
	return term
}

// crew is who admits, analyses, builds and lands in one queue. Everything passes but what is bad.
type crew struct {
	w         *world
	queue     string
	partition int32
	cursor    journal.Cursor
	terms     *journal.Terms
	head      string
	landed    []string
	made      int
	todo      []func()
	known     map[string]bool // versions whose step was run
	// passed has the builds whose steps passed, by version; term is the lander's.
	passed   map[string]string
	rejected map[string]bool
	term     int64
	// withdrawn: a change was cancelled just before its intention was written.
	withdrawn bool
}

func (c *crew) say(topic, source string, m proto.Message) {
	c.w.append(topic, c.partition, source, c.queue, -1, m)
}

func digest(parts ...string) string {
	h := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(h[:20])
}

// targetsOf are the targets that a change affects, as its name says.
func targetsOf(change string) []string { return strings.Split(change, "-")[1:] }

func (c *crew) arrive() {
	c.made++
	id := fmt.Sprintf("c%d-//a%d", c.made, c.w.r.IntN(4))
	if c.w.r.IntN(2) == 0 {
		id += fmt.Sprintf("-//b%d", c.w.r.IntN(3))
	}
	if c.w.r.IntN(6) == 0 {
		id += "-//bad"
	}
	ref := &eventsv1.ChangeRef{Change: id, Revision: 1}
	c.say(events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: c.queue, Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id, Base: "root"}}, Mainline: c.head, Benefit: 1,
	}})
	a := &eventsv1.ChangeAnalyzed{Change: ref, Base: c.head, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{Adapter: "manifest"}}
	for _, t := range targetsOf(id) {
		a.Affected.Targets = append(a.Affected.Targets, &eventsv1.TargetVersion{Target: t, Hash: c.hash(t, id), Part: 1})
		a.Affected.Leaves = append(a.Affected.Leaves, t+"/"+id)
	}
	c.todo = append(c.todo, func() { c.say(events.TopicChanges, events.ServiceAnalyzer, a) })
	if c.w.r.IntN(6) == 0 {
		trained := trainedOnce(c.w.t)
		c.say(events.TopicModels, events.ServiceTrainer, trained[c.w.r.IntN(len(trained))])
	}
}

var (
	trainedBefore sync.Once
	trainedFacts  []proto.Message
)

// trainedOnce are facts of landfall.models: models of each kind, one that cannot be used, a roll back, and one that nobody uses.
func trainedOnce(t testing.TB) []proto.Message {
	trainedBefore.Do(func() {
		corrupt := predictiontest.Success(t, 2)
		corrupt.Predictor = corrupt.Predictor[:50]
		trainedFacts = []proto.Message{
			&eventsv1.ModelPromoted{Model: predictiontest.Success(t, 1)}, &eventsv1.ModelPromoted{Model: predictiontest.Conflict(t, 1)},
			&eventsv1.ModelPromoted{Model: predictiontest.Duration(t, 1, 1)}, &eventsv1.ModelPromoted{Model: predictiontest.Duration(t, 1, 1e9)},
			&eventsv1.ModelPromoted{Model: corrupt}, &eventsv1.ModelRolledBack{Kind: eventsv1.ModelKind_MODEL_KIND_SUCCESS},
			&eventsv1.ModelTrained{Model: predictiontest.Success(t, 3)},
		}
	})
	return trainedFacts
}

// hash is a target's version on the mainline with the changes.
func (c *crew) hash(target string, changes ...string) string {
	var in []string
	for _, id := range append(slices.Clone(c.landed), changes...) {
		if slices.Contains(targetsOf(id), target) {
			in = append(in, id)
		}
	}
	slices.Sort(in)
	return digest(append(in, target)...)
}

// step reads a decision, or does one thing that one asked for.
func (c *crew) step() bool {
	if e, ok := next(c.cursor); ok {
		counts := c.terms.Counts(e)
		if d, is := e.Message.(*eventsv1.Decision); is && counts && e.Queue == c.queue {
			for _, i := range d.Items {
				c.todo = append(c.todo, func() { c.act(d, i) })
			}
		}
		return true
	}
	if len(c.todo) == 0 {
		return false
	}
	i := c.w.r.IntN(len(c.todo))
	do := c.todo[i]
	c.todo = slices.Delete(c.todo, i, i+1)
	do()
	return true
}

func (c *crew) act(d *eventsv1.Decision, i *eventsv1.DecisionItem) {
	switch x := i.Item.(type) {
	case *eventsv1.DecisionItem_BuildScheduled:
		c.build(x.BuildScheduled)
	case *eventsv1.DecisionItem_LandDecided:
		c.land(d, x.LandDecided)
	case *eventsv1.DecisionItem_RejectDecided:
		c.rejected[x.RejectDecided.Change.Change] = true
		c.lander(&eventsv1.ChangeRejected{Change: x.RejectDecided.Change, Decision: x.RejectDecided.Decision, Base: c.head, Reason: x.RejectDecided.Reason})
	}
}

// lander writes as the lander: the queues of a partition share its term, and now and then another one takes over.
func (c *crew) lander(m proto.Message) {
	if c.term < 0 || c.w.r.IntN(20) == 0 {
		term := c.w.claim(events.TopicChanges, c.partition, events.ServiceLander)
		for _, other := range c.w.crew {
			if other.partition == c.partition {
				other.term = term
			}
		}
	}
	c.w.append(events.TopicChanges, c.partition, events.ServiceLander, c.queue, c.term, m)
}

// land is the lander: it refuses what is not proven on the mainline as it is.
func (c *crew) land(d *eventsv1.Decision, l *eventsv1.LandDecided) {
	id := l.Change.Change
	if slices.Contains(c.landed, id) {
		return
	}
	i := &eventsv1.LandIntended{Change: l.Change, Decision: l.Decision, Base: c.head, Commits: []string{digest(c.head, id)}, StampUs: d.StampUs}
	for _, b := range l.Bypasses {
		if !slices.Contains(c.landed, b.Change) && !c.rejected[b.Change] {
			i.Bypasses = append(i.Bypasses, b)
		}
	}
	for _, t := range targetsOf(id) {
		v := &eventsv1.TargetVersion{Target: t, Hash: c.hash(t, id), Part: 1}
		build, proven := c.passed[v.Hash]
		if !proven {
			c.lander(&eventsv1.Refused{Change: l.Change, Decision: l.Decision, Base: c.head, Versions: []*eventsv1.TargetVersion{v}, Missing: []*eventsv1.TargetVersion{v}, StampUs: d.StampUs})
			return
		}
		i.Proof = append(i.Proof, &eventsv1.Proof{Version: v, Build: build, Attempt: 1})
	}
	if c.w.r.IntN(4) == 0 {
		i.Deleted = []string{"//gone"}
	}
	if c.w.withdrawals && (!c.withdrawn && len(c.landed) > 0 || c.w.r.IntN(20) == 0) {
		// The lander has not read the cancellation when it writes what then opens nothing.
		c.withdrawn, c.rejected[id] = true, true
		c.say(events.TopicChanges, events.ServiceGateway, &eventsv1.ChangeCancelled{Change: id, Revision: l.Change.Revision, Who: "somebody"})
		c.lander(i)
		return
	}
	c.lander(i)
	if c.w.r.IntN(10) == 0 {
		c.lander(&eventsv1.LandVoid{Change: l.Change, Decision: l.Decision, Commit: i.Commits[0], Reason: "a race", StampUs: c.w.clock})
		return
	}
	c.lander(&eventsv1.ChangeLanded{Change: i.Change, Decision: i.Decision, Base: i.Base, Commits: i.Commits, Proof: i.Proof, Bypasses: i.Bypasses, StampUs: c.w.clock, Deleted: i.Deleted})
	c.landed, c.head = append(c.landed, id), i.Commits[0]
}

// build answers a schedule; with the mainline as it is by now, which may not be the one that was asked for.
func (c *crew) build(s *eventsv1.BuildScheduled) {
	if s.Base != c.head || s.Change.GetChange().GetChange() == "" {
		return
	}
	p := &eventsv1.BuildPrepared{Build: s.Build, Change: s.Change.Change, Base: s.Base, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Tree: digest(s.Build)}
	var tree []string
	for _, a := range s.Assumed {
		p.Assumed = append(p.Assumed, a.Change)
		tree = append(tree, a.Change.Change)
	}
	tree = append(tree, s.Change.Change.Change)
	for _, t := range s.Targets {
		v := &eventsv1.TargetVersion{Target: t.Target, Hash: c.hash(t.Target, tree...), Part: t.Part}
		p.Versions = append(p.Versions, v)
		if c.known[v.Hash] {
			continue
		}
		c.known[v.Hash] = true
		outcome := eventsv1.StepOutcome_STEP_OUTCOME_PASSED
		if v.Target == "//bad" {
			outcome = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		}
		c.todo = append(c.todo, func() {
			if outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
				c.passed[v.Hash] = s.Build
			}
			c.say(events.TopicBuilds, events.ServiceBuilder, &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: outcome, Build: s.Build, Reason: "it is bad"})
		})
	}
	c.say(events.TopicBuilds, events.ServiceBuilder, p)
}
