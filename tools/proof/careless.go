package proof

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/lander"
)

// careless is the branch of a lander that leaves out a rule of landing.
type careless struct {
	remote
	x    *site
	rule Rule
	// before is the head as it was when it was asked for the last time but one.
	before, last string
	said         int
}

// branch is the mainline as a lander sees it.
func (m *machine) branch(x *site) lander.Mainline {
	switch m.leaves {
	case "":
		return x.main.asSeen()
	}
	return &careless{remote: x.main.asSeen(), x: x, rule: m.leaves, before: x.main.head, last: x.main.head}
}

// Head implements lander.Mainline.
func (c *careless) Head(ctx context.Context) (string, error) {
	head, err := c.remote.Head(ctx)
	c.before, c.last = c.last, head
	return head, err
}

// Contains implements lander.Mainline.
func (c *careless) Contains(ctx context.Context, head, id string) (bool, error) {
	switch c.rule {
	case OneRead:
		head = c.before
	case KnownByID:
		by := c.commits[id].by
		for at := c.commits[head]; at != nil; at = c.commits[at.parent] {
			if at.by == by || at.trailer == by {
				return true, nil
			}
		}
		return false, nil
	}
	return c.remote.Contains(ctx, head, id)
}

// Between implements lander.Mainline.
func (c *careless) Between(ctx context.Context, from, to string) ([]lander.Move, bool, error) {
	moves, forced, err := c.remote.Between(ctx, from, to)
	if c.rule == ForeignInOrder && len(moves) > 1 {
		moves = moves[len(moves)-1:]
	}
	return moves, forced, err
}

// Make implements lander.Mainline.
func (c *careless) Make(ctx context.Context, base string, a *eventsv1.Admission, stamp int64, quarantined []string) (*lander.Landing, error) {
	l, err := c.remote.Make(ctx, base, a, stamp, quarantined)
	if err != nil || l.Obstacle != nil {
		return l, err
	}
	switch c.rule {
	case M21GuardLands:
		l.Versions = proven(l.Versions)
	case M23EveryCommit:
		l.Versions = ofLast(l.Versions, len(a.LandingCommits))
	case M21GuardRejects, M19GreenMembers:
		if c.x.lastDecision(a.Change) == rejecting {
			return obstacle(eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, "somebody said so"), nil
		}
	}
	return l, nil
}

// proven are the versions as if nothing had to be built for them.
func proven(versions []*eventsv1.TargetVersion) (list []*eventsv1.TargetVersion) {
	for _, v := range versions {
		v = proto.CloneOf(v)
		v.Trivial = true
		list = append(list, v)
	}
	return list
}

// ofLast are the versions that the last landing commit makes.
func ofLast(versions []*eventsv1.TargetVersion, parts int) []*eventsv1.TargetVersion {
	return slices.DeleteFunc(slices.Clone(versions), func(v *eventsv1.TargetVersion) bool { return int(v.Part) != parts })
}

// Push implements lander.Mainline.
func (c *careless) Push(ctx context.Context, base, tip string) error {
	switch c.rule {
	case M22Swap:
		c.beforePush()
		c.landed = append(c.landed, c.between(base, tip)...)
		c.head = tip
		c.heads[tip] = true
		return nil
	case MadeAgain:
		if !c.made[tip] {
			return errNotHere
		}
	case NeverAgain:
		c.inFlight = append(c.inFlight, push{base, tip}, push{base, tip})
	}
	err := c.remote.Push(ctx, base, tip)
	switch refusal, is := errors.AsType[*lander.PushRefusal](err); {
	case c.rule == Unanswered && err == errNoAnswer:
		return lander.ErrPushRefused
	case c.rule == FreezeBlamesNobody && is:
		c.said++
		return &lander.PushRefusal{Sentence: strings.Repeat("no", c.said), Err: refusal.Err}
	case c.rule == RefusalIsHeard && is:
		return errNoAnswer
	}
	return err
}

// MoveHeads implements lander.Mainline.
func (c *careless) MoveHeads(ctx context.Context, heads []*eventsv1.ReviewHead) error {
	if c.rule == HeadsSwap {
		for _, h := range heads {
			b := c.reviews.branches[h.Review.Branch]
			c.reviews.disturb(b)
			b.at = h.To
		}
		return nil
	}
	return c.remote.MoveHeads(ctx, heads)
}

// TakeBackHeads implements lander.Mainline.
func (c *careless) TakeBackHeads(ctx context.Context, heads []*eventsv1.ReviewHead) error {
	if c.rule == HeadsBack {
		return nil
	}
	return c.remote.TakeBackHeads(ctx, heads)
}

// errNotHere is what git says of a commit that the mirror does not have.
var errNotHere = errors.New("no such commit in this mirror")

// rejecting is the kind of a decision.
const rejecting = "reject"

// lastDecision is what the newest decision on a change is.
func (x *site) lastDecision(change string) (kind string) {
	x.counted(events.TopicDecisions, func(e journal.Entry) {
		for _, i := range e.Message.(*eventsv1.Decision).Items {
			if of, _ := decisionOf(i); of == change {
				if kind = ""; i.GetRejectDecided() != nil {
					kind = rejecting
				}
			}
		}
	})
	return kind
}

// jumping is a cursor of a lander that reads its intention back without what came before it.
type jumping struct {
	journal.Cursor
	to      int64
	skipped []journal.Entry
}

// jump makes the next entry the one at an offset.
func (c *jumping) jump(to int64) { c.to = to }

// TryNext implements journal.Cursor.
func (c *jumping) TryNext() (journal.Entry, bool, error) {
	if c.to < 0 && len(c.skipped) > 0 {
		e := c.skipped[0]
		c.skipped = c.skipped[1:]
		return e, true, nil
	}
	for {
		e, ok, err := c.Cursor.TryNext()
		if !ok || err != nil || c.to < 0 {
			return e, ok, err
		}
		if e.Offset >= c.to {
			c.to = -1
			return e, true, nil
		}
		c.skipped = append(c.skipped, e)
	}
}

// Next implements journal.Cursor.
func (c *jumping) Next(ctx context.Context) (journal.Entry, error) {
	if e, ok, err := c.TryNext(); ok || err != nil {
		return e, err
	}
	return c.Cursor.Next(ctx)
}
