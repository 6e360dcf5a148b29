// Package scenario is what the people of the sample do within half a minute: they ask for all of its
// changes at once, through the API and through the topic of land requests, and then one cancels, one does
// better what was rejected, one needs a hotfix first, and one pushes past the queue.
//
// It only acts and waits. What has to become of each change stands in the sample.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"landfall.build/platform/gitrepo"
	"landfall.build/services/gateway/view"
	"landfall.build/tools/client"
	"landfall.build/tools/demo/sample"
)

// Scenario is a run of it.
type Scenario struct {
	// Server is the gateway's address, Queue the queue there that lands on the sample's mainline.
	Server, Queue string
	// Brokers are the log's addresses: some land requests are published there.
	Brokers []string
	// Secret, if set, returns the file with the secret that they ask for, "" for none.
	Secret func() string
	Sample *sample.Repository
	// Clone is a mirror of the sample's repository, for the push past the queue.
	Clone *gitrepo.Repo
	// Seed decides in which order people come, and nothing else.
	Seed   uint64
	Logger *slog.Logger
	// Seen, if set, is called with everything that the gateway sends, by one goroutine.
	Seen func(client.Seen)
	// Note, if set, is called with a sentence for what somebody does that the gateway does not send. It is called
	// by several goroutines.
	Note func(text string)
	// Stillness is how long nothing may happen, and the gateway may stay away, before the run is given up; at least
	// 90 s and 60 s.
	Stillness time.Duration
	// Middle, if set, is called once, when a third of the changes is decided.
	Middle func(ctx context.Context) error

	client *client.Client
	state  *state
}

// ErrUndecided is returned if changes are still pending although nothing has happened for long.
var ErrUndecided = errors.New("changes are still undecided")

const (
	// stillness is the least that Scenario.Stillness is.
	stillness = 90 * time.Second
	// slice of the changes after which something happens: pushes, kills.
	middle = 3
)

// Run plays the scenario until every change is decided, and returns the changes as they ended, by name.
func (s *Scenario) Run(ctx context.Context) (map[string]view.Change, error) {
	var err error
	if s.client, err = client.New(s.Server, "demo"); err != nil {
		return nil, err
	}
	s.state = newState()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(fmt.Errorf("what happens cannot be followed any more: %w", s.follow(ctx))) }()
	crew := &crew{ctx: ctx}
	order := s.order()
	crew.must(func(ctx context.Context) error { return s.submit(ctx, s.Sample.Find(sample.Slow), 1) })
	if err := crew.wait(); err != nil {
		return nil, err
	}
	for at, c := range order {
		crew.must(func(ctx context.Context) error { return s.arrive(ctx, c, at) })
	}
	crew.must(s.withdraw)
	crew.must(s.resubmit)
	crew.must(s.hotfix)
	crew.must(s.pushPast)
	if s.Middle != nil {
		crew.must(func(ctx context.Context) error {
			if err := s.state.await(ctx, func() bool { return s.state.decided() >= len(s.Sample.Changes)/middle }); err != nil {
				return err
			}
			return s.Middle(ctx)
		})
	}
	crew.must(s.finish)
	if err := crew.wait(); err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		return nil, err
	}
	return s.gather(ctx)
}

// follow applies what the gateway sends, until it does not answer for long: for a minute, which the client gives it,
// and for Stillness.
func (s *Scenario) follow(ctx context.Context) error {
	for last := time.Now(); ; {
		before := s.state.happened()
		err := s.client.Events(ctx, s.Queue, nil, func(seen client.Seen) bool {
			s.state.fold(seen)
			if s.Seen != nil {
				s.Seen(seen)
			}
			return false
		})
		if s.state.happened() > before {
			last = time.Now()
		}
		if !isAway(err) || time.Since(last) >= s.Stillness {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// order is the one in which people come. The slow change is there already, and the hotfix comes later. The
// change that defines no valid targets comes last: as it is not known what it affects, it conflicts with everything
// (M4), and everybody behind it would wait as long as it does.
func (s *Scenario) order() []*sample.Change {
	var out, last []*sample.Change
	for i := range s.Sample.Changes {
		switch c := &s.Sample.Changes[i]; {
		case c.Want == sample.Invalid:
			last = append(last, c)
		case c.Name != sample.Slow && c.Name != sample.Hotfix:
			out = append(out, c)
		}
	}
	random := rand.New(rand.NewPCG(s.Seed, 0))
	random.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return append(out, last...)
}

// finish waits until everything is decided, or nothing happens any more.
func (s *Scenario) finish(ctx context.Context) error {
	patience := max(stillness, s.Stillness)
	for {
		before := s.state.happened()
		still, cancel := context.WithTimeout(ctx, patience)
		err := s.state.await(still, func() bool { return s.state.happened() > before || s.state.allDecided(s.Sample) })
		cancel()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%w, and nothing has happened for %s: %s", ErrUndecided, patience, s.state.undecided(s.Sample))
		}
		if s.state.allDecided(s.Sample) {
			return nil
		}
	}
}

// gather asks for every change once more, whole.
func (s *Scenario) gather(ctx context.Context) (map[string]view.Change, error) {
	out := map[string]view.Change{}
	for _, c := range s.Sample.Changes {
		var whole view.Change
		if err := s.patiently(ctx, func() (err error) {
			whole, err = s.client.Change(ctx, s.Queue, c.Name)
			return err
		}); err != nil {
			return nil, err
		}
		out[c.Name] = whole
	}
	return out, nil
}

func (s *Scenario) note(format string, arguments ...any) {
	if s.Note != nil {
		s.Note(fmt.Sprintf(format, arguments...))
	}
}
