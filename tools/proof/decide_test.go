package proof

import (
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/events"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/services/enumerator"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
)

// TestDecideChangesNothing: over the logs of random schedules, a core that is asked again and again holds what a core holds
// that is asked once, or never, and says the same. The lander's is shown by the table of its states.
func TestDecideChangesNothing(t *testing.T) {
	seed := seedtest.Or(t, 1)
	asked := 0
	for i := range uint64(10) {
		Run(Options{Seed: seed + i, Ticks: 3000, Done: func(s *schedule) {
			r := rand.New(rand.NewPCG(seed, i))
			for _, e := range s.m.enumerators {
				for _, stage := range []runner.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage(s.m.log.ID())} {
					asked += s.m.askedAgain(t, stage, e.partition, r)
				}
				asked += s.m.enumeratorAskedAgain(t, e.partition, r)
			}
		}})
	}
	if asked < 1000 {
		t.Errorf("only %d decisions were asked for again", asked)
	}
}

// askedAgain folds a stage's topics twice; one of the cores is asked where r draws it.
func (m *machine) askedAgain(t *testing.T, stage runner.Stage, partition int32, r *rand.Rand) (asked int) {
	t.Helper()
	curious := stage
	curious.Answered = func(a runner.Answer) {
		if a.Input == nil || r.IntN(3) == 0 {
			return
		}
		once := a.Decide()
		if again := a.Decide(); !proto.Equal(once, again) {
			t.Errorf("the %s decides %v, and asked again %v", stage.Name, once, again)
		}
		asked++
	}
	quiet, noisy := stage.Service().New(), curious.Service().New()
	in, own := m.follow(stage.Input, partition, 0), m.follow(stage.Output, partition, 0)
	defer in.Close()
	defer own.Close()
	for {
		for quiet.NeedsOwn() {
			e, ok := received(own)
			if !ok {
				return asked
			}
			quiet.Fold(runner.Append{Queue: e.Queue, Message: e.Message, Own: &e})
			noisy.Fold(runner.Append{Queue: e.Queue, Message: e.Message, Own: &e})
		}
		e, ok := received(in)
		if !ok {
			return asked
		}
		quiet.Apply(runner.Input{Record: &e})
		noisy.Apply(runner.Input{Record: &e})
		if difference := snapshottest.Difference(quiet, noisy); difference != "" {
			t.Errorf("the %s changes by being asked, offset %d: %s", stage.Name, e.Offset, difference)
			return asked
		}
	}
}

// enumeratorAskedAgain gives two enumerators the same sources in the same order; one of them is asked where r draws it.
func (m *machine) enumeratorAskedAgain(t *testing.T, partition int32, r *rand.Rand) (asked int) {
	t.Helper()
	clock := time.UnixMicro(1_000_000)
	quiet, noisy := enumerator.NewCore(nil, time.Second), enumerator.NewCore(nil, time.Second)
	quiet.GoLive(clock)
	noisy.GoLive(clock)
	var sources []journal.Cursor
	for _, topic := range []string{events.TopicChanges, events.TopicBuilds, events.TopicModels} {
		c := m.follow(topic, partition, 0)
		defer c.Close()
		sources = append(sources, c)
	}
	write := func() {
		for effects := quiet.Decide(); len(effects) > 0; effects = quiet.Decide() {
			for range r.IntN(3) {
				noisy.Decide()
				asked++
			}
			others := noisy.Decide()
			mine, is := effects[0].(runner.Append)
			if other, same := others[0].(runner.Append); is && (!same || !proto.Equal(mine.Message, other.Message)) {
				t.Fatalf("the enumerator decides %v, and asked again %v", mine, other)
			}
			if is { // the two share no object
				mine.Message = proto.CloneOf(mine.Message.(*eventsv1.Speculation))
			}
			quiet.Fold(effects[0])
			noisy.Fold(others[0])
		}
	}
	for more := true; more; {
		more = false
		for _, c := range sources {
			e, ok := received(c)
			if !ok {
				continue
			}
			more = true
			if !quiet.CanBatch(e) {
				write()
			}
			other := e
			other.Message = proto.Clone(e.Message)
			clock = clock.Add(time.Second)
			quiet.Apply(runner.Input{Record: &e, Now: clock})
			noisy.Apply(runner.Input{Record: &other, Now: clock})
			if r.IntN(4) == 0 {
				noisy.Decide()
				asked++
			}
		}
		if r.IntN(3) == 0 || !more {
			write()
			if difference := snapshottest.Difference(quiet, noisy); difference != "" {
				t.Fatalf("the enumerator changes by being asked: %s", difference)
			}
		}
	}
	return asked
}
