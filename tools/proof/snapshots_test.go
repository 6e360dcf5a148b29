package proof

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/snapshottest"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/services/enumerator"
	"landfall.build/services/lander"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
)

// TestWhatIsThawedGoesOnAsIfItHadNeverBeenFrozen: over the logs of random schedules, each stage's state is the same to
// the last byte whether it is frozen and thawed on the way or not, and whoever folds it.
func TestWhatIsThawedGoesOnAsIfItHadNeverBeenFrozen(t *testing.T) {
	seed := rand.Uint64N(1 << 40)
	t.Logf("seed %d", seed)
	thaws := 0
	fields := snapshottest.New(t)
	for i := range uint64(30) {
		Run(Options{Seed: seed + i, Ticks: 6000, Done: func(s *schedule) {
			for _, e := range s.m.enumerators {
				r := rand.New(rand.NewPCG(seed, i))
				for _, x := range []runner.Service{
					enumerator.Service(enumerator.Options{Options: runner.Options{Log: s.m.log}}, e.partition),
					profiler.Stage().Service(), prioritizer.Stage().Service(), selector.Stage(s.m.log.ID()).Service(),
					lander.Service(lander.Options{Options: runner.Options{Log: s.m.log}}, e.partition, 0),
				} {
					n, err := s.m.refold(fields, x, e.partition, r)
					if err != nil {
						t.Errorf("seed %d: the %s: %v", seed+i, x.Name, err)
					}
					thaws += n
				}
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
	fields.Done("enumerator", "runner")
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

// errOtherState says where a restored state, or one that was merely folded a second time, is not the one that it should be.
func errOtherState(at int64, difference string, taken []int64) error {
	return fmt.Errorf("at offset %d, snapshots taken at %d: %s", at, taken, difference)
}

// restored takes a core's snapshot and returns the core that is made of it, as the runner does.
func restored(s runner.Service, c runner.Core, term int64) (runner.Core, error) {
	state, err := proto.Marshal(c.Snapshot())
	if err != nil {
		return nil, err
	}
	return s.Restore(state, term)
}

// refold folds a service's topics as far as it has answered, twice: one of the cores is restored from a snapshot where r draws
// it. What comes after that the service would answer itself, with objects of its own state in what it says.
func (m *machine) refold(fields *snapshottest.Fields, s runner.Service, partition int32, r *rand.Rand) (restores int, err error) {
	undisturbed, disturbed := s.New(), s.New()
	own := m.follow(s.Output, partition, 0)
	defer own.Close()
	var sources []journal.Cursor
	if len(s.Sources) == 1 || s.ReadsBack {
		for _, topic := range s.Sources {
			c := m.follow(topic, partition, 0)
			defer c.Close()
			sources = append(sources, c)
		}
	}
	term := int64(-1)
	var taken []int64
	for {
		at, more := int64(0), false
		for !s.ReadsBack && (sources == nil || disturbed.NeedsOwn()) {
			e, ok := received(own)
			if !ok {
				return len(taken), nil
			}
			if at, more = e.Offset, true; journal.BeginsTerm(e.Envelope) && e.Source == s.Name {
				term = e.Offset
			}
			disturbed.Fold(runner.Append{Queue: e.Queue, Message: e.Message, Own: &e})
			undisturbed.Fold(runner.Append{Queue: e.Queue, Message: e.Message, Own: &e})
			if sources == nil {
				break
			}
		}
		for _, c := range sources {
			if e, ok := received(c); ok {
				at, more = e.Offset, true
				disturbed.Apply(runner.Input{Record: &e})
				undisturbed.Apply(runner.Input{Record: &e})
			} else if !s.ReadsBack {
				return len(taken), nil
			}
		}
		if !more {
			return len(taken), nil
		}
		// A record that was written may wait for its input.
		if !s.ReadsBack && sources != nil && !disturbed.NeedsOwn() || r.IntN(4) != 0 {
			continue
		}
		taken = append(taken, at)
		if disturbed, err = restored(s, disturbed, term); err != nil {
			return len(taken), err
		}
		if difference := fields.Difference(undisturbed, disturbed); difference != "" {
			return len(taken), errOtherState(at, difference, taken)
		}
	}
}
