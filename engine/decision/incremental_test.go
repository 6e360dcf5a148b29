package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/graph"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// history makes the priorities of a queue that changes at random, and answers what is decided.
type history struct {
	r        *rand.Rand
	nodes    []*eventsv1.Node
	ranking  *eventsv1.Ranking
	made     int
	position int64
	running  []*eventsv1.BuildScheduled
	answers  []*eventsv1.Answered
	head     int
}

func (h *history) evidence(n *eventsv1.Node) *eventsv1.Node {
	mood := eventsv1.OutcomeState(h.r.IntN(4))
	n = proto.Clone(n).(*eventsv1.Node)
	n.Classes, n.Paths, n.Guard = randomEvidence(h.r, len(n.Ahead), func() eventsv1.OutcomeState {
		if h.r.IntN(3) == 0 {
			return mood
		}
		return graph.Unknown
	})
	if n.Guard != nil && n.Guard.State == graph.Unknown {
		n.Guard.Missing = []*eventsv1.TargetVersion{{Target: "t0", Hash: "h"}}
	}
	n.Analyzed, n.Intended, n.Holds = h.r.IntN(10) > 0, h.r.IntN(16) == 0, nil
	if h.r.IntN(10) == 0 {
		n.Holds = []*eventsv1.Hold{{Name: "h"}}
	}
	if h.r.IntN(10) == 0 {
		n.Epoch++
	}
	return n
}

// without takes a member that has left out of a node.
func without(n *eventsv1.Node, gone *eventsv1.ChangeRef) bool {
	before := len(n.Ahead)
	n.Ahead = slices.DeleteFunc(n.Ahead, func(a *eventsv1.Ahead) bool { return a.Change.Change == gone.Change })
	return len(n.Ahead) < before
}

func (h *history) next() *eventsv1.Priority {
	h.position++
	p := &eventsv1.Priority{Position: h.position, Delta: &eventsv1.GraphDelta{Answered: h.answers}}
	h.answers = nil
	if h.position == 1 || h.r.IntN(30) == 0 {
		p.Delta.Settings = &eventsv1.QueueSettings{Hash: fmt.Sprint(h.position), Workers: uint32(1 + h.r.IntN(5)), PoolWorkers: uint32(h.r.IntN(3)), Best: 6, AbortThreshold: 0.3,
			Steps: &eventsv1.StepPolicy{FailedRetries: uint32(h.r.IntN(2))}}
		if h.r.IntN(2) == 0 {
			p.Delta.Settings.Quotas = &eventsv1.Quotas{Queue: uint32(h.r.IntN(3)), Author: uint32(h.r.IntN(2)), Teams: []*eventsv1.TeamQuota{{Name: "t", Who: []string{"a1", "a2"}, Steps: 1}}}
		}
	}
	if h.position == 1 || h.r.IntN(12) == 0 {
		h.head += h.r.IntN(2)
		p.Delta.Mainline = &eventsv1.Mainline{Head: fmt.Sprint("m", h.head), Analyzed: h.r.IntN(10) > 0, Paused: h.r.IntN(10) == 0}
	}
	changed := map[int]bool{}
	if len(h.nodes) > 0 && h.r.IntN(4) == 0 {
		i := h.r.IntN(len(h.nodes))
		gone := h.nodes[i].Change
		p.Delta.Gone = append(p.Delta.Gone, &eventsv1.NodeGone{Change: gone, How: eventsv1.GoneHow(1 + h.r.IntN(5))})
		h.nodes = slices.Delete(h.nodes, i, i+1)
		for i, n := range h.nodes {
			n = proto.Clone(n).(*eventsv1.Node)
			switch {
			case h.r.IntN(2) == 0: // who folds it takes it out
				h.nodes[i] = graph.Without(n, p.Delta.Gone[len(p.Delta.Gone)-1])
			case without(n, gone):
				h.nodes[i], changed[i] = h.evidence(n), true
			}
		}
	}
	for len(h.nodes) < 6 && h.r.IntN(3) > 0 {
		h.made++
		n := &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: fmt.Sprint("c", h.made), Revision: 1}, Position: int64(h.made), Author: fmt.Sprint("a", h.made%4)}
		for _, o := range h.nodes {
			if h.r.IntN(2) == 0 {
				n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: o.Change, Conflicts: true, MergeConflict: h.r.IntN(12) == 0})
			}
		}
		changed[len(h.nodes)] = true
		h.nodes = append(h.nodes, h.evidence(n))
	}
	for i := range h.nodes {
		if h.r.IntN(5) == 0 {
			h.nodes[i], changed[i] = h.evidence(h.nodes[i]), true
		}
	}
	for i, n := range h.nodes {
		if changed[i] {
			p.Delta.Nodes = append(p.Delta.Nodes, n)
		}
	}
	if h.r.IntN(10) == 0 {
		check := &eventsv1.Node{Change: &eventsv1.ChangeRef{}, Mainline: true, Analyzed: true}
		if h.r.IntN(2) == 0 {
			check.Classes = []*eventsv1.Class{{Targets: []*eventsv1.TargetVersion{{Target: "t0", Hash: "m"}}}}
		}
		p.Delta.Nodes = append(p.Delta.Nodes, check)
	}
	if h.r.IntN(10) == 0 {
		p.Delta.Survey = &eventsv1.Survey{}
		for i := range h.r.IntN(3) {
			p.Delta.Survey.Targets = append(p.Delta.Survey.Targets, &eventsv1.TargetVersion{Target: fmt.Sprint("s", i), Hash: "m"})
		}
	}
	if len(h.running) > 0 && h.r.IntN(3) == 0 {
		i := h.r.IntN(len(h.running))
		p.Delta.Builds = append(p.Delta.Builds, &eventsv1.BuildProgress{Build: h.running[i].Build, State: eventsv1.BuildState_BUILD_STATE_FINISHED})
		h.running = slices.Delete(h.running, i, i+1)
	}
	for _, b := range h.running {
		switch h.r.IntN(8) {
		case 0:
			p.Worthless = append(p.Worthless, &eventsv1.WorthlessBuild{Build: b.Build, Needed: h.r.Float64() / 10})
		case 1:
			p.Recovered = append(p.Recovered, b.Build)
		}
	}
	h.rank(p)
	return p
}

// rank proposes paths, sensible ones and others, and keeps most of what it proposed before.
func (h *history) rank(p *eventsv1.Priority) {
	if h.r.IntN(3) == 0 && h.ranking != nil {
		return
	}
	now := &eventsv1.Ranking{Exact: true}
	var splices []*eventsv1.RankingSplice
	old := h.ranking.GetBest()
	for at := 0; at <= len(old); at++ {
		s := &eventsv1.RankingSplice{At: uint32(at)}
		if b := h.proposal(); h.r.IntN(4) == 0 && !ranks(now, b) && !ranks(h.ranking, b) {
			s.Inserted = append(s.Inserted, b)
		}
		if at < len(old) && h.r.IntN(3) == 0 {
			s.Removed = 1
		}
		if now.Best = append(now.Best, s.Inserted...); at < len(old) && s.Removed == 0 {
			now.Best = append(now.Best, old[at])
		}
		if len(s.Inserted) > 0 || s.Removed > 0 {
			splices = append(splices, s)
		}
	}
	if h.ranking != nil && h.r.IntN(4) > 0 {
		p.Edit = &eventsv1.RankingEdit{Splices: splices, Exact: true}
	} else {
		p.Ranking = now
	}
	h.ranking = now
}

// ranks reports whether a ranking has the path already.
func ranks(r *eventsv1.Ranking, b *eventsv1.RankedBuild) bool {
	return slices.ContainsFunc(r.GetBest(), func(o *eventsv1.RankedBuild) bool {
		return o.Change.Change == b.Change.Change && slices.EqualFunc(o.Assumed, b.Assumed, graph.SameRef)
	})
}

func (h *history) proposal() *eventsv1.RankedBuild {
	if len(h.nodes) == 0 || h.r.IntN(12) == 0 {
		return &eventsv1.RankedBuild{Change: &eventsv1.ChangeRef{}, Needed: 1, Value: 1}
	}
	n := h.nodes[h.r.IntN(len(h.nodes))]
	b := &eventsv1.RankedBuild{Change: n.Change, Needed: h.r.Float64(), Value: 1}
	for _, a := range n.Ahead {
		if h.r.IntN(2) == 0 {
			b.Assumed = append(b.Assumed, a.Change)
		}
	}
	return b
}

// decided keeps what runs, and answers most decisions sooner or later.
func (h *history) decided(d *eventsv1.Decision) {
	for _, i := range d.GetItems() {
		switch x := i.Item.(type) {
		case *eventsv1.DecisionItem_BuildScheduled:
			h.running = append(h.running, x.BuildScheduled)
		case *eventsv1.DecisionItem_BuildAborted:
			h.running = slices.DeleteFunc(h.running, func(b *eventsv1.BuildScheduled) bool { return b.Build == x.BuildAborted.Build })
		case *eventsv1.DecisionItem_LandDecided:
			if h.r.IntN(2) == 0 {
				h.answers = append(h.answers, &eventsv1.Answered{Change: x.LandDecided.Change, Decision: x.LandDecided.Decision})
			}
		case *eventsv1.DecisionItem_RejectDecided:
			h.answers = append(h.answers, &eventsv1.Answered{Change: x.RejectDecided.Change, Decision: x.RejectDecided.Decision})
		}
	}
}

// TestASelectionThatHasKeptNothingDecidesTheSame: one keeps what it concluded, another one concludes everything again at each
// input, a third one folds what was written and is asked only now and then, as after a take-over.
func TestASelectionThatHasKeptNothingDecidesTheSame(t *testing.T) {
	r := seedtest.Random(t)
	count := map[string]int{}
	for range 400 {
		ids := func(parts ...string) string { return strings.Join(parts, "/") }
		kept, forgetful, follows := New("main", ids), New("main", ids), New("main", ids)
		h := &history{r: r}
		for range 60 {
			p := h.next()
			kept.Apply(p)
			forgetful.Apply(proto.Clone(p).(*eventsv1.Priority))
			follows.Apply(proto.Clone(p).(*eventsv1.Priority))
			everything := subjects{}
			everything.addAll(forgetful)
			for c := range everything {
				forgetful.reconsider(c)
			}
			got, want := kept.Decide(), forgetful.Decide()
			if !proto.Equal(got, want) {
				t.Fatalf("got\n%s\nwant\n%s\nafter\n%s", prototext.Format(got), prototext.Format(want), prototext.Format(p))
			}
			if r.IntN(4) == 0 {
				if again := follows.Decide(); !proto.Equal(again, want) {
					t.Fatalf("who only folds decides\n%s\nwant\n%s\nafter\n%s", prototext.Format(again), prototext.Format(want), prototext.Format(p))
				}
			}
			if again := kept.Decide(); !proto.Equal(again, want) {
				t.Fatalf("asked twice\n%s\nwant\n%s", prototext.Format(again), prototext.Format(want))
			}
			if got != nil {
				for _, s := range []*Selection{kept, forgetful, follows} {
					s.Fold(proto.Clone(got).(*eventsv1.Decision))
				}
			}
			for _, i := range got.GetItems() {
				count[fmt.Sprintf("%T", i.Item)]++
				if a := i.GetBuildAborted(); a != nil {
					count[a.Why[:min(len(a.Why), 14)]]++
				}
			}
			h.decided(got)
		}
	}
	t.Log(count)
	for _, kind := range []string{"Scheduled", "Aborted", "LandDecided", "RejectDecided", "EjectDecided"} {
		n := 0
		for k, c := range count {
			if strings.Contains(k, kind) {
				n += c
			}
		}
		if n < 100 {
			t.Errorf("only %d times %s", n, kind)
		}
	}
}
