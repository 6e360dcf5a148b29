package proof

import (
	"fmt"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/graph"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// trace writes the other topics, and the last state of the graph.
func (s *schedule) trace(x *site) {
	if s.o.Trace == nil {
		return
	}
	for _, topic := range []string{events.TopicBuilds, events.TopicDecisions} {
		c, terms := s.m.follow(topic, x.partition, 0), journal.NewTerms(topic)
		for e, ok := next(c); ok; e, ok = next(c) {
			if e.Queue != x.queue {
				continue
			}
			s.o.Trace(fmt.Sprintf("%s %s/%d counts=%v %T %v", x.queue, topic, e.Offset, terms.Counts(e), e.Message, e.Message))
		}
		c.Close()
	}
	g := graph.New()
	var ranking *eventsv1.Ranking
	x.counted(events.TopicPriorities, func(e journal.Entry) {
		if p, is := e.Message.(*eventsv1.Priority); is {
			g.Fold(p.Delta)
			ranking, _ = graph.EditedRanking(ranking, p)
		}
	})
	s.o.Trace(fmt.Sprintf("settings %v", g.Settings))
	s.o.Trace(fmt.Sprintf("mainline %v", g.Mainline))
	if g.Check != nil {
		s.o.Trace(fmt.Sprintf("check %v", g.Check.Node))
	}
	for _, n := range g.Order() {
		s.o.Trace(fmt.Sprintf("node %v", n.Node))
	}
	s.o.Trace(fmt.Sprintf("ranking %v", ranking))
	for _, a := range x.editor.repo.atoms {
		s.o.Trace(fmt.Sprintf("edit %s: edits %v adds %v drops %v creates %q deletes %q breaks %v hides %v", a.id, a.edits, a.adds, a.drops, a.creates, a.deletes, a.breaks, a.hides))
	}
	for _, b := range x.editor.repo.bugs {
		s.o.Trace(fmt.Sprintf("bug at %s: %v unless %v", b.target, names(b.atoms), names(b.unless)))
	}
	for _, a := range x.editor.repo.atoms {
		for _, others := range a.clashes {
			s.o.Trace(fmt.Sprintf("clash of %s with %v", a.id, names(others.list(x.editor.repo))))
		}
	}
}

func names(list []*atom) (out []string) {
	for _, a := range list {
		out = append(out, a.id)
	}
	return out
}

// foreigners folds what came past the queue, and what is proven.
func (x *site) foreigners() (*directpush.Pushes, *evidence.Ledger) {
	pushes, ledger, moves, head := directpush.New(), evidence.NewLedger(), uint64(0), ""
	surveyed := map[string]*eventsv1.TargetVersion{} // by target, until something comes over it
	x.counted(events.TopicChanges, func(e journal.Entry) {
		switch f := e.Message.(type) {
		case *eventsv1.MainlineSurveyed:
			for _, v := range f.Targets {
				if f.Commit == head {
					surveyed[v.Target] = v
				}
			}
		case *eventsv1.MainlineAnalyzed:
			pushes.Analyzed(f)
			for _, v := range f.GetAffected().GetTargets() {
				delete(surveyed, v.Target)
			}
			if f.GetAffected().GetAll() {
				clear(surveyed)
			}
		case *eventsv1.MainlineMoved:
			moves++
			pushes.Moved(f, moves)
			head = f.To
		case *eventsv1.ChangeLanded:
			moves++
			pushes.Landed(f, moves)
			for _, proof := range f.Proof {
				delete(surveyed, proof.GetVersion().GetTarget())
			}
			head = f.Commits[len(f.Commits)-1]
		case *eventsv1.Refused:
			ledger.TakeBack(f)
			if f.Base == head {
				pushes.Doubted(f.BaseUnproven)
			}
		}
	})
	x.counted(events.TopicBuilds, func(e journal.Entry) {
		switch f := e.Message.(type) {
		case *eventsv1.StepFinished:
			ledger.Apply(f)
		case *eventsv1.EvidenceForgotten:
			ledger.Forget(f, nil)
		case *eventsv1.BuildPrepared:
			pushes.Prepared(f)
		}
	})
	for _, v := range surveyed { // what an idle build found red is the mainline's too (M23b)
		if ledger.State(evidence.Version{Target: v.Target, Hash: v.Hash}, x.settings.Steps) == evidence.Red {
			pushes.Doubted([]*eventsv1.TargetVersion{v})
		}
	}
	return pushes, ledger
}

// blocked says that what came past the queue could not be proven, so that changes may wait for it (M23a).
func (x *site) blocked() bool {
	pushes, ledger := x.foreigners()
	policy := x.settings.Steps
	return len(pushes.Unproven(ledger, policy)) == 0 && pushes.Blocks(targets.Repository, ledger, policy)
}
