package decision

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

func joined(parts ...string) string { return strings.Join(parts, "/") }

// restored returns a selection that went into a snapshot and came out of it.
func restored(t testing.TB, s *Selection) *Selection {
	t.Helper()
	bytes, err := proto.Marshal(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	m := &snapshotv1.Selection{}
	if err := proto.Unmarshal(bytes, m); err != nil {
		t.Fatal(err)
	}
	again, err := Restore("main", joined, m)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestASelectionGoesOnFromItsSnapshot: at any point of a random history, before or behind a decision, the restored
// selection is the same, and decides the same from there on.
func TestASelectionGoesOnFromItsSnapshot(t *testing.T) {
	r, fields := seedtest.Random(t), snapshottest.New(t)
	decided := 0
	for range 100 {
		h := &history{r: r}
		s := New("main", joined)
		var others []*Selection
		snap := func() {
			other := restored(t, s)
			fields.Same(s, other)
			others = append(others, other)
		}
		for range 60 {
			p := h.next()
			s.Apply(p)
			if r.IntN(30) == 0 {
				snap()
			}
			d := s.Decide()
			if r.IntN(30) == 0 {
				snap()
			}
			s.Fold(d)
			for _, o := range others {
				if o.position != p.Position {
					o.Apply(proto.CloneOf(p))
				}
				if got := o.Decide(); !proto.Equal(got, d) {
					t.Fatalf("a restored selection decides\n%s\nwant\n%s", prototext.Format(got), prototext.Format(d))
				}
				o.Fold(proto.CloneOf(d))
				decided += len(d.GetItems())
			}
			h.decided(d)
		}
	}
	fields.Done()
	if decided < 1000 {
		t.Errorf("restored selections decided %d things only", decided)
	}
}

func TestASnapshotThatMakesNoSenseIsAnError(t *testing.T) {
	change := &eventsv1.ChangeRef{Change: "c", Revision: 1}
	for name, m := range map[string]*snapshotv1.Selection{
		"a build without a change": {Running: []*snapshotv1.SelectionBuild{{Build: "b"}}},
		"targets without parts":    {Targets: []string{"t"}, Running: []*snapshotv1.SelectionBuild{{Build: "b", Change: change, Targets: []uint32{0}}}},
		"a target that is not there": {Targets: []string{"t"}, Running: []*snapshotv1.SelectionBuild{
			{Build: "b", Change: change, Targets: []uint32{1}, Parts: []uint32{1}}}},
		"a node without a change": {Graph: &snapshotv1.Graph{Nodes: []*eventsv1.Node{{}}}},
	} {
		if _, err := Restore("main", joined, m); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, m := range []*snapshotv1.Selection{nil, {}, {Ranking: &eventsv1.Ranking{Best: []*eventsv1.RankedBuild{{}}}, Fresh: true}} {
		if s, err := Restore("main", joined, m); err != nil || s.Decide() != nil {
			t.Errorf("%v: %v, %v", m, s, err)
		}
	}
}

// largeSelection is of a queue of 1,000 changes in groups of ten that conflict, each with some classes and 30 targets, 200 of which are
// being built.
func largeSelection() *Selection {
	s := New("main", joined)
	p := &eventsv1.Priority{Position: 1, Ranking: &eventsv1.Ranking{}, Delta: &eventsv1.GraphDelta{
		Settings: &eventsv1.QueueSettings{Hash: "s", Workers: 200, Steps: &eventsv1.StepPolicy{}},
		Mainline: &eventsv1.Mainline{Head: "m", Analyzed: true},
	}}
	for i := range 1000 {
		n := &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: fmt.Sprintf("change-%04d", i), Revision: 1}, Position: int64(i + 1), Analyzed: true,
			LandingCommits: []*eventsv1.LandingCommit{{Head: fmt.Sprintf("%040d", i), Base: fmt.Sprintf("%040d", 0)}}}
		b := &eventsv1.RankedBuild{Change: n.Change, Needed: 0.5, Value: float64(i)}
		for j := i - i%10; j < i; j++ {
			c := &eventsv1.ChangeRef{Change: fmt.Sprintf("change-%04d", j), Revision: 1}
			n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: c, Conflicts: true})
			b.Assumed = append(b.Assumed, c)
		}
		for k := range 3 {
			class := &eventsv1.Class{}
			for t := range 10 {
				class.Targets = append(class.Targets, &eventsv1.TargetVersion{Target: fmt.Sprintf("//services/area%d/package%d:target%d", i/10, k, t), Part: 1})
			}
			for m := range n.Ahead {
				if m%3 == k {
					class.Members = append(class.Members, uint32(m))
				}
			}
			n.Classes = append(n.Classes, class)
		}
		p.Delta.Nodes = append(p.Delta.Nodes, n)
		if i < 400 {
			p.Ranking.Best = append(p.Ranking.Best, b)
		}
	}
	s.Apply(p)
	s.Fold(s.Decide())
	s.Apply(&eventsv1.Priority{Position: 2})
	s.Decide()
	return s
}

func BenchmarkSnapshot(b *testing.B) {
	s := largeSelection()
	bytes, _ := proto.Marshal(s.Snapshot())
	b.Run("take", func(b *testing.B) {
		for b.Loop() {
			proto.Marshal(s.Snapshot())
		}
		b.ReportMetric(float64(len(bytes)), "bytes")
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			m := &snapshotv1.Selection{}
			if err := proto.Unmarshal(bytes, m); err != nil {
				b.Fatal(err)
			}
			if _, err := Restore("main", joined, m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
