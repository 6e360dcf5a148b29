package lander

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/flakes"
	"landfall.build/engine/lineup"
	"landfall.build/engine/snapshotv1"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// Snapshot implements runner.Core.
func (c *Core) Snapshot() proto.Message {
	m := &snapshotv1.Lander{}
	for _, topic := range topics {
		m.Topics = append(m.Topics, &snapshotv1.LanderTopic{Topic: topic, Next: c.next[topic], Terms: c.terms[topic].Snapshot()})
	}
	for _, name := range slices.Sorted(maps.Keys(c.queues)) {
		m.Queues = append(m.Queues, c.queues[name].snapshot(name))
	}
	return m
}

func (q *queue) snapshot(name string) *snapshotv1.LanderQueue {
	m := &snapshotv1.LanderQueue{
		Queue: name, Lineup: q.lineup.Snapshot(), Evidence: q.ledger.Snapshot(), Pushes: q.pushes.Snapshot(),
		Disproved: q.disproved, Unreachable: q.unreachable, Flakes: q.flakes.Snapshot(),
		RefusedSinceUs: q.refusedSinceUS, Refusing: q.refusing,
	}
	for _, d := range q.decisions {
		m.Decisions = append(m.Decisions, &snapshotv1.LanderDecision{Item: d.item, StampUs: d.stampUS, Policy: d.policy, Builds: d.builds, Changes: d.changes})
	}
	for change, decisions := range q.answered {
		m.Answered = append(m.Answered, &snapshotv1.LanderAnswered{Change: change, Decisions: slices.Sorted(maps.Keys(decisions))})
	}
	for change, r := range q.pushRefused {
		m.Refused = append(m.Refused, &snapshotv1.LanderRefusal{Change: change, Times: int64(r.times), Message: r.message, OthersLand: r.othersLand,
			ConcernsQueue: r.concernsQueue, Passed: int64(r.passed), Recent: int64(r.recent)})
	}
	for r, builds := range q.unprepared {
		m.Unprepared = append(m.Unprepared, &snapshotv1.LanderUnprepared{Change: r.change, Revision: r.number, Builds: slices.Sorted(maps.Keys(builds))})
	}
	for _, l := range q.landings {
		m.Landings = append(m.Landings, &snapshotv1.LanderLanding{Change: l.change, Tip: l.tip, Dropped: l.dropped})
	}
	return m
}

// restore returns the core that a snapshot was taken of.
func restore(configured []string, flaky map[string]FlakyPolicy, state []byte) (*Core, error) {
	m := &snapshotv1.Lander{}
	if err := proto.Unmarshal(state, m); err != nil {
		return nil, err
	}
	c := NewCore(configured, flaky)
	for _, t := range m.Topics {
		c.next[t.Topic], c.terms[t.Topic] = t.Next, journal.RestoreTerms(t.Topic, t.Terms)
	}
	for _, of := range m.Queues {
		q, err := restoreQueue(of)
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", of.Queue, err)
		}
		c.queues[of.Queue] = q
	}
	return c, nil
}

func restoreQueue(m *snapshotv1.LanderQueue) (q *queue, err error) {
	q = newQueue()
	if q.lineup, err = lineup.Restore(m.Lineup); err != nil {
		return nil, err
	}
	if q.pushes, err = directpush.Restore(m.Pushes); err != nil {
		return nil, err
	}
	q.ledger, q.unreachable, q.flakes = evidence.Restore(m.Evidence), m.Unreachable, flakes.Restore(m.Flakes)
	q.refusedSinceUS, q.refusing = m.RefusedSinceUs, m.Refusing
	maps.Copy(q.disproved, m.Disproved)
	for _, d := range m.Decisions {
		x, ok := newDecided(d.Item)
		if !ok {
			return nil, fmt.Errorf("a decision of another kind: %v", d.Item)
		}
		x.stampUS, x.policy, x.builds, x.changes = d.StampUs, d.Policy, d.Builds, d.Changes
		q.decisions = append(q.decisions, x)
	}
	for _, a := range m.Answered {
		for _, decision := range a.Decisions {
			q.markAnswered(&eventsv1.ChangeRef{Change: a.Change}, decision)
		}
	}
	for _, r := range m.Refused {
		q.pushRefused[r.Change] = &pushRefusals{times: int(r.Times), message: r.Message, othersLand: r.OthersLand, concernsQueue: r.ConcernsQueue, passed: int(r.Passed), recent: int(r.Recent)}
	}
	for _, u := range m.Unprepared {
		r := revision{u.Change, u.Revision}
		q.unprepared[r] = map[string]bool{}
		for _, build := range u.Builds {
			q.unprepared[r][build] = true
		}
	}
	for _, l := range m.Landings {
		q.landings = append(q.landings, landedChange{change: l.Change, tip: l.Tip, dropped: l.Dropped})
	}
	return q, nil
}
