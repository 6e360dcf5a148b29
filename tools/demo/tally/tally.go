// Package tally counts, in the log of a queue, what its decisions cost: builds, steps that were run, and
// steps that need not be run because another change had proven the same target version.
package tally

import (
	"context"
	"errors"
	"fmt"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// Tally of one queue.
type Tally struct {
	// Builds that were scheduled, BuildsAborted those of them that were given up.
	Builds, BuildsAborted int
	// StepsRun counts the attempts that ended, aborted ones among them.
	StepsRun, StepsAborted int
	// StepsReused counts target versions that a change needed and that a step run for another change had
	// settled: once for each change and version.
	StepsReused int
	// Refusals are the land guard's.
	Refusals int
}

// counter folds the log.
type counter struct {
	queue string
	tally Tally
	// owner is the change of each build.
	owner map[string]string
	// ranFor is the change for whose build a version was settled.
	ranFor map[version]string
	// needed has the versions that each change's builds and landings rest on.
	needed map[need]bool
	// ended has the attempts that ended: the first record of one stands.
	ended map[attempt]bool
}

type version struct{ target, hash string }

type attempt struct {
	version
	number uint32
}

type need struct {
	change string
	version
}

// Count reads the log as it is now.
func Count(ctx context.Context, log journal.Log, queue string) (Tally, error) {
	c := &counter{queue: queue, owner: map[string]string{}, ranFor: map[version]string{}, needed: map[need]bool{}, ended: map[attempt]bool{}}
	partition := events.PartitionOf(queue, log.Partitions())
	for _, topic := range []string{events.TopicDecisions, events.TopicBuilds, events.TopicChanges} {
		if err := Records(ctx, log, topic, partition, func(e journal.Entry, counts bool) {
			if counts {
				c.fold(e)
			}
		}); err != nil {
			return Tally{}, fmt.Errorf("counting %s: %w", topic, err)
		}
	}
	for n := range c.needed {
		if by, settled := c.ranFor[n.version]; settled && by != n.change {
			c.tally.StepsReused++
		}
	}
	return c.tally, nil
}

// silence is the end too: the last offsets of a partition may be those of a record that is not whole, which
// no reader is given.
const silence = 5 * time.Second

// Records yields the records of a partition up to its present end, and whether readers take each:
// those of an owner that another has replaced do not count, nor do claims.
func Records(ctx context.Context, log journal.Log, topic string, partition int32, fold func(e journal.Entry, counts bool)) error {
	end, err := log.End(ctx, topic, partition)
	if err != nil {
		return err
	}
	if end == 0 {
		return nil
	}
	cursor, err := log.Follow(ctx, topic, partition, 0)
	if err != nil {
		return err
	}
	defer cursor.Close()
	terms := journal.NewTerms(topic)
	for {
		waiting, cancel := context.WithTimeout(ctx, silence)
		e, err := cursor.Next(waiting)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Offset < end {
			fold(e, terms.Counts(e))
		}
		if e.Offset >= end-1 {
			return nil
		}
	}
}

func (c *counter) fold(e journal.Entry) {
	if e.Queue != c.queue {
		return
	}
	switch f := e.Message.(type) {
	case *eventsv1.Decision:
		for _, item := range f.GetItems() {
			if b := item.GetBuildScheduled(); b != nil {
				c.tally.Builds++
				c.owner[b.GetBuild()] = b.GetChange().GetChange().GetChange()
			}
			if item.GetBuildAborted() != nil {
				c.tally.BuildsAborted++
			}
		}
	case *eventsv1.BuildPrepared:
		for _, v := range f.GetVersions() {
			if !v.GetTrivial() && !v.GetAbsent() {
				c.needed[need{f.GetChange().GetChange(), version{v.GetTarget(), v.GetHash()}}] = true
			}
		}
	case *eventsv1.StepFinished:
		this := attempt{version{f.GetTarget(), f.GetHash()}, f.GetAttempt()}
		if c.ended[this] {
			return
		}
		c.ended[this] = true
		c.tally.StepsRun++
		if f.GetOutcome() == eventsv1.StepOutcome_STEP_OUTCOME_ABORTED {
			c.tally.StepsAborted++
			return
		}
		if _, settled := c.ranFor[this.version]; !settled {
			c.ranFor[this.version] = c.owner[f.GetBuild()]
		}
	case *eventsv1.ChangeLanded:
		for _, p := range f.GetProof() {
			if v := p.GetVersion(); !v.GetTrivial() && !v.GetAbsent() {
				c.needed[need{f.GetChange().GetChange(), version{v.GetTarget(), v.GetHash()}}] = true
			}
		}
	case *eventsv1.Refused:
		c.tally.Refusals++
	}
}
