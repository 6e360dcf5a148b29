package agenda

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// twin answers the same questions by going through the whole history each time.
type twin struct {
	facts []proto.Message
}

type twinMove struct {
	to     string
	effect *eventsv1.ChangeAnalyzed // nil: unknown, or the first head
	pushed bool
}

// wanted plays the history and lists "push from→to", "change revision base", and "survey base" if the last one has another reading.
func (t *twin) wanted(by string) []string {
	queue := lineup.New()
	standing := map[string]*eventsv1.ChangeAnalyzed{}
	var moves []*twinMove
	var pushes []*eventsv1.MainlineMoved
	var pushMoves []*twinMove
	lastHead := func(commit string) int {
		for i := len(moves) - 1; i >= 0; i-- {
			if moves[i].to == commit {
				return i
			}
		}
		return -1
	}
	surveyed, reading := false, ""
	for offset, m := range t.facts {
		if f, is := m.(*eventsv1.MainlineSurveyed); is {
			if f.Commit != queue.Head || f.Again && queue.Intention != nil {
				continue
			}
			if surveyed && f.Reading != "" && f.Reading != reading {
				standing = map[string]*eventsv1.ChangeAnalyzed{}
			}
			surveyed = true
			if f.Reading != "" {
				reading = f.Reading
			}
			continue
		}
		if f, is := m.(*eventsv1.ChangeAnalyzed); is {
			if queue.PendingAt(f.Change) == nil {
				continue
			}
			if old := standing[f.Change.Change]; old != nil {
				if old.Base == f.Base || lastHead(f.Base) >= 0 && lastHead(f.Base) < lastHead(old.Base) {
					continue
				}
			}
			standing[f.Change.Change] = f
			continue
		}
		if f, is := m.(*eventsv1.MainlineAnalyzed); is {
			for i, p := range pushes {
				if p.From == f.From && p.To == f.To {
					pushMoves[i].effect = &eventsv1.ChangeAnalyzed{Outcome: 1, Affected: f.Affected}
					pushes, pushMoves = slices.Delete(pushes, i, i+1), slices.Delete(pushMoves, i, i+1)
					break
				}
			}
			continue
		}
		sequence := queue.Sequence
		result := queue.Apply(m, int64(offset))
		var left *eventsv1.ChangeAnalyzed
		if result.Left != nil {
			left = standing[result.Left.ID()]
			delete(standing, result.Left.ID())
		}
		if queue.Sequence == sequence {
			continue
		}
		move := &twinMove{to: queue.Head, effect: left}
		if result.Left != nil && left == nil {
			move.effect = &eventsv1.ChangeAnalyzed{Change: result.Left.Ref(), Affected: &eventsv1.Affected{All: true}}
		}
		moves = append(moves, move)
		if f, is := m.(*eventsv1.MainlineMoved); is {
			move.pushed = true
			if !f.Initial {
				pushes, pushMoves = append(pushes, f), append(pushMoves, move)
			}
		}
	}
	var wanted []string
	for _, p := range pushes {
		wanted = append(wanted, "push "+p.From+"→"+p.To)
	}
	if queue.Head == "" {
		return wanted
	}
	for _, c := range queue.Order() {
		a := standing[c.ID()]
		fresh := a != nil && (a.Base == queue.Head || lastHead(a.Base) >= 0)
		if fresh && a.Base != queue.Head {
			for _, m := range moves[lastHead(a.Base)+1:] {
				fresh = fresh && (m.effect == nil || !twinMeets(a, m.effect, m.pushed))
			}
		}
		if !fresh {
			wanted = append(wanted, fmt.Sprintf("%s %d %s", c.ID(), c.Revision(), queue.Head))
		}
	}
	if !surveyed || by != "" && by != reading && queue.Intention == nil {
		wanted = append(wanted, "survey "+queue.Head)
	}
	return wanted
}

func twinMeets(a, b *eventsv1.ChangeAnalyzed, pushed bool) bool {
	names := func(f *eventsv1.ChangeAnalyzed) (touched, leaves, added map[string]bool) {
		touched, leaves, added = map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, v := range f.Affected.GetTargets() {
			touched[v.Target] = true
		}
		for _, n := range f.Affected.GetDeleted() {
			touched[n] = true
		}
		for _, n := range f.Affected.GetLeaves() {
			leaves[n] = true
		}
		for _, n := range f.Affected.GetAddedEdges() {
			added[n] = true
		}
		return
	}
	touchedA, leavesA, addedA := names(a)
	touchedB, leavesB, addedB := names(b)
	if a.Affected.GetAll() || b.Affected.GetAll() || pushed && a.Outcome != 1 {
		return true
	}
	for n := range touchedA {
		if touchedB[n] || addedB[n] {
			return true
		}
	}
	for n := range addedA {
		if touchedB[n] || leavesB[n] {
			return true
		}
	}
	for n := range leavesA {
		if addedB[n] || leavesB[n] && strings.HasPrefix(n, "file:") {
			return true
		}
	}
	if !pushed {
		for _, x := range a.Textual {
			if proto.Equal(x.Other, b.Change) {
				return true
			}
		}
		for _, x := range b.Textual {
			if proto.Equal(x.Other, a.Change) {
				return true
			}
		}
	}
	return false
}

// history makes random facts, most of which make sense.
type history struct {
	*rand.Rand
	queue   *Queue
	twin    *twin
	commits []string // that were ever the head
	pushes  []*eventsv1.MainlineMoved
	offset  int64
}

func (h *history) apply(m proto.Message) {
	h.offset++
	h.queue.Apply(m, h.offset)
	h.twin.facts = append(h.twin.facts, m)
}

func (h *history) some(prefix string, n, atMost int) []string {
	var list []string
	for range h.IntN(atMost + 1) {
		list = append(list, fmt.Sprintf("%s%d", prefix, h.IntN(n)))
	}
	return list
}

func (h *history) affected() *eventsv1.Affected {
	a := &eventsv1.Affected{
		All: h.IntN(12) == 0, Deleted: h.some("//t", 9, 1),
		Leaves:     append(h.some("file:f", 6, 2), h.some("dir:d", 3, 1)...),
		AddedEdges: append(h.some("file:f", 6, 1), h.some("//t", 9, 1)...),
	}
	for _, name := range h.some("//t", 9, 2) {
		a.Targets = append(a.Targets, &eventsv1.TargetVersion{Target: name, Hash: "h", Part: 1})
	}
	return a
}

func (h *history) ref() *eventsv1.ChangeRef {
	order := h.queue.Lineup.Order()
	if len(order) == 0 || h.IntN(10) == 0 {
		return &eventsv1.ChangeRef{Change: fmt.Sprintf("c%d", h.IntN(9)), Revision: 1 + h.Uint64N(2)}
	}
	return order[h.IntN(len(order))].Ref()
}

func (h *history) head() string {
	if len(h.commits) == 0 || h.IntN(20) == 0 {
		return "never the head"
	}
	return h.commits[max(0, len(h.commits)-1-h.IntN(4))]
}

func (h *history) step() {
	next := fmt.Sprintf("m%d", h.offset)
	switch head := h.queue.Lineup.Head; h.IntN(10) {
	case 0, 1:
		id := fmt.Sprintf("c%d", h.IntN(9))
		a := &eventsv1.Admission{Change: id, Revision: h.queue.Lineup.Known(id) + 1, LandingCommits: []*eventsv1.LandingCommit{{}}}
		if h.queue.Lineup.Pending(id) == nil {
			h.apply(&eventsv1.ChangeAdmitted{Admission: a})
		} else if h.IntN(3) == 0 {
			h.apply(&eventsv1.ChangeRevised{Admission: a})
		}
	case 2:
		if h.IntN(4) == 0 {
			h.apply(&eventsv1.ChangeCancelled{Change: h.ref().Change})
		}
	case 3:
		ref := h.ref()
		h.apply(&eventsv1.LandIntended{Change: ref, Commits: []string{next}})
		h.apply(&eventsv1.ChangeLanded{Change: ref, Commits: []string{next}})
		if h.queue.Lineup.Head == next {
			h.commits = append(h.commits, next)
		}
	case 4:
		m := &eventsv1.MainlineMoved{From: head, To: next, Initial: head == ""}
		if head != "" && h.IntN(4) == 0 {
			m.To, m.Forced = h.head(), true
		}
		h.apply(m)
		h.commits = append(h.commits, m.To)
		h.pushes = append(h.pushes, m)
	case 5:
		if len(h.pushes) > 0 {
			p := h.pushes[h.IntN(len(h.pushes))]
			h.apply(&eventsv1.MainlineAnalyzed{From: p.From, To: p.To, Affected: h.affected()})
		}
	case 6: // nothing of the agenda
		switch ref := h.ref(); h.IntN(6) {
		case 5:
			if commit := h.head(); commit != "" { // maybe an older one
				h.apply(&eventsv1.MainlineSurveyed{Commit: commit, Reading: h.reading(), Again: h.IntN(2) == 0})
			}
		case 4:
			h.apply(&eventsv1.ChangeMoved{Change: ref.Change})
		case 0:
			h.apply(&eventsv1.ChangeHeld{Change: ref.Change, Hold: "h", Who: "who", Why: "why"})
		case 1:
			h.apply(&eventsv1.QueuePaused{Who: "who", Why: "why", StampUs: 7})
			h.apply(&eventsv1.LandingsPaused{Message: "frozen"})
		case 2:
			h.apply(&eventsv1.LandIntended{Change: ref, Commits: []string{next}})
		case 3:
			h.apply(&eventsv1.QueueResumed{})
			if i := h.queue.Lineup.Intention; i != nil {
				h.apply(&eventsv1.LandVoid{Change: i.Fact.Change, Commit: i.Tip()})
			}
		}
	default:
		f := &eventsv1.ChangeAnalyzed{Change: h.ref(), Base: h.head(), Outcome: 1, Affected: h.affected()}
		if h.IntN(6) == 0 {
			f.Outcome, f.Affected = eventsv1.AnalysisOutcome(2+h.IntN(2)), nil
		}
		for range h.IntN(3) {
			f.Textual = append(f.Textual, &eventsv1.Textual{Other: h.ref()})
		}
		h.apply(f)
	}
}

// reading draws how somebody reads trees; "" says nothing.
func (h *history) reading() string { return []string{"", "old", "new"}[h.IntN(3)] }

func describe(task Task) string {
	if task.Push != nil {
		return "push " + task.Push.From + "→" + task.Push.To
	}
	if task.IsSurvey() {
		return "survey " + task.Base
	}
	return fmt.Sprintf("%s %d %s", task.Change.ID(), task.Change.Revision(), task.Base)
}

func TestWantedEqualsTheTwinOnRandomHistories(t *testing.T) {
	random := seedtest.Random(t)
	asked := 0
	for range 300 {
		h := &history{Rand: random, queue: New(), twin: &twin{}}
		for range 80 {
			h.step()
			var got []string
			by := h.reading()
			for _, task := range h.queue.Wanted(by) {
				if !h.queue.Answers(task) {
					t.Fatalf("%+v is wanted, and its answer would be dropped", task)
				}
				got = append(got, describe(task))
			}
			want := h.twin.wanted(by)
			if !slices.Equal(got, want) {
				t.Fatalf("after %d facts, the last %v:\n got %q\nwant %q", len(h.twin.facts), h.twin.facts[len(h.twin.facts)-1], got, want)
			}
			asked += len(got)
		}
	}
	t.Logf("%d answers compared", asked)
}

func TestAnsweringWhatIsWantedLeavesNothingWanted(t *testing.T) {
	random := seedtest.Random(t)
	for range 200 {
		h := &history{Rand: random, queue: New(), twin: &twin{}}
		for range 60 {
			h.step()
		}
		for rounds := 0; ; rounds++ {
			tasks := h.queue.Wanted("now")
			if len(tasks) == 0 {
				break
			}
			// One round for the pushes, which may outdate analyses, and for the survey, which may void them, and one for the changes.
			if rounds == 2 {
				t.Fatalf("after two rounds still wanted: %+v", tasks)
			}
			for _, task := range tasks {
				switch {
				case task.Push != nil:
					h.apply(&eventsv1.MainlineAnalyzed{From: task.Push.From, To: task.Push.To, Affected: h.affected()})
				case task.IsSurvey():
					h.apply(&eventsv1.MainlineSurveyed{Commit: task.Base, Reading: task.Reading, Again: !task.First})
				default:
					h.apply(&eventsv1.ChangeAnalyzed{Change: task.Change.Ref(), Base: task.Base, Outcome: 1, Affected: h.affected()})
				}
			}
		}
	}
}

func TestAnAnalysisOnAHeadThatIsForgottenIsOutdated(t *testing.T) {
	q := New()
	q.Apply(&eventsv1.MainlineMoved{To: "m0", Initial: true}, 0)
	q.Apply(&eventsv1.MainlineSurveyed{Commit: "m0"}, 0)
	q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "c", Revision: 1, LandingCommits: []*eventsv1.LandingCommit{{}}}}, 1)
	for i := range 2 * keptMoves {
		from, to := fmt.Sprintf("m%d", i), fmt.Sprintf("m%d", i+1)
		q.Apply(&eventsv1.MainlineMoved{From: from, To: to}, int64(2+2*i))
		q.Apply(&eventsv1.MainlineAnalyzed{From: from, To: to}, int64(3+2*i))
	}
	if len(q.moves) != keptMoves || len(q.sequences) != keptMoves {
		t.Errorf("%d moves and %d heads are kept, want %d", len(q.moves), len(q.sequences), keptMoves)
	}
	c := &eventsv1.ChangeRef{Change: "c", Revision: 1}
	q.Apply(&eventsv1.ChangeAnalyzed{Change: c, Base: "m0", Outcome: 1}, 9999)
	if wanted := q.Wanted(""); len(wanted) != 1 {
		t.Errorf("wanted: %+v, want the change anew", wanted)
	}
	q.Apply(&eventsv1.ChangeAnalyzed{Change: c, Base: fmt.Sprintf("m%d", 2*keptMoves-5), Outcome: 1}, 10000)
	if wanted := q.Wanted(""); len(wanted) != 0 {
		t.Errorf("wanted: %+v, want nothing: no push since that head conflicts with it", wanted)
	}
}

// TestTheNamesOfMovesAreBounded: of landings that affect very many targets fewer are kept, the last one always.
func TestTheNamesOfMovesAreBounded(t *testing.T) {
	q := New()
	each := keptNames / 4
	for i, names := range []int{1, each, each, each, each, each, 2 * keptNames, 1} {
		q.addMove(uint64(i), fmt.Sprintf("m%d", i), &effect{footprint: targets.Footprint{Touched: make([]string, names)}})
		if kept := len(q.moves); kept != []int{1, 2, 3, 4, 4, 4, 1, 1}[i] || len(q.sequences) != kept {
			t.Errorf("after move %d there are %d with %d names", i, kept, q.names)
		}
	}
}
