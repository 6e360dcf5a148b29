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
	"landfall.build/engine/quota"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// twin keeps the whole history and computes every answer from nothing.
type twin struct {
	history []proto.Message
	quotas  *eventsv1.Quotas
}

type twinBuild struct {
	scheduled *eventsv1.BuildScheduled
	number    int
	// started numbers the builds as they began to ask for versions.
	started  int
	value    float64
	since    int64
	prepared *eventsv1.BuildPrepared
	asks     []evidence.Version
	parts    map[evidence.Version]uint32
	// needs has what each version depends on.
	needs     map[evidence.Version][]evidence.Version
	waits     map[evidence.Version]bool
	successor string
	over      bool
	// closed: over, and may come back; revived: came back.
	closed, revived bool
	// began is how much sharing had given when the build was scheduled, at the time at; got is what was done for it, and through
	// when sharing was through with it.
	began            float64
	at, got, through int64
	author           string
}

type twinState struct {
	// heads are those that the mainline has left.
	heads  []string
	quotas *eventsv1.Quotas
	builds []*twinBuild
	early  map[string]*eventsv1.BuildPrepared
	ledger *evidence.Ledger
	lineup *lineup.Queue
	leases map[evidence.Version]*eventsv1.StepLeased
	starts int
	// finished are the ends that count, in their order; scale is the queue's mean duration at the last estimate.
	finished []*eventsv1.StepFinished
	// aborted are those of them that showed nothing and are not forgotten.
	aborted []*eventsv1.StepFinished
	scale   int64
	// work is the work of each build when its tree was made.
	work []int64
	// us and risk are what was estimated of the versions that live builds ask for.
	us   map[evidence.Version]int64
	risk map[evidence.Version]float64
	// since has when the first build of each pending change was scheduled.
	since map[string]int64
	// given is what sharing has given a build of worth 1, gone the ends and worths of builds that are over before sharing is
	// through with them.
	given float64
	gone  [][2]float64
	// late counts the steps listed because a build is late, bound those that count for somebody.
	late, bound int
}

func (s *twinState) build(id string) *twinBuild {
	for _, b := range s.builds {
		if b.scheduled.Build == id && !b.over {
			return b
		}
	}
	return nil
}

// average is the mean of the values of those finished steps for which value says ok, the newest window of them weighing most.
func (s *twinState) average(window, towards, weight int64, value func(*eventsv1.StepFinished) (int64, bool)) int64 {
	mean, count := int64(0), int64(0)
	for _, f := range s.finished {
		if v, ok := value(f); ok {
			count = min(count+1, window)
			mean += (v - mean) / count
		}
	}
	if count+weight == 0 {
		return towards
	}
	return (count*mean + weight*towards) / (count + weight)
}

func tookOf(f *eventsv1.StepFinished) (int64, bool) {
	return max(0, f.FinishedUs-f.StartedUs), f.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED
}

func failedOf(f *eventsv1.StepFinished) (int64, bool) {
	switch f.Outcome {
	case eventsv1.StepOutcome_STEP_OUTCOME_PASSED:
		return 0, true
	case eventsv1.StepOutcome_STEP_OUTCOME_FAILED:
		return 1_000_000, true
	}
	return 0, false
}

func (s *twinState) mean() int64 { return max(1, s.average(256, 10_000_000, 0, tookOf)) }

// estimate is the average of a target, drawn to that of its package, drawn to that of the queue.
func (s *twinState) estimate(target string, queue int64, value func(*eventsv1.StepFinished) (int64, bool)) int64 {
	in := func(same func(string) bool) func(*eventsv1.StepFinished) (int64, bool) {
		return func(f *eventsv1.StepFinished) (int64, bool) {
			v, ok := value(f)
			return v, ok && same(f.Target)
		}
	}
	pkg := s.average(64, queue, 2, in(func(t string) bool { return packageOf(t) == packageOf(target) }))
	return s.average(16, pkg, 1, in(func(t string) bool { return t == target }))
}

func (s *twinState) duration(target string) int64 {
	return max(1, s.estimate(target, s.mean(), tookOf))
}

func (s *twinState) risky(v evidence.Version) float64 {
	if r := s.ledger.Result(v); r != nil && r.FailedBy != nil {
		return 0.9
	}
	return float64(s.estimate(v.Target, s.average(256, 30_000, 8, failedOf), failedOf)) / 1_000_000
}

// reestimate estimates what was not asked for before, and everything if the queue's mean has moved by more than a quarter.
func (s *twinState) reestimate() {
	moved := s.mean() > s.scale*5/4 && 4*s.mean() > 5*s.scale || 5*s.mean() < 4*s.scale
	if moved {
		s.scale = s.mean()
	}
	us, risk := map[evidence.Version]int64{}, map[evidence.Version]float64{}
	for _, b := range s.live() {
		for _, v := range b.asks {
			us[v], risk[v] = s.duration(v.Target), s.risky(v)
			if had, ok := s.us[v]; ok && !moved {
				us[v] = had
			}
			if had, ok := s.risk[v]; ok && (had == 0.9) == (risk[v] == 0.9) {
				risk[v] = had
			}
		}
	}
	s.us, s.risk = us, risk
}

func (s *twinState) state(b *twinBuild, v evidence.Version) evidence.State {
	return s.ledger.State(v, b.scheduled.Steps)
}

func (s *twinState) prepare(b *twinBuild, p *eventsv1.BuildPrepared) {
	b.waits = map[evidence.Version]bool{}
	b.prepared, b.parts, b.needs = p, map[evidence.Version]uint32{}, map[evidence.Version][]evidence.Version{}
	s.starts++
	b.started = s.starts
	if p.Outcome == eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED {
		for i, t := range p.Versions {
			v := evidence.Version{Target: t.Target, Hash: t.Hash}
			if _, had := b.parts[v]; !had && !t.Trivial && !t.Absent {
				b.parts[v] = t.Part
				b.asks = append(b.asks, v)
			}
			for at, n := range p.Needs {
				if at == i && n.Given && !t.Trivial && !t.Absent {
					b.waits[v] = true
				}
				for _, of := range n.Versions {
					if d := p.Versions[of]; p.Needs[i] == n && !t.Trivial && !t.Absent && !d.Trivial && !d.Absent && (d.Target != t.Target || d.Hash != t.Hash) {
						b.needs[v] = append(b.needs[v], evidence.Version{Target: d.Target, Hash: d.Hash})
					}
				}
			}
		}
	}
	work := int64(0)
	for _, v := range b.asks {
		if us, ok := s.us[v]; s.state(b, v) == evidence.Unknown && ok {
			work += us
		} else if s.state(b, v) == evidence.Unknown {
			work += s.duration(v.Target)
		}
	}
	if work > 0 && !b.scheduled.Idle {
		s.work = append(s.work, work)
	}
	for _, o := range s.builds {
		if o.successor == b.scheduled.Build {
			o.over = true
		}
	}
}

// patience is sixteen times the mean of the last builds' work.
func (s *twinState) patience() int64 {
	mean, count := int64(10_000_000), int64(0)
	for _, w := range s.work {
		if count = min(count+1, 64); count == 1 {
			mean = 0
		}
		mean += (w - mean) / count
	}
	return patience * mean
}

// index returns a build's index as a function of the time t, slope · t − offset: worth times wait over the work that is left.
func (s *twinState) index(b *twinBuild) (slope, offset float64) {
	work := max(1, int64(len(b.scheduled.Targets))) * s.mean()
	if b.prepared != nil {
		work = 0
		for _, v := range b.asks {
			if s.state(b, v) == evidence.Unknown {
				work += s.us[v]
			}
		}
	}
	slope = b.value / float64(max(1, work))
	return slope, slope * float64(b.since)
}

// moment is the time t of indexes: at least when the last of the live builds' changes began to wait.
func (s *twinState) moment(now int64) float64 {
	for _, b := range s.live() {
		now = max(now, b.since)
	}
	return float64(s.patience() + now)
}

func (s *twinState) isOver(b *twinBuild) (over, success bool) {
	left, red := 0, false
	success = true
	for _, v := range b.asks {
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
			b.over, b.closed = true, (!success || b.scheduled.Change.Change.Change == "") && b.successor == "" && !s.leftHead(b)
			s.gone = append(s.gone, [2]float64{b.began + float64(b.got)/b.value, b.value})
			if !b.shares() {
				s.gone = s.gone[:len(s.gone)-1]
			}
			slices.SortFunc(s.gone, func(a, b [2]float64) int { return slices.Compare(a[:], b[:]) })
			if len(s.live()) == 0 {
				s.given, s.gone = 0, nil
			}
		}
	}
}

func (s *twinState) leftHead(b *twinBuild) bool {
	return b.scheduled.Base != s.lineup.Head && slices.Contains(s.heads, b.scheduled.Base)
}

func (s *twinState) left(c *eventsv1.ChangeRef, revised bool) {
	for _, b := range s.builds {
		if of := b.scheduled.Change.Change; of.Change == c.Change && of.Revision <= c.Revision {
			b.closed = false
			b.over = b.over || b.revived || !revised
		}
	}
}

func (s *twinState) withdraw(v evidence.Version, upTo uint32) {
	s.ledger.Withdraw(v, upTo)
	s.reopen(v, true)
}

func (s *twinState) outdate(v evidence.Version, upTo uint32) {
	s.ledger.Outdate(v, upTo)
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
			b.began, b.got, b.through = s.given, 0, 0
			s.starts++
			b.started = s.starts
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
	s := &twinState{
		quotas: t.quotas,
		early:  map[string]*eventsv1.BuildPrepared{}, ledger: evidence.NewLedger(), lineup: lineup.New(),
		leases: map[evidence.Version]*eventsv1.StepLeased{}, scale: 10_000_000, since: map[string]int64{},
	}
	for _, m := range t.history {
		done := int64(0)
		switch m := m.(type) {
		case nil: // ForgetEarly
			clear(s.early)
		case *eventsv1.Decision:
			for _, i := range m.Items {
				if b := i.GetBuildScheduled(); b != nil && s.build(b.Build) == nil && s.over(b.Change.Change) {
					delete(s.early, b.Build)
				} else if b != nil && s.build(b.Build) == nil {
					built := &twinBuild{
						scheduled: b, number: len(s.builds), value: b.Value, since: s.waiting(b.Change.Change, m.StampUs),
						began: s.given, at: m.StampUs}
					if c := s.lineup.PendingAt(b.Change.Change); c != nil {
						built.author = quota.AuthorOf(c.Admission.Author)
					}
					s.builds = append(s.builds, built)
					if p := s.early[b.Build]; p != nil {
						delete(s.early, b.Build)
						s.prepare(built, p)
						s.settle()
					}
				}
				if r := i.GetBuildRevalued(); r != nil {
					if b := s.build(r.Build); b != nil {
						if b.value > 0 && r.Value > 0 {
							had := float64((s.given - b.began) * b.value)
							b.began = s.given - had/r.Value
						}
						b.value = r.Value
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
			wanting := slices.DeleteFunc(s.live(), func(b *twinBuild) bool {
				return !b.shares() || !slices.Contains(b.asks, v) || s.state(b, v) != evidence.Unknown
			})
			if s.ledger.Apply(m) {
				for _, b := range wanting {
					b.got += workOf(m)
					done += workOf(m)
				}
				s.finished = append(s.finished, m)
				if m.Outcome == eventsv1.StepOutcome_STEP_OUTCOME_ABORTED {
					s.aborted = append(s.aborted, m)
				}
				if l := s.leases[v]; l != nil && l.Attempt <= m.Attempt {
					delete(s.leases, v)
				}
			}
		case *eventsv1.StepLeased:
			s.lease(m)
		case *eventsv1.EvidenceForgotten:
			for _, v := range m.Versions {
				s.aborted = slices.DeleteFunc(s.aborted, func(f *eventsv1.StepFinished) bool { return f.Target == v.Target && f.Hash == v.Hash })
			}
			s.ledger.Forget(m, func(v evidence.Version) { s.reopen(v, false) })
		case *eventsv1.TargetQuarantined, *eventsv1.QuarantineEnded:
			for _, v := range s.ledger.Quarantine(m) {
				s.reopen(v, false)
			}
		default:
			head := s.lineup.Head
			consequence := s.lineup.Apply(m, 0)
			if s.lineup.Head != head {
				s.heads = append(s.heads, head)
			}
			for _, b := range s.builds {
				if s.lineup.Head != head && s.leftHead(b) {
					b.closed = false
				}
			}
			if consequence.Left != nil {
				s.left(consequence.Left.Ref(), consequence.Revised)
				delete(s.since, consequence.Left.ID())
			}
			if c := consequence.Entered; c != nil {
				delete(s.since, c.ID())
				for _, b := range s.live() {
					if of := b.scheduled.Change.Change; b.author == "" && of.Change == c.ID() && of.Revision == c.Revision() {
						b.author = quota.AuthorOf(c.Admission.Author)
					}
				}
			}
			var failed []*eventsv1.Proof
			switch m := m.(type) {
			case *eventsv1.ChangeRejected:
				failed = m.Reason.Failed
			case *eventsv1.ChangeRetried:
				failed = m.Failed
			}
			if f, is := m.(*eventsv1.Refused); is && consequence.Applied {
				for _, p := range f.BaseOutdated {
					s.outdate(evidence.Version{Target: p.Version.Target, Hash: p.Version.Hash}, p.Attempt)
				}
			}
			for _, p := range failed {
				if consequence.Applied {
					s.withdraw(evidence.Version{Target: p.Version.Target, Hash: p.Version.Hash}, p.Attempt)
				}
			}
		}
		s.settle()
		s.reestimate()
		if f, is := m.(*eventsv1.StepFinished); is && done > 0 {
			s.share(done, f)
		}
	}
	return s
}

// over reports whether a revision was admitted and is not pending.
func (s *twinState) over(c *eventsv1.ChangeRef) bool {
	return c.Change != "" && s.lineup.Known(c.Change) >= c.Revision && s.lineup.PendingAt(c) == nil
}

// waiting returns since when a change waits for workers, if a build of it is scheduled now.
func (s *twinState) waiting(c *eventsv1.ChangeRef, now int64) int64 {
	if s.lineup.PendingAt(c) == nil {
		return now
	}
	if s.since[c.Change] == 0 {
		s.since[c.Change] = now
	}
	return s.since[c.Change]
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
	if of := s.build(a.Build); waits && of != nil {
		successor.began, successor.at, successor.got, successor.through = of.began, of.at, of.got, of.through
	}
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

// lease folds a lease of several versions as one of each.
func (s *twinState) lease(m *eventsv1.StepLeased) {
	s.leaseOne(m)
	for _, v := range m.Group {
		s.leaseOne(&eventsv1.StepLeased{Target: v.Target, Hash: v.Hash, Attempt: v.Attempt, Lease: m.Lease, StampUs: m.StampUs, UntilUs: m.UntilUs, Quotas: m.Quotas})
	}
}

func (s *twinState) leaseOne(m *eventsv1.StepLeased) {
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
	var lapsed []Version
	for _, of := range m.Quotas {
		running, over := s.leasesFor(of, m.StampUs)
		running, over = without(running, v), without(over, v)
		if of.Limit > 0 && len(running) >= int(of.Limit) {
			return
		}
		if of.Limit > 0 && len(running)+len(over) >= int(of.Limit) {
			lapsed = append(lapsed, over...)
		}
	}
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
	for _, other := range lapsed {
		delete(s.leases, other)
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

// live are the builds that are not over, as they were scheduled.
func (s *twinState) live() []*twinBuild {
	return slices.DeleteFunc(slices.Clone(s.builds), func(b *twinBuild) bool { return b.over })
}

func (s *twinState) preparations(now int64) []string {
	builds := slices.DeleteFunc(s.live(), func(b *twinBuild) bool { return b.prepared != nil })
	at := func(b *twinBuild) float64 {
		slope, offset := s.index(b)
		return slope*s.moment(now) - offset
	}
	slices.SortStableFunc(builds, func(a, b *twinBuild) int { return cmp.Compare(at(b), at(a)) })
	var list []string
	for _, b := range builds {
		list = append(list, b.scheduled.Build)
	}
	return list
}

// next takes the best of what all builds offer, until nobody offers anything.
func (s *twinState) next(now int64, taken []Version) []string {
	var list []string
	listed := map[evidence.Version]bool{}
	running := s.running(now, taken)
	held := map[string]bool{}
	for _, v := range taken {
		listed[v] = true
		for _, name := range exclusiveOf(v.Target) {
			held[name] = held[name] || s.asked(v)
		}
	}
	asking := slices.SortedFunc(slices.Values(s.live()), func(a, b *twinBuild) int { return cmp.Compare(a.started, b.started) })
	for {
		var best *twinBuild
		var version evidence.Version
		var rank Rank
		bestNeeded, bestTimes := false, 0.0
		for _, b := range s.live() {
			if b.successor != "" {
				continue
			}
			var offered *evidence.Version
			ready := false
			for _, v := range s.order(b) {
				l := s.leases[v]
				waits := slices.ContainsFunc(exclusiveOf(v.Target), func(name string) bool { return held[name] || s.has(name, v, now) })
				if listed[v] || s.state(b, v) != evidence.Unknown || l != nil && l.UntilUs >= now || waits {
					continue
				}
				unsettled := slices.ContainsFunc(b.needs[v], func(n evidence.Version) bool { return s.state(b, n) == evidence.Unknown })
				if unsettled && b.waits[v] {
					continue
				}
				if offered == nil || !unsettled {
					offered, ready = &v, !unsettled
				}
				if ready {
					break
				}
			}
			if offered == nil {
				continue
			}
			r := Rank{Ready: ready}
			urgent := func(o *twinBuild) bool {
				c := s.lineup.PendingAt(o.scheduled.Change.Change)
				return c != nil && c.Urgent
			}
			slope, offset, needed := 0.0, 0.0, false
			for _, o := range asking {
				if _, asks := o.parts[*offered]; asks && o.successor == "" && s.state(o, *offered) == evidence.Unknown {
					r.Urgent, needed = r.Urgent || urgent(o), needed || !o.scheduled.Idle
					of, and := s.index(o)
					slope, offset = slope+of, offset+and
				}
			}
			r.Bid, r.Ready, r.Urgent = slope*s.moment(now)-offset, r.Ready && needed, r.Urgent && needed
			if !r.Urgent && s.room(b, running) < 1 {
				continue
			}
			late, times := s.lateOf(*offered, asking, now)
			r.Late = late && r.Ready && !r.Urgent
			before := r.Compare(rank)
			switch {
			case needed != bestNeeded:
				before = map[bool]int{true: -1, false: 1}[needed]
			case r.Urgent == rank.Urgent && r.Ready == rank.Ready && r.Late != rank.Late:
				before = map[bool]int{true: -1, false: 1}[r.Late]
			case r.Late && rank.Late:
				before = cmp.Compare(bestTimes, times)
			}
			if best == nil || before < 0 {
				best, version, rank, bestNeeded, bestTimes = b, *offered, r, needed, times
			}
		}
		if best == nil {
			return list
		}
		listed[version] = true
		if s.room(best, running) < 100 {
			s.bound++
		}
		s.pay(best, running)
		for _, name := range exclusiveOf(version.Target) {
			held[name] = true
		}
		if rank.Late {
			s.late++
		}
		list = append(list, describe(version, s.ledger.NextAttempt(version), best.parts[version], best.scheduled.Build))
	}
}

// asked reports whether a live build asks for a version.
func (s *twinState) asked(v Version) bool {
	return slices.ContainsFunc(s.live(), func(b *twinBuild) bool { return slices.Contains(b.asks, v) })
}

func describe(v evidence.Version, attempt, part uint32, build string) string {
	return fmt.Sprintf("%s@%s attempt %d part %d of %s", v.Target, v.Hash, attempt, part, build)
}

// place describes where the first step stands of those that a change waits for.
func (s *twinState) place(c *eventsv1.ChangeRef, now int64) string {
	waiting := map[evidence.Version]bool{}
	for _, b := range s.live() {
		of := b.scheduled.Change.Change
		if b.successor != "" || of.Change != c.Change || of.Revision != c.Revision {
			continue
		}
		for _, v := range b.asks {
			if l := s.leases[v]; s.state(b, v) == evidence.Unknown && (l == nil || l.UntilUs < now) {
				waiting[v] = true
			}
		}
	}
	all := s.next(now, nil)
	for before, step := range all {
		for v := range waiting {
			if strings.HasPrefix(step, v.Target+"@"+v.Hash+" ") {
				return fmt.Sprintf("%d open, %d before %s, first %s", len(waiting), before, v.Target, all[0])
			}
		}
	}
	if len(waiting) == 0 {
		return "0 open"
	}
	return fmt.Sprintf("%d open, behind %d", len(waiting), len(all))
}

func describePlace(p Place) string {
	switch {
	case p.Open == 0:
		return "0 open"
	case p.Target == "":
		return fmt.Sprintf("%d open, behind %d", p.Open, p.Before)
	}
	first := &p.Step
	if p.First != nil {
		first = p.First
	}
	return fmt.Sprintf("%d open, %d before %s, first %s", p.Open, p.Before, p.Target, describe(first.Version, first.Attempt, first.Part, first.Build.Build))
}

func TestTheFoldEqualsItsNaiveTwinOnRandomHistories(t *testing.T) {
	seed := seedtest.Of(t)
	var behind, lingered, shared, leased, withdrawn, revived, forgotten, quarantined, grouped, late, bound int
	for run := range uint64(800) {
		h := &history{r: rand.New(rand.NewPCG(seed, run)), clock: 1000}
		q, naive := New(), &twin{}
		if run%2 == 0 {
			naive.quotas = h.setQuotas()
			q.SetQuotas(naive.quotas)
		}
		for step := range 60 {
			m := h.next()
			if m == nil {
				q.ForgetEarly()
			} else {
				q.Apply(m, Origin{})
			}
			naive.history = append(naive.history, m)
			want := naive.now()
			now := h.clock
			if h.r.IntN(3) == 0 { // a clock that is behind
				now -= int64(h.r.IntN(100))
			}
			fail := func(what string, got, want any) {
				t.Fatalf("run %d, step %d (%v): %s\n got %v\nwant %v", run, step, m, what, got, want)
			}

			var preparations []string
			for _, p := range q.Preparations(now) {
				preparations = append(preparations, p.Build.Build)
			}
			if w := want.preparations(now); !slices.Equal(preparations, w) {
				fail("preparations", preparations, w)
			}
			var next []string
			var taken []Version
			for range h.r.IntN(3) {
				v := h.version()
				taken = append(taken, Version{Target: v.Target, Hash: v.Hash})
			}
			limit := 1 + h.r.IntN(20)
			for _, s := range q.Next(now, limit, taken, nil) {
				next = append(next, describe(s.Version, s.Attempt, s.Part, s.Build.Build))
				if got, w := fmt.Sprint(s.Quotas), want.claims(s); got != w {
					fail("for whom "+next[len(next)-1]+" counts", got, w)
				}
				var with []string
				for _, c := range q.Companions(s, now, taken) {
					with = append(with, describe(c.Version, c.Attempt, c.Part, c.Build.Build))
				}
				if w := want.companions(s, now, q.Workers, taken); !slices.Equal(with, w) {
					fail("companions of "+next[len(next)-1], with, w)
				}
				grouped += len(with)
			}
			if w := want.next(now, taken); !slices.Equal(next, w[:min(limit, len(w))]) {
				fail("next", next, w)
			}
			late += want.late
			bound += want.bound
			c := h.change()
			place := q.PlaceOf(c, now, 1000)
			if got, w := describePlace(place), want.place(c, now); got != w {
				fail("place of "+c.Change, got, w)
			}
			if place.Open > 0 && place.Before > 0 {
				behind++
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
					if l != nil && l.UntilUs >= now && (len(l.Exclusive)+len(l.Quotas) > 0 || want.wants(v)) && (!found || l.UntilUs < lapse) {
						lapse, found = l.UntilUs, true
					}
				}
			}
			if got, ok := q.NextLapse(now); ok != found || got != lapse {
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
				asking += len(b.asks)
			}
			if len(q.wanted) < asking {
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
			leased += len(want.leases)
			if q.Idle() != (len(want.live()) == 0) || len(q.order) != len(q.live) || q.Early() != len(want.early) {
				fail("size", len(q.live), len(want.live()))
			}
			if q.Idle() && len(q.wanted) > 0 {
				fail("versions that nobody asks for", len(q.wanted), 0)
			}
		}
	}
	t.Logf("builds that linger %d, are revived %d, shared versions %d, leases %d, withdrawals %d, forgotten %d, quarantined %d, companions %d, late %d, counted %d", lingered, revived, shared, leased, withdrawn, forgotten, quarantined, grouped, late, bound)
	if behind == 0 || lingered == 0 || forgotten == 0 || quarantined == 0 || grouped == 0 || late == 0 || bound == 0 || revived == 0 || shared == 0 || leased == 0 || withdrawn == 0 {
		t.Error("the histories reach too little")
	}
}
