package lander

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// A host may show a review's head later than its branch. It is waited for headPatience; once it was late, a tenth of that, until it is in
// time again. Other queues of the partition wait meanwhile.
const (
	headPatience  = 10 * time.Second
	lateHeadShare = 10
	headPoll      = 100 * time.Millisecond
	maxHeadPoll   = time.Second
)

// MoveHeads implements Mainline.
func (b *Branch) MoveHeads(ctx context.Context, heads []*eventsv1.ReviewHead) error {
	var all []error
	moved := map[string]string{}
	for _, h := range heads {
		err := b.moveHead(ctx, h, h.From, h.To)
		if errors.Is(err, gitrepo.ErrNoSuchCommit) {
			return fmt.Errorf("%w: %v", ErrUnknownCommit, err)
		}
		if all = append(all, err); err == nil {
			moved[h.Review.Shown] = h.To
		}
	}
	return errors.Join(append(all, b.awaitShown(ctx, moved))...)
}

// TakeBackHeads implements Mainline.
func (b *Branch) TakeBackHeads(ctx context.Context, heads []*eventsv1.ReviewHead) error {
	var all []error
	for _, h := range heads {
		// Another lander's mirror may have asked for it.
		if err := b.fetch(ctx, []landing.Pick{{Head: h.From, Base: h.From}}); err != nil {
			all = append(all, err)
			continue
		}
		if err := b.moveHead(ctx, h, h.To, h.From); !errors.Is(err, gitrepo.ErrMoved) { // else somebody has pushed to it, or it was never moved
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

func (b *Branch) moveHead(ctx context.Context, h *eventsv1.ReviewHead, from, to string) error {
	ref := h.GetReview().GetBranch()
	if slices.Contains(b.Mainlines, strings.TrimPrefix(ref, "refs/heads/")) || ref == "refs/heads/"+b.Name {
		return fmt.Errorf("%w: %s is a branch that a queue lands on", gitrepo.ErrMoved, ref)
	}
	return b.Repo.MoveBranch(ctx, ref, from, to)
}

// patience returns how long the host is waited for.
func (b *Branch) patience() time.Duration {
	patience := cmp.Or(b.HeadPatience, headPatience)
	if b.late.Load() {
		patience /= lateHeadShare
	}
	return patience
}

// awaitShown waits until the remote has refs at commits. One that it has not at all is not waited for.
func (b *Branch) awaitShown(ctx context.Context, wanted map[string]string) error {
	if len(wanted) == 0 {
		return nil
	}
	refs := slices.Sorted(maps.Keys(wanted))
	patience, began := b.patience(), time.Now()
	for pause := headPoll; ; pause = min(2*pause, maxHeadPoll) {
		at, err := b.Repo.RemoteRefs(ctx, refs)
		if err != nil {
			return fmt.Errorf("read the heads of reviews: %w", err)
		}
		refs = slices.DeleteFunc(refs, func(ref string) bool { return at[ref] == "" || at[ref] == wanted[ref] })
		switch {
		case len(refs) == 0:
			b.late.Store(false)
			return nil
		case time.Since(began) >= patience:
			b.late.Store(true)
			return fmt.Errorf("the remote does not show %s at %s after %s", refs[0], wanted[refs[0]], patience)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
