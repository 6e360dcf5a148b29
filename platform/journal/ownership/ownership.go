// Package ownership decides which partitions of a topic a process of a service works on, and keeps
// one goroutine running for each. Ownership is advice: two processes may believe for a while that they
// own one partition (a stalled one does not know that it was replaced). Terms decide whose records
// count (journal.Terms).
package ownership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Work is what a service does for a partition that it owns. It runs until its context ends, then it
// returns as soon as it can: the partition's next owner waits for it. An error while the partition is
// still owned starts it again after a while, from nothing: it folds the log again.
type Work func(ctx context.Context, partition int32) error

// Owner keeps work running for the partitions of a topic that this process owns, until ctx ends or
// ownership itself fails. It returns when all work has returned.
type Owner interface {
	Run(ctx context.Context, service, topic string, work Work) error
}

// Waits between an error of a partition's work and its next start.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
	// After work that has run this long, the next error waits the shortest time again.
	wellAfter = 30 * time.Second
)

// Static owns a fixed set of partitions: for a single process, and for tests.
type Static struct {
	Log *slog.Logger
	// Partitions are all those below this number.
	Partitions int32
}

// Run implements Owner.
func (s Static) Run(ctx context.Context, service, topic string, work Work) error {
	running := newPartitions(s.Log.With("service", service, "topic", topic), work)
	for p := range s.Partitions {
		running.start(ctx, p)
	}
	<-ctx.Done()
	running.stopAll()
	return nil
}

// partitions are the goroutines of the partitions owned now.
type partitions struct {
	log  *slog.Logger
	work Work

	mu  sync.Mutex
	own map[int32]*running
}

type running struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func newPartitions(log *slog.Logger, work Work) *partitions {
	return &partitions{log: log, work: work, own: map[int32]*running{}}
}

// start begins a partition's work; one that runs already goes on.
func (ps *partitions) start(ctx context.Context, partition int32) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.own[partition] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &running{cancel: cancel, ended: make(chan struct{})}
	ps.own[partition] = r
	go func() {
		defer close(r.ended)
		ps.keepRunning(ctx, partition)
	}()
}

// stop ends partitions' work and waits for it.
func (ps *partitions) stop(numbers ...int32) {
	ps.mu.Lock()
	var ending []*running
	for _, p := range numbers {
		if r := ps.own[p]; r != nil {
			r.cancel()
			ending = append(ending, r)
			delete(ps.own, p)
		}
	}
	ps.mu.Unlock()
	for _, r := range ending {
		<-r.ended
	}
}

func (ps *partitions) stopAll() {
	ps.mu.Lock()
	var all []int32
	for p := range ps.own {
		all = append(all, p)
	}
	ps.mu.Unlock()
	ps.stop(all...)
}

func (ps *partitions) keepRunning(ctx context.Context, partition int32) {
	log := ps.log.With("partition", partition)
	for backoff := firstBackoff; ; {
		began := time.Now()
		err := ps.runOnce(ctx, partition)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				log.Debug("partition given up", "error", err)
			}
			return
		}
		if err == nil {
			err = errors.New("it returned without an error")
		}
		if time.Since(began) > wellAfter {
			backoff = firstBackoff
		}
		log.Warn("work on a partition failed; it starts again from the log", "in", backoff.String(), "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// runOnce turns a panic into an error: one queue's bad record must not end the others' partitions.
func (ps *partitions) runOnce(ctx context.Context, partition int32) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, stack())
		}
	}()
	return ps.work(ctx, partition)
}
