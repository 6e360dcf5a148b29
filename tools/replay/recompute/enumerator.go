package recompute

import (
	"context"
	"fmt"
	"slices"

	"landfall.build/engine/speculation"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/services/enumerator"
)

// enumeratorRun is the enumerator on one partition. It does what enumerator.Partition does, in other words: the
// facts of a record are looked up in the sources, between the positions that it names.
type enumeratorRun struct {
	*check
	own, changes, builds, models *reading.Reading
	authors                      *authorship
	lander                       *journal.Terms
	queues                       map[string]*speculation.Queue
	// count numbers the facts of the partition, as the enumerator does.
	count int64
	stamp int64
	at    *eventsv1.Positions
}

// sourced are the counted facts of a source between two positions, oldest first.
type sourced struct {
	facts   []*eventsv1.Fact
	entries []journal.Entry
	// end is the offset behind the last record that was read.
	end int64
}

func checkEnumerator(ctx context.Context, c *check) error {
	r := &enumeratorRun{
		check: c, authors: newAuthorship(events.ServiceEnumerator, events.TopicSpeculations), lander: journal.NewTerms(events.TopicChanges),
		queues: map[string]*speculation.Queue{}, at: &eventsv1.Positions{LanderTerm: -1},
	}
	for _, source := range []struct {
		topic string
		into  **reading.Reading
	}{{events.TopicSpeculations, &r.own}, {events.TopicChanges, &r.changes}, {events.TopicBuilds, &r.builds}, {events.TopicModels, &r.models}} {
		var err error
		if *source.into, err = c.read(ctx, source.topic); err != nil {
			return err
		}
		defer r.close(*source.into)
	}
	for {
		e, err := r.own.Take(ctx)
		if err != nil || e == nil {
			return err
		}
		counts := r.authors.counts(e)
		if !r.authors.isRecord(e) {
			if counts {
				return strange(e)
			}
			continue
		}
		r.findings.Records++
		if !counts {
			r.findings.NotCounted++
			continue
		}
		s, is := e.Message.(*eventsv1.Speculation)
		if !is {
			return strange(e)
		}
		if err := r.record(ctx, e, s); err != nil {
			return err
		}
	}
}

// record holds one counted record against the core, and folds it as written.
func (r *enumeratorRun) record(ctx context.Context, e *journal.Entry, s *eventsv1.Speculation) error {
	changes, err := gather(ctx, r.changes, s.Positions.GetChanges(), r.at.Changes, func(e *journal.Entry) bool { return r.lander.Counts(*e) })
	if err != nil {
		return err
	}
	builds, err := gather(ctx, r.builds, s.Positions.GetBuilds(), r.at.Builds, func(*journal.Entry) bool { return true })
	if err != nil {
		return err
	}
	models, err := gather(ctx, r.models, s.Positions.GetModels(), r.at.Models, func(*journal.Entry) bool { return true })
	if err != nil {
		return err
	}
	q := r.queues[e.Queue]
	if q == nil {
		q = speculation.New()
		r.queues[e.Queue] = q
	}
	for _, f := range s.Facts {
		r.count++
		q.Apply(f, r.count)
	}
	if r.comparable(r.authors.version) {
		computed := &eventsv1.Speculation{
			Positions: &eventsv1.Positions{Changes: changes.end, Builds: builds.end, Models: models.end, LanderTerm: r.lander.Last(events.ServiceLander)},
			StampUs:   max(r.stamp, s.StampUs), Facts: merge(s.Facts, changes.facts, builds.facts, models.facts), Delta: q.Decide(),
		}
		entries := slices.Concat(changes.entries, builds.entries, models.entries)
		causes := func() []journal.Entry { return entries }
		if err := r.compare(e, r.authors.version, otherQueue(e.Queue, entries), computed, causes); err != nil {
			return err
		}
	} else {
		r.findings.Others[r.authors.version]++
	}
	q.Fold(s.Delta)
	r.stamp = s.StampUs
	r.at = &eventsv1.Positions{Changes: changes.end, Builds: builds.end, Models: models.end}
	return nil
}

// gather reads a source up to a position. A fact is one that the core takes, of a record that counts.
func gather(ctx context.Context, source *reading.Reading, to, from int64, counts func(*journal.Entry) bool) (sourced, error) {
	out := sourced{end: from}
	for {
		e, err := source.Peek(ctx)
		if err != nil {
			return out, err
		}
		if e == nil || e.Offset >= to {
			return out, nil
		}
		if _, err := source.Take(ctx); err != nil {
			return out, err
		}
		out.end = e.Offset + 1
		counted := counts(e)
		if !counted || e.Message == nil || e.Queue == "" {
			continue
		}
		if f := enumerator.FactOf(*e); f != nil {
			out.facts, out.entries = append(out.facts, f), append(out.entries, *e)
		}
	}
}

// merge puts the sources' facts into the order that a record has: whose turn it was is all that is taken from it,
// and what the enumerator says by itself. What is left over comes last.
func merge(order, changes, builds, models []*eventsv1.Fact) []*eventsv1.Fact {
	out := make([]*eventsv1.Fact, 0, len(order))
	for _, f := range order {
		switch f.Fact.(type) {
		case *eventsv1.Fact_Tick, *eventsv1.Fact_Settings:
			out = append(out, f)
		case *eventsv1.Fact_BuildPrepared, *eventsv1.Fact_StepLeased, *eventsv1.Fact_StepFinished, *eventsv1.Fact_EvidenceForgotten:
			if len(builds) > 0 {
				out, builds = append(out, builds[0]), builds[1:]
			}
		case *eventsv1.Fact_ModelPromoted, *eventsv1.Fact_ModelRolledBack:
			if len(models) > 0 {
				out, models = append(out, models[0]), models[1:]
			}
		default:
			if len(changes) > 0 {
				out, changes = append(out, changes[0]), changes[1:]
			}
		}
	}
	return slices.Concat(out, changes, builds, models)
}

// otherQueue says what is wrong with the queue of a record's facts, "" if nothing is.
func otherQueue(queue string, entries []journal.Entry) string {
	for _, e := range entries {
		if e.Queue != queue {
			return fmt.Sprintf("it passes over a fact of queue %q at %s/%d/%d", e.Queue, e.Topic, e.Partition, e.Offset)
		}
	}
	return ""
}
