package recompute

import (
	"context"
	"fmt"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
)

// read opens a topic at its beginning, up to the end that was fixed for it.
func (c *check) read(ctx context.Context, topic string) (*reading.Reading, error) {
	return reading.To(ctx, c.verification.o.Log, topic, c.partition, c.ends[topic],
		reading.Options{Patience: c.verification.o.Patience, Read: c.verification.tell})
}

// close ends a reading.
func (c *check) close(r *reading.Reading) {
	c.findings.Torn += r.Torn()
	r.Close()
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
