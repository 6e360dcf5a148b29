package proving

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	"landfall.build/services/enumerator"
	"landfall.build/services/journal"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
	"landfall.build/services/stage"
)

// TestWhatIsThawedGoesOnAsIfItHadNeverBeenFrozen: over the logs of random schedules, each stage's state is the same to
// the last byte whether it is frozen and thawed on the way or not, and whoever folds it.
func TestWhatIsThawedGoesOnAsIfItHadNeverBeenFrozen(t *testing.T) {
	seed := rand.Uint64N(1 << 40)
	t.Logf("seed %d", seed)
	thaws := 0
	for i := range uint64(30) {
		Run(Options{Seed: seed + i, Ticks: 6000, Done: func(s *schedule) {
			for _, e := range s.m.enumerators {
				r := rand.New(rand.NewPCG(seed, i))
				for _, x := range []stage.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage(s.m.log.ID())} {
					n, err := s.m.refold(x, e.partition, r)
					if err != nil {
						t.Errorf("seed %d: the %s: %v", seed+i, x.Service, err)
					}
					thaws += n
				}
				n, err := s.m.reread(e.partition, r)
				if err != nil {
					t.Errorf("seed %d: the enumerator: %v", seed+i, err)
				}
				thaws += n
				for _, x := range s.m.sites {
					if x.partition != e.partition {
						continue
					}
					for _, service := range []struct {
						name string
						of   func() refolded
					}{{"builder", refoldsBuilds(x)}, {"analyzer", refoldsAnalyses(x)}, {"gateway", refoldsRequests(x)}} {
						n, err := again(service.of, r)
						if err != nil {
							t.Errorf("seed %d: the %s: %v", seed+i, service.name, err)
						}
						thaws += n
					}
				}
			}
		}})
	}
	if thaws < 1000 {
		t.Errorf("only %d times was anything frozen", thaws)
	}
}

// received reads a record as a broker delivers it, with nothing in it that is in another too: the schedule's own log
// hands on what it was given, in which two builds may assume one and the same object.
func received(c journal.Cursor) (journal.Entry, bool) {
	e, ok := next(c)
	if ok {
		e.Message = proto.Clone(e.Message)
	}
	return e, ok
}

// errOtherState says where a state that was thawed, or that was merely folded a second time, is not the one that it
// should be.
func errOtherState(at int64, froze []int64) error {
	return fmt.Errorf("it holds something else at offset %d, frozen at %d", at, froze)
}

// refold folds a stage's topics as far as it has answered, twice: once it is frozen and thawed where r draws it. What
// comes after that it would answer itself, with objects of its own state in what it says.
func (m *machine) refold(x stage.Stage, partition int32, r *rand.Rand) (thaws int, err error) {
	undisturbed, disturbed := stage.NewPartition(x), stage.NewPartition(x)
	in, own := m.follow(x.Input, partition, 0), m.follow(x.Output, partition, 0)
	defer in.Close()
	defer own.Close()
	term, at := int64(-1), int64(0)
	var froze []int64
	for {
		for disturbed.NeedsOwn() {
			e, ok := received(own)
			if !ok {
				return len(froze), nil
			}
			if journal.BeginsTerm(e.Envelope) && e.Source == x.Service {
				term = e.Offset
			}
			disturbed.Own(e)
			undisturbed.Own(e)
			at = e.Offset + 1
		}
		e, ok := received(in)
		if !ok {
			return len(froze), nil
		}
		disturbed.Input(e)
		undisturbed.Input(e)
		if disturbed.Behind() {
			continue
		}
		state := must(disturbed.Freeze())
		if !bytes.Equal(state, must(undisturbed.Freeze())) {
			return len(froze), errOtherState(e.Offset, froze)
		}
		if r.IntN(4) != 0 {
			continue
		}
		froze = append(froze, e.Offset)
		if disturbed, err = stage.Thaw(x, stage.Kept{Term: term, Own: at, State: state}); err != nil {
			return len(froze), err
		}
	}
}

// reread folds the enumerator's topic in the same way.
func (m *machine) reread(partition int32, r *rand.Rand) (thaws int, err error) {
	undisturbed, disturbed := enumerator.NewPartition(), enumerator.NewPartition()
	own := m.follow(events.TopicSpeculations, partition, 0)
	defer own.Close()
	term := int64(-1)
	var froze []int64
	for e, ok := received(own); ok; e, ok = received(own) {
		if journal.BeginsTerm(e.Envelope) && e.Source == events.ServiceEnumerator {
			term = e.Offset
		}
		disturbed.Own(e)
		undisturbed.Own(e)
		state := must(disturbed.Freeze())
		if !bytes.Equal(state, must(undisturbed.Freeze())) {
			return len(froze), errOtherState(e.Offset, froze)
		}
		if r.IntN(4) != 0 {
			continue
		}
		froze = append(froze, e.Offset)
		if disturbed, err = enumerator.Thaw(stage.Kept{Term: term, Own: e.Offset + 1, State: state}); err != nil {
			return len(froze), err
		}
	}
	return len(froze), nil
}
