package explanation_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/explanation"
	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// randomProfile names changes that may be pending or not, what is predicted of them, builds of them, and some that leave.
func randomProfile(r *rand.Rand, position int64) *eventsv1.Profile {
	any := func() *eventsv1.ChangeRef {
		return &eventsv1.ChangeRef{Change: fmt.Sprint("c", r.IntN(8)), Revision: uint64(1 + r.IntN(2))}
	}
	p := &eventsv1.Profile{Position: position, StampUs: 1_000_000 * position, Delta: &eventsv1.GraphDelta{}}
	if r.IntN(5) == 0 {
		p.Delta.Settings, p.Delta.Mainline = &eventsv1.QueueSettings{Threshold: r.Float64(), Best: 8}, &eventsv1.Mainline{Analyzed: true, Paused: r.IntN(2) == 0}
	}
	for range r.IntN(3) {
		behind := any()
		n := &eventsv1.Node{Change: behind, Position: position, Analyzed: true, Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "//t", Part: 1}}}}}
		for id := range r.IntN(4) {
			ahead := &eventsv1.ChangeRef{Change: fmt.Sprint("c", 2*id), Revision: 1}
			if ahead.Change == behind.Change {
				continue
			}
			n.Classes[0].Members = append(n.Classes[0].Members, uint32(len(n.Ahead)))
			n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: ahead, Conflicts: true})
			p.Pairs = append(p.Pairs, &eventsv1.PairPrediction{Behind: behind, Ahead: ahead, Conflict: r.Float64(), Source: fmt.Sprint("conflict-", r.IntN(3))})
		}
		p.Delta.Nodes = append(p.Delta.Nodes, n)
		p.Predictions = append(p.Predictions, &eventsv1.Prediction{Change: behind, Success: r.Float64(), SuccessSource: fmt.Sprint("success-", r.IntN(3)), DurationMeanUs: 6e8, DurationStdUs: 6e7, DurationSource: "prior"})
	}
	for range r.IntN(3) {
		b := &eventsv1.BuildProgress{Build: fmt.Sprint("b", r.IntN(40)), Change: any(), State: eventsv1.BuildState_BUILD_STATE_PREPARED}
		if r.IntN(3) == 0 {
			b.State = eventsv1.BuildState_BUILD_STATE_FINISHED
		}
		for range r.IntN(3) {
			b.Assumed = append(b.Assumed, any())
		}
		p.Delta.Builds = append(p.Delta.Builds, b)
	}
	if r.IntN(3) == 0 {
		p.Delta.Gone = []*eventsv1.NodeGone{{Change: any(), How: eventsv1.GoneHow(1 + r.IntN(5))}}
	}
	return p
}

// TestASnapshotHoldsTheWholeState in random histories: the restored state is the same, and goes on as the original does.
func TestASnapshotHoldsTheWholeState(t *testing.T) {
	r, fields := seedtest.Random(t), snapshottest.New(t)
	for range 30 {
		s := explanation.New(nil, nil)
		for position := range int64(40) {
			s.Apply(randomProfile(r, position+1))
		}
		bytes, err := proto.Marshal(s.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		m := &snapshotv1.ExplanationState{}
		if err := proto.Unmarshal(bytes, m); err != nil {
			t.Fatal(err)
		}
		restored, err := explanation.Restore(m)
		if err != nil {
			t.Fatal(err)
		}
		fields.Same(s, restored)
		for position := range int64(20) {
			p := randomProfile(r, 41+position)
			s.Apply(p)
			restored.Apply(proto.CloneOf(p))
		}
		fields.Same(s, restored)
		for id := range 8 {
			ref := &eventsv1.ChangeRef{Change: fmt.Sprint("c", id), Revision: 1}
			of := func(s *explanation.State) []any {
				e := s.Explainer(explanation.How{})
				return []any{e.Prediction(ref), e.Verdict(ref), e.Worth(ref, nil)}
			}
			if want, got := of(s), of(restored); !reflect.DeepEqual(want, got) {
				t.Fatalf("c%d is explained by %+v, and by %+v after a restart", id, want, got)
			}
		}
	}
	fields.Done()
}

// TestASnapshotThatIsTornIsRefused, and an empty one is an empty state.
func TestASnapshotThatIsTornIsRefused(t *testing.T) {
	if s, err := explanation.Restore(nil); err != nil || s.Nodes() != 0 {
		t.Errorf("nothing is restored as %v, %v", s, err)
	}
	for _, m := range []*snapshotv1.ExplanationState{
		{Pairs: []*snapshotv1.ExplanationPairs{{Behind: 3}}},
		{Texts: []string{"a"}, Pairs: []*snapshotv1.ExplanationPairs{{Ahead: []uint32{0}}}},
		{Texts: []string{"a"}, Builds: []*snapshotv1.ExplanationBuild{{Assumed: []uint32{0}}}},
	} {
		if s, err := explanation.Restore(m); err == nil {
			t.Errorf("%v is restored as %v", m, s)
		}
	}
}
