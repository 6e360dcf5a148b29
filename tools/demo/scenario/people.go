package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/demo/sample"
)

// withdraw cancels a change that waits for the slow one, so that it surely still waits.
func (s *Scenario) withdraw(ctx context.Context) error {
	c := s.Sample.Find(sample.Withdrawn)
	if err := s.state.await(ctx, func() bool { return s.state.admitted(c.Name, 1) }); err != nil {
		return err
	}
	return s.steer(ctx, c, "cancel", api.SteerBody{Who: c.Author.Name, Why: "the seasons are good as they are"}, func(u view.Update) bool {
		return u.State == view.StateCancelled
	})
}

// resubmit pushes better commits once the first ones were rejected.
func (s *Scenario) resubmit(ctx context.Context) error {
	c := s.Sample.Find(sample.Resubmitted)
	if err := s.state.await(ctx, func() bool {
		u, known := s.state.at(c.Name)
		return known && view.Final(u.State)
	}); err != nil {
		return err
	}
	if u, _ := s.state.at(c.Name); u.State != view.StateRejected {
		return fmt.Errorf("%s, which is wrong at first, is %s: %s", c.Name, u.State, u.Why)
	}
	if err := s.Sample.Resubmit(ctx, c); err != nil {
		return err
	}
	s.note("%s corrects %s and submits it again", c.Author.Name, c.Name)
	return s.submit(ctx, c, 2)
}

// hotfix comes when all others are there, and goes to the front.
func (s *Scenario) hotfix(ctx context.Context) error {
	c := s.Sample.Find(sample.Hotfix)
	if err := s.state.await(ctx, func() bool {
		for i := range s.Sample.Changes {
			if other := &s.Sample.Changes[i]; other.Name != c.Name && !s.state.admitted(other.Name, 1) {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	if err := s.submit(ctx, c, 1); err != nil {
		return err
	}
	return s.steer(ctx, c, "priority", api.SteerBody{Front: true, Who: c.Author.Name, Why: "customers are taxed on refunds"}, func(u view.Update) bool {
		return u.Urgent
	})
}

// steer does something to a change. A gateway that was killed may have done it without an answer, so what
// counts is what is seen then.
func (s *Scenario) steer(ctx context.Context, c *sample.Change, verb string, body api.SteerBody, done func(view.Update) bool) error {
	isDone := func() bool {
		u, known := s.state.at(c.Name)
		return known && done(u)
	}
	err := s.patiently(ctx, func() error {
		if isDone() {
			return nil
		}
		_, err := s.client.Steer(ctx, s.Queue, c.Name, verb, body)
		return err
	})
	if err == nil || ctx.Err() != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if s.state.await(short, isDone) == nil {
		return nil
	}
	return fmt.Errorf("%s of %s: %w", verb, c.Name, err)
}

// pushPast commits on top of the mainline as it is, and pushes, as often as the queue is faster.
func (s *Scenario) pushPast(ctx context.Context) error {
	if err := s.state.await(ctx, func() bool { return s.state.decided() >= len(s.Sample.Changes)/middle }); err != nil {
		return err
	}
	c := &s.Sample.Direct
	commit := c.Commits[len(c.Commits)-1]
	if err := s.Clone.Fetch(ctx, gitrepo.Wanted{Commits: []string{commit.ID}}); err != nil {
		return err
	}
	for range 50 {
		head, pushed, err := s.pushOnce(ctx, c, commit)
		if err == nil {
			s.note("%s pushes %s straight to %s: %q", c.Author.Name, pushed[:12], sample.Branch, commit.Title)
			return nil
		}
		if !errors.Is(err, gitrepo.ErrMoved) {
			return fmt.Errorf("the push past the queue, on %s: %w", head, err)
		}
	}
	return errors.New("the push past the queue lost against the queue 50 times")
}

func (s *Scenario) pushOnce(ctx context.Context, c *sample.Change, commit sample.Commit) (head, pushed string, err error) {
	if err := s.Clone.Fetch(ctx, gitrepo.Wanted{Branches: []string{sample.Branch}}); err != nil {
		return "", "", err
	}
	if head, err = s.Clone.Resolve(ctx, sample.Branch); err != nil {
		return "", "", err
	}
	onto, err := s.Clone.TreeOf(ctx, head)
	if err != nil {
		return head, "", err
	}
	trees, conflict, err := landing.ApplyTree(ctx, s.Clone, onto, []landing.Pick{{Head: commit.ID, Base: s.Sample.Head}})
	if err == nil && conflict != nil {
		err = fmt.Errorf("it does not merge: %s", conflict)
	}
	if err != nil {
		return head, "", err
	}
	who := gitrepo.Identity{Name: c.Author.Name, Email: c.Author.Email, Date: fmt.Sprintf("%d +0000", time.Now().Unix())}
	pushed, err = s.Clone.WriteCommit(ctx, gitrepo.CommitSpec{Tree: trees[0], Parents: []string{head}, Author: who, Committer: who, Message: commit.Title + "\n"})
	if err != nil {
		return head, "", err
	}
	return head, pushed, s.Clone.Push(ctx, sample.Branch, head, pushed)
}
