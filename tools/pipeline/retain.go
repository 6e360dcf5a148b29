package pipeline

import (
	"context"
	"maps"
	"time"

	"landfall.build/engine/lineup"
	"landfall.build/events"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/platform/retention"
)

// retainMirrors frees now and then what nothing in the process's mirrors needs, until the context ends; then the channel is
// closed. One service of a process does it.
func (p *Process) retainMirrors(ctx context.Context) (done <-chan struct{}) {
	ended := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retaining {
		close(ended)
		return ended
	}
	p.retaining = true
	go func() {
		defer close(ended)
		every := p.Configuration.Retention.Every
		pending := newPendingCommits(p.Log)
		// A process that is often started again gets to it as well.
		for wait := every / 10; ; wait = every {
			select {
			case <-ctx.Done():
				p.mu.Lock()
				p.retaining = false
				p.mu.Unlock()
				return
			case <-time.After(wait):
				p.pruneMirrors(ctx, pending)
			}
		}
	}()
	return ended
}

// pruneMirrors looks at each mirror once. What fails is tried again the next time.
func (p *Process) pruneMirrors(ctx context.Context, pending *pendingCommits) {
	p.mu.Lock()
	mirrors := maps.Clone(p.mirrors)
	p.mu.Unlock()
	if len(mirrors) == 0 {
		return
	}
	commits, err := pending.read(ctx)
	if err != nil {
		if ctx.Err() == nil {
			p.Logger.Warn("mirrors are not pruned: it is not known which changes are pending", "error", err)
		}
		return
	}
	bounds, total := p.Configuration.Retention.Mirrors, int64(0)
	for name, m := range mirrors {
		o := gitrepo.PruneOptions{Age: bounds.Age, Waste: int64(bounds.Waste), Commits: commits}
		for _, queue := range p.Configuration.Queues {
			if queue.Repository == name {
				o.Branches = append(o.Branches, queue.Branch)
			}
		}
		pruned, err := m.Prune(ctx, o)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.Logger.Warn("a mirror could not be pruned", "repository", name, "error", err)
		}
		if pruned.Refs > 0 || pruned.Bytes > 0 {
			p.Logger.Info("mirror pruned", "repository", name, "refs", pruned.Refs, "bytes", pruned.Bytes, "left", pruned.Size,
				"why", "not used for "+retention.Shown(bounds.Age)+" (retention.mirrors.age)")
		}
		total += pruned.Size
		p.kept.Delete(keptMirrors, pruned.Bytes)
	}
	p.kept.Keep(keptMirrors, total)
}

const keptMirrors = "mirrors"

// pendingCommits folds which commits pending changes have, of all queues.
type pendingCommits struct {
	log        journal.Log
	partitions []*pendingPartition
}

type pendingPartition struct {
	next   int64
	terms  *journal.Terms
	queues map[string]*lineup.Queue
}

func newPendingCommits(log journal.Log) *pendingCommits {
	f := &pendingCommits{log: log}
	for range log.Partitions() {
		f.partitions = append(f.partitions, &pendingPartition{terms: journal.NewTerms(events.TopicChanges), queues: map[string]*lineup.Queue{}})
	}
	return f
}

// read reads what has come, and returns the commits that pending changes and open intentions name, with the heads of the mainlines.
func (f *pendingCommits) read(ctx context.Context) (commits []string, err error) {
	for number, p := range f.partitions {
		if err := p.read(ctx, f.log, int32(number)); err != nil {
			return nil, err
		}
		for _, q := range p.queues {
			commits = append(commits, commitsOf(q)...)
		}
	}
	return commits, nil
}

func (p *pendingPartition) read(ctx context.Context, log journal.Log, number int32) error {
	end, err := log.End(ctx, events.TopicChanges, number)
	if err != nil {
		return err
	}
	r, err := reading.To(ctx, log, events.TopicChanges, number, end, reading.Options{From: p.next})
	if err != nil {
		return err
	}
	defer r.Close()
	for {
		e, err := r.Take(ctx)
		if err != nil || e == nil {
			return err
		}
		p.next = e.Offset + 1
		if !p.terms.Counts(*e) || e.Queue == "" || e.Message == nil {
			continue
		}
		if p.queues[e.Queue] == nil {
			p.queues[e.Queue] = lineup.New()
		}
		p.queues[e.Queue].Apply(e.Message, e.Offset)
	}
}

func commitsOf(q *lineup.Queue) (commits []string) {
	add := func(ids ...string) {
		for _, id := range ids {
			if gitrepo.IsID(id) {
				commits = append(commits, id)
			}
		}
	}
	add(q.Head)
	for _, c := range q.Order() {
		for _, l := range c.Admission.LandingCommits {
			add(l.Base, l.Head)
		}
	}
	if q.Intention != nil {
		add(q.Intention.Fact.Commits...)
	}
	return commits
}
