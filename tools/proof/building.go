package proof

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"landfall.build/engine/evidence"
	"landfall.build/engine/steps"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

const (
	workersEach = 3
	leaseUs     = 600_000_000
)

// builderActor is one instance of the builder: the production core says what is wanted, workers make it
// in random order.
type builderActor struct {
	m       *machine
	x       *site
	name    string
	starts  int
	follow  *buildFollower
	queue   *steps.Queue
	workers []*builderWorker
	// preparing are preparations under way, by build.
	preparing map[string]*eventsv1.BuildPrepared
	leases    int
	forgets   int
	// dir is where it keeps its snapshots.
	dir directory
	// outcome draws how an attempt ends that would tell the truth, broken whether a tree cannot be made.
	outcome func(v steps.Version, attempt uint32, red bool) eventsv1.StepOutcome
	broken  func() bool
}

// builderWorker makes one attempt at a time.
type builderWorker struct {
	name string
	step *steps.Step // nil: idle
	// rest are further steps of its group, and reds those of all whose target is red, others those that the tree does not have.
	rest   []steps.Step
	reds   map[steps.Version]bool
	others map[steps.Version]bool
	lease  string
	offset int64 // of the lease
	held   bool
	until  int64
	lost   bool // it hangs
}

// next goes on with the next step of the group, if there is one.
func (w *builderWorker) next() {
	w.step = nil
	if len(w.rest) > 0 {
		w.step, w.rest = &w.rest[0], w.rest[1:]
	}
}

func newBuilderActor(x *site, number int) *builderActor {
	return &builderActor{m: x.m, x: x, name: "b" + strconv.Itoa(number+1)}
}

func (a *builderActor) crash() {
	if a.follow != nil {
		a.follow.close()
	}
	a.follow, a.queue, a.workers, a.preparing = nil, nil, nil, nil
}

// hasLost says that a worker hangs.
func (a *builderActor) hasLost() bool {
	return slices.ContainsFunc(a.workers, func(w *builderWorker) bool { return w.lost })
}

// start reads the log, and ends what a former process of this instance left leased.
func (a *builderActor) start() {
	a.follow, a.preparing = a.startBuildFollower(), map[string]*eventsv1.BuildPrepared{}
	a.queue = a.follow.queue
	a.starts++
	for i := range workersEach {
		a.workers = append(a.workers, &builderWorker{name: a.name + "/" + strconv.Itoa(i)})
	}
	for _, l := range a.queue.Leases() {
		if strings.HasPrefix(l.Worker, a.name+"/") {
			a.finished(l.Version, l.Attempt, l.Build, l.ID, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED)
		}
	}
}

func (a *builderActor) step() (did bool) {
	if a.follow == nil {
		a.start()
		return true
	}
	for range 1 + a.m.r.IntN(6) {
		if !a.follow.step(false) {
			break
		}
		did = true
	}
	if did && a.follow.order.Settled() {
		a.m.saves(&a.dir, a.follow.freeze)
	}
	if did && a.m.r.IntN(2) == 0 {
		return true
	}
	return a.act() || did
}

// act does one thing: of a preparation, of an idle worker, or of a busy one.
func (a *builderActor) act() bool {
	if a.m.forgets && a.m.r.IntN(30) == 0 {
		a.forget()
	}
	if a.m.r.IntN(2) == 0 && a.prepare() {
		return true
	}
	at := a.m.r.IntN(len(a.workers))
	for i := range a.workers {
		if a.work(a.workers[(at+i)%len(a.workers)]) {
			return true
		}
	}
	return a.prepare()
}

// forget takes out of memory what the core says may be; now and then also what it does not, as an instance with an old
// view would.
func (a *builderActor) forget() {
	r := a.m.r
	list := a.queue.Forgettable(r.IntN(8))
	if r.IntN(3) == 0 {
		list = slices.DeleteFunc(slices.Clone(a.x.ran), func(steps.Version) bool { return r.IntN(2) == 0 })
	}
	if len(list) == 0 {
		return
	}
	for _, v := range list {
		a.x.forgotten[v] = true
	}
	a.m.tally[Forgotten] += len(list)
	a.forgets++
	a.m.appendEffect(a.x, events.TopicBuilds, events.ServiceBuilder, a.name, fmt.Sprintf("forgotten %s %d", a.name, a.forgets), evidence.ForgottenRecord(list))
}

// prepare begins a preparation, or writes one that was begun.
func (a *builderActor) prepare() bool {
	wanted := a.queue.Preparations(a.m.time())
	if len(wanted) == 0 {
		clear(a.preparing)
		return false
	}
	b := wanted[a.m.r.IntN(len(wanted))].Build
	if record := a.preparing[b.Build]; record != nil {
		delete(a.preparing, b.Build)
		a.m.appendEffect(a.x, events.TopicBuilds, events.ServiceBuilder, a.name, "prepared "+b.Build, record)
		for a.queue.WantsPreparing(b.Build) && a.follow.step(false) {
		}
		return true
	}
	a.preparing[b.Build] = a.prepared(b)
	return true
}

// treesOf are the trees of a build after each landing commit of its change, and the base's.
func (x *site) treesOf(b *eventsv1.BuildScheduled) (base *tree, trees []*tree, obstacle string) {
	r := x.main.repository
	base = x.main.commits[b.Base].tree
	onto := base
	for _, k := range b.Assumed {
		t, clash := r.apply(onto, r.editsOf(k.LandingCommits))
		if clash != "" {
			return base, nil, clash
		}
		onto = t[len(t)-1]
	}
	if b.Change.GetChange().GetChange() == "" {
		return base, []*tree{onto}, ""
	}
	trees, obstacle = r.apply(onto, r.editsOf(b.Change.LandingCommits))
	return base, trees, obstacle
}

// partTree is the tree at a landing commit, the whole for 0.
func partTree(trees []*tree, part uint32) *tree {
	if part == 0 {
		return trees[len(trees)-1]
	}
	return trees[part-1]
}

func (a *builderActor) prepared(b *eventsv1.BuildScheduled) *eventsv1.BuildPrepared {
	out := &eventsv1.BuildPrepared{
		Build: b.Build, Change: b.Change.Change, Base: b.Base, Worker: a.name,
		Outcome: eventsv1.PreparationOutcome_PREPARATION_OUTCOME_PREPARED,
	}
	for _, k := range b.Assumed {
		out.Assumed = append(out.Assumed, k.Change)
	}
	base, trees, obstacle := a.x.treesOf(b)
	fails := func(o eventsv1.PreparationOutcome, message string) *eventsv1.BuildPrepared {
		out.Outcome, out.Message, out.Versions = o, message, nil
		return out
	}
	if a.broken() {
		return fails(eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE, "no disk")
	}
	if obstacle != "" {
		a.m.tally[UnmergeableBuilds]++
		return fails(eventsv1.PreparationOutcome_PREPARATION_OUTCOME_UNMERGEABLE, "does not merge with "+obstacle)
	}
	for _, t := range b.Targets {
		at := partTree(trees, t.Part)
		if at.truth().invalid && !base.truth().invalid {
			return fails(eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INVALID, "its definitions are invalid")
		}
		if at.unknown() && t.Target != targets.Repository {
			return fails(eventsv1.PreparationOutcome_PREPARATION_OUTCOME_INFRASTRUCTURE, "the targets of the tree are not known")
		}
		out.Versions = append(out.Versions, at.version(t.Target, t.Part))
	}
	// Two of three targets, by their names, can be verified together with those of the same landing commit.
	of := map[uint32]*eventsv1.StepGroup{}
	for i, v := range out.Versions {
		if v.Target == targets.Repository || len(v.Target)%3 == 0 {
			continue
		}
		if of[v.Part] == nil {
			of[v.Part] = &eventsv1.StepGroup{Ordered: v.Part%2 == 0}
			out.Groups = append(out.Groups, of[v.Part])
		}
		of[v.Part].Versions = append(of[v.Part].Versions, uint32(i))
	}
	return out
}

// work lets one worker go on.
func (a *builderActor) work(w *builderWorker) bool {
	switch {
	case w.step == nil:
		return a.begin(w)
	case w.lost:
		if a.m.r.IntN(50) != 0 {
			return false
		}
		w.lost = false // late, and it does not know
		a.finished(w.step.Version, w.step.Attempt, w.step.Build.Build, w.lease, a.ends(w))
		a.m.tally[LateResults]++
		w.next()
		return true
	case !w.held:
		return a.readBack(w)
	}
	if a.m.r.IntN(40) == 0 {
		w.lost = true
		a.m.tally[LostWorkers]++
		return true
	}
	wanted := a.queue.Wants(w.step.Version)
	switch {
	case a.queue.Holder(w.step.Version, w.step.Attempt) != w.lease && a.m.leaves != Lease && a.m.r.IntN(3) != 0:
		w.next() // it knows that another one has taken over
		return true
	case len(w.rest) > 0 && a.m.r.IntN(10) == 0:
		// The tool ends without a result for the rest.
		a.m.tally[BrokenGroups]++
		for ; w.step != nil; w.next() {
			a.unreported(w)
		}
		return true
	case !wanted && a.m.r.IntN(3) != 0:
		a.finished(w.step.Version, w.step.Attempt, w.step.Build.Build, w.lease, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED)
	default:
		if !wanted {
			a.m.tally[LateResults]++
		}
		a.finished(w.step.Version, w.step.Attempt, w.step.Build.Build, w.lease, a.ends(w))
		a.m.tally[Steps]++
	}
	w.next()
	return true
}

// ends draws how a worker's step ends. One of a version that the tree does not have cannot run.
func (a *builderActor) ends(w *builderWorker) eventsv1.StepOutcome {
	v := w.step.Version
	if w.others[v] {
		return eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN
	}
	return a.outcome(v, w.step.Attempt, w.reds[v])
}

// begin takes a step and writes the lease.
func (a *builderActor) begin(w *builderWorker) bool {
	var mine []steps.Version
	for _, o := range a.workers {
		if o.step != nil {
			mine = append(mine, o.step.Version)
		}
		for _, r := range o.rest {
			mine = append(mine, r.Version)
		}
	}
	now := a.m.time()
	a.queue.SetQuotas(a.x.settings.GetQuotas())
	list := a.queue.Next(now, 1, mine, nil)
	if len(list) == 0 {
		return false
	}
	s := list[0]
	_, trees, obstacle := a.x.treesOf(s.Build)
	if obstacle != "" {
		panic("a step of a build that does not merge: " + obstacle)
	}
	at := partTree(trees, s.Part)
	differs := func(s steps.Step) bool {
		v := at.version(s.Target, s.Part)
		if plain(v.Hash) != plain(s.Hash) {
			panic(fmt.Sprintf("the tree has %s@%s, the step is for %s", v.Target, v.Hash, s.Hash))
		}
		return v.Hash != s.Hash
	}
	a.leases++
	w.step, w.held, w.lost, w.reds = &s, false, false, map[steps.Version]bool{s.Version: at.isRed(s.Target)}
	w.others = map[steps.Version]bool{s.Version: differs(s)}
	var group []*eventsv1.LeasedVersion
	w.rest = a.queue.Companions(s, now, mine)
	for _, c := range w.rest {
		w.reds[c.Version], w.others[c.Version] = at.isRed(c.Target), differs(c)
		group = append(group, &eventsv1.LeasedVersion{Target: c.Target, Hash: c.Hash, Attempt: c.Attempt})
		a.m.tally[Companions]++
	}
	w.lease, w.until = fmt.Sprintf("%s #%d %d", w.name, a.leases, now), now+leaseUs
	if a.queue.Holder(s.Version, s.Attempt) != "" {
		a.m.tally[TakenOver]++
	}
	w.offset = a.m.appendEffect(a.x, events.TopicBuilds, events.ServiceBuilder, a.name, "lease "+w.lease, &eventsv1.StepLeased{
		Target: s.Target, Hash: s.Hash, Attempt: s.Attempt, Lease: w.lease, Worker: w.name,
		StampUs: now, UntilUs: w.until, Build: s.Build.Build, Group: group, Quotas: s.Quotas,
	})
	return true
}

// readBack says whether the lease is the one that counts.
func (a *builderActor) readBack(w *builderWorker) bool {
	for a.follow.built <= w.offset {
		if !a.follow.step(false) {
			return false // the records before it wait for others
		}
	}
	var held []steps.Step
	for _, one := range append([]steps.Step{*w.step}, w.rest...) {
		switch {
		case a.queue.Holder(one.Version, one.Attempt) != w.lease && a.m.leaves != Lease:
		case !a.queue.Wants(one.Version):
			a.finished(one.Version, one.Attempt, one.Build.Build, w.lease, eventsv1.StepOutcome_STEP_OUTCOME_ABORTED)
		default:
			held = append(held, one)
		}
	}
	w.held, w.rest = len(held) > 0, held
	w.next()
	return true
}

// unreported writes that the tool of a group gave no result for a step.
func (a *builderActor) unreported(w *builderWorker) {
	now := a.m.time()
	a.m.appendEffect(a.x, events.TopicBuilds, events.ServiceBuilder, a.name, fmt.Sprintf("unreported %s %s@%s", w.lease, w.step.Target, w.step.Hash), &eventsv1.StepFinished{
		Target: w.step.Target, Hash: w.step.Hash, Attempt: w.step.Attempt, Build: w.step.Build.Build, Worker: a.name, Group: w.lease, Unreported: true,
		Outcome: eventsv1.StepOutcome_STEP_OUTCOME_ABORTED, Reason: "the model said nothing", StartedUs: now, FinishedUs: now + 1_000_000,
	})
}

func (a *builderActor) finished(v steps.Version, attempt uint32, build, lease string, outcome eventsv1.StepOutcome) {
	now := a.m.time()
	if !slices.Contains(a.x.ran, v) {
		a.x.ran = append(a.x.ran, v)
	}
	if a.x.forgotten[v] {
		a.m.tally[RunAgain]++
	}
	a.m.appendEffect(a.x, events.TopicBuilds, events.ServiceBuilder, a.name, fmt.Sprintf("finished %s %s@%s", lease, v.Target, v.Hash), &eventsv1.StepFinished{
		Target: v.Target, Hash: v.Hash, Attempt: attempt, Build: build, Worker: a.name,
		Outcome: outcome, Reason: "the model said so", StartedUs: now, FinishedUs: now + 1_000_000,
	})
}
