package recompute

import (
	"context"
	"errors"
	"fmt"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
)

// reading goes through one partition of a topic up to an end that was fixed before.
type reading struct {
	check  *check
	cursor journal.Cursor
	topic  string
	end    int64
	// at is the offset behind what was read.
	at    int64
	ahead *journal.Entry
	// told is how many offsets were reported as read.
	told int64
}

// read opens a topic at its beginning.
func (c *check) read(ctx context.Context, topic string) (*reading, error) {
	cursor, err := c.verification.o.Log.Follow(ctx, topic, c.partition, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	return &reading{check: c, cursor: cursor, topic: topic, end: c.ends[topic]}, nil
}

// close ends the reading; what was not read counts as done.
func (r *reading) close() {
	r.cursor.Close()
	r.check.verification.tell(r.end - r.told)
}

// peek gives the next entry and leaves it there; nil at the end.
func (r *reading) peek(ctx context.Context) (*journal.Entry, error) {
	if r.ahead != nil || r.at >= r.end {
		return r.ahead, nil
	}
	e, ok, err := r.cursor.TryNext()
	if err == nil && !ok {
		e, ok, err = r.wait(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s behind offset %d: %w", r.topic, r.at-1, err)
	}
	if !ok || e.Offset >= r.end {
		r.at = r.end
		return nil, nil
	}
	r.at, r.ahead = e.Offset+1, &e
	if r.at-r.told >= toldEvery {
		r.check.verification.tell(r.at - r.told)
		r.told = r.at
	}
	return r.ahead, nil
}

// take is peek, and goes on.
func (r *reading) take(ctx context.Context) (*journal.Entry, error) {
	e, err := r.peek(ctx)
	r.ahead = nil
	return e, err
}

// wait waits for a broker's answer. The last offsets of a partition may be parts of a record that never became
// whole: no entry comes of them, and ok is false.
func (r *reading) wait(ctx context.Context) (e journal.Entry, ok bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, r.check.verification.o.Patience)
	defer cancel()
	e, err = r.cursor.Next(waiting)
	switch {
	case err == nil:
		return e, true, nil
	case ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded):
		return e, false, err
	case r.end-r.at <= journal.MaxSpan:
		r.check.findings.Torn += r.end - r.at
		return e, false, nil
	}
	return e, false, fmt.Errorf("the broker gave nothing for %s, and %d records are to come", r.check.verification.o.Patience, r.end-r.at)
}

// authorship says of each record of a service's own topic whether it counts, and which version of the code wrote it.
type authorship struct {
	service string
	terms   *journal.Terms
	version string // of the last claim
}

func newAuthorship(service, topic string) *authorship {
	return &authorship{service: service, terms: journal.NewTerms(topic)}
}

// counts folds the next record.
func (a *authorship) counts(e *journal.Entry) bool {
	if claim, is := e.Message.(*eventsv1.Claim); is && e.Source == a.service {
		a.version = claim.Version
	}
	return a.terms.Counts(*e)
}

// isRecord says that an entry is one of the service's own records, a claim left out.
func (a *authorship) isRecord(e *journal.Entry) bool {
	return e.Source == a.service && e.Message != nil && !journal.BeginsTerm(e.Envelope)
}

// comparable says whether what a version wrote is to be compared.
func (c *check) comparable(version string) bool {
	return c.verification.o.AllVersions || version == c.verification.o.Version
}

// strange is the error for a record that no service of this log writes there.
func strange(e *journal.Entry) error {
	return fmt.Errorf("%s/%d/%d is a %s of %q, which nobody writes there", e.Topic, e.Partition, e.Offset, events.TypeOf(e.Message), e.Source)
}
