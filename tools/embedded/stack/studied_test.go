package stack_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/ownership"
	"landfall.build/tools/embedded/broker"
	"landfall.build/tools/embedded/clickhouse"
	"landfall.build/tools/pipeline"
)

// studied is a log with a queue of which the enumerator, the profiler and the historian are the production ones, and the rest
// is made up.
type studied struct {
	t        *testing.T
	log      *kafka.Log
	brokers  []string
	data     string
	terms    map[string]int64 // of the services that claim
	head     int
	made     int
	random   *rand.Rand
	profiles journal.Cursor
	// rows are how many there are to learn from, by kind.
	rows map[eventsv1.ModelKind]int
}

// studiedVersion is what the services that run call themselves; what is made up has no version.
const (
	studiedQueue   = "shop"
	studiedVersion = "test"
)

func newStudied(t *testing.T) (s *studied, dsn string) {
	quiet := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	dir := t.TempDir()
	b, err := broker.Start(t.Context(), broker.Options{Dir: filepath.Join(dir, "broker"), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	server, err := clickhouse.Start(t.Context(), clickhouse.Options{Dir: filepath.Join(dir, "clickhouse"), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: []string{b.Addr()}, Client: b.Client, ClientID: "test", Log: quiet, Partitions: 1, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	config, err := configuration.Parse([]byte("version: 1\ndata: "+t.TempDir()+"\nbroker: {partitions: 1}\nrepositories: {shop: {url: ../shop.git}}\nqueues: {shop: {repository: shop, branch: main}}\n"), "test.yaml", configuration.Defaults{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := &pipeline.Process{Configuration: config, Log: log, Instance: "test", Version: studiedVersion, Logger: quiet, Owner: ownership.Static{Log: quiet, Partitions: 1}, History: server.DSN()}
	ended := make(chan struct{}, 3)
	for _, name := range []string{events.ServiceEnumerator, events.ServiceProfiler, events.ServiceHistorian} {
		go func() {
			p.Run(ctx, name)
			ended <- struct{}{}
		}()
	}
	t.Cleanup(func() {
		cancel()
		for range cap(ended) {
			<-ended
		}
	})
	seed := seedtest.Of(t)
	s = &studied{t: t, log: log, brokers: []string{b.Addr()}, data: dir, random: rand.New(rand.NewPCG(seed, 0)), terms: map[string]int64{}, rows: map[eventsv1.ModelKind]int{}}
	if s.profiles, err = log.Follow(ctx, events.TopicProfiles, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.profiles.Close)
	s.say(events.TopicChanges, events.ServiceLander, &eventsv1.Claim{Service: events.ServiceLander})
	s.say(events.TopicDecisions, events.ServiceSelector, &eventsv1.Claim{Service: events.ServiceSelector})
	s.say(events.TopicChanges, events.ServiceLander, &eventsv1.MainlineMoved{To: "m0", Initial: true})
	return s, server.DSN()
}

// say appends records of one service to a topic.
func (s *studied) say(topic, source string, messages ...proto.Message) {
	s.t.Helper()
	var all []events.Envelope
	for _, m := range messages {
		e := events.Envelope{ID: fmt.Sprint(source, s.random.Uint64()), Source: source, Instance: "test", Queue: studiedQueue, Time: time.Now(), Term: -1, Message: m}
		if term, claimed := s.terms[source]; claimed {
			e.Term = term
		}
		all = append(all, e)
	}
	at, err := s.log.Append(s.t.Context(), topic, 0, all...)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, claims := messages[0].(*eventsv1.Claim); claims {
		s.terms[source] = at[0]
	}
}

// await reads profiles until one satisfies.
func (s *studied) await(what string, satisfies func(*eventsv1.Profile) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	for {
		e, err := s.profiles.Next(ctx)
		if err != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
		if p, is := e.Message.(*eventsv1.Profile); is && satisfies(p) {
			return
		}
	}
}

// invented is a change that comes with a wave, and what there is to learn of it.
type invented struct {
	ref     *eventsv1.ChangeRef
	targets []string
	// good: it passes by itself. seconds is what a build of it takes.
	good    bool
	seconds float64
	// ahead is whom it meets, if anybody, in shared targets; breaks: not with that one.
	ahead  *invented
	shared int
	breaks bool
}

// invent makes a change. Whether it passes hangs on how many targets it has, how long it takes too, and whether it breaks with
// the one ahead on how many it shares with that one; all three with some noise. That is plain, so that a model of few rows is
// better by more than chance.
func (s *studied) invent(ahead *invented) *invented {
	s.made++
	id := fmt.Sprint("c", s.made)
	n := 1 + s.random.IntN(12)
	c := &invented{ref: &eventsv1.ChangeRef{Change: id, Revision: 1}, ahead: ahead, good: n <= 9 && s.random.IntN(20) > 0}
	c.seconds = 20 * math.Pow(float64(n), 0.8) * math.Exp(0.15*s.random.NormFloat64())
	for k := range n {
		c.targets = append(c.targets, fmt.Sprintf("//%s:t%d", id, k))
	}
	if ahead != nil {
		c.shared = min(1+s.random.IntN(4), n, len(ahead.targets))
		copy(c.targets, ahead.targets[:c.shared])
		c.breaks = c.shared > 2 != (s.random.IntN(25) == 0)
	}
	return c
}

func (c *invented) come(base string) []proto.Message {
	a := &eventsv1.ChangeAnalyzed{Change: c.ref, Base: base, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED, Affected: &eventsv1.Affected{}}
	for _, t := range c.targets {
		a.Affected.Targets = append(a.Affected.Targets, &eventsv1.TargetVersion{Target: t, Hash: c.ref.Change, Part: 1})
	}
	return []proto.Message{
		&eventsv1.ChangeAdmitted{Admission: &eventsv1.Admission{
			Queue: studiedQueue, Change: c.ref.Change, Revision: 1, Author: "a" + c.ref.Change[len(c.ref.Change)-1:], LandingCommits: []*eventsv1.LandingCommit{{Head: c.ref.Change}}, ReceivedUs: time.Now().UnixMicro(),
		}}, a,
	}
}

// build returns one of a change on a base, on top of others, of some of its targets: what the selector and the builder write of it. It
// has just ended, and began before it was asked for: nobody waits for it.
func (s *studied) build(c *invented, base string, assumed []*eventsv1.ChangeRef, targets []string, outcome eventsv1.StepOutcome) (scheduled *eventsv1.DecisionItem, ran []proto.Message) {
	name, hash := "b-"+c.ref.Change, c.ref.Change
	var on []*eventsv1.AssumedChange
	for _, a := range assumed {
		name, hash = name+"-"+a.Change, hash+"+"+a.Change
		on = append(on, &eventsv1.AssumedChange{Change: a})
	}
	prepared := &eventsv1.BuildPrepared{Build: name, Change: c.ref, Base: base, Assumed: assumed, Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED}
	finished := time.Now().UnixMicro()
	ran = append(ran, prepared)
	for _, t := range targets {
		v := &eventsv1.TargetVersion{Target: t, Hash: hash, Part: 1}
		prepared.Versions = append(prepared.Versions, v)
		attempts := uint32(1)
		if outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
			attempts = 2 // it is red once it has failed again
		}
		for attempt := range attempts {
			ran = append(ran, &eventsv1.StepFinished{Target: t, Hash: hash, Attempt: 1 + attempt, Outcome: outcome, Build: name, Worker: "w", StartedUs: finished - int64(c.seconds*1e6), FinishedUs: finished})
		}
	}
	b := &eventsv1.BuildScheduled{Build: name, Change: &eventsv1.AssumedChange{Change: c.ref}, Base: base, Assumed: on, Targets: prepared.Versions, Repository: "shop", Branch: "main"}
	if outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		s.rows[eventsv1.ModelKind_MODEL_KIND_DURATION]++
	}
	return &eventsv1.DecisionItem{Item: &eventsv1.DecisionItem_BuildScheduled{BuildScheduled: b}}, ran
}

func outcomeOf(passed bool) eventsv1.StepOutcome {
	if passed {
		return eventsv1.StepOutcome_STEP_OUTCOME_PASSED
	}
	return eventsv1.StepOutcome_STEP_OUTCOME_FAILED
}

// wave lets pairs of changes come, waits until they are predicted, builds each alone, and the one behind on top of the one ahead
// where both are good; then they end as their builds did. Who breaks with the one ahead is taken back.
func (s *studied) wave(pairs int) {
	s.t.Helper()
	base := fmt.Sprint("m", s.head)
	var all []*invented
	var came []proto.Message
	waiting := map[string]bool{}
	for range pairs {
		first := s.invent(nil)
		all = append(all, first, s.invent(first))
	}
	for _, c := range all {
		came = append(came, c.come(base)...)
		waiting[c.ref.Change] = true
	}
	s.say(events.TopicChanges, events.ServiceGateway, came...)
	s.await("predictions", func(p *eventsv1.Profile) bool {
		for _, q := range p.Predictions {
			if len(q.Features) > 0 {
				delete(waiting, q.Change.Change)
			}
		}
		return len(waiting) == 0
	})

	decision := &eventsv1.Decision{StampUs: time.Now().UnixMicro()}
	var ran []proto.Message
	var passed, met int
	begin := func(c *invented, assumed []*eventsv1.ChangeRef, targets []string, good bool) {
		item, of := s.build(c, base, assumed, targets, outcomeOf(good))
		decision.Items, ran = append(decision.Items, item), append(ran, of...)
		if good {
			passed++
		}
	}
	for _, c := range all {
		begin(c, nil, c.targets, c.good)
		if c.ahead != nil && c.good && c.ahead.good {
			begin(c, []*eventsv1.ChangeRef{c.ahead.ref}, c.targets[:c.shared], !c.breaks)
			met++
		}
	}
	s.rows[eventsv1.ModelKind_MODEL_KIND_CONFLICT] += met
	s.say(events.TopicDecisions, events.ServiceSelector, decision)
	s.say(events.TopicBuilds, events.ServiceBuilder, ran...)
	s.await("what was built", func(p *eventsv1.Profile) bool {
		for _, b := range p.GetDelta().GetBuilds() {
			if b.State == eventsv1.BuildState_BUILD_STATE_FINISHED && s.built(all, b.Build) {
				passed--
			}
		}
		met -= len(p.Observed)
		return passed == 0 && met == 0
	})

	now := time.Now().UnixMicro() // after the predictions
	var ended, back []proto.Message
	for _, c := range all {
		switch {
		case c.good && c.ahead != nil && c.ahead.good && c.breaks:
			back = append(back, &eventsv1.ChangeCancelled{Change: c.ref.Change, Revision: 1, Who: "its author", StampUs: now})
			continue
		case c.good:
			on := fmt.Sprint("m", s.head)
			s.head++
			commits := []string{fmt.Sprint("m", s.head)}
			ended = append(ended, &eventsv1.LandIntended{Change: c.ref, Decision: c.ref.Change, Base: on, Commits: commits}, &eventsv1.ChangeLanded{Change: c.ref, Decision: c.ref.Change, Base: on, Commits: commits, StampUs: now})
		default:
			ended = append(ended, &eventsv1.ChangeRejected{Change: c.ref, Decision: c.ref.Change, Reason: &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED}, StampUs: now})
		}
		s.rows[eventsv1.ModelKind_MODEL_KIND_SUCCESS]++
	}
	s.say(events.TopicChanges, events.ServiceLander, ended...)
	if len(back) > 0 {
		s.say(events.TopicChanges, events.ServiceGateway, back...)
	}
	gone := 0
	s.await("ends", func(p *eventsv1.Profile) bool {
		gone += len(p.GetDelta().GetGone())
		return gone == len(all)
	})
}

// built reports whether a build is one that passed.
func (s *studied) built(all []*invented, build string) bool {
	for _, c := range all {
		alone := "b-" + c.ref.Change
		if build == alone && c.good || c.ahead != nil && build == alone+"-"+c.ahead.ref.Change && !c.breaks {
			return true
		}
	}
	return false
}

// predicted returns the next prediction of a new change of some targets, of which it shares some with another new one, and that of the pair;
// nil if it shares none.
func (s *studied) predicted(targets, shared int) (q *eventsv1.Prediction, pair *eventsv1.PairPrediction) {
	s.t.Helper()
	base := fmt.Sprint("m", s.head)
	fresh := func(n int) *invented {
		s.made++
		c := &invented{ref: &eventsv1.ChangeRef{Change: fmt.Sprint("c", s.made), Revision: 1}}
		for k := range n {
			c.targets = append(c.targets, fmt.Sprintf("//%s:t%d", c.ref.Change, k))
		}
		return c
	}
	var ahead *invented
	if shared > 0 {
		ahead = fresh(4)
		s.say(events.TopicChanges, events.ServiceGateway, ahead.come(base)...)
	}
	c := fresh(targets)
	if ahead != nil {
		copy(c.targets, ahead.targets[:shared])
	}
	s.say(events.TopicChanges, events.ServiceGateway, c.come(base)...)
	s.await("a prediction", func(p *eventsv1.Profile) bool {
		for _, x := range p.Predictions {
			if x.Change.Change == c.ref.Change && len(x.Features) > 0 {
				q = x
			}
		}
		for _, x := range p.Pairs {
			if ahead != nil && x.Behind.Change == c.ref.Change && x.Ahead.Change == ahead.ref.Change && len(x.Features) > 0 {
				pair = x
			}
		}
		return q != nil && (pair != nil || ahead == nil)
	})
	return q, pair
}
