package proof

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"
)

// Options of a schedule. Everything else is drawn from the seed.
type Options struct {
	Seed uint64
	// Without names operations that are left out, and troubles that do not happen (see Troubles).
	Without map[string]bool
	// Sabotage, if set, makes a part of the pipeline lie all the time.
	Sabotage Sabotage
	// Leave is a rule that is left out, "" for none.
	Leave Rule
	// Codec makes every record go through the codec, as on Kafka; without it readers share messages.
	Codec bool
	// Ticks bounds the schedule, if set, more narrowly than is safe.
	Ticks int
	// Trace, if set, gets a line for each record of the log and what is left in the graph.
	Trace func(string)
	// Done, if set, gets the schedule when all is over.
	Done func(*schedule)
}

// troubleNames are what can be left out of a schedule beside its operations, in the order in which shrinking
// tries them, and in how many schedules each happens: one in so many.
var troubleNames = []struct {
	name  string
	often int
}{
	{"crashes", 3}, {"zombies", 3}, {"faults", 4}, {"lost answers", 3}, {"races", 4}, {"flakes", 3}, {"slowness", 3},
	{"sabotage", 12}, {"failing analyses", 8}, {"stalls", 4}, {"repeats", 4}, {"clocks", 4}, {"large records", 16},
	{"versions", 4}, {"several queues", 5}, {"snapshots", 2}, {hubTargets, 4}, {refusedPushes, 5}, {forgotten, 3}, {outages, 5}, {oldFailures, 4}, {lostCommits, 5}, {quarantines, 5},
	{blockedRetries, 3}, {freezes, 5}, {readings, 4}, {worlds, 4}, {reviewed, 3},
}

// Troubles names what can be left out of a schedule beside its operations (Options.Without).
func Troubles() (names []string) {
	for _, t := range troubleNames {
		names = append(names, t.name)
	}
	return names
}

// Bounds of a schedule: one that has not come to rest by then is undecided.
const (
	maxTicks = 60_000
	// maxLiedTicks is for those that may never come to rest.
	maxLiedTicks = 6000
	maxRepairs   = 5
	// patience is when people give up their holds and pauses, under which every path is worth a build.
	patience = 3000
)

// schedule is one random history.
type schedule struct {
	m *machine
	o Options
	// r draws what people do, before anything happens; hubs which targets are some, hooks what the remote refuses,
	// away when it is not there, old what was red before, losses which commits it does not give out, tolerance which targets are
	// quarantined, hopes when people retry what is blocked, freezes
	// when the remote takes nothing, readings when trees are read in another way, worlds when what
	// steps find outside of their trees is broken, reviews what happens to branches under review; nil for none.
	r, hubs, hooks, away, old, losses, tolerance, hopes, freezes, readings, worlds, reviews *rand.Rand

	span int64
	ops  []operation
	// troubled machines time out, fail to run, fail without a reason.
	latePushes, races, flaky, slow, sabotaged, failing bool
	// had are the troubles before it was healed.
	had troubles
	// healthy is set at the end: no trouble any more.
	healthy bool
	// restless: it did not come to rest.
	restless bool
	ticks    int
	// stalled are actors that do nothing until a tick.
	stalled map[actor]int
}

// Run goes through one random schedule and says what came of it, and what was wrong.
func Run(o Options) (t Tally, wrong []string) {
	s := newSchedule(o)
	defer func() {
		if v := recover(); v != nil {
			// A service that falls over is found as what it is: the log has what it must not have.
			s.m.tally[Disordered]++
			t, wrong = *s.m.tally, append(wrong, fmt.Sprintf("a service fell over: %v", v))
			if o.Trace != nil {
				o.Trace(string(debug.Stack()))
			}
		}
	}()
	s.play()
	for _, a := range s.m.tellers {
		a.finish()
	}
	wrong = s.check()
	if o.Done != nil {
		o.Done(s)
	}
	return *s.m.tally, wrong
}

func newSchedule(o Options) *schedule {
	draws := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, stream)) }
	s := &schedule{o: o, r: draws(1), hubs: draws(3), hooks: draws(4), away: draws(6), old: draws(7), losses: draws(8), tolerance: draws(9), hopes: draws(10), freezes: draws(14), readings: draws(15), worlds: draws(16), reviews: draws(17), stalled: map[actor]int{}}
	trouble := map[string]bool{}
	for _, t := range troubleNames {
		r := s.r
		switch t.name {
		case hubTargets:
			r = s.hubs
		case refusedPushes:
			r = s.hooks
		case forgotten:
			r = draws(5)
		case outages:
			r = s.away
		case oldFailures:
			r = s.old
		case lostCommits:
			r = s.losses
		case quarantines:
			r = s.tolerance
		case blockedRetries:
			r = s.hopes
		case freezes:
			r = s.freezes
		case readings:
			r = s.readings
		case worlds:
			r = s.worlds
		case reviewed:
			r = s.reviews
		}
		trouble[t.name] = r.IntN(t.often) == 0 && !o.Without[t.name]
	}
	if !trouble[hubTargets] || o.Leave == M19Land || o.Leave == M19Reject {
		s.hubs = nil // that nobody is passed without having been built with is not promised in hubs
	}
	if !trouble[refusedPushes] && o.Leave != RefusalIsHeard || o.Leave != "" && o.Leave != RefusalIsHeard {
		s.hooks = nil
	}
	if !trouble[freezes] && o.Leave != FreezeBlamesNobody || o.Leave != "" && o.Leave != FreezeBlamesNobody {
		s.freezes = nil
	}
	if !trouble[readings] || o.Leave != "" {
		s.readings = nil
	}
	if !trouble[worlds] || o.Leave != "" {
		s.worlds = nil
	}
	if headsRule := o.Leave == HeadsSwap || o.Leave == HeadsBack; !trouble[reviewed] && !headsRule || o.Leave != "" && !headsRule {
		s.reviews = nil
	}
	if !trouble[outages] || o.Leave != "" {
		s.away = nil
	}
	if !trouble[oldFailures] {
		s.old = nil
	}
	if !trouble[lostCommits] || o.Leave != "" {
		s.losses = nil
	}
	if !trouble[quarantines] && o.Leave != M24aByName || o.Leave != "" && o.Leave != M24aByName {
		s.tolerance = nil
	}
	if !trouble[blockedRetries] && s.worlds == nil || o.Leave != "" && o.Leave != M20aWithdrawn {
		s.hopes = nil
	}
	if info, is := o.Leave.Info(); is {
		for _, name := range info.Needs {
			trouble[name] = !o.Without[name]
		}
	}
	s.races, s.flaky, s.slow, s.latePushes = trouble["races"], trouble["flakes"], trouble["slowness"], trouble["lost answers"]
	s.sabotaged = trouble["sabotage"] || o.Sabotage == SabotageAnalysis
	queues, partitions := 1, int32(1)
	if trouble["several queues"] {
		queues, partitions = 2+s.r.IntN(2), int32(1+s.r.IntN(2))
	}
	s.m = newMachine(draws(2), &Tally{Schedules: 1}, partitions, !o.Codec)
	if queues > 1 {
		s.m.tally[SeveralQueues]++
	}
	s.m.troubles = troubles{
		crashes: trouble["crashes"], zombies: trouble["zombies"], faults: trouble["faults"], stalls: trouble["stalls"],
		repeats: trouble["repeats"], clocks: trouble["clocks"], large: trouble["large records"], versions: trouble["versions"],
		snapshots: trouble["snapshots"], forgets: trouble[forgotten],
	}
	s.had, s.failing = s.m.troubles, trouble["failing analyses"]
	s.m.sabotage, s.m.leaves, s.m.quarantines = o.Sabotage, o.Leave, s.tolerance != nil
	if s.races {
		s.m.beforeIntention = s.interrupts
	}
	for _, name := range queueNames[:queues] {
		s.setHubs(s.m.newSite(name, s.r, drawSettings(s.r, "first")), nil)
	}
	for p := range partitions {
		if on := s.m.sitesOn(p); len(on) > 0 {
			s.m.own(p, on)
			s.m.tellers = append(s.m.tellers, newTeller(s.m, draws(100+uint64(p)), p))
		}
	}
	s.span = int64(1 + s.r.IntN(400))
	for _, x := range s.m.sites {
		s.workers(x)
		s.network(x)
		s.review(x)
		s.refuse(x)
		s.freeze(x)
		s.breakFirst(x)
		s.lose(x)
		s.quarantine(x)
		s.retry(x)
		s.analysts(x, trouble["failing analyses"])
		s.operations(x)
		s.reread(x)
		s.breakWorld(x)
	}
	slices.SortStableFunc(s.ops, func(a, b operation) int { return int(a.at - b.at) })
	s.ops = slices.DeleteFunc(s.ops, func(op operation) bool { return s.o.Without[op.name] })
	return s
}

// play lets everybody do something in random order until all is at rest; then, one after the other, what
// could be a reason to wait is taken away.
func (s *schedule) play() {
	idle := 0
	var tick int64
	ends := []func() bool{s.release, s.heal, s.waitForLost, s.retryBlocked, s.repair, s.bystand}
	limit := cmp.Or(s.o.Ticks, maxTicks)
	if s.m.sabotage == SabotageProposals {
		limit = min(limit, maxLiedTicks)
	}
	for s.ticks = range limit {
		tick++
		s.m.clock += int64(1000 * (1 + s.m.r.IntN(2_000)))
		if len(s.ops) > 0 && s.ops[0].at <= tick {
			s.ops[0].do()
			s.ops = s.ops[1:]
			idle = 0
			continue
		}
		switch {
		case s.ticks == patience:
			s.release()
		case s.ticks >= 4*patience && s.ticks%patience == 0:
			// It may never come to rest: what the remote refuses is tried again before all others have had their turn, or
			// the other version, with one worker, builds what is worth least first.
			s.heal()
			s.upgrade()
			s.bystand()
		}
		s.disturb()
		for _, a := range s.m.tellers {
			a.step()
		}
		if a := s.m.actors[s.m.r.IntN(len(s.m.actors))]; s.stalled[a] <= s.ticks && s.m.step(a) {
			idle = 0
			continue
		}
		if idle++; idle < 10 {
			continue
		}
		idle = 0
		if s.everyone() || s.await() {
			continue
		}
		if len(s.ops) > 0 {
			tick = s.ops[0].at
			continue
		}
		if !slices.ContainsFunc(ends, func(end func() bool) bool { return end() }) {
			return
		}
	}
	s.restless = true
	s.settleLast()
}

// waitForLost lets time pass where commits were gone since it did so last: a change is tried again at the next tick.
func (s *schedule) waitForLost() (any bool) {
	for _, x := range s.m.sites {
		missed := 0
		for _, n := range x.main.missed {
			missed += n
		}
		if missed > x.waitedFor {
			x.waitedFor, any = missed, true
			s.m.enumeratorOf(x).tick(x)
		}
	}
	return any
}

// release takes off all holds and pauses.
func (s *schedule) release() (any bool) {
	for _, x := range s.m.sites {
		any = x.release() || any
	}
	return any
}

// bystand lands something that meets nobody where the remote has refused pushes: until then that may be the remote's
// fault, and nobody is ejected for it.
func (s *schedule) bystand() (any bool) {
	for _, x := range s.m.sites {
		any = x.bystand() || any
	}
	return any
}

// retryBlocked retries what is blocked, where people do so.
func (s *schedule) retryBlocked() (any bool) {
	for _, x := range s.m.sites {
		any = s.hopes != nil && x.retryBlocked() || any
	}
	return any
}

// repair mends the mainlines that changes may wait for.
func (s *schedule) repair() (any bool) {
	for _, x := range s.m.sites {
		any = x.repair() || any
	}
	return any
}

// heal ends all troubles.
func (s *schedule) heal() bool {
	was := s.healthy
	s.healthy, s.m.healed, s.m.troubles = true, true, troubles{zombies: s.m.zombies, versions: s.m.versions}
	return !was
}

// upgrade ends a rolling upgrade: every stage starts again in the version that is to stay.
func (s *schedule) upgrade() {
	if !s.m.versions {
		return
	}
	s.m.versions = false
	for _, a := range s.m.actors {
		if x, is := a.(*stageActor); is {
			x.crash()
		}
	}
}

// disturb is what goes wrong without anybody's doing.
func (s *schedule) disturb() {
	if s.m.crashes && s.m.tally[Crashes] < maxCrashes && s.m.r.IntN(100) == 0 {
		s.m.crash()
	}
	if s.m.stalls && s.m.r.IntN(200) == 0 {
		s.m.tally[Stalls]++
		s.stalled[s.m.actors[s.m.r.IntN(len(s.m.actors))]] = s.ticks + 100 + s.m.r.IntN(900)
	}
	if s.m.r.IntN(20) == 0 {
		s.m.deliverLate()
		s.m.arriveLate()
	}
}

// everyone gives each actor a chance; if it says no, nobody has anything to do now.
func (s *schedule) everyone() (any bool) {
	s.m.patient = true
	defer func() { s.m.patient = false }()
	for _, a := range s.m.actors {
		any = s.m.step(a) || any
	}
	return any
}

// await lets time pass: what is in flight arrives, leases lapse. It says whether there was anything.
func (s *schedule) await() (any bool) {
	if len(s.m.late) > 0 || slices.ContainsFunc(s.m.sites, func(x *site) bool { return len(x.main.inFlight) > 0 }) {
		s.m.deliverLate()
		s.m.arriveLate()
		return true
	}
	for _, x := range s.m.sites {
		if x.main.again > 0 {
			x.main.again--
			s.m.clock += time.Minute.Microseconds() // the longest that a refused push waits for its next try
			any = true
		}
	}
	for _, b := range s.m.builders() {
		if b.follow == nil {
			continue
		}
		if b.hasLost() {
			b.crash()
			return true
		}
		if until, ok := b.queue.NextLapse(s.m.clock); ok {
			s.m.clock = until + 1
			any = true
		}
		any = b.follow.step(true) || any
	}
	return any
}

// Names lists the operations of a schedule, in order.
func Names(o Options) (list []string) {
	for _, op := range newSchedule(o).ops {
		list = append(list, op.name)
	}
	return list
}

// settleLast lets the landers of a schedule that was cut off end what they have begun: between a push and its ChangeLanded an
// intention is open, and is no landing that the log does not know.
func (s *schedule) settleLast() {
	for _, l := range s.m.landers {
		for steps := 0; steps < 1000 && s.m.step(l); steps++ {
		}
	}
}
