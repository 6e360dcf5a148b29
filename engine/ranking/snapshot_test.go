package ranking

import (
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/ranking/rankingtest"
	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

func throughBytes(t testing.TB, r *Ranking) *Ranking {
	t.Helper()
	restored, err := Restore(snapshottest.ThroughBytes(t, r.Snapshot()), "main")
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

// TestARestoredRankingGoesOnAsTheOneThatItsSnapshotWasTakenOf: over random histories both write the same, byte for byte,
// whenever the snapshot is taken: before an answer, after it, or once it was folded.
func TestARestoredRankingGoesOnAsTheOneThatItsSnapshotWasTakenOf(t *testing.T) {
	r, fields := seedtest.Random(t), snapshottest.New(t)
	restored, compared, worthless, estimated := 0, 0, 0, 0
	for range 60 {
		original, q := New(), rankingtest.Sized(r, 4+r.IntN(12))
		original.EnableEstimates("main")
		other := throughBytes(t, original)
		settings := &eventsv1.QueueSettings{Best: 1 + r.Uint32N(40), Threshold: []float64{0, 0.05}[r.IntN(2)], AbortThreshold: 0.2, Workers: r.Uint32N(8)}
		if r.IntN(3) > 0 {
			settings.BypassThreshold = new([]float64{0, 0.5, 0.9}[r.IntN(3)])
		}
		often := 1 + r.IntN(12)
		restore := func() {
			if r.IntN(often) > 0 {
				return
			}
			other = throughBytes(t, original)
			fields.Same(original, other)
			restored++
		}
		for step := range 40 {
			p := q.Profile()
			if step == 0 {
				p.Delta.Settings = settings
			}
			if r.IntN(10) == 0 {
				p.Delta.Nodes = append(p.Delta.Nodes, &eventsv1.Node{Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: true,
					Classes: []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "//t0"}}}}[:r.IntN(2)]})
				p.Delta.Survey = &eventsv1.Survey{Unproven: r.Uint32N(9)}
			}
			original.Apply(p)
			other.Apply(proto.CloneOf(p))
			restore()
			out := original.Decide()
			if r.IntN(3) > 0 {
				if again := other.Decide(); !proto.Equal(out, again) {
					t.Fatalf("got\n%s\nwant\n%s", prototext.Format(again), prototext.Format(out))
				}
				compared++
			}
			worthless += len(out.Worthless) + len(out.Recovered)
			estimated += len(out.GetEstimates().GetMoved())
			restore()
			original.Fold(out)
			other.Fold(proto.CloneOf(out))
			restore()
			if a, b := original.Snapshot(), other.Snapshot(); !proto.Equal(a, b) {
				t.Fatalf("it holds\n%s\nwant\n%s", prototext.Format(b), prototext.Format(a))
			}
		}
	}
	fields.Done()
	if restored < 400 || compared < 800 || worthless < 100 || estimated < 100 {
		t.Errorf("%d times restored, %d answers compared, %d builds worthless or recovered, %d estimates", restored, compared, worthless, estimated)
	}
}

// TestRestoreRefusesWhatDoesNotFit takes parts of a message away, as an older or a torn file might.
func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	r := New()
	r.Apply(denseQueue(5, 0, &eventsv1.QueueSettings{Best: 4}))
	r.Apply(&eventsv1.Profile{StampUs: 2, Delta: &eventsv1.GraphDelta{Builds: []*eventsv1.BuildProgress{{
		Build: "b", State: eventsv1.BuildState_BUILD_STATE_PREPARED, Change: r.graph.Order()[1].Change, Assumed: []*eventsv1.ChangeRef{r.graph.Order()[0].Change}}}}})
	whole := r.Snapshot()
	for name, damage := range map[string]func(m *snapshotv1.Ranking){
		"without its graph":                func(m *snapshotv1.Ranking) { m.Graph = nil },
		"without its changes":              func(m *snapshotv1.Ranking) { m.Changes = nil },
		"with a change twice":              func(m *snapshotv1.Ranking) { m.Changes = append(m.Changes, m.Changes[0]) },
		"without a member's conflict":      func(m *snapshotv1.Ranking) { m.Changes[4].Conflicts = m.Changes[4].Conflicts[1:] },
		"with two at one place":            func(m *snapshotv1.Ranking) { m.Changes[4].PlacesBehind[0] = m.Changes[3].PlacesBehind[0] },
		"with a place beyond all":          func(m *snapshotv1.Ranking) { m.Changes[4].PlacesBehind[0] = 1 << 20 },
		"without the ids that are assumed": func(m *snapshotv1.Ranking) { m.Assumed = nil },
		"without an assumed revision":      func(m *snapshotv1.Ranking) { m.Changes[1].Runs[0].Revisions = nil },
		"with an oldest build beyond all":  func(m *snapshotv1.Ranking) { m.Changes[1].Oldest = 7 },
	} {
		m := proto.CloneOf(whole)
		damage(m)
		if _, err := Restore(m, "main"); err == nil {
			t.Errorf("a ranking %s is restored", name)
		}
	}
	for name, m := range map[string]*snapshotv1.Ranking{
		"no message": nil, "an empty one": {},
		"one without optional parts": {Graph: whole.Graph, Changes: whole.Changes, Assumed: whole.Assumed},
	} {
		restored, err := Restore(m, "main")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		restored.Apply(denseQueue(7, 0, &eventsv1.QueueSettings{Best: 4}))
		restored.Fold(restored.Decide())
	}
}
