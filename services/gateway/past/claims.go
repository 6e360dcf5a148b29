package past

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/health"
	"landfall.build/platform/journal/reading"
)

// Owners returns who had claimed the queue's partition at a time, of the services whose claims are in the topics that the view folds. One
// that nobody had claimed is unowned.
func (p *Past) Owners(ctx context.Context, at time.Time) (owners []health.Ownership, err error) {
	claimed := map[string]string{} // the topic by the service
	for _, topic := range events.Topics() {
		if slices.Contains(topics, topic.Name) {
			for _, service := range topic.Claimed {
				claimed[service] = topic.Name
				owners = append(owners, health.Ownership{Service: service, Partition: p.partition, Term: health.NoTerm, State: health.StateUnowned})
			}
		}
	}
	err = p.read(ctx, at, false, func(m *moment) {
		for i, o := range owners {
			if term, is := m.folds[claimed[o.Service]].terms.Snapshot().GetClaims()[o.Service]; is {
				owners[i].Term = term
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range owners {
		o := &owners[i]
		if o.Term == health.NoTerm {
			continue
		}
		claim, err := p.claimAt(ctx, claimed[o.Service], o.Term)
		if err != nil {
			return nil, err
		}
		o.Instance, o.Since, o.State = claim.Instance, time.UnixMicro(claim.ClaimedUs).UTC().Truncate(time.Second), health.StateClaimed
	}
	slices.SortFunc(owners, func(a, b health.Ownership) int { return cmp.Compare(a.Service, b.Service) })
	return owners, nil
}

// claimAt reads a claim.
func (p *Past) claimAt(ctx context.Context, topic string, offset int64) (*eventsv1.Claim, error) {
	r, err := reading.To(ctx, p.Log, topic, p.partition, offset+1, reading.Options{From: offset, Sparing: true})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	e, err := r.Take(ctx)
	if err != nil {
		return nil, err
	}
	if e != nil {
		if claim, is := e.Message.(*eventsv1.Claim); is {
			return claim, nil
		}
	}
	return nil, fmt.Errorf("%s/%d has no claim at offset %d", topic, p.partition, offset)
}
