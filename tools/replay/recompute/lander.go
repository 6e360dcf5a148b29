package recompute

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/guard"
	"landfall.build/engine/lineup"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/services/lander"
)

// landerRun is the lander on one partition, as far as the log determines it: that an intention answers its decision
// on the mainline's head with a proof that the guard accepts, and that what closes an intention is the intention's
// own. Which versions and commits the tree has is given, and so is everything that rests on a tree that did not land.
type landerRun struct {
	*check
	changes, decisions, builds *reading.Reading
	authors                    *authorship
	decided                    *journal.Terms
	queues                     map[string]*landerQueue
	// ahead are records of landfall.builds that were read, and are not folded yet.
	ahead []*journal.Entry
}

// landerQueue is what the lander knows of one queue.
type landerQueue struct {
	lineup *lineup.Queue
	ledger *evidence.Ledger
	// landings are the decisions to land pending changes, by id; ofChange has the ids.
	landings map[string]*landDecided
	ofChange map[string][]string
	// quarantined are all quarantines that there were, by name.
	quarantined map[string]*eventsv1.TargetQuarantined
}

// landDecided is a decision to land, with the record that holds it.
type landDecided struct {
	entry    *journal.Entry
	decision *eventsv1.Decision
	item     *eventsv1.LandDecided
}

func checkLander(ctx context.Context, c *check) error {
	r := &landerRun{check: c, authors: newAuthorship(events.ServiceLander, events.TopicChanges), decided: journal.NewTerms(events.TopicDecisions), queues: map[string]*landerQueue{}}
	for _, source := range []struct {
		topic string
		into  **reading.Reading
	}{{events.TopicChanges, &r.changes}, {events.TopicDecisions, &r.decisions}, {events.TopicBuilds, &r.builds}} {
		var err error
		if *source.into, err = c.read(ctx, source.topic); err != nil {
			return err
		}
		defer r.close(*source.into)
	}
	for {
		e, err := r.changes.Take(ctx)
		if err != nil || e == nil {
			return err
		}
		counts := r.authors.counts(e)
		if r.authors.isRecord(e) {
			if err := r.record(ctx, e, counts); err != nil {
				return err
			}
		}
		if counts && e.Queue != "" {
			r.queue(e.Queue).fold(e)
		}
	}
}

func (r *landerRun) queue(name string) *landerQueue {
	q := r.queues[name]
	if q == nil {
		q = &landerQueue{lineup: lineup.New(), ledger: evidence.NewLedger(), landings: map[string]*landDecided{}, ofChange: map[string][]string{},
			quarantined: map[string]*eventsv1.TargetQuarantined{}}
		r.queues[name] = q
	}
	return q
}

// fold takes one counted fact of landfall.changes.
func (q *landerQueue) fold(e *journal.Entry) {
	consequence := q.lineup.Apply(e.Message, e.Offset)
	if consequence.Left != nil {
		for _, id := range q.ofChange[consequence.Left.ID()] {
			delete(q.landings, id)
		}
		delete(q.ofChange, consequence.Left.ID())
	}
	if f, is := e.Message.(*eventsv1.TargetQuarantined); is {
		q.quarantined[f.Target] = f
	}
	q.ledger.Quarantine(e.Message)
	if !consequence.Applied {
		return
	}
	q.ledger.TakeBack(e.Message)
}

// record counts one record of the lander, and holds it against the log before it.
func (r *landerRun) record(ctx context.Context, e *journal.Entry, counts bool) error {
	r.findings.Records++
	switch {
	case !counts:
		r.findings.NotCounted++
		return nil
	case !determined(e.Message), r.queue(e.Queue).tooLate(e.Message):
		r.findings.Given++
		return nil
	case !r.comparable(r.authors.version):
		r.findings.Others[r.authors.version]++
		return nil
	}
	q := r.queue(e.Queue)
	switch f := e.Message.(type) {
	case *eventsv1.LandIntended:
		return r.intended(ctx, e, f, q)
	case *eventsv1.ChangeLanded:
		return r.closes(e, q, func(i *eventsv1.LandIntended) proto.Message {
			return &eventsv1.ChangeLanded{Change: i.Change, Decision: i.Decision, Base: i.Base, Commits: i.Commits, Tree: i.Tree,
				Proof: i.Proof, Bypasses: i.Bypasses, StampUs: f.StampUs, Deleted: i.Deleted, Quarantined: i.Quarantined}
		})
	case *eventsv1.LandVoid:
		return r.closes(e, q, func(i *eventsv1.LandIntended) proto.Message {
			return &eventsv1.LandVoid{Change: i.Change, Decision: i.Decision, Commit: last(i.Commits), Reason: f.Reason, Refused: f.Refused, Concern: f.Concern, StampUs: f.StampUs}
		})
	}
	return nil
}

// determined says that the log has what a record of the lander rests on.
func determined(m proto.Message) bool {
	switch m.(type) {
	case *eventsv1.LandIntended, *eventsv1.ChangeLanded, *eventsv1.LandVoid:
		return true
	}
	return false
}

// tooLate says that an intention opens nothing: a cancellation or another revision came before it, and the lander
// had not read that when it looked.
func (q *landerQueue) tooLate(m proto.Message) bool {
	f, is := m.(*eventsv1.LandIntended)
	return is && q.lineup.PendingAt(f.Change) == nil && q.lineup.Known(f.GetChange().GetChange()) >= f.GetChange().GetRevision()
}

func last(commits []string) string {
	if len(commits) == 0 {
		return ""
	}
	return commits[len(commits)-1]
}

// closes compares a record with what the open intention makes of it.
func (r *landerRun) closes(e *journal.Entry, q *landerQueue, of func(*eventsv1.LandIntended) proto.Message) error {
	open := q.lineup.Intention
	if open == nil {
		return r.compare(e, r.authors.version, "no intention is open", nil, nil)
	}
	return r.compare(e, r.authors.version, "", of(open.Fact), func() []journal.Entry {
		return []journal.Entry{{Topic: e.Topic, Partition: e.Partition, Offset: open.Offset,
			Envelope: events.Envelope{Source: e.Source, Queue: e.Queue, Message: open.Fact, Term: -1}}}
	})
}

// intended asks the guard again. The lander has read landfall.builds at least as far as the decision did. How far it
// had read is in no record: what it found farther on, because it was proven there, or was forgotten and proven again,
// is looked for there.
func (r *landerRun) intended(ctx context.Context, e *journal.Entry, f *eventsv1.LandIntended, q *landerQueue) error {
	d, err := r.decision(ctx, q, f.Decision)
	if err != nil {
		return err
	}
	if d == nil {
		return r.compare(e, r.authors.version, "it answers no decision that counts", nil, nil)
	}
	if err := r.foldBuilds(ctx, d.decision.Positions.GetBuilds()); err != nil {
		return err
	}
	var c guard.Candidate
	for _, p := range f.Proof {
		c.Versions = append(c.Versions, p.Version)
	}
	defer q.trustAgain(q.distrust(f))
	found := guard.Examine(c, guard.Evidence{Ledger: q.ledger, Policy: d.decision.Steps, Pushes: directpush.New()})
	if !proves(found, f.Proof) {
		if found, err = r.lookAhead(ctx, e.Queue, q, c, d.decision.Steps, found, f.Proof); err != nil {
			return err
		}
	}
	impossible := ""
	if refused := guard.MayLand(c, found); refused != nil {
		impossible = "the guard refuses it: " + refused.Message
	}
	heads := f.Heads
	if c := q.lineup.PendingAt(f.Change); c != nil {
		heads = lander.HeadsOf(c.Admission, f.Commits)
	}
	computed := &eventsv1.LandIntended{
		Change: d.item.Change, Decision: d.item.Decision, Base: q.lineup.Head, Commits: f.Commits, Tree: f.Tree, Proof: found.Proof,
		Bypasses: q.passed(d.item.Bypasses, f.Bypasses), StampUs: d.decision.StampUs, Deleted: f.Deleted,
		Quarantined: f.Quarantined, Heads: heads,
	}
	return r.compare(e, r.authors.version, impossible, computed, func() []journal.Entry { return []journal.Entry{*d.entry} })
}

// distrust brings back the quarantines that cover what an intention tolerated and that ended between the lander's look and its
// record. It returns their names.
func (q *landerQueue) distrust(f *eventsv1.LandIntended) (names []string) {
	for _, p := range f.Proof {
		target := p.GetVersion().GetTarget()
		if !p.Quarantined || q.ledger.Quarantined(target) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(q.quarantined)) {
			if targets.NewNamePatterns([]string{name}).Has(target) {
				q.ledger.Quarantine(q.quarantined[name])
				names = append(names, name)
			}
		}
	}
	return names
}

// trustAgain ends quarantines that distrust brought back.
func (q *landerQueue) trustAgain(names []string) {
	for _, name := range names {
		q.ledger.Quarantine(&eventsv1.QuarantineEnded{Target: name})
	}
}

// passed are the bypassed changes that were pending: those that still are, and those that left the queue between the
// lander's look and its record.
func (q *landerQueue) passed(decided, written []*eventsv1.ChangeRef) []*eventsv1.ChangeRef {
	return slices.DeleteFunc(slices.Clone(decided), func(c *eventsv1.ChangeRef) bool {
		return q.lineup.PendingAt(c) == nil && !slices.ContainsFunc(written, func(w *eventsv1.ChangeRef) bool { return proto.Equal(c, w) })
	})
}

// decision finds a decision to land, reading on until it comes; nil if it does not.
func (r *landerRun) decision(ctx context.Context, q *landerQueue, id string) (*landDecided, error) {
	for q.landings[id] == nil {
		e, err := r.decisions.Take(ctx)
		if err != nil || e == nil {
			return nil, err
		}
		counts := r.decided.Counts(*e)
		d, is := e.Message.(*eventsv1.Decision)
		if !is || !counts {
			continue
		}
		of := r.queue(e.Queue)
		for _, i := range d.Items {
			item := i.GetLandDecided()
			if item == nil || of.lineup.PendingAt(item.Change) == nil && of.lineup.Known(item.Change.Change) >= item.Change.Revision {
				continue // it has left
			}
			of.landings[item.Decision] = &landDecided{e, d, item}
			of.ofChange[item.Change.Change] = append(of.ofChange[item.Change.Change], item.Decision)
		}
	}
	return q.landings[id], nil
}

// foldBuilds folds landfall.builds up to an offset. It is not folded farther for one intention: another lander may
// have read less for the next one.
func (r *landerRun) foldBuilds(ctx context.Context, to int64) error {
	for i := 0; ; i++ {
		e, err := r.buildAt(ctx, i)
		if err != nil {
			return err
		}
		if e == nil || e.Offset >= to {
			r.ahead = r.ahead[i:]
			return nil
		}
		build(r.queue(e.Queue).ledger, e)
	}
}

// lookAhead looks for the proof that was written in what is proven and forgotten farther on. Without it, it gives what
// it found first that the guard accepts, or else what was found.
func (r *landerRun) lookAhead(ctx context.Context, queue string, q *landerQueue, c guard.Candidate, policy *eventsv1.StepPolicy, found guard.Finding, written []*eventsv1.Proof) (guard.Finding, error) {
	var versions []evidence.Version
	for _, v := range c.Versions {
		versions = append(versions, evidence.Version{Target: v.GetTarget(), Hash: v.GetHash()})
	}
	ledger := q.ledger.Of(versions)
	for i := 0; ; i++ {
		e, err := r.buildAt(ctx, i)
		if err != nil || e == nil {
			return found, err
		}
		if e.Queue != queue || !build(ledger, e, versions...) {
			continue
		}
		now := guard.Examine(c, guard.Evidence{Ledger: ledger, Policy: policy, Pushes: directpush.New()})
		if proves(now, written) {
			return now, nil
		}
		if len(found.Missing) > 0 && len(now.Missing) == 0 {
			found = now
		}
	}
}

// proves says whether nothing is missing, and the proof is that which was written.
func proves(found guard.Finding, written []*eventsv1.Proof) bool {
	return len(found.Missing) == 0 && slices.EqualFunc(found.Proof, written, func(a, b *eventsv1.Proof) bool { return proto.Equal(a, b) })
}

// buildAt is the record of landfall.builds that comes so many after those that are folded, nil if there is none.
func (r *landerRun) buildAt(ctx context.Context, i int) (*journal.Entry, error) {
	for len(r.ahead) <= i {
		e, err := r.builds.Take(ctx)
		if err != nil || e == nil {
			return nil, err
		}
		kept := *e
		if f, is := e.Message.(*eventsv1.StepFinished); is {
			kept.Message = evidence.WithoutOutput(f)
		} else if _, is := e.Message.(*eventsv1.EvidenceForgotten); !is {
			kept.Message = nil
		}
		r.ahead = append(r.ahead, &kept)
	}
	return r.ahead[i], nil
}

// build folds a record of landfall.builds, and says whether it did; with versions, only what is about them.
func build(ledger *evidence.Ledger, e *journal.Entry, only ...evidence.Version) bool {
	about := func(v evidence.Version) bool { return only == nil || slices.Contains(only, v) }
	switch f := e.Message.(type) {
	case *eventsv1.StepFinished:
		if about(evidence.Version{Target: f.Target, Hash: f.Hash}) {
			return ledger.Apply(f)
		}
	case *eventsv1.EvidenceForgotten:
		if slices.ContainsFunc(f.Versions, func(v *eventsv1.TargetVersion) bool {
			return about(evidence.Version{Target: v.GetTarget(), Hash: v.GetHash()})
		}) {
			ledger.Forget(f, nil)
			return true
		}
	}
	return false
}
