package recompute

import (
	"context"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/journal/reading"
	"landfall.build/services/stage"
)

// written is a counted record of a stage, with the version that wrote it.
type written struct {
	entry    *journal.Entry
	position int64
	version  string
}

// stageRun is one stage on one partition.
type stageRun struct {
	*check
	stage   stage.Stage
	input   *reading.Reading
	own     *reading.Reading
	authors *authorship
	// next is the first counted record that answers no input read so far, nil behind the last.
	next *written
}

// stageCheck verifies a stage: for each counted input, in order, the record that answers it.
func stageCheck(s stage.Stage) func(context.Context, *check) error {
	return func(ctx context.Context, c *check) error {
		r := &stageRun{check: c, stage: s, authors: newAuthorship(s.Service, s.Output)}
		var err error
		if r.own, err = c.read(ctx, s.Output); err != nil {
			return err
		}
		defer r.close(r.own)
		if r.input, err = c.read(ctx, s.Input); err != nil {
			return err
		}
		defer r.close(r.input)
		return r.run(ctx)
	}
}

func (r *stageRun) run(ctx context.Context) error {
	if err := r.advance(ctx); err != nil {
		return err
	}
	terms := journal.NewTerms(r.stage.Input)
	cores := map[string]stage.Core{}
	for {
		e, err := r.input.Take(ctx)
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		if !terms.Counts(*e) {
			continue
		}
		if !writtenTo(e, r.stage.Input) {
			return strange(e)
		}
		if r.next == nil {
			// What comes now may be answered yet.
			r.findings.Unanswered = true
			return nil
		}
		core := cores[e.Queue]
		if core == nil {
			core = r.stage.New(e.Queue)
			cores[e.Queue] = core
		}
		core.Apply(e.Message, e.Offset)
		if err := r.answer(ctx, core, e); err != nil {
			return err
		}
	}
	for r.next != nil {
		if err := r.orphan(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answer holds what was written for an input, or that nothing was, against the core.
func (r *stageRun) answer(ctx context.Context, core stage.Core, input *journal.Entry) error {
	at := r.stage.InputPosition(*input)
	causes := func() []journal.Entry { return []journal.Entry{*input} }
	for r.next != nil && r.next.position < at {
		if err := r.orphan(ctx); err != nil {
			return err
		}
	}
	if r.next == nil {
		r.findings.Unanswered = true
		return nil
	}
	compared := r.comparable(r.next.version)
	if r.next.position == at && r.next.entry.Queue == input.Queue {
		if compared {
			if err := r.compare(r.next.entry, r.next.version, "", core.Decide(), causes); err != nil {
				return err
			}
		}
		core.Fold(r.next.entry.Message)
		return r.advance(ctx)
	}
	// Whoever wrote the next record was live from the last one on: the silence between them is its own.
	if !compared {
		return nil
	}
	if computed := core.Decide(); computed != nil {
		r.findings.Missing++
		r.note(Difference{Offset: -1, Queue: input.Queue, Version: r.next.version,
			Reason: "nothing was written for an input that this code answers", Computed: computed}, causes)
	} else {
		r.findings.Silent++
	}
	return nil
}

// orphan counts a record that answers no counted input.
func (r *stageRun) orphan(ctx context.Context) error {
	if r.comparable(r.next.version) {
		if err := r.compare(r.next.entry, r.next.version, "it answers no input that counts", nil, nil); err != nil {
			return err
		}
	}
	return r.advance(ctx)
}

// advance looks for the next counted record of the stage, and counts what it passes.
func (r *stageRun) advance(ctx context.Context) error {
	r.next = nil
	for {
		e, err := r.own.Take(ctx)
		if err != nil || e == nil {
			return err
		}
		counts := r.authors.counts(e)
		if !r.authors.isRecord(e) {
			continue
		}
		r.findings.Records++
		switch {
		case !counts:
			r.findings.NotCounted++
			continue
		case !writtenTo(e, r.stage.Output):
			return strange(e)
		case !r.comparable(r.authors.version):
			r.findings.Others[r.authors.version]++
		}
		r.next = &written{e, r.stage.Position(e.Message), r.authors.version}
		return nil
	}
}

// writtenTo says whether a record is of the one type that its topic holds.
func writtenTo(e *journal.Entry, topic string) (is bool) {
	switch topic {
	case events.TopicSpeculations:
		_, is = e.Message.(*eventsv1.Speculation)
	case events.TopicProfiles:
		_, is = e.Message.(*eventsv1.Profile)
	case events.TopicPriorities:
		_, is = e.Message.(*eventsv1.Priority)
	case events.TopicDecisions:
		_, is = e.Message.(*eventsv1.Decision)
	}
	return is
}
