// Package recompute holds a log against the code: it runs the pure cores of enumerator, profiler, prioritizer
// and selector again over what they read, and compares every record that they wrote with what they say now,
// byte for byte.
//
// Each record is computed on the state that the log gives: what was written is folded, whatever this code says.
// So one difference is one difference, and not the first of thousands. What the cores take from outside is taken
// from the records themselves: in which order the enumerator read its sources, its clock, its ticks and its
// settings. That these are possible – positions, order within a source, stamps that never run backwards – is
// checked.
//
// Of the lander, whose records rest on trees that no log holds, the landings are held against the log: each intention
// answers a decision that counts, on the mainline's head, with a proof that the guard gives again; and what closes it
// is its own.
//
// A record of another version of the code is folded and not compared, unless Options.AllVersions says so. All
// other facts of gateway, analyzer, builder and lander rest on git, on workers, and on how far each had read when it acted,
// which no record says: they are inputs here (docs/decisions/0015-what-a-replay-compares.md).
package recompute

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"landfall.build/events"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/services/prioritizer"
	"landfall.build/services/profiler"
	"landfall.build/services/selector"
)

// Options of a verification.
type Options struct {
	Log journal.Log
	// Version is what this code calls itself in its claims. Records under claims of other versions are not compared.
	Version string
	// AllVersions compares them all the same: does this code say what another one said?
	AllVersions bool
	// Kept is how many differences of a service in a partition are kept whole; at least 1.
	Kept int
	// Workers is how many partitions of services are verified at the same time; by default as many as there are processors.
	Workers int
	// Patience is how long a broker may take to give the next record; by default 10 s.
	Patience time.Duration
	// Progress, if set, is told how many of the records to be read were, by one goroutine at a time.
	Progress func(done, total int64)
}

// stages are those behind the enumerator, in the order of the flow.
func stages(logID string) []runner.Stage {
	return []runner.Stage{profiler.Stage(), prioritizer.Stage(), selector.Stage(logID)}
}

// check is one service on one partition.
type check struct {
	verification *verification
	service      string
	output       string
	partition    int32
	ends         map[string]int64
	findings     Service
	// run goes through the records, and puts what it finds into findings.
	run func(ctx context.Context, c *check) error
}

// verification is one call of Verify.
type verification struct {
	o     Options
	total int64
	done  atomic.Int64

	mu   sync.Mutex
	told int64
}

// Verify goes through what the log holds now. An error says that the log could not be read, or that it holds what
// no service writes; what speaks against the cores is in the report.
func Verify(ctx context.Context, o Options) (*Report, error) {
	if o.Log == nil {
		return nil, fmt.Errorf("a verification needs a log")
	}
	o.Kept = max(1, o.Kept)
	if o.Workers < 1 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	v := &verification{o: o}
	checks, err := v.plan(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.runAll(ctx, checks); err != nil {
		return nil, err
	}
	r := &Report{LogID: o.Log.ID(), Version: o.Version, AllVersions: o.AllVersions}
	for _, c := range checks {
		r.add(c.findings, o.Kept)
	}
	return r, nil
}

// outputs are the topics of derived records, the last stage's first: what is in an output before its input is
// looked at has all its causes in the input.
func outputs() []string {
	return []string{events.TopicDecisions, events.TopicPriorities, events.TopicProfiles, events.TopicSpeculations, events.TopicModels, events.TopicBuilds, events.TopicChanges}
}

// plan lists the checks in the order of the flow, and fixes how far each topic is read.
func (v *verification) plan(ctx context.Context) ([]*check, error) {
	var checks []*check
	for p := range v.o.Log.Partitions() {
		// The lander's records have their causes in the decisions, so for them landfall.changes comes first.
		landed, err := v.ends(ctx, p, events.TopicChanges, events.TopicDecisions, events.TopicBuilds)
		if err != nil {
			return nil, err
		}
		ends, err := v.ends(ctx, p, outputs()...)
		if err != nil {
			return nil, err
		}
		v.total += ends[events.TopicChanges] + ends[events.TopicBuilds] + ends[events.TopicModels] + ends[events.TopicSpeculations]
		checks = append(checks, &check{verification: v, service: events.ServiceEnumerator, output: events.TopicSpeculations, partition: p, ends: ends, run: checkEnumerator})
		for _, s := range stages(v.o.Log.ID()) {
			v.total += ends[s.Input] + ends[s.Output]
			checks = append(checks, &check{verification: v, service: s.Name, output: s.Output, partition: p, ends: ends, run: stageCheck(s)})
		}
		v.total += landed[events.TopicChanges] + landed[events.TopicDecisions] + landed[events.TopicBuilds]
		checks = append(checks, &check{verification: v, service: events.ServiceLander, output: events.TopicChanges, partition: p, ends: landed, run: checkLander})
	}
	return checks, nil
}

// ends are the present ends of topics, asked for in this order.
func (v *verification) ends(ctx context.Context, partition int32, topics ...string) (map[string]int64, error) {
	ends := map[string]int64{}
	for _, topic := range topics {
		end, err := v.o.Log.End(ctx, topic, partition)
		if err != nil {
			return nil, fmt.Errorf("end of %s/%d: %w", topic, partition, err)
		}
		ends[topic] = end
	}
	return ends, nil
}

// runAll runs the checks, several at the same time. The first error ends them.
func (v *verification) runAll(ctx context.Context, checks []*check) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(v.o.Workers, len(checks)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(checks)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				c := checks[i]
				c.findings = Service{Service: c.service, Topic: c.output, Others: map[string]int64{}}
				if err := c.run(ctx, c); err != nil {
					cancel(fmt.Errorf("%s on partition %d: %w", c.service, c.partition, err))
				}
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return nil
}

// toldEvery is how many records are read between two calls of Progress.
const toldEvery = 256

// tell counts records that were read.
func (v *verification) tell(n int64) {
	done := v.done.Add(n)
	if v.o.Progress == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if done-v.told >= toldEvery || done > v.told && done == v.total {
		v.told = done
		v.o.Progress(done, v.total)
	}
}
