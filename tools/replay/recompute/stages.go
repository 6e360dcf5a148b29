package recompute

import (
	"context"
	"errors"
	"slices"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/platform/runner"
)

// stageRun is one stage on one partition. It reads as the runner does, and gives the runner's core what it reads: up to the
// last record of the stage nothing is decided, and each answer of the log is held against what the code says now.
type stageRun struct {
	*check
	stage   runner.Stage
	core    runner.Core
	input   *reading.Reading
	own     *reading.Reading
	authors *authorship
	// versions has, for each record of the stage that the core was given and that has answered nothing yet, who wrote it.
	versions map[int64]string
	// unanswered are those records, in order.
	unanswered []*journal.Entry
	// waiting: the last counted input waits for a record that may answer it.
	waiting bool
	err     error
}

// stageCheck verifies a stage: for each counted input, in order, the record that answers it.
func stageCheck(s runner.Stage) func(context.Context, *check) error {
	return func(ctx context.Context, c *check) error {
		r := &stageRun{check: c, authors: newAuthorship(s.Name, s.Output), versions: map[int64]string{}}
		s.Answered = r.answered
		r.stage, r.core = s, s.Service().New()
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
	terms := journal.NewTerms(r.stage.Input)
	for r.err == nil {
		more := true
		for r.core.NeedsOwn() && more && r.err == nil {
			var err error
			if more, err = r.foldOwn(ctx); err != nil {
				return err
			}
		}
		if r.err != nil {
			break
		}
		if !more && r.waiting {
			r.findings.Unanswered = true
			return nil
		}
		e, err := r.input.Take(ctx)
		if err != nil {
			return err
		}
		if e == nil {
			break
		}
		if !terms.Counts(*e) {
			r.core.Apply(runner.Input{Record: e})
			continue
		}
		if !writtenTo(e, r.stage.Input) {
			return strange(e)
		}
		if !more {
			// What comes now may be answered yet.
			r.findings.Unanswered = true
			return nil
		}
		r.waiting = true
		r.core.Apply(runner.Input{Record: e})
	}
	for r.err == nil {
		for _, e := range r.unanswered {
			r.answered(runner.Answer{Written: e})
		}
		r.unanswered = nil
		if more, err := r.foldOwn(ctx); err != nil || !more {
			return err
		}
	}
	return r.err
}

// answered holds what was written for an input, or that nothing was, against the core.
func (r *stageRun) answered(a runner.Answer) {
	r.waiting = r.waiting && a.Input == nil
	if a.Written == nil {
		r.silent(a)
		return
	}
	version := r.versions[a.Written.Offset]
	delete(r.versions, a.Written.Offset)
	r.unanswered = slices.DeleteFunc(r.unanswered, func(e *journal.Entry) bool { return e.Offset == a.Written.Offset })
	if !r.comparable(version) {
		return
	}
	var err error
	if a.Input == nil {
		err = r.compare(a.Written, version, "it answers no input that counts", nil, nil)
	} else {
		err = r.compare(a.Written, version, "", a.Decide(), func() []journal.Entry { return []journal.Entry{*a.Input} })
	}
	r.err = errors.Join(r.err, err)
}

// silent looks at an input that was answered with silence. Whoever wrote the next record was live from the last one on: the
// silence between them is its own.
func (r *stageRun) silent(a runner.Answer) {
	version := r.versions[a.Next.Offset]
	if !r.comparable(version) {
		return
	}
	computed := a.Decide()
	if computed == nil {
		r.findings.Silent++
		return
	}
	r.findings.Missing++
	r.note(Difference{Offset: -1, Queue: a.Input.Queue, Version: version,
		Reason: "nothing was written for an input that this code answers", Computed: computed}, func() []journal.Entry { return []journal.Entry{*a.Input} })
}

// foldOwn gives the core the next counted record of the stage, and counts what it passes; more is false behind the last.
func (r *stageRun) foldOwn(ctx context.Context) (more bool, err error) {
	for {
		e, err := r.own.Take(ctx)
		if err != nil || e == nil {
			return false, err
		}
		counts := r.authors.counts(e)
		if r.authors.isRecord(e) {
			r.findings.Records++
			switch {
			case !counts:
				r.findings.NotCounted++
			case !writtenTo(e, r.stage.Output):
				return false, strange(e)
			case !r.comparable(r.authors.version):
				r.findings.Others[r.authors.version]++
			}
		}
		kept := *e
		if counts && r.authors.isRecord(e) {
			r.versions[e.Offset] = r.authors.version
			r.unanswered = append(r.unanswered, &kept)
		}
		r.core.Fold(runner.Append{Queue: e.Queue, Message: e.Message, Own: &kept})
		if counts && r.authors.isRecord(e) {
			return true, nil
		}
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
