package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"landfall.build/engine/lineup"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/memory"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
	"landfall.build/services/outcomes"
)

// teller is the outcomes service on a partition: the instance in office, and one that was replaced without knowing. Nobody waits
// for it, so it draws from a source of its own: what else happens in a schedule does not depend on it.
type teller struct {
	m         *machine
	r         *rand.Rand
	partition int32
	live      *runner.Owner
	zombie    *runner.Owner
	instances int
	store     *snapshot.Store
	// next is what the broker does to the next append.
	next memory.Verdict
}

func newTeller(m *machine, r *rand.Rand, partition int32) *teller {
	return &teller{m: m, r: r, partition: partition, store: snapshot.InMemory(snapshot.Pace{After: 20})}
}

// fault decides what the broker does to an append of the service.
func (a *teller) fault() memory.Verdict {
	v := a.next
	a.next = memory.Deliver
	return v
}

func (a *teller) start() {
	a.instances++
	o := outcomes.Options{JSON: true, Options: runner.Options{Log: a.m.log, Instance: strconv.Itoa(a.instances), Version: "test", Logger: a.m.quiet}}
	if a.m.snapshots {
		o.Snapshots = a.store
	}
	live, err := runner.Take(context.Background(), o.Options, outcomes.Service(o), a.partition)
	if err == nil {
		a.live = live
	}
}

// disturb has the service crash, or an append of it fail or come late.
func (a *teller) disturb() {
	if a.live != nil && a.m.crashes && a.r.IntN(10) == 0 {
		if a.m.zombies && a.r.IntN(2) == 0 {
			a.close(a.zombie)
			a.zombie = a.live
		} else {
			a.close(a.live)
		}
		a.live = nil
	}
	if a.m.faults && a.r.IntN(10) == 0 {
		a.next = []memory.Verdict{memory.FailBefore, memory.FailAfter, memory.Late}[a.r.IntN(3)]
	}
	if a.r.IntN(4) == 0 {
		a.m.log.DeliverLate(events.TopicOutcomes, a.partition)
	}
}

func (a *teller) close(o *runner.Owner) {
	if o != nil {
		o.Close()
	}
}

// step lets both instances act now and then.
func (a *teller) step() {
	if a.r.IntN(20) != 0 {
		return
	}
	a.disturb()
	if a.zombie != nil && (a.r.IntN(4) == 0 || !a.act(a.zombie)) {
		a.zombie.Close()
		a.zombie = nil
	}
	a.work()
}

// work lets the instance in office do something.
func (a *teller) work() (did bool) {
	if a.live == nil {
		a.start()
		return true
	}
	did, err := a.live.Step(context.Background())
	if err != nil {
		a.ended(err)
		a.live.Close()
		a.live = nil
		return true
	}
	return did
}

// act lets an instance do what it can, and reports whether it goes on.
func (a *teller) act(o *runner.Owner) bool {
	_, err := o.Step(context.Background())
	if err != nil {
		a.ended(err)
	}
	return err == nil
}

// ended has a service fall over that ends for another reason than a failed append or a claim.
func (a *teller) ended(err error) {
	if !errors.Is(err, journal.ErrAppend) && !errors.Is(err, runner.ErrSuperseded) {
		panic(err)
	}
}

// finish lets the service write all that there is to write.
func (a *teller) finish() {
	a.next = memory.Deliver
	for a.m.log.DeliverLate(events.TopicOutcomes, a.partition) {
	}
	for a.work() {
	}
	a.close(a.live)
	a.close(a.zombie)
	a.live, a.zombie = nil, nil
}

// fates is what became of changes: as landfall.changes has it, and as a reader of landfall.outcomes handles it.
type fates map[string][]string

// expect takes a counted fact of landfall.changes.
func (t fates) expect(offset int64, consequence lineup.Consequence) {
	add := func(c *lineup.Change, state string) {
		t[c.ID()] = append(t[c.ID()], fmt.Sprintf("%s@%d %d", state, c.Revision(), 2*offset))
	}
	if left := consequence.Left; left != nil && !consequence.Revised {
		add(left, consequence.As.String())
	}
	if entered := consequence.Entered; entered != nil {
		add(entered, "entered")
	}
}

// tells compares the topic, read by the rule of the guide, with the facts.
func (k *checker) tells() {
	handled, highest, values := fates{}, map[string]int64{}, map[string]string{}
	k.x.counted(events.TopicOutcomes, func(e journal.Entry) {
		m := e.Message.(*eventsv1.ChangeOutcome)
		value, err := events.OutcomeJSON(m)
		if err != nil {
			panic(err)
		}
		if before, had := values[e.ID]; had && before != string(value) {
			k.bad(Doubled, "the outcome %s is %s, and was %s", e.ID, value, before)
		}
		values[e.ID] = string(value)
		if last, known := highest[m.Subject]; known && m.Sequence <= last {
			return
		}
		highest[m.Subject] = m.Sequence
		state := m.State
		switch state {
		case outcomes.StateAdmitted, outcomes.StateRevised:
			state = "entered"
		case outcomes.StateLanded, outcomes.StateRejected, outcomes.StateEjected, outcomes.StateCancelled:
		default:
			return
		}
		handled[m.Subject] = append(handled[m.Subject], fmt.Sprintf("%s@%d %d", state, m.Revision, m.Sequence))
	})
	for change, want := range k.fates {
		if got := handled[change]; !slices.Equal(got, want) {
			k.bad(Lost, "a reader of the outcomes handles %v of %s, and the facts are %v", got, change, want)
		}
	}
	if len(handled) > len(k.fates) {
		k.bad(Doubled, "a reader of the outcomes handles %d changes of %d", len(handled), len(k.fates))
	}
}
