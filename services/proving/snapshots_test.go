package proving

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"landfall.build/events"
	"landfall.build/services/enumerator"
	"landfall.build/services/journal"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
	"landfall.build/services/stage"
)

// TestWhatIsThawedGoesOnAsIfItHadNeverBeenFrozen: over the logs of random schedules, each stage's state is the same to
// the last byte whether it is frozen and thawed on the way or not.
func TestWhatIsThawedGoesOnAsIfItHadNeverBeenFrozen(t *testing.T) {
	seed := rand.Uint64N(1 << 40)
	t.Logf("seed %d", seed)
	thaws := 0
	for i := range uint64(30) {
		Run(Options{Seed: seed + i, Ticks: 6000, Done: func(s *schedule) {
			for _, e := range s.m.enumerators {
				r := rand.New(rand.NewPCG(seed, i))
				for _, x := range []stage.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage(s.m.log.ID())} {
					undisturbed, _ := s.m.refold(t, x, e.partition, nil)
					disturbed, n := s.m.refold(t, x, e.partition, r)
					if !bytes.Equal(undisturbed, disturbed) {
						t.Errorf("seed %d: the %s that was frozen %d times holds something else", seed+i, x.Service, n)
					}
					thaws += n
				}
				undisturbed, _ := s.m.reread(t, e.partition, nil)
				disturbed, n := s.m.reread(t, e.partition, r)
				if !bytes.Equal(undisturbed, disturbed) {
					t.Errorf("seed %d: the enumerator that was frozen %d times holds something else", seed+i, n)
				}
				thaws += n
			}
		}})
	}
	if thaws < 1000 {
		t.Errorf("only %d times was anything frozen", thaws)
	}
}

// refold folds a stage's topics from their beginning; r draws when it is frozen and thawed, if it is given.
func (m *machine) refold(t *testing.T, x stage.Stage, partition int32, r *rand.Rand) (state []byte, thaws int) {
	p := stage.NewPartition(x)
	in, own := m.follow(x.Input, partition, 0), m.follow(x.Output, partition, 0)
	defer in.Close()
	defer own.Close()
	term, at := int64(-1), int64(0)
	for {
		for p.NeedsOwn() {
			e, ok := next(own)
			if !ok {
				p.Live()
				break
			}
			if journal.BeginsTerm(e.Envelope) && e.Source == x.Service {
				term = e.Offset
			}
			p.Own(e)
			at = e.Offset + 1
		}
		e, ok := next(in)
		if !ok {
			break
		}
		p.Input(e)
		if r == nil || p.Behind() || r.IntN(6) != 0 {
			continue
		}
		kept := stage.Kept{Term: term, Own: at, State: must(p.Freeze())}
		again, err := stage.Thaw(x, kept)
		if err != nil {
			t.Fatal(err)
		}
		p = again
		thaws++
	}
	return must(p.Freeze()), thaws
}

// reread folds the enumerator's topic.
func (m *machine) reread(t *testing.T, partition int32, r *rand.Rand) (state []byte, thaws int) {
	p := enumerator.NewPartition()
	own := m.follow(events.TopicSpeculations, partition, 0)
	defer own.Close()
	term := int64(-1)
	for e, ok := next(own); ok; e, ok = next(own) {
		if journal.BeginsTerm(e.Envelope) && e.Source == events.ServiceEnumerator {
			term = e.Offset
		}
		p.Own(e)
		if r == nil || r.IntN(6) != 0 {
			continue
		}
		again, err := enumerator.Thaw(stage.Kept{Term: term, Own: e.Offset + 1, State: must(p.Freeze())})
		if err != nil {
			t.Fatal(err)
		}
		p = again
		thaws++
	}
	return must(p.Freeze()), thaws
}
