package profile_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"landfall.build/engine/prediction"
	"landfall.build/engine/prediction/predictiontest"
	"landfall.build/engine/profile"
	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestASnapshotHoldsTheWholeProfile goes through random histories with two profiles, one of which is taken down and restored now and
// then: before its answer is published as well as behind it. Both answer the same, byte for byte.
func TestASnapshotHoldsTheWholeProfile(t *testing.T) {
	random := seedtest.Random(t)
	fields := snapshottest.New(t)
	good := []*eventsv1.Model{predictiontest.Success(t, 5), predictiontest.Conflict(t, 5), predictiontest.Duration(t, 1, 1)}
	absurd := predictiontest.Duration(t, 1, 1e9)
	old := proto.CloneOf(good[0])
	old.Card.DataUntilUs -= 200 * 24 * 3600 * 1_000_000
	models := append(good, good[0], absurd, prediction.Seal(old))
	for range 20 {
		h := &history{line: newLine(t), random: random, models: models}
		twin := profile.New()
		restore := func() {
			restored := roundTrip(t, twin)
			fields.Same(twin, restored)
			twin = restored
		}
		for read, step := 0, 0; step < 150; step++ {
			h.step()
			for ; read < len(h.line.log); read++ {
				twin.Apply(h.line.log[read])
				if random.IntN(20) == 0 {
					restore()
				}
				if got := twin.Decide(); !bytes.Equal(marshal(t, got), marshal(t, h.line.written[read])) {
					t.Fatalf("record %d is\n%v\nand was\n%v", read, got, h.line.written[read])
				}
				if random.IntN(20) == 0 {
					restore()
				}
				if h.line.written[read] != nil {
					twin.Fold(h.line.written[read])
				}
				if random.IntN(20) == 0 {
					restore()
				}
			}
		}
	}
	fields.Done()
}

func marshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func roundTrip(t *testing.T, p *profile.Profile) *profile.Profile {
	t.Helper()
	m := &snapshotv1.ProfileState{}
	if err := proto.Unmarshal(marshal(t, p.Snapshot()), m); err != nil {
		t.Fatal(err)
	}
	restored, err := profile.Restore(m)
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

// history invents facts about one queue.
type history struct {
	line     *line
	random   *rand.Rand
	models   []*eventsv1.Model
	changes  int
	builds   int
	attempts uint32
	pending  []string
	mainline int
}

func (h *history) step() {
	l, r := h.line, h.random
	l.stamp += r.Int64N(3_600_000_000)
	switch n := len(h.pending); {
	case n == 0 || n < 12 && r.IntN(4) == 0:
		h.arrive()
	case r.IntN(25) == 0:
		l.promote(h.models[r.IntN(len(h.models))])
	case r.IntN(60) == 0:
		l.say(&eventsv1.ModelRolledBack{Kind: eventsv1.ModelKind(1 + r.IntN(3))})
	case r.IntN(12) == 0:
		id := h.pending[0]
		from, to := fmt.Sprint("m", h.mainline), fmt.Sprint("m", h.mainline+1)
		h.mainline++
		l.say(&eventsv1.LandIntended{Change: at(id), Base: from, Commits: []string{to}, Tree: "t" + to})
		l.say(&eventsv1.ChangeLanded{Change: at(id), Base: from, Commits: []string{to}, Tree: "t" + to})
		h.pending = h.pending[1:]
	case r.IntN(15) == 0:
		i, id := h.pick()
		class := eventsv1.ReasonClass(1 + r.IntN(4))
		if r.IntN(3) == 0 {
			// Heard of before the queue has let it go.
			l.speculation(&eventsv1.Fact{Fact: &eventsv1.Fact_ChangeRejected{ChangeRejected: &eventsv1.ChangeRejected{Change: at(id), Reason: &eventsv1.Reason{Class: class}}}}, &eventsv1.GraphDelta{})
		}
		l.say(&eventsv1.ChangeRejected{Change: at(id), Base: fmt.Sprint("m", h.mainline), Reason: &eventsv1.Reason{Class: class}})
		h.pending = slices.Delete(h.pending, i, i+1)
	case r.IntN(20) == 0:
		_, id := h.pick()
		l.say(&eventsv1.Refused{Change: at(id), Decision: "d"})
	case r.IntN(40) == 0:
		l.speculation(&eventsv1.Fact{}, &eventsv1.GraphDelta{Nodes: []*eventsv1.Node{{Mainline: true, Change: &eventsv1.ChangeRef{}}}, Survey: &eventsv1.Survey{Unproven: 1}})
	default:
		h.build()
	}
}

// paths has a file of each kind.
var paths = []string{"main.go", "lib/lib_test.go", "README.md", "BUILD.bazel", "lib/BUILD.bazel", ".github/workflows/ci.yml", "go.sum", "config/queue.yaml", "api/api.pb.go"}

func (h *history) pick() (at int, id string) {
	at = h.random.IntN(len(h.pending))
	return at, h.pending[at]
}

func (h *history) arrive() {
	l, r := h.line, h.random
	id := fmt.Sprint("c", h.changes)
	h.changes++
	l.say(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
		Queue: "main", Change: id, Revision: 1, Benefit: 1, Author: fmt.Sprint("author", r.IntN(4)), Team: fmt.Sprint("team", r.IntN(2)), ReceivedUs: l.stamp,
		LandingCommits: []*eventsv1.LandingCommit{{Head: id}},
	}})
	a := &eventsv1.Affected{}
	for k := range 6 {
		if name := fmt.Sprint("//t", k); r.IntN(3) == 0 {
			a.Targets = append(a.Targets, &eventsv1.TargetVersion{Target: name, Hash: name + "{" + id + "}", Part: 1})
			a.Leaves = append(a.Leaves, "file:"+paths[r.IntN(len(paths))])
		}
	}
	if r.IntN(4) == 0 {
		a.Deleted, a.AddedEdges = []string{"//gone"}, []string{"//t1"}
	}
	f := &eventsv1.ChangeAnalyzed{
		Change: at(id), Base: fmt.Sprint("m", h.mainline), Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: a,
		FilesChanged: 1 + r.Uint32N(5), LinesAdded: r.Uint32N(50), LinesDeleted: r.Uint32N(50), Difference: &eventsv1.Difference{SourceLines: r.Uint32N(9)},
	}
	if len(a.Targets) == 0 {
		a.All = true
	}
	if len(h.pending) > 0 && r.IntN(3) == 0 {
		_, other := h.pick()
		f.Textual = []*eventsv1.Textual{{Other: at(other), Paths: []string{"a", "b"}}}
	}
	l.say(f)
	h.pending = append(h.pending, id)
}

// build prepares a build of a change on some of those before it, and finishes some of its steps.
func (h *history) build() {
	l, r := h.line, h.random
	i, id := h.pick()
	var assumed []string
	for _, other := range h.pending[:i] {
		if r.IntN(2) == 0 {
			assumed = append(assumed, other)
		}
	}
	h.builds++
	p := &eventsv1.BuildPrepared{
		Build: fmt.Sprint("b", h.builds), Change: at(id), Base: fmt.Sprint("m", h.mainline), Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
	}
	for _, a := range assumed {
		p.Assumed = append(p.Assumed, at(a))
	}
	tree := strings.Join(append(assumed, id), "+")
	for k := range 6 {
		if name := fmt.Sprint("//t", k); r.IntN(2) == 0 {
			p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: name, Hash: name + "{" + tree + "}", Part: 1})
		}
	}
	l.say(p)
	for _, v := range p.Versions {
		outcome := eventsv1.StepOutcome_STEP_OUTCOME_PASSED
		switch r.IntN(8) {
		case 0, 1:
			outcome = eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		case 2:
			outcome = eventsv1.StepOutcome_STEP_OUTCOME_ABORTED
		case 3:
			if r.IntN(4) == 0 {
				return // the rest of it goes on
			}
		}
		h.attempts++
		f := &eventsv1.StepFinished{Target: v.Target, Hash: v.Hash, Attempt: h.attempts, Outcome: outcome, Build: p.Build, StartedUs: l.stamp - r.Int64N(30_000_000), FinishedUs: l.stamp}
		if r.IntN(4) == 0 {
			// An attempt that leaves the graph as it was, but for something else.
			l.speculation(&eventsv1.Fact{Fact: &eventsv1.Fact_StepFinished{StepFinished: f}}, &eventsv1.GraphDelta{})
			continue
		}
		l.say(f)
	}
}

// TestASnapshotThatIsNonsenseDoesNotPanic: fields are cleared, and numbers are changed, at random.
func TestASnapshotThatIsNonsenseDoesNotPanic(t *testing.T) {
	random := seedtest.Random(t)
	h := &history{line: newLine(t), random: random, models: []*eventsv1.Model{predictiontest.Success(t, 5)}}
	for range 100 {
		h.step()
	}
	if _, err := profile.Restore(nil); err != nil {
		t.Errorf("no snapshot at all is not an empty profile: %v", err)
	}
	whole := h.line.profile.Snapshot()
	refused := 0
	for range 300 {
		m := proto.CloneOf(whole)
		damage(m.ProtoReflect(), random)
		if _, err := profile.Restore(m); err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("every snapshot was taken; the test shows nothing")
	}
}

func damage(m protoreflect.Message, r *rand.Rand) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case r.IntN(500) == 0:
			m.Clear(f)
		case f.IsMap():
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			for i := range v.List().Len() {
				damage(v.List().Get(i).Message(), r)
			}
		case f.IsList() && f.Kind() == protoreflect.Uint32Kind && r.IntN(500) == 0:
			v.List().Append(protoreflect.ValueOfUint32(r.Uint32()))
		case f.IsList():
		case f.Kind() == protoreflect.MessageKind:
			damage(v.Message(), r)
		case f.Kind() == protoreflect.Uint32Kind && r.IntN(500) == 0:
			m.Set(f, protoreflect.ValueOfUint32(r.Uint32()))
		}
		return true
	})
}
