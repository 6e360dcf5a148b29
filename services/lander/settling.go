package lander

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// settle brings the open intention to its end, on one read of the head: T is on it: landed; it is still M:
// push T itself; otherwise the intention is void, and T is never pushed again.
func (p *Partition) settle(ctx context.Context, name string, q *queue, m Mainline) error {
	i := q.lineup.Intention.Fact
	tip := i.Commits[len(i.Commits)-1]
	head, err := m.Head(ctx)
	if err != nil {
		return unreadable(err)
	}
	if head == i.Base {
		pushed := push(ctx, q, m, i)
		if pushed == nil {
			return p.landed(ctx, name, i)
		}
		if errors.Is(pushed, ErrRefused) {
			return p.refusedByRemote(ctx, name, q, i, pushed)
		}
		if !errors.Is(pushed, ErrMoved) && q.trouble.since.IsZero() {
			p.logger.Warn("a push got no answer; looking again", "queue", name, "change", i.Change.Change, "error", pushed)
		}
		if head, err = m.Head(ctx); err != nil {
			return unreadable(err)
		}
		if head == i.Base {
			return unanswered(fmt.Errorf("the push of %s did not arrive: %w", short(tip), pushed))
		}
	}
	arrived, err := m.Contains(ctx, head, tip)
	if err != nil {
		return unreadable(err)
	}
	if arrived {
		return p.landed(ctx, name, i)
	}
	return p.write(ctx, name, i.Change.Change, &eventsv1.LandVoid{
		Change: i.Change, Decision: i.Decision, Commit: tip, Reason: "the mainline moved past " + short(i.Base), StampUs: p.o.Now().UnixMicro(),
	}, i.Decision, tip)
}

// push pushes what an intention names. Where another lander has made the commits, in a mirror that this one does
// not share, they are made again: the same change on the same base with the same stamp gives the same ids.
func push(ctx context.Context, q *queue, m Mainline, i *eventsv1.LandIntended) error {
	tip := i.Commits[len(i.Commits)-1]
	err := m.Push(ctx, i.Base, tip)
	c := q.lineup.PendingAt(i.Change)
	if !errors.Is(err, ErrUnknownCommit) || c == nil {
		return err
	}
	made, err := m.Make(ctx, i.Base, c.Admission, i.StampUs)
	if err != nil {
		return fmt.Errorf("make %s again on %s: %w", c.ID(), i.Base, err)
	}
	if !slices.Equal(made.Commits, i.Commits) {
		return fmt.Errorf("%w: %s; this lander makes other commits of %s, so only one with the mirror of the lander that made these can push them", ErrUnknownCommit, tip, c.ID())
	}
	return m.Push(ctx, i.Base, tip)
}

// refusedByRemote closes an intention that the remote would not have: others go on, and the change is tried
// again later.
func (p *Partition) refusedByRemote(ctx context.Context, name string, q *queue, i *eventsv1.LandIntended, refusal error) error {
	p.logger.Warn("the remote refuses a push", "queue", name, "change", i.Change.Change, "error", refusal)
	tip := i.Commits[len(i.Commits)-1]
	err := p.write(ctx, name, i.Change.Change, &eventsv1.LandVoid{
		Change: i.Change, Decision: i.Decision, Commit: tip, Reason: strings.ToValidUTF8(refusal.Error(), "�"), Refused: true, StampUs: p.o.Now().UnixMicro(),
	}, i.Decision, tip)
	q.deferRefused(i.Change.Change, p.o.Now())
	if err != nil {
		return err
	}
	next := q.waitsBehindRefused(i.Change.Change)
	if next == "" {
		return nil
	}
	return p.write(ctx, name, next, &eventsv1.ChangeMoved{
		Change: next, Before: i.Change.Change, Who: events.ServiceLander, Why: "the remote refuses " + i.Change.Change, StampUs: p.o.Now().UnixMicro(),
	}, next, tip)
}

func short(id string) string { return id[:min(len(id), 12)] }

func (p *Partition) landed(ctx context.Context, name string, i *eventsv1.LandIntended) error {
	return p.write(ctx, name, i.Change.Change, &eventsv1.ChangeLanded{
		Change: i.Change, Decision: i.Decision, Base: i.Base, Commits: i.Commits, Tree: i.Tree,
		Proof: i.Proof, Bypasses: i.Bypasses, StampUs: p.o.Now().UnixMicro(), Deleted: i.Deleted,
	}, i.Decision)
}
