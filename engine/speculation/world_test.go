package speculation

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/graph"
	"landfall.build/events/eventstest"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// world is a repository whose target versions are named by what they hold, and people and services who do anything with its queue.
type world struct {
	*testQueue
	r      *rand.Rand
	reader *graph.Graph
	// renamed folds the same facts about changes that go by other names.
	renamed *Queue
	names   map[string]string
	made    int
	head    string
	// landed is what the mainline holds, affects the targets of each change and push.
	landed  []string
	affects map[string][]string
	facts   []*eventsv1.Fact // all that were taken
	// sent counts the nodes in deltas in which something left, shrunk those that lost a member and were not sent.
	sent, shrunk int
	// parts counts the deltas that left something for the next one.
	parts int
}

func newWorld(t *testing.T, r *rand.Rand) *world {
	w := &world{
		testQueue: newTestQueue(t), r: r, reader: graph.New(), renamed: newTestQueue(t).Queue, names: map[string]string{}, head: "m0", affects: map[string][]string{},
	}
	for i := range 1000 {
		w.names[fmt.Sprint("c", i)] = fmt.Sprintf("z%03d", 999-i)
	}
	return w
}

func (w *world) take(m proto.Message) {
	w.t.Helper()
	f := w.testQueue.take(m)
	w.facts = append(w.facts, f)
	w.renamed.Apply(eventstest.Renamed(f, w.names), w.offset)
}

// decide folds the next delta, and compares what was published with nodes that are made from nothing.
func (w *world) decide() {
	w.t.Helper()
	d := w.Decide()
	for d.GetMore() {
		if w.parts++; w.parts > 1_000_000 || d.Mainline.GetAnalyzed() {
			w.t.Fatalf("the %d. delta with more to come is %v", w.parts, d)
		}
		w.Fold(d)
		w.reader.Fold(d)
		if w.reader.Mainline.Analyzed {
			w.t.Fatal("those who read may decide before they have all")
		}
		if w.r.IntN(3) == 0 {
			w.act() // goes on meanwhile
		}
		d = w.Decide()
	}
	other := w.renamed.Decide()
	if want := eventstest.Renamed(d, w.names); w.published.room == maxNodeBytes && !proto.Equal(want, other) {
		w.t.Fatalf("by other names the delta is %v\nand should be %v", other, want)
	}
	w.renamed.Fold(other)
	w.Fold(d)
	shrunk := w.reader.Fold(d)
	if len(d.GetGone()) > 0 {
		w.sent, w.shrunk = w.sent+len(d.Nodes), w.shrunk+len(shrunk)
	}
	for _, c := range w.Lineup.Order() {
		want := w.node(c)
		if n := w.published.nodes[c.ID()]; !sameNode(want, n) {
			w.t.Fatalf("%s was published as %v, and is %v\nafter %v", c.ID(), n, want, d)
		}
		if n := w.reader.Node(c.ID()); n == nil || !sameNode(want, n.Node) {
			w.t.Fatalf("those who read have %s as %v, and it is %v\nafter %v", c.ID(), n, want, d)
		}
	}
	if want := w.check(); !proto.Equal(want, w.published.check) {
		w.t.Fatalf("the check was published as %v, and is %v\nafter %v", w.published.check, want, d)
	}
	if want := w.toProve(); !sameSurvey(want, w.published.survey) || !sameSurvey(want, w.reader.Survey) {
		w.t.Fatalf("what is left of the survey was published as %v, those who read have %v, and it is %v\nafter %v", w.published.survey, w.reader.Survey, want, d)
	}
	if len(w.reader.Order()) != len(w.Lineup.Order()) {
		w.t.Fatalf("those who read have %d nodes of %d", len(w.reader.Order()), len(w.Lineup.Order()))
	}
}

// version names what a target is where these have landed besides the mainline.
func (w *world) version(target string, also ...string) *eventsv1.TargetVersion {
	var holds []string
	for _, id := range append(slices.Clone(w.landed), also...) {
		if slices.Contains(w.affects[id], target) {
			holds = append(holds, id)
		}
	}
	slices.Sort(holds)
	hash := strings.Join(slices.Compact(holds), "+")
	return &eventsv1.TargetVersion{Target: target, Hash: hash, Part: 1, Trivial: crc32.ChecksumIEEE([]byte(target+hash))%20 == 0}
}

func (w *world) versions(of string, also ...string) (list []*eventsv1.TargetVersion) {
	for _, t := range w.affects[of] {
		list = append(list, w.version(t, append(also, of)...))
	}
	return list
}

func (w *world) someTargets() (list []string) {
	for i := range 4 {
		if w.r.IntN(2) == 0 {
			list = append(list, fmt.Sprint("//t", i))
		}
	}
	if len(list) == 0 {
		list = append(list, "//t0")
	}
	return list
}

func (w *world) analyze(c *eventsv1.ChangeRef) {
	a := &eventsv1.Affected{Targets: w.versions(c.Change), All: w.r.IntN(25) == 0}
	switch w.r.IntN(10) {
	case 0:
		a.AddedEdges = []string{fmt.Sprint("//t", w.r.IntN(4))}
	case 1:
		a.Deleted = []string{fmt.Sprint("//t", w.r.IntN(4))}
	case 2:
		a.Leaves = []string{fmt.Sprint("file:f", w.r.IntN(4))}
	}
	outcome := eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED
	if w.r.IntN(20) == 0 {
		outcome = eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_UNMERGEABLE
	}
	m := &eventsv1.ChangeAnalyzed{Change: c, Base: w.head, Outcome: outcome, Affected: a, Message: fmt.Sprint("analysis of ", c.Change)}
	for _, o := range w.Lineup.Order() {
		if o.ID() != c.Change && w.r.IntN(8) == 0 {
			m.Textual = append(m.Textual, &eventsv1.Textual{Other: o.Ref(), MergeConflict: w.r.IntN(2) == 0})
		}
	}
	w.take(m)
}

func (w *world) admit(id string, revision uint64) {
	a := &eventsv1.Admission{Change: id, Revision: revision, Author: "Ada <ada@example.com>", LandingCommits: []*eventsv1.LandingCommit{{Head: fmt.Sprint(id, "@", revision)}}}
	for _, o := range w.Lineup.Order() {
		if o.ID() != id && w.r.IntN(20) == 0 {
			a.Requires = append(a.Requires, o.ID())
		}
	}
	w.affects[id] = w.someTargets()
	if revision == 1 {
		w.take(&eventsv1.ChangeAdmitted{Admission: a})
	} else {
		w.take(&eventsv1.ChangeRevised{Admission: a})
	}
}

// attempt runs some of these versions.
func (w *world) attempt(versions []*eventsv1.TargetVersion) {
	for _, v := range versions {
		if w.r.IntN(4) == 0 {
			continue
		}
		outcome := eventsv1.StepOutcome_STEP_OUTCOME_PASSED
		if w.r.IntN(4) == 0 {
			outcome = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		}
		w.take(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 1, Outcome: outcome})
		if outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED && w.r.IntN(2) == 0 {
			w.take(&eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: 2, Outcome: eventsv1.StepOutcome_STEP_OUTCOME_PASSED})
		}
	}
}

// survey names the targets of a head, mostly the present one. Some are altered by no change.
func (w *world) survey() {
	m := &eventsv1.MainlineSurveyed{Commit: w.head, Whole: w.version(WholeRepository), Reading: []string{"", "old", "new"}[w.r.IntN(3)]}
	if w.r.IntN(4) == 0 {
		m.Commit = "another head"
	}
	for i := range 4 {
		m.Targets = append(m.Targets, w.version(fmt.Sprint("//t", i)), &eventsv1.TargetVersion{Target: fmt.Sprint("//u", i), Hash: "u"})
	}
	w.take(m)
	for _, c := range w.Lineup.Order() {
		if w.analyses.pending[c.ID()] == nil && w.r.IntN(5) > 0 {
			w.analyze(c.Ref())
		}
	}
}

// act is one thing that somebody does.
func (w *world) act() {
	order := w.Lineup.Order()
	if len(order) < 3 || len(order) < 9 && w.r.IntN(4) == 0 {
		w.made++
		id := fmt.Sprint("c", w.made)
		w.admit(id, 1)
		if w.r.IntN(5) > 0 {
			w.analyze(&eventsv1.ChangeRef{Change: id, Revision: 1})
		}
		if w.r.IntN(5) == 0 {
			w.survey()
		}
		return
	}
	c := order[w.r.IntN(len(order))*w.r.IntN(2)]
	ref, at := c.Ref(), slices.Index(order, c)
	switch w.r.IntN(22) {
	case 20: // the mainline itself is built
		w.made++
		m := &eventsv1.BuildPrepared{Build: fmt.Sprint("b", w.made), Change: &eventsv1.ChangeRef{}, Base: w.head, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		for _, t := range w.someTargets() {
			m.Versions = append(m.Versions, w.version(t))
		}
		for i := range w.r.IntN(3) {
			m.Versions = append(m.Versions, &eventsv1.TargetVersion{Target: fmt.Sprint("//u", i), Hash: "u", Absent: w.r.IntN(10) == 0})
		}
		w.take(m)
		w.attempt(m.Versions)
	case 21:
		m := &eventsv1.ChangeRetried{Change: ref}
		for _, v := range append(w.versions(c.ID()), w.version("//t0"), w.version("//t1")) {
			m.Failed = append(m.Failed, &eventsv1.Proof{Version: v, Attempt: uint32(1 + w.r.IntN(2))})
		}
		w.take(m)
	case 0:
		w.take(&eventsv1.ChangeRejected{Change: ref})
	case 1:
		w.take(&eventsv1.ChangeEjected{Change: ref})
	case 2:
		w.take(&eventsv1.ChangeCancelled{Change: c.ID()})
	case 3:
		w.admit(c.ID(), ref.Revision+1)
	case 4:
		w.take(&eventsv1.ChangeHeld{Change: c.ID(), Hold: "h", Who: "w", Why: "why"})
	case 5:
		w.take(&eventsv1.ChangeReleased{Change: c.ID(), Hold: "h", Who: "w"})
	case 6:
		m := &eventsv1.ChangeMoved{Change: c.ID(), Before: order[w.r.IntN(len(order))].ID()}
		if w.r.IntN(3) == 0 {
			m.Before = ""
		}
		w.take(m)
	case 7:
		w.made++
		push, from := fmt.Sprint("push", w.made), w.head
		w.affects[push], w.head = w.someTargets(), push
		w.landed = append(w.landed, push)
		w.take(&eventsv1.MainlineMoved{From: from, To: push})
		w.take(&eventsv1.MainlineAnalyzed{From: from, To: push, Affected: &eventsv1.Affected{Targets: w.versions(push)}})
	case 8, 9, 10, 11:
		if a := w.analyses.pending[c.ID()]; a == nil || !a.known() || w.Lineup.Intention != nil {
			return // the lander would not land it
		}
		w.head = fmt.Sprint(c.ID(), "@", ref.Revision, " on the mainline")
		w.take(&eventsv1.LandIntended{Change: ref, Commits: []string{w.head}})
		w.landed = append(w.landed, c.ID())
		w.take(&eventsv1.ChangeLanded{Change: ref, Commits: []string{w.head}})
	case 12, 13, 14, 15:
		var assumed []*eventsv1.ChangeRef
		var ids []string
		for i, o := range order { // one that is behind it now may have been ahead when it was asked for
			if i < at && w.r.IntN(2) == 0 || i > at && w.r.IntN(8) == 0 {
				assumed, ids = append(assumed, o.Ref()), append(ids, o.ID())
			}
		}
		w.made++
		m := &eventsv1.BuildPrepared{Build: fmt.Sprint("b", w.made), Change: ref, Base: w.head, Assumed: assumed, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
		if w.r.IntN(6) == 0 {
			m.Outcome = eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE
			m.Message = "it does not merge"
		} else {
			m.Versions = w.versions(c.ID(), ids...)
		}
		w.take(m)
		w.attempt(m.Versions)
	case 16:
		v := w.version(fmt.Sprint("//t", w.r.IntN(4)))
		w.take(&eventsv1.EvidenceForgotten{Versions: []*eventsv1.TargetVersion{v}})
	case 17:
		target := fmt.Sprint("//t", w.r.IntN(4))
		if w.r.IntN(2) == 0 {
			w.take(&eventsv1.TargetQuarantined{Target: target, UntilUs: 1})
		} else {
			w.take(&eventsv1.QuarantineEnded{Target: target})
		}
	default:
		w.analyze(ref)
	}
}

// TestPublishedNodesAreThoseMadeFromNothing after random facts, and those who fold the deltas have the same nodes, though most
// changes behind one that leaves are not sent again. The names of the changes make no difference.
func TestPublishedNodesAreThoseMadeFromNothing(t *testing.T) {
	random := seedtest.Random(t)
	sent, shrunk := 0, 0
	for i := range 150 {
		w := newWorld(t, random)
		if i%3 == 0 {
			w.take(&eventsv1.QueueSettings{Hash: "with a hub", Steps: &eventsv1.StepPolicy{}, Hubs: []string{"//t0"}})
		}
		for range 80 {
			for range 1 + w.r.IntN(2) {
				w.act()
			}
			w.decide()
		}
		sent, shrunk = sent+w.sent, shrunk+w.shrunk
	}
	t.Logf("%d nodes were sent where something left, %d lost a member and were not", sent, shrunk)
	if shrunk < 1000 {
		t.Errorf("only %d nodes lost a member and were not sent", shrunk)
	}
}

// TestADeltaThatIsMoreThanARecordHoldsComesInParts: however small they are, in the end readers have what there is. Nothing is decided before.
func TestADeltaThatIsMoreThanARecordHoldsComesInParts(t *testing.T) {
	random := seedtest.Random(t)
	parts := 0
	for range 60 {
		w := newWorld(t, random)
		w.published.room = 1 + random.IntN(500)
		for range 80 {
			for range 1 + w.r.IntN(4) {
				w.act()
			}
			w.decide()
		}
		if m := w.mainline(); !proto.Equal(w.reader.Mainline, m) {
			t.Fatalf("those who read have the mainline as %v, and it is %v", w.reader.Mainline, m)
		}
		parts += w.parts
	}
	if parts < 1000 {
		t.Errorf("only %d deltas left something for the next one", parts)
	}
}

// TestANewEdgeReachesThoseThatAffectItsTargetOnTopOfOthers, though they do not conflict with the change that adds the edge.
func TestANewEdgeReachesThoseThatAffectItsTargetOnTopOfOthers(t *testing.T) {
	for _, moved := range []bool{false, true} {
		w := newWorld(t, rand.New(rand.NewPCG(1, 1)))
		come := func(id string, edges, with, affects []string) {
			w.affects[id] = affects
			w.take(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: id, Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}})
			m := &eventsv1.ChangeAnalyzed{
				Change: &eventsv1.ChangeRef{Change: id, Revision: 1}, Base: w.head, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
				Affected: &eventsv1.Affected{Targets: w.versions(id), AddedEdges: edges},
			}
			for _, o := range with {
				m.Textual = append(m.Textual, &eventsv1.Textual{Other: &eventsv1.ChangeRef{Change: o, Revision: 1}, MergeConflict: true})
			}
			w.take(m)
			w.decide()
		}
		come("near", nil, nil, []string{"//near"})
		leads := func() { come("leads", []string{"//last"}, nil, []string{"//shared"}) }
		if !moved {
			leads()
		}
		come("last", nil, []string{"near"}, []string{"//last"})
		if moved {
			leads()
			w.take(&eventsv1.ChangeMoved{Change: "leads", Before: "near"})
			w.decide()
		}
		come("edge", []string{"//near"}, nil, []string{"//shared"})
		members := 0
		for _, k := range w.reader.Node("last").Classes {
			members = max(members, len(k.Members))
		}
		if members != 2 {
			t.Errorf("moved is %v: of a target of the one that leads into it, the last has %d members, not both", moved, members)
		}
	}
}
