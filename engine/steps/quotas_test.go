package steps

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/quota"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// admit admits a change of an author, and schedules a build of it that asks for versions of its own.
func admit(q *Queue, change, author string, targets ...string) {
	ref := &eventsv1.ChangeRef{Change: change, Revision: 1}
	q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: change, Revision: 1, Author: author, LandingCommits: []*eventsv1.LandingCommit{{Head: change}}}}, Origin{})
	s := scheduled("of "+change, 1)
	s.GetBuildScheduled().Change = &eventsv1.AssumedChange{Change: ref}
	decide(q, s)
	prepare(q, "of "+change, targets...)
}

// begin leases a step, as a builder that was given it does.
func begin(q *Queue, s Step, stamp, until int64) {
	q.Apply(&eventsv1.StepLeased{Target: s.Target, Hash: s.Hash, Attempt: s.Attempt, Lease: "of " + s.Target, StampUs: stamp, UntilUs: until, Quotas: s.Quotas}, Origin{})
}

func beginAll(q *Queue, now int64) {
	for _, s := range q.Next(now, 100, nil, nil) {
		begin(q, s, now, now+100)
	}
}

func running(q *Queue) string {
	var names []string
	for _, l := range q.Leases() {
		names = append(names, l.Target)
	}
	return strings.Join(names, " ")
}

func TestM33bAnAuthorHasNoMoreStepsThanMayAndAnotherPasses(t *testing.T) {
	q := New()
	q.SetQuotas(&eventsv1.Quotas{Author: 2})
	admit(q, "large", "Ada <ada@example.com>", "a1", "a2", "a3", "a4")
	admit(q, "more", "ada <ADA@example.com>", "a5")
	admit(q, "small", "Bob <bob@example.com>", "b1")
	expect(t, "two of Ada's and Bob's", next(q, 0), "a5#1 b1#1 a1#1")
	beginAll(q, 0)
	expect(t, "while they run", next(q, 0), "")
	finish(q, "a1", 1, passed, 1)
	expect(t, "once one has ended", next(q, 0), "a2#1")
	expect(t, "once the others have lapsed", next(q, 101), "a5#1 b1#1 a2#1")
	expect(t, "by a clock that is behind", next(q, 0), "a2#1")
}

func TestM33bTeamsAndTheQueueHaveLimitsToo(t *testing.T) {
	q := New()
	q.SetQuotas(&eventsv1.Quotas{Queue: 4, Author: 2, Authors: []*eventsv1.AuthorQuota{{Who: []string{"*bot*"}, Steps: 1}, {Who: []string{"robot"}, Steps: 9}},
		Teams: []*eventsv1.TeamQuota{{Name: "web", Who: []string{"*@web.example.com"}, Steps: 3}, {Name: "all", Who: []string{"*"}, Steps: 9}}})
	admit(q, "r", "robot", "r1", "r2")
	expect(t, "the first entry that names an author counts", next(q, 0), "r1#1")
	admit(q, "a", "Ada <ada@web.example.com>", "a1", "a2", "a3")
	admit(q, "b", "Bob <bob@web.example.com>", "b1", "b2", "b3")
	admit(q, "c", "Cyd <cyd@web.example.com>", "c1")
	list := q.Next(0, 100, nil, nil)
	count := map[string]int{}
	for _, s := range list {
		count[s.Target[:1]]++
		for _, of := range s.Quotas {
			count[of.Name]++
		}
	}
	if len(list) != 4 || count["r"] != 1 || count["web"] != 3 || count["all"] != 1 || count["a"] > 2 || count["b"] > 2 {
		t.Errorf("listed: %v of %v", count, list)
	}
	q.SetQuotas(nil)
	expect(t, "without quotas", fmt.Sprint(len(q.Next(0, 100, nil, nil))), "9")
}

func TestM33bAStepThatSeveralWantIsForWhoeverHasRoom(t *testing.T) {
	q := New()
	q.SetQuotas(&eventsv1.Quotas{Author: 1})
	admit(q, "a", "Ada", "a1", "shared")
	admit(q, "b", "Bob", "shared")
	list := q.Next(0, 100, nil, nil)
	if len(list) != 2 || list[0].Target != "shared" || list[0].Build.Build != "of b" && list[1].Target != "a1" {
		t.Fatalf("listed: %v", list)
	}
	for _, s := range list {
		begin(q, s, 0, 100)
	}
	finish(q, "a1", 1, passed, 1)
	expect(t, "what runs", running(q), "shared")
}

func TestM33bStepsOfTheMainlineAreForNobody(t *testing.T) {
	q := New()
	q.SetQuotas(&eventsv1.Quotas{Queue: 1, Author: 1})
	s := scheduled("mainline", 1)
	s.GetBuildScheduled().Change = &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{}}
	decide(q, s)
	prepare(q, "mainline", "m1", "m2", "m3")
	admit(q, "a", "Ada", "a1", "a2")
	beginAll(q, 0)
	expect(t, "what runs", running(q), "a1 m1 m2 m3")
}

func TestM33bAnUrgentChangeIsCountedAndNotBound(t *testing.T) {
	q := New()
	q.SetQuotas(&eventsv1.Quotas{Author: 1})
	admit(q, "a", "Ada", "a1", "a2")
	admit(q, "hot", "Ada", "h1", "h2")
	begin(q, q.Next(0, 1, nil, nil)[0], 0, 100)
	q.Apply(&eventsv1.ChangeMoved{Change: "hot"}, Origin{})
	beginAll(q, 0)
	expect(t, "what runs", running(q), "a1 h1 h2")
	finish(q, "a1", 1, passed, 1)
	finish(q, "h1", 1, passed, 1)
	expect(t, "while one of the urgent runs", next(q, 0), "")
	finish(q, "h2", 1, passed, 1)
	expect(t, "once all have ended", next(q, 0), "a2#1")
}

func TestM33bALeaseBeyondAQuotaDoesNotHold(t *testing.T) {
	q := New()
	q.SetQuotas(&eventsv1.Quotas{Author: 1})
	admit(q, "a", "Ada", "a1", "a2", "a3")
	list := q.Next(0, 1, nil, nil)
	other := list[0]
	other.Target = "a2"
	begin(q, list[0], 0, 100)
	begin(q, other, 0, 100) // a builder that had not read the first
	expect(t, "what runs", running(q), "a1")
	begin(q, other, 101, 200)
	expect(t, "once the first has lapsed", running(q), "a2")
	begin(q, list[0], 102, 300)
	expect(t, "though the first wants to go on", running(q), "a2")
	unbound := other
	unbound.Target, unbound.Quotas = "a3", nil
	begin(q, unbound, 103, 300)
	expect(t, "a builder of an earlier release", running(q), "a2 a3")
}

func TestM33bCompanionsCountToo(t *testing.T) {
	q := New()
	q.SetQuotas(&eventsv1.Quotas{Author: 3})
	q.Apply(&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: "a", Revision: 1, Author: "Ada", LandingCommits: []*eventsv1.LandingCommit{{Head: "a"}}}}, Origin{})
	s := scheduled("b", 1)
	s.GetBuildScheduled().Change = &eventsv1.AssumedChange{Change: &eventsv1.ChangeRef{Change: "a", Revision: 1}}
	decide(q, s)
	p := &eventsv1.BuildPrepared{Build: "b", Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED, Groups: []*eventsv1.StepGroup{{}}}
	for i := range 6 {
		p.Versions = append(p.Versions, &eventsv1.TargetVersion{Target: fmt.Sprint("t", i), Hash: "h"})
		p.Groups[0].Versions = append(p.Groups[0].Versions, uint32(i))
	}
	learn(q, 1000, "t0", "t1", "t2", "t3", "t4", "t5")
	q.Apply(p, Origin{})
	expect(t, "a group", group(q, 0), "t0 t1#1 t2#1")
	expect(t, "a group beside a step that is begun", group(q, 0, "t5"), "t0 t1#1")
	first := q.Next(0, 1, nil, nil)[0]
	lease := &eventsv1.StepLeased{Target: first.Target, Hash: "h", Attempt: 1, Lease: "l", UntilUs: 100, Quotas: first.Quotas}
	for i := 1; i < 6; i++ {
		lease.Group = append(lease.Group, &eventsv1.LeasedVersion{Target: fmt.Sprint("t", i), Hash: "h", Attempt: 1})
	}
	q.Apply(lease, Origin{})
	expect(t, "what holds of a larger group", running(q), "t0 t1 t2")
}

// TestM33bNoScheduleExceedsALimitAndNoWorkerIsIdleForNothing plays builders that read the log late, and so claim more than may run,
// on random builds. What runs is counted, and what may run is found, without the queue.
func TestM33bNoScheduleExceedsALimitAndNoWorkerIsIdleForNothing(t *testing.T) {
	seed := seedtest.Of(t)
	refused, waited, most := 0, 0, 0
	for run := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, run))
		settings := &eventsv1.Quotas{Queue: uint32(r.IntN(7)), Author: uint32(r.IntN(4)), Teams: []*eventsv1.TeamQuota{{Name: "team", Who: []string{"a*", "b*"}, Steps: uint32(1 + r.IntN(4))}}}
		limits := quota.New(settings)
		p := &play{r: r, t: t, of: map[string]string{}, done: map[Version]bool{}}
		workers := 1 + r.IntN(8)
		for range 1 + r.IntN(3) {
			b := &playBuilder{queue: New(), workers: map[int]*Step{}}
			b.queue.SetQuotas(settings)
			b.queue.Workers = workers
			p.builders = append(p.builders, b)
		}
		for i := range 4 + r.IntN(12) {
			author := []string{"ada", "bob", "cyd"}[r.IntN(3)]
			p.change(i, author)
		}
		for !p.over() {
			p.clock++
			b := p.builders[r.IntN(len(p.builders))]
			if r.IntN(3) > 0 {
				p.read(b)
			}
			p.act(b, r.IntN(workers), r.IntN(3) == 0)
			if r.IntN(4) == 0 { // everybody reads everything, and every worker claims what it can
				for range 2 {
					for _, b := range p.builders {
						for n := range workers {
							p.read(b)
							p.act(b, n, false)
						}
						p.read(b)
					}
				}
				count := p.running(limits, p.builders[0].queue)
				for _, b := range p.builders {
					if step := p.admissible(limits, count, b.queue); len(b.workers) < workers && step != "" {
						t.Fatalf("run %d: %d of %d workers run something, %v are counted, and %s waits", run, len(b.workers), workers, count, step)
					}
				}
			}
			count := p.running(limits, p.builders[0].queue)
			for of, n := range count {
				most = max(most, n)
				for _, limit := range limits.Of(of.Name) {
					if limit.Account == of && n > limit.Limit {
						t.Fatalf("run %d: %d steps run for %v, and %d may", run, n, of, limit.Limit)
					}
				}
			}
			if p.clock > 20_000 {
				t.Fatalf("run %d: nothing goes on; %v are counted", run, count)
			}
			waited += boolean(p.admissible(nil, nil, b.queue) != "" && len(b.workers) < workers)
		}
		refused += p.refused
	}
	t.Logf("claims that did not hold %d, choices with an idle worker and steps that wait %d, most steps of somebody %d", refused, waited, most)
	if refused == 0 || waited == 0 || most < 3 {
		t.Error("the schedules reach too little")
	}
}

// play is a log that several builders read and write.
type play struct {
	t        *testing.T
	r        *rand.Rand
	log      []proto.Message
	builders []*playBuilder
	// of has the author of each build.
	of      map[string]string
	done    map[Version]bool
	asked   []Version
	clock   int64
	leases  int
	refused int
}

type playBuilder struct {
	queue *Queue
	read  int
	// workers have what they run.
	workers map[int]*Step
}

func (p *play) over() bool {
	return !slices.ContainsFunc(p.asked, func(v Version) bool { return !p.done[v] })
}

func (p *play) change(i int, author string) {
	id := fmt.Sprint("c", i)
	ref := &eventsv1.ChangeRef{Change: id, Revision: 1}
	s := scheduled("of "+id, float64(1+p.r.IntN(3)))
	s.GetBuildScheduled().Change = &eventsv1.AssumedChange{Change: ref}
	prepared := &eventsv1.BuildPrepared{Build: "of " + id, Change: ref, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	for range 1 + p.r.IntN(8) {
		v := Version{Target: fmt.Sprint("t", p.r.IntN(12)), Hash: fmt.Sprint("h", p.r.IntN(3))}
		prepared.Versions = append(prepared.Versions, &eventsv1.TargetVersion{Target: v.Target, Hash: v.Hash})
		p.asked = append(p.asked, v)
	}
	p.of["of "+id] = author
	p.log = append(p.log, &eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{Change: id, Revision: 1, Author: author, LandingCommits: []*eventsv1.LandingCommit{{Head: id}}}},
		&eventsv1.Decision{Items: []*eventsv1.DecisionItem{s}}, prepared)
}

func (p *play) read(b *playBuilder) {
	for ; b.read < len(p.log); b.read++ {
		b.queue.Apply(p.log[b.read], Origin{})
	}
}

// act has a worker of a builder claim a step, or find that its claim does not hold, or end its step if that is asked for.
func (p *play) act(b *playBuilder, n int, ends bool) {
	if s := b.workers[n]; s != nil {
		switch {
		case b.read < len(p.log):
			return // it has not read its claim back
		case b.queue.Holder(s.Version, s.Attempt) != fmt.Sprint("l", s.Part):
			p.refused++
			delete(b.workers, n)
		case ends:
			p.log = append(p.log, &eventsv1.StepFinished{Target: s.Target, Hash: s.Hash, Attempt: s.Attempt, Outcome: passed, StartedUs: p.clock - 5, FinishedUs: p.clock})
			p.done[s.Version] = true
			delete(b.workers, n)
		}
		return
	}
	var taken []Version
	for _, s := range b.workers {
		taken = append(taken, s.Version)
	}
	for _, s := range b.queue.Next(p.clock, 1, taken, nil) {
		p.leases++
		s.Part = uint32(p.leases)
		b.workers[n] = &s
		p.log = append(p.log, &eventsv1.StepLeased{Target: s.Target, Hash: s.Hash, Attempt: s.Attempt, Lease: fmt.Sprint("l", s.Part), Build: s.Build.Build,
			StampUs: p.clock, UntilUs: 1 << 40, Quotas: s.Quotas})
	}
}

// running counts by whom each lease says that it is for, as far as it holds.
func (p *play) running(limits *quota.Quotas, q *Queue) map[quota.Account]int {
	count := map[quota.Account]int{}
	for _, l := range q.Leases() {
		for _, of := range limits.Of(p.of[l.Build]) {
			count[of.Account]++
		}
	}
	return count
}

// admissible returns a step that nobody runs, and that may run for somebody who wants it; "" if there is none.
func (p *play) admissible(limits *quota.Quotas, count map[quota.Account]int, q *Queue) string {
	for id, b := range q.live {
		if slices.ContainsFunc(limits.Of(p.of[id]), func(of quota.Quota) bool { return count[of.Account] >= of.Limit }) {
			continue
		}
		for i, open := range b.open {
			if open && q.leases[b.asked[i].Version] == nil {
				return b.asked[i].Target + " of " + p.of[id]
			}
		}
	}
	return ""
}
