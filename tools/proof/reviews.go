package proof

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/lander"
)

// reviews are the branches under review of a remote.
type reviews struct {
	r        *rand.Rand
	tally    *Tally
	healthy  func() bool
	takeOver func()
	zombies  bool
	branches map[string]*branch
	inFlight []move
	// pushes counts what authors push while theirs is moved.
	pushes int
}

// branch is one under review.
type branch struct {
	// at is where it is, pushed what its author has pushed last.
	at, pushed string
	// failed: to move it has failed. late: it was moved by somebody who is not in office any more, or by a push that nobody waited for.
	failed, late bool
	// kept counts how often it could not be taken back in a row.
	kept int
}

// move is a compare-and-swap of a branch.
type move struct {
	branch   *branch
	from, to string
}

func (v move) arrive() bool {
	if v.branch.at != v.from {
		return false
	}
	v.branch.at = v.to
	return true
}

// review draws whose changes are under review, and what happens around it.
func (s *schedule) review(x *site) {
	if s.reviews == nil {
		return
	}
	x.main.reviews = &reviews{
		r: s.reviews, tally: s.m.tally, healthy: func() bool { return s.healthy }, zombies: s.m.zombies,
		takeOver: func() { x.main.owner.takeOver() }, branches: map[string]*branch{},
	}
}

// of returns the review of an entry of a change, which its author has pushed; nil for none.
func (v *reviews) of(change string, n int, commit string) *eventsv1.Review {
	if v == nil {
		return nil
	}
	name := fmt.Sprintf("refs/heads/%s/%d", change, n)
	b := v.branches[name]
	if b == nil {
		b = &branch{}
		v.branches[name] = b
	}
	if b.pushed != commit {
		b.at, b.pushed = commit, commit
	}
	return &eventsv1.Review{Branch: name, Shown: name}
}

// disturb is what happens while a branch is moved.
func (v *reviews) disturb(b *branch) {
	if v.healthy() {
		return
	}
	if v.zombies && v.r.IntN(6) == 0 {
		v.takeOver()
	}
	if v.r.IntN(8) == 0 {
		v.pushes++
		b.pushed = fmt.Sprintf("more%d", v.pushes)
		b.at = b.pushed
	}
}

var errNotThere = errors.New("the branch is somewhere else")

// try moves a branch, as well as that can be had.
func (v *reviews) try(m move, stale bool) error {
	v.disturb(m.branch)
	answer := pushAnswered
	if !v.healthy() && v.r.IntN(4) == 0 {
		answer = pushAnswer(1 + v.r.IntN(3))
	}
	switch answer {
	case pushLost:
		return errNoAnswer
	case pushLate:
		v.inFlight = append(v.inFlight, m)
		return errNoAnswer
	}
	arrived := m.arrive()
	m.branch.late = m.branch.late || arrived && stale
	switch {
	case answer == pushUnanswered:
		return errNoAnswer
	case !arrived && m.branch.at != m.to:
		return errNotThere
	}
	return nil
}

// arriveLate lets a push arrive of which nobody waits for the answer any more.
func (v *reviews) arriveLate() {
	if v != nil && len(v.inFlight) > 0 {
		m := v.inFlight[0]
		m.branch.late = m.arrive() || m.branch.late
		v.inFlight = v.inFlight[1:]
	}
}

// MoveHeads is a compare-and-swap of each branch.
func (m remote) MoveHeads(_ context.Context, heads []*eventsv1.ReviewHead) (err error) {
	for _, h := range heads {
		if !m.made[h.To] {
			return lander.ErrUnknownCommit
		}
		b := m.reviews.branches[h.Review.Branch]
		m.reviews.tally[MovedHeads]++
		if wrong := m.reviews.try(move{b, h.From, h.To}, m.number != m.office); wrong != nil {
			b.failed, err = true, wrong
		}
	}
	return err
}

// TakeBackHeads is one too.
func (m remote) TakeBackHeads(_ context.Context, heads []*eventsv1.ReviewHead) (err error) {
	for _, h := range heads {
		b := m.reviews.branches[h.Review.Branch]
		m.reviews.tally[HeadsTakenBack]++
		switch wrong := m.reviews.try(move{b, h.To, h.From}, m.number != m.office); {
		case wrong == nil, wrong == errNotThere:
			b.kept = 0
		default:
			b.kept++
			b.late = b.late || b.kept >= 5 // then it stays, and the lander says so
			err = wrong
		}
	}
	return err
}

// reviews holds branches under review against what the log says. What an author has pushed is never lost; a branch is at what landed, or
// where its author has pushed it.
func (k *checker) reviews() {
	v := k.x.main.reviews
	if v == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v.branches)) {
		b := v.branches[name]
		var known, landed bool
		for _, h := range k.heads {
			if h.Review.Branch != name || h.From != b.pushed {
				continue
			}
			if b.at == h.To {
				known = true
			}
			if k.came[h.To] && (b.at == h.To || b.at == b.pushed) {
				landed = true
			}
		}
		switch {
		case b.at != b.pushed && !known:
			k.bad(Lost, "%s is at %.8s: what its author has pushed is gone", name, b.at)
		case b.late:
		case b.at != b.pushed && !landed:
			k.bad(Disordered, "%s stays at %.8s, which did not land", name, b.at)
		case b.at == b.pushed && landed && !b.failed:
			k.bad(Disordered, "%s is not at what landed", name)
		}
	}
}
