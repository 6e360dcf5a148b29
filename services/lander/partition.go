package lander

import (
	"context"
	"fmt"
	"log/slog"
	"sort"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/journal"
	"landfall.build/services/snapshot"
	"landfall.build/services/stage"
)

// Options of the lander.
type Options struct {
	stage.Options
	// Mainlines are the branches of the configured queues, by queue.
	Mainlines map[string]Mainline
	// Troubles, if set, is told of mainlines that cannot be worked on, for metrics.
	Troubles *Troubles
}

// Partition is the lander on one partition, under one term. It does one thing at a time; a crash between
// any two of them loses nothing and lands nothing twice.
type Partition struct {
	o         Options
	partition int32
	term      int64
	queues    map[string]*queue

	changes, decisions, builds                journal.Cursor
	changesTerms, decisionsTerms, buildsTerms *journal.Terms
	// changesRead, decisionsRead and buildsRead are the offsets up to which the topics are folded.
	changesRead, decisionsRead, buildsRead int64
	// ends is where the topics that are not read to a claim ended at the start.
	ends struct{ decisions, builds int64 }
	// live: all that was there at the start is folded.
	live bool
	// folded counts records since the keeper was last told.
	folded int
	keeper *snapshot.Keeper
	logger *slog.Logger
}

// Take claims the partition and folds the log up to the claim.
func Take(ctx context.Context, o Options, partition int32) (*Partition, error) {
	term, err := stage.Claim(ctx, o.Log, events.ServiceLander, o.Instance, o.Version, events.TopicChanges, partition, o.Now())
	if err != nil {
		return nil, err
	}
	p := newPartition(o, partition, term)
	p.keeper = snapshot.NewKeeper(o.Snapshots, snapshot.Key{Log: o.Log.ID(), Service: events.ServiceLander, Partition: partition}, o.Logger)
	if state, ok := p.keeper.Load(); ok {
		if thawed, err := thaw(ctx, o, partition, term, state); err != nil {
			p.keeper.Drop(err)
		} else {
			thawed.keeper, p = p.keeper, thawed
		}
	}
	for _, c := range []struct {
		topic string
		from  int64
		into  *journal.Cursor
	}{
		{events.TopicChanges, p.changesRead, &p.changes}, {events.TopicDecisions, p.decisionsRead, &p.decisions},
		{events.TopicBuilds, p.buildsRead, &p.builds},
	} {
		if *c.into, err = o.Log.Follow(ctx, c.topic, partition, c.from); err != nil {
			p.Close()
			return nil, err
		}
	}
	if err := p.readChangesTo(ctx, term); err != nil {
		p.Close()
		return nil, err
	}
	if p.ends.decisions, err = o.Log.End(ctx, events.TopicDecisions, partition); err == nil {
		p.ends.builds, err = o.Log.End(ctx, events.TopicBuilds, partition)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func newPartition(o Options, partition int32, term int64) *Partition {
	return &Partition{
		o: o, partition: partition, term: term, queues: map[string]*queue{}, logger: o.Logger,
		changesTerms: journal.NewTerms(events.TopicChanges), decisionsTerms: journal.NewTerms(events.TopicDecisions),
		buildsTerms: journal.NewTerms(events.TopicBuilds),
	}
}

// Close ends the reading. Of mainlines that it could not work on somebody else will tell.
func (p *Partition) Close() {
	for name := range p.queues {
		p.o.Troubles.set(name, eventsv1.MainlineTrouble_MAINLINE_TROUBLE_UNSPECIFIED)
	}
	for _, c := range []journal.Cursor{p.changes, p.decisions, p.builds} {
		if c != nil {
			c.Close()
		}
	}
}

func (p *Partition) queue(name string) *queue {
	q := p.queues[name]
	if q == nil {
		q = newQueue()
		p.queues[name] = q
	}
	return q
}

// readChangesTo folds landfall.changes up to and including an offset.
func (p *Partition) readChangesTo(ctx context.Context, offset int64) error {
	for {
		e, err := p.changes.Next(ctx)
		if err != nil {
			return err
		}
		if err := p.foldChange(e); err != nil {
			return err
		}
		if e.Offset >= offset {
			return nil
		}
	}
}

func (p *Partition) foldChange(e journal.Entry) error {
	p.changesRead, p.folded = e.Offset+1, p.folded+1
	counts := p.changesTerms.Counts(e)
	if last := p.changesTerms.Last(events.ServiceLander); last > p.term {
		return stage.ErrSuperseded
	}
	if counts && e.Queue != "" {
		p.queue(e.Queue).change(e.Message, e.Offset)
	}
	return nil
}

// Fold reads what has arrived in all three topics without waiting.
func (p *Partition) Fold() (read bool, err error) {
	for {
		e, ok, err := p.changes.TryNext()
		if err != nil {
			return read, err
		}
		if !ok {
			break
		}
		read = true
		if err := p.foldChange(e); err != nil {
			return read, err
		}
	}
	for {
		e, ok, err := p.decisions.TryNext()
		if err != nil {
			return read, err
		}
		if !ok {
			break
		}
		read = true
		p.decisionsRead, p.folded = e.Offset+1, p.folded+1
		counts := p.decisionsTerms.Counts(e)
		if d, is := e.Message.(*eventsv1.Decision); is && counts {
			p.queue(e.Queue).decide(d)
		}
	}
	for {
		e, ok, err := p.builds.TryNext()
		if err != nil || !ok {
			return read, err
		}
		read = true
		p.foldBuild(e)
	}
}

func (p *Partition) foldBuild(e journal.Entry) {
	p.buildsRead, p.folded = e.Offset+1, p.folded+1
	if !p.buildsTerms.Counts(e) {
		return
	}
	switch f := e.Message.(type) {
	case *eventsv1.StepFinished:
		p.queue(e.Queue).step(f)
	case *eventsv1.EvidenceForgotten:
		p.queue(e.Queue).forget(f)
	case *eventsv1.BuildPrepared:
		p.queue(e.Queue).prepared(f)
	}
}

// Ready are the channels that a loop waits on.
func (p *Partition) Ready() (changes, decisions, builds <-chan struct{}) {
	return p.changes.Ready(), p.decisions.Ready(), p.builds.Ready()
}

// Step acts once for each queue that has something to act on: settle an open intention, else answer the
// next decision. It says whether it did anything. An error of a mainline leaves the queue as it is, and is told
// when it lasts; any error returned ends the ownership.
func (p *Partition) Step(ctx context.Context) (did bool, err error) {
	for _, name := range p.names() {
		q := p.queues[name]
		m := p.o.Mainlines[name]
		now := p.o.Now() // one time for all that is asked of it: a clock may run backwards
		if m == nil || (q.lineup.Intention == nil && q.next(now) == nil) {
			continue
		}
		acted := p.act(ctx, name, q, m, now)
		if err := p.attempted(ctx, name, q, acted); err != nil {
			return did, err
		}
		did = did || acted == nil
	}
	return did, nil
}

func (p *Partition) names() []string {
	names := make([]string, 0, len(p.queues))
	for n := range p.queues {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

func (p *Partition) act(ctx context.Context, name string, q *queue, m Mainline, now time.Time) error {
	if q.lineup.Intention != nil {
		return p.settle(ctx, name, q, m)
	}
	d := q.next(now)
	if d.builds > p.buildsRead {
		if err := p.readBuildsTo(ctx, d.builds); err != nil {
			return err
		}
	}
	if err := p.follow(ctx, name, q, m); err != nil {
		return err
	}
	if d = q.next(now); d == nil {
		return nil // reading on answered it
	}
	return p.answer(ctx, name, q, m, *d)
}

func (p *Partition) readBuildsTo(ctx context.Context, offset int64) error {
	for p.buildsRead < offset {
		e, err := p.builds.Next(ctx)
		if err != nil {
			return err
		}
		p.foldBuild(e)
	}
	return nil
}

// Follow looks at the remote and writes a MainlineMoved for every commit that came past the queue.
func (p *Partition) Follow(ctx context.Context, name string) error {
	m, q := p.o.Mainlines[name], p.queue(name)
	if m == nil || q.lineup.Intention != nil {
		return nil
	}
	err := p.follow(ctx, name, q, m)
	if err == nil && !q.trouble.since.IsZero() && q.next(p.o.Now()) != nil {
		return nil // what failed may be what is to be done on it: that is tried next
	}
	return p.attempted(ctx, name, q, err)
}

func (p *Partition) follow(ctx context.Context, name string, q *queue, m Mainline) error {
	head, err := m.Head(ctx)
	if err != nil {
		return unreadable(err)
	}
	from := q.lineup.Head
	switch {
	case head == from:
		return nil
	case from == "":
		return p.write(ctx, name, "", &eventsv1.MainlineMoved{To: head, Initial: true, StampUs: p.o.Now().UnixMicro()}, head)
	}
	moves, forced, err := m.Between(ctx, from, head)
	if err != nil {
		return unreadable(err)
	}
	if forced {
		dropped, err := q.landings.missing(ctx, m, head)
		if err != nil {
			return unreadable(err)
		}
		return p.write(ctx, name, "", &eventsv1.MainlineMoved{From: from, To: head, Forced: true, Dropped: dropped, StampUs: p.o.Now().UnixMicro()}, from, head, q.nth())
	}
	for _, x := range moves {
		if err := p.write(ctx, name, "", &eventsv1.MainlineMoved{
			From: from, To: x.Commit, Author: x.Author, Title: x.Title, StampUs: p.o.Now().UnixMicro(),
		}, from, x.Commit, q.nth()); err != nil {
			return err
		}
		from = x.Commit
	}
	return nil
}

// nth tells a move of the mainline from the same one made before: somebody may push to and fro.
func (q *queue) nth() string { return strconv.FormatUint(q.lineup.Sequence, 10) }

// write appends one record under the lander's term and reads on up to it: what it meant is decided by the
// fold, not by having been written.
func (p *Partition) write(ctx context.Context, name, subject string, m proto.Message, identity ...string) error {
	offsets, err := p.o.Log.Append(ctx, events.TopicChanges, p.partition, events.Envelope{
		ID:     events.DeriveID(p.o.Log.ID(), append([]string{events.TypeOf(m), name, strconv.FormatInt(p.term, 10)}, identity...)...),
		Source: events.ServiceLander, Instance: p.o.Instance, Queue: name, Subject: subject,
		Time: p.o.Now(), Term: p.term, Message: m,
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", events.TypeOf(m), err)
	}
	return p.readChangesTo(ctx, offsets[0])
}
