package steps

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/evidence"
	"landfall.build/engine/lineup"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// twin keeps the whole history and computes every answer from nothing.
type twin struct{ history []proto.Message }

type twinBuild struct {
	scheduled *eventsv1.BuildScheduled
	number    int
	prepared  *eventsv1.BuildPrepared
	order     []evidence.Version
	parts     map[evidence.Version]uint32
	successor string
	over      bool
	// closed: over, and may come back; revived: came back.
	closed, revived bool
}

type twinState struct {
	builds    []*twinBuild
	early     map[string]*eventsv1.BuildPrepared
	ledger    *evidence.Ledger
	lineup    *lineup.Queue
	durations map[string][]int64
	leases    map[evidence.Version]*eventsv1.StepLeased
}

func (s *twinState) build(id string) *twinBuild {
	for _, b := range s.builds {
		if b.scheduled.Build == id && !b.over {
			return b
		}
	}
	return nil
}

func (s *twinState) predicted(target string) int64 {
	mean, count := int64(0), int64(0)
	for _, d := range s.durations[target] {
		count = min(count+1, weighed)
		mean += (d - mean) / count
	}
	if count == 0 {
		return unpredicted
	}
	return mean
}

func (s *twinState) state(b *twinBuild, v evidence.Version) evidence.State {
	return s.ledger.State(v, b.scheduled.Steps)
}

func (s *twinState) prepare(b *twinBuild, p *eventsv1.BuildPrepared) {
	b.prepared, b.parts = p, map[evidence.Version]uint32{}
	if p.Outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		for _, t := range p.Versions {
			v := evidence.Version{Target: t.Target, Hash: t.Hash}
			if _, had := b.parts[v]; !had && !t.Trivial && !t.Absent {
				b.parts[v] = t.Part
				b.order = append(b.order, v)
			}
		}
	}
	slices.SortFunc(b.order, func(x, y evidence.Version) int {
		return cmp.Or(-cmp.Compare(s.predicted(x.Target), s.predicted(y.Target)), strings.Compare(x.Target, y.Target), strings.Compare(x.Hash, y.Hash))
	})
	for _, o := range s.builds {
		if o.successor == b.scheduled.Build {
			o.over = true
		}
	}
}

func (s *twinState) isOver(b *twinBuild) (over, success bool) {
	left, red := 0, false
	success = true
	for _, v := range b.order {
		state := s.state(b, v)
		success = success && state == evidence.Green
		red = red || state == evidence.Red
		if state == evidence.Unknown {
			left++
		}
	}
	return left == 0 || red, success
}

// settle ends the builds for which nothing is left, or something is red.
func (s *twinState) settle() {
	for _, b := range s.builds {
		if over, success := s.isOver(b); b.prepared != nil && !b.over && over {
			b.over, b.closed = true, !success && b.successor == ""
		}
	}
}

func (s *twinState) left(c *eventsv1.ChangeRef) {
	for _, b := range s.builds {
		if of := b.scheduled.Change.Change; of.Change == c.Change && of.Revision <= c.Revision {
			b.closed = false
			b.over = b.over || b.revived
		}
	}
}

func (s *twinState) withdraw(v evidence.Version, upTo uint32) {
	s.ledger.Withdraw(v, upTo)
	s.reopen(v, true)
}

// reopen brings builds back that were over for a version: of changes that are pending, and of the mainline if it is asked for.
func (s *twinState) reopen(v evidence.Version, mainline bool) {
	s.settle()
	for _, b := range s.builds {
		over, _ := s.isOver(b)
		of := b.scheduled.Change.Change
		pending := s.lineup.PendingAt(of) != nil || mainline && of.Change == ""
		if _, asks := b.parts[v]; !b.closed || !asks || over || !pending {
			continue
		}
		b.closed = false
		if s.build(b.scheduled.Build) == nil {
			b.over, b.revived = false, true
		}
	}
}

func (s *twinState) wants(v evidence.Version) bool {
	for _, b := range s.builds {
		if _, asks := b.parts[v]; !b.over && asks && s.state(b, v) == evidence.Unknown && (b.successor == "" || s.leases[v] != nil) {
			return true
		}
	}
	return false
}

func (t *twin) now() *twinState {
	s := &twinState{early: map[string]*eventsv1.BuildPrepared{}, ledger: evidence.NewLedger(), lineup: lineup.New(), durations: map[string][]int64{}, leases: map[evidence.Version]*eventsv1.StepLeased{}}
	for _, m := range t.history {
		switch m := m.(type) {
		case nil: // ForgetEarly
			clear(s.early)
		case *eventsv1.Decision:
			for _, i := range m.Items {
				if b := i.GetBuildScheduled(); b != nil && s.build(b.Build) == nil {
					built := &twinBuild{scheduled: b, number: len(s.builds)}
					s.builds = append(s.builds, built)
					if p := s.early[b.Build]; p != nil {
						delete(s.early, b.Build)
						s.prepare(built, p)
						s.settle()
					}
				}
				if a := i.GetBuildAborted(); a != nil {
					s.abort(a)
				}
			}
			for v, l := range s.leases {
				if l.UntilUs < m.StampUs && !s.wants(v) {
					delete(s.leases, v)
				}
			}
		case *eventsv1.BuildPrepared:
			if b := s.build(m.Build); b == nil {
				if s.early[m.Build] == nil {
					s.early[m.Build] = m
				}
			} else if b.prepared == nil {
				s.prepare(b, m)
			}
		case *eventsv1.StepFinished:
			v := evidence.Version{Target: m.Target, Hash: m.Hash}
			if s.ledger.Apply(m) {
				if m.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
					s.durations[m.Target] = append(s.durations[m.Target], m.FinishedUs-m.StartedUs)
				}
				if l := s.leases[v]; l != nil && l.Attempt <= m.Attempt {
					delete(s.leases, v)
				}
			}
		case *eventsv1.StepLeased:
			s.lease(m)
		case *eventsv1.EvidenceForgotten:
			s.ledger.Forget(m, func(v evidence.Version) { s.reopen(v, false) })
		case *eventsv1.TargetQuarantined, *eventsv1.QuarantineEnded:
			for _, v := range s.ledger.Quarantine(m) {
				s.reopen(v, false)
			}
		default:
			consequence := s.lineup.Apply(m, 0)
			if consequence.Left != nil {
				s.left(consequence.Left.Ref())
			}
			var failed []*eventsv1.Proof
			switch m := m.(type) {
			case *eventsv1.ChangeRejected:
				failed = m.Reason.Failed
			case *eventsv1.ChangeRetried:
				failed = m.Failed
			}
			for _, p := range failed {
				if consequence.Applied {
					s.withdraw(evidence.Version{Target: p.Version.Target, Hash: p.Version.Hash}, p.Attempt)
				}
			}
		}
		s.settle()
	}
	return s
}

func (s *twinState) abort(a *eventsv1.BuildAborted) {
	delete(s.early, a.Build)
	successor := s.build(a.SupersededBy)
	if s.build(a.Build) == nil {
		for _, b := range s.builds {
			if b.scheduled.Build == a.Build {
				b.closed = false
			}
		}
	}
	waits := successor != nil && successor.prepared == nil && a.SupersededBy != a.Build
	for _, o := range s.builds {
		switch {
		case o.over:
		case o.scheduled.Build == a.Build && waits && o.prepared != nil, o.successor == a.Build && waits:
			o.successor = a.SupersededBy
		case o.scheduled.Build == a.Build, o.successor == a.Build:
			o.over = true
		}
	}
}

func (s *twinState) lease(m *eventsv1.StepLeased) {
	v := evidence.Version{Target: m.Target, Hash: m.Hash}
	old := s.leases[v]
	switch {
	case m.Attempt < s.ledger.NextAttempt(v):
	case old == nil || old.Attempt < m.Attempt:
		s.take(v, m)
	case old.Attempt > m.Attempt:
	case old.Lease == m.Lease:
		old.UntilUs = max(old.UntilUs, m.UntilUs)
	case m.StampUs > old.UntilUs:
		s.take(v, m)
	}
}

// take gives a lease what it names, unless somebody has some of it; whoever had some once has it no more.
func (s *twinState) take(v evidence.Version, m *eventsv1.StepLeased) {
	for _, name := range m.Exclusive {
		if s.has(name, v, m.StampUs) {
			return
		}
	}
	for _, name := range m.Exclusive {
		for other, l := range s.leases {
			if other != v && slices.Contains(l.Exclusive, name) {
				delete(s.leases, other)
			}
		}
	}
	s.ledger.Expect(v)
	s.leases[v] = proto.Clone(m).(*eventsv1.StepLeased)
}

// has reports whether a version other than one given has a name to itself.
func (s *twinState) has(name string, except evidence.Version, now int64) bool {
	for v, l := range s.leases {
		if v != except && l.UntilUs >= now && slices.Contains(l.Exclusive, name) {
			return true
		}
	}
	return false
}

// live are the builds that are not over, in order.
func (s *twinState) live() []*twinBuild {
	var list []*twinBuild
	for _, b := range s.builds {
		if !b.over {
			list = append(list, b)
		}
	}
	slices.SortStableFunc(list, func(a, b *twinBuild) int { return -cmp.Compare(a.scheduled.Value, b.scheduled.Value) })
	return list
}

func (s *twinState) preparations() []string {
	var list []string
	for _, b := range s.live() {
		if b.prepared == nil {
			list = append(list, b.scheduled.Build)
		}
	}
	return list
}

func (s *twinState) next(now int64) []string {
	var list []string
	seen := map[evidence.Version]bool{}
	held := map[string]bool{}
	for _, b := range s.live() {
		for _, v := range b.order {
			l := s.leases[v]
			waits := slices.ContainsFunc(exclusiveOf(v.Target), func(name string) bool { return held[name] || s.has(name, v, now) })
			if b.successor != "" || seen[v] || s.state(b, v) != evidence.Unknown || l != nil && l.UntilUs >= now || waits {
				continue
			}
			seen[v] = true
			for _, name := range exclusiveOf(v.Target) {
				held[name] = true
			}
			list = append(list, describe(v, s.ledger.NextAttempt(v), b.parts[v], b.scheduled.Build))
		}
	}
	return list
}

func describe(v evidence.Version, attempt, part uint32, build string) string {
	return fmt.Sprintf("%s@%s attempt %d part %d of %s", v.Target, v.Hash, attempt, part, build)
}

func TestTheFoldEqualsItsNaiveTwinOnRandomHistories(t *testing.T) {
	seed := seedtest.Of(t)
	var lingered, shared, taken, withdrawn, revived, forgotten, quarantined int
	for run := range uint64(2000) {
		h := &history{r: rand.New(rand.NewPCG(seed, run)), clock: 1000}
		q, naive := New(), &twin{}
		for step := range 60 {
			m := h.next()
			if m == nil {
				q.ForgetEarly()
			} else {
				q.Apply(m, Origin{})
			}
			naive.history = append(naive.history, m)
			want := naive.now()
			fail := func(what string, got, want any) {
				t.Fatalf("run %d, step %d (%v): %s\n got %v\nwant %v", run, step, m, what, got, want)
			}

			var preparations []string
			for _, p := range q.Preparations() {
				preparations = append(preparations, p.Build.Build)
			}
			if w := want.preparations(); !slices.Equal(preparations, w) {
				fail("preparations", preparations, w)
			}
			var next []string
			for _, s := range q.Next(h.clock, 1000, nil, nil) {
				next = append(next, describe(s.Version, s.Attempt, s.Part, s.Build.Build))
			}
			if w := want.next(h.clock); !slices.Equal(next, w) {
				fail("next", next, w)
			}
			lapse, found := int64(0), false
			for _, target := range []string{"//t0", "//t1", "//t2", "//t3", "//t4"} {
				for _, hash := range []string{"h0", "h1"} {
					v := Version{Target: target, Hash: hash}
					if q.Wants(v) != want.wants(v) {
						fail("wants "+target+hash, q.Wants(v), want.wants(v))
					}
					l := want.leases[v]
					for attempt := range uint32(5) {
						holder := ""
						if l != nil && l.Attempt == attempt {
							holder = l.Lease
						}
						if got := q.Holder(v, attempt); got != holder {
							fail("holder of "+target+hash, got, holder)
						}
					}
					if l != nil && l.UntilUs >= h.clock && (len(l.Exclusive) > 0 || want.wants(v)) && (!found || l.UntilUs < lapse) {
						lapse, found = l.UntilUs, true
					}
				}
			}
			if got, ok := q.NextLapse(h.clock); ok != found || got != lapse {
				fail("next lapse", got, lapse)
			}
			asking := 0
			for _, b := range want.live() {
				if b.successor != "" {
					lingered++
				}
				if b.revived {
					revived++
				}
				asking += len(b.order)
			}
			if len(q.asking) < asking {
				shared++
			}
			switch m.(type) {
			case *eventsv1.ChangeRejected:
				withdrawn++
			case *eventsv1.EvidenceForgotten:
				forgotten++
			case *eventsv1.TargetQuarantined:
				quarantined++
			}
			taken += len(want.leases)
			if q.Idle() != (len(want.live()) == 0) || len(q.order) != len(q.live) || q.Early() != len(want.early) {
				fail("size", len(q.live), len(want.live()))
			}
			if q.Idle() && len(q.asking) > 0 {
				fail("versions that nobody asks for", len(q.asking), 0)
			}
		}
	}
	t.Logf("builds that linger %d, are revived %d, shared versions %d, leases %d, withdrawals %d, forgotten %d, quarantined %d", lingered, revived, shared, taken, withdrawn, forgotten, quarantined)
	if lingered == 0 || forgotten == 0 || quarantined == 0 || revived == 0 || shared == 0 || taken == 0 || withdrawn == 0 {
		t.Error("the histories reach too little")
	}
}
