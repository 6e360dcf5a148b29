package proof

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/steps"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/lander"
)

// hubTargets is the trouble of hubs, refusedPushes that of a remote that will not have some changes, forgotten that of
// evidence that is forgotten, outages that of a mainline that is not there for a while, oldFailures that of a mainline that was
// red before the queue, lostCommits that of a remote that does not give out the commits of some changes, quarantines that of
// targets whose results block nobody, blockedRetries that of people who retry what is blocked, freezes that
// of a remote that takes nothing for a while, readings that of a configuration or a tool that changes,
// reviewed that of branches under review, worlds that of something outside of the trees that steps need. Each is drawn apart, so that a seed is the same history with and without.
const (
	hubTargets    = "hub targets"
	refusedPushes = "refused pushes"
	forgotten     = "forgotten evidence"
	outages       = "outages"
	oldFailures   = "old failures"
	lostCommits   = "lost commits"
	quarantines   = "quarantines"

	blockedRetries = "retries of blocked changes"
	freezes        = "freezes"
	readings       = "readings"
	worlds         = "worlds"
	reviewed       = "reviews"
)

// analysts sets how analyses end.
func (s *schedule) analysts(x *site, fails bool) {
	for _, a := range x.analyzers {
		if fails {
			a.fails = func() bool { return !s.healthy && s.m.r.IntN(12) == 0 }
		}
		if s.sabotaged {
			a.sabotaged = func() bool { return s.m.r.IntN(3) == 0 }
		}
	}
}

// interrupts lets an author take back, just before that is in the log, what is about to land: the lander has
// not read it.
func (s *schedule) interrupts(queue string, i *eventsv1.LandIntended) {
	often := 12
	if s.m.leaves == CancelWins || s.m.leaves == ReadBack {
		often = 2
	}
	if s.healthy || s.m.r.IntN(often) != 0 {
		return
	}
	for _, x := range s.m.sites {
		if x.queue == queue {
			s.m.tally[Interruptions]++
			x.steer("cancel before the intention", &eventsv1.ChangeCancelled{Change: i.Change.Change})
		}
	}
}

// setHubs draws hubs for settings of a queue, nil for those that it has.
func (s *schedule) setHubs(x *site, settings *eventsv1.QueueSettings) {
	if settings == nil {
		settings = x.settings
	}
	if s.hubs == nil {
		return
	}
	for _, target := range x.editor.repo.targets {
		if s.hubs.IntN(3) == 0 {
			settings.Hubs = append(settings.Hubs, target)
		}
	}
	if s.hubs.IntN(4) == 0 {
		settings.Hubs = append(settings.Hubs, "//n*")
	}
	x.hubs = append(x.hubs, targets.NewHubs(settings.Hubs))
}

func drawSettings(r *rand.Rand, hash string) *eventsv1.QueueSettings {
	s := &eventsv1.QueueSettings{
		Hash: hash, Repository: "r", Branch: "main", Strategy: "squash", Workers: uint32(1 + r.IntN(6)),
		Threshold: []float64{0, 0.05, 0.3}[r.IntN(3)], Best: uint32(1 + r.IntN(64)),
		Steps:        &eventsv1.StepPolicy{FailedRetries: uint32(r.IntN(2)), TimedOutRetries: uint32(r.IntN(3)), InfrastructureRetries: uint32(r.IntN(3))},
		PriorSuccess: 0.9, PriorConflict: 0.05, PriorDurationMeanUs: 60_000_000, PriorDurationStdUs: 10_000_000,
	}
	s.AbortThreshold, s.ProveWhenNeeded = s.Threshold/2, r.IntN(3) == 0
	if r.IntN(2) == 0 {
		s.Pool, s.PoolWorkers = "default", uint32(1+r.IntN(4))
		if s.PoolWorkers < 3 {
			s.Quotas = &eventsv1.Quotas{Queue: s.PoolWorkers, Author: 1}
		}
	}
	if r.IntN(4) != 0 {
		s.BypassThreshold = proto.Float64([]float64{0.1, 0.5, 0.9}[r.IntN(3)])
	}
	return s
}

// workers sets how attempts end. A target that is red never passes.
func (s *schedule) workers(x *site) {
	outcome := func(v steps.Version, attempt uint32, red bool) eventsv1.StepOutcome {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s %s %s %d", x.queue, v.Target, v.Hash, attempt)
		r := rand.New(rand.NewPCG(s.o.Seed, h.Sum64()))
		switch {
		case s.slow && !s.healthy && r.IntN(12) == 0:
			return eventsv1.StepOutcome_STEP_OUTCOME_TIMED_OUT
		case s.slow && !s.healthy && r.IntN(12) == 0:
			return eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN
		case red || x.broken[v.Target] && !s.healthy:
			return eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		case s.flaky && !s.healthy && r.IntN(16) == 0:
			s.m.tally[FalseFailures]++
			return eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		}
		return eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	}
	for _, b := range x.builders {
		b.outcome = outcome
		b.broken = func() bool { return s.slow && !s.healthy && s.m.r.IntN(10) == 0 }
	}
}

// network sets what happens around a push.
func (s *schedule) network(x *site) {
	m := s.m
	pushes := 0
	x.main.beforePush = func() {
		if m.zombies && !s.healthy && m.r.IntN(6) == 0 {
			x.main.owner.takeOver()
		}
		if s.races && !s.healthy && m.r.IntN(12) == 0 {
			// Too late: it is behind LandIntended.
			if x.lineup.read(); x.lineup.queue.Intention != nil {
				x.steer("cancel during the push", &eventsv1.ChangeCancelled{Change: x.lineup.queue.Intention.Fact.Change.Change})
			}
		}
		if s.races && !s.healthy && pushes < 3 && m.r.IntN(6) == 0 {
			pushes++
			id := fmt.Sprintf("race%d", pushes)
			if x.main.repository.byID[id] == nil {
				a := x.main.repository.newAtom(id)
				a.touch("docs/race")
				x.push([]*atom{a}, x.main.head, id)
				if i := x.intended(); i != nil {
					x.main.commits[x.main.head].trailer = refString(i.Change)
				}
			}
		}
	}
	left, away := 0, error(nil)
	x.main.away = func() error {
		switch {
		case s.away == nil || s.healthy:
			return nil
		case left > 0:
			left--
			return away
		case s.away.IntN(40) == 0:
			left, away = s.away.IntN(60), []error{errNoAnswer, lander.ErrNoBranch}[s.away.IntN(2)]
			m.tally[Outages]++
			return away
		}
		return nil
	}
	x.main.answer = func() pushAnswer {
		if !s.latePushes || s.healthy || m.r.IntN(3) != 0 {
			return pushAnswered
		}
		m.tally[LostAnswers]++
		return pushAnswer(1 + m.r.IntN(3))
	}
}

// breakFirst draws what is red on the mainline before anybody has asked for anything.
func (s *schedule) breakFirst(x *site) {
	if s.old == nil {
		return
	}
	first := x.main.repository.newAtom("first")
	for range 1 + s.old.IntN(2) {
		target := x.editor.repo.targets[s.old.IntN(len(x.editor.repo.targets))]
		first.edit(target)
		x.main.repository.newBug(target, first)
	}
	x.main.begin(first)
}

// lose draws the changes whose commits are gone for good; those of others are gone now and then.
func (s *schedule) lose(x *site) {
	if s.losses == nil {
		return
	}
	for i := range maxDrawn {
		if s.losses.IntN(5) == 0 {
			x.main.lost[fmt.Sprintf("c%d", i)] = true
		}
	}
	x.main.misses = func() bool { return !s.healthy && s.losses.IntN(12) == 0 }
}

// refuse draws the changes that a hook of the remote will not have, for good.
func (s *schedule) refuse(x *site) {
	for i := range maxDrawn {
		if s.hooks != nil && s.hooks.IntN(5) == 0 {
			x.main.unwanted[fmt.Sprintf("c%d", i)] = true
		}
	}
}

// freeze draws when the remote takes nothing: once, for a few pushes, with words that are not known; or twice, for many, because
// the right to push is lost, and the push that meets this first may have been under way, and arrive late. Words that are not known
// come once, and fewer than a lone change is ejected for: of who is refused by them in two freezes, and passed in between, nobody
// can tell. Nor can anybody of who is refused in three freezes, and passed after each. It also draws which unwanted changes are
// refused with words of everybody.
func (s *schedule) freeze(x *site) {
	if s.freezes == nil {
		return
	}
	r := s.freezes
	times, longest, why := 1, 6, lander.PushRefusal{Sentence: "come back later", Err: errHook}
	if r.IntN(2) == 0 || s.m.leaves == FreezeBlamesNobody {
		times, longest, why = 2, 40, lander.PushRefusal{Sentence: "permission denied", Everybody: true, Err: errHook}
	}
	left := 0
	x.main.frozen = func() *lander.PushRefusal {
		x.main.underWay = false
		if left == 0 && times > 0 && !s.healthy && r.IntN(4) == 0 {
			times, left = times-1, 1+r.IntN(longest)
			x.main.underWay = why.Everybody
			s.m.tally[Freezes]++
		}
		if left == 0 || s.healthy {
			return nil
		}
		left--
		x.main.again = 5
		s.m.tally[FrozenPushes]++
		said := why
		return &said
	}
	for i := range maxDrawn {
		id := fmt.Sprintf("c%d", i)
		x.main.misread[id] = x.main.unwanted[id] && r.IntN(3) == 0
	}
}
