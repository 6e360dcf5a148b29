package speculation

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestARestoredQueueGoesOnAsTheOneThatItsSnapshotWasTakenOf in random worlds, as bytes and back: it decides the same deltas.
func TestARestoredQueueGoesOnAsTheOneThatItsSnapshotWasTakenOf(t *testing.T) {
	random, fields := seedtest.Random(t), snapshottest.New(t)
	for i := range 25 {
		w := newWorld(t, random)
		if i%2 == 0 {
			w.take(&eventsv1.QueueSettings{Hash: "with a hub", PoolWorkers: 2, Steps: &eventsv1.StepPolicy{}, Hubs: []string{"//t0", "//h*"}, Quotas: &eventsv1.Quotas{Author: 1}})
		}
		steps := 80
		if i == 0 {
			w.pastAllBounds()
			steps = 4
		}
		var restored *Queue
		for range steps {
			from := len(w.facts)
			for range 1 + w.r.IntN(3) {
				w.act()
			}
			w.someElse()
			if restored != nil {
				for at, f := range w.facts[from:] {
					restored.Apply(proto.CloneOf(f), w.offset-int64(len(w.facts)-from-1-at))
				}
				fields.Same(w.Queue, restored)
			}
			if restored == nil || w.r.IntN(6) == 0 { // with a delta that is not decided
				restored = snapshottest.Reopened(t, w.Queue.Snapshot(), Restore)
				fields.Same(w.Queue, restored)
			}
			d, again := w.Decide(), restored.Decide()
			if !proto.Equal(d, again) {
				t.Fatalf("it tells %v\nnot %v", again, d)
			}
			restored.Fold(again)
			w.decide()
		}
	}
	fields.Done()
}

// pastAllBounds makes more moves, and marks more versions, than are kept.
func (w *world) pastAllBounds() {
	w.admit("marks", 1)
	m := &eventsv1.Refused{Change: &eventsv1.ChangeRef{Change: "marks", Revision: 1}, Base: w.head}
	for i := range 2*keptTrivial + 1 {
		m.Versions = append(m.Versions, &eventsv1.TargetVersion{Target: "//marked", Hash: fmt.Sprint(i), Trivial: true})
	}
	w.take(m)
	w.take(&eventsv1.ChangeCancelled{Change: "marks"})
	for i := range keptMoves {
		from := w.head
		w.head = fmt.Sprint("earlier", i)
		w.take(&eventsv1.MainlineMoved{From: from, To: w.head})
		w.take(&eventsv1.MainlineAnalyzed{From: from, To: w.head})
	}
	w.decide()
}

// someElse is something that happens seldom.
func (w *world) someElse() {
	switch w.r.IntN(30) {
	case 0:
		w.take(&eventsv1.Tick{})
	case 1:
		w.take(&eventsv1.QueuePaused{Who: "who", Why: "why", StampUs: 7})
		w.take(&eventsv1.LandingsPaused{Message: "frozen"})
	case 2:
		w.take(&eventsv1.QueueResumed{})
		w.take(&eventsv1.LandingsResumed{})
	case 3:
		base := w.head
		if w.r.IntN(2) == 0 {
			base = fmt.Sprint("push", w.made+1) // which may come
		}
		w.take(&eventsv1.BuildPrepared{Build: "check", Base: base, Outcome: eventsv1.PreparationOutcome(1 + w.r.IntN(4)),
			Versions: []*eventsv1.TargetVersion{w.version("//t1"), w.version("//t2")}})
	case 4:
		if order := w.Lineup.Order(); len(order) > 0 {
			m := &eventsv1.Refused{Change: order[w.r.IntN(len(order))].Ref(), Base: w.head, Decision: "d",
				Versions: []*eventsv1.TargetVersion{w.version("//t1"), {Target: "//marked", Hash: "h", Trivial: true}}}
			if w.r.IntN(2) == 0 {
				m.BaseUnproven = []*eventsv1.TargetVersion{{Target: "//t2", Hash: "before the queue"}}
				m.BaseOutdated = []*eventsv1.Proof{{Version: w.version("//t1"), Attempt: w.r.Uint32N(3)}}
			}
			w.take(m)
		}
	case 16:
		if order := w.Lineup.Order(); len(order) > 0 {
			w.take(&eventsv1.Refused{Change: order[w.r.IntN(len(order))].Ref(), Base: w.head, Decision: "d", Message: "its commits are gone"})
		}
	case 5:
		if order := w.Lineup.Order(); len(order) > 0 {
			w.take(&eventsv1.LandIntended{Change: order[w.r.IntN(len(order))].Ref(), Commits: []string{"nothing"}})
		}
	case 10, 11, 12, 13:
		w.take(&eventsv1.StepFinished{Target: "//t1", Hash: w.version("//t1").Hash, Attempt: 2 + w.r.Uint32N(3), Outcome: eventsv1.StepOutcome(1 + w.r.IntN(5))})
	case 14:
		if order := w.Lineup.Order(); len(order) > 0 {
			v := &eventsv1.Proof{Version: w.version("//t1"), Attempt: 1 + w.r.Uint32N(2)}
			w.take(&eventsv1.ChangeRejected{Change: order[w.r.IntN(len(order))].Ref(), Reason: &eventsv1.Reason{Failed: []*eventsv1.Proof{v}}})
		}
	case 15:
		w.made++
		push, from := fmt.Sprint("push", w.made), w.head
		w.head = push
		w.take(&eventsv1.MainlineMoved{From: from, To: push})
		w.take(&eventsv1.MainlineAnalyzed{From: from, To: push, Affected: &eventsv1.Affected{All: true,
			Targets: []*eventsv1.TargetVersion{{Target: WholeRepository, Hash: push, Part: 1}}}})
	case 6, 7, 8, 9:
		if i := w.Lineup.Intention; i != nil {
			w.take(&eventsv1.LandVoid{Change: i.Fact.Change, Commit: i.Tip(), Decision: "d"})
		}
	}
}

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 2)))
	for range 100 {
		w.act()
		w.decide()
	}
	for name, break_ := range map[string]func(m *snapshotv1.Speculation){
		"no texts":                    func(m *snapshotv1.Speculation) { m.Texts = nil },
		"no revisions":                func(m *snapshotv1.Speculation) { m.Revisions = nil },
		"no trees":                    func(m *snapshotv1.Speculation) { m.Trees = nil },
		"no state of pending changes": func(m *snapshotv1.Speculation) { m.Changes = nil },
		"no lineup":                   func(m *snapshotv1.Speculation) { m.Lineup = nil },
		"no analyses":                 func(m *snapshotv1.Speculation) { m.Analyses = nil },
		"no moves of its heads":       func(m *snapshotv1.Speculation) { m.Landed.CommitSequences = nil },
		"no change in a node":         func(m *snapshotv1.Speculation) { m.Published.Nodes[0].Node = nil },
		"no targets of shared edges":  func(m *snapshotv1.Speculation) { m.Edges.Shared = nil },
	} {
		m := proto.CloneOf(w.Snapshot())
		break_(m)
		if _, err := Restore(m); err == nil {
			t.Errorf("a snapshot with %s is restored", name)
		}
	}
	if q, err := Restore(nil); err != nil || q.Decide() == nil != (New().Decide() == nil) {
		t.Errorf("of no message there is %v, %v", q, err)
	}
}
