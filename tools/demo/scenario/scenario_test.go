package scenario

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/demo/sample"
)

func TestTheSeedDecidesTheOrder(t *testing.T) {
	r, err := sample.Make(t.Context(), filepath.Join(t.TempDir(), "sample.git"))
	if err != nil {
		t.Fatal(err)
	}
	names := func(seed uint64) (out []string) {
		for _, c := range (&Scenario{Sample: r, Seed: seed}).order() {
			out = append(out, c.Name)
		}
		return out
	}
	one, again, two := names(1), names(1), names(2)
	if len(one) != len(r.Changes)-2 {
		t.Errorf("%d of %d changes arrive, beside the slow one and the hotfix", len(one), len(r.Changes))
	}
	same := 0
	for i := range one {
		if one[i] != again[i] {
			t.Errorf("place %d: %s and %s with one seed", i, one[i], again[i])
		}
		if one[i] == two[i] {
			same++
		}
	}
	if same == len(one) {
		t.Error("another seed gives the same order")
	}
	if last := r.Find(one[len(one)-1]); last.Want != sample.Invalid {
		t.Errorf("%s comes last", last.Name)
	}
}

func seen(name string, revision uint64, state string) client.Seen {
	return client.Seen{Change: &view.Update{Summary: view.Summary{Change: name, Revision: revision, State: state}}}
}

func TestAResubmittedChangeIsDecidedByItsSecondRevision(t *testing.T) {
	s := newState()
	c := &sample.Change{Name: "again", Better: []sample.Commit{{}}}
	s.fold(seen("again", 1, view.StateRejected))
	if s.isDecided(c) || !s.admitted("again", 1) || s.admitted("again", 2) {
		t.Error("the first revision decides")
	}
	s.fold(seen("again", 2, view.StateTesting))
	if s.isDecided(c) || !s.admitted("again", 2) {
		t.Error("a revision in the queue is decided, or not admitted")
	}
	s.fold(seen("again", 2, view.StateLanded))
	if !s.isDecided(c) || s.decided() != 1 {
		t.Error("it is not decided")
	}
}

func TestAwaitEndsWithTheConditionOrTheContext(t *testing.T) {
	s := newState()
	done := make(chan error)
	go func() { done <- s.await(t.Context(), func() bool { return s.admitted("x", 1) }) }()
	s.fold(seen("other", 1, view.StateWaiting))
	s.fold(seen("x", 1, view.StateWaiting))
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.await(ctx, func() bool { return false }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOnlyAGatewayThatIsAwayIsAskedAgain(t *testing.T) {
	s, asked := &Scenario{}, 0
	answers := []error{client.ErrUnreachable, &client.Failure{Status: http.StatusServiceUnavailable}, nil}
	if err := s.patiently(t.Context(), func() error { asked++; return answers[asked-1] }); err != nil || asked != 3 {
		t.Errorf("%v after %d", err, asked)
	}
	asked = 0
	no := &client.Failure{Status: http.StatusConflict}
	if err := s.patiently(t.Context(), func() error { asked++; return no }); !errors.Is(err, no) || asked != 1 {
		t.Errorf("%v after %d", err, asked)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.patiently(ctx, func() error { return client.ErrUnreachable }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestTheFirstErrorOfACrewEndsTheOthers(t *testing.T) {
	c := &crew{ctx: t.Context()}
	failure := errors.New("no")
	c.must(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	c.must(func(context.Context) error { return failure })
	if err := c.wait(); !errors.Is(err, failure) {
		t.Error(err)
	}
}
