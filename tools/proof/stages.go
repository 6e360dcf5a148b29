package proof

import (
	"context"
	"maps"
	"strconv"

	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/runner"
	"landfall.build/platform/snapshot"
	"landfall.build/services/enumerator"
)

// owner is what enumerator, profiler, prioritizer and selector do on a partition: the production loops, a step at a time.
type owner interface {
	Step(ctx context.Context) (did bool, err error)
	Check() error
	Close()
}

// claimant is a service that owns a partition: the instance in office, and one that does not know yet that it no
// longer is.
type claimant struct {
	m         *machine
	service   string
	output    string
	partition int32
	// take puts a new instance into office; it is nil where that one could not claim.
	take      func(i *instance) (owner, error)
	live      *instance
	zombie    *instance
	instances int
	dir       directory
}

// instance is a process of the service.
type instance struct {
	owner
	name string
	// store is where it finds a snapshot, if it found one, and keeps its own; nil for none.
	store *snapshot.Store
	found bool
	// claims is the own topic as somebody else reads it.
	claims journal.Cursor
}

func (i *instance) close() {
	if i != nil {
		i.Close()
		i.claims.Close()
	}
}

func (c *claimant) options(i *instance) runner.Options {
	return runner.Options{Log: c.m.wire(c.service), Instance: i.name, Version: "test", Logger: c.m.quiet, Snapshots: i.store, Clock: c.m.now}
}

func (c *claimant) start() {
	c.instances++
	i := &instance{name: strconv.Itoa(c.instances)}
	var err error
	if i.owner, err = c.take(i); err != nil {
		return
	}
	i.claims = c.m.follow(c.output, c.partition, c.m.terms[ownership{partitionOf{c.output, c.partition}, c.service}]+1)
	c.live = i
}

func (c *claimant) crash() {
	if c.live == nil {
		return
	}
	if c.m.zombies && c.m.r.IntN(2) == 0 {
		c.zombie.close()
		c.zombie = c.live
	} else {
		c.live.close()
	}
	c.live = nil
}

func (c *claimant) step() bool {
	if c.zombie != nil && c.m.r.IntN(2) == 0 {
		if c.m.r.IntN(4) != 0 && c.act(c.zombie) {
			return true
		}
		c.zombie.close()
		c.zombie = nil
		return true
	}
	if c.live != nil && c.superseded(c.live) != nil {
		c.end(c.live)
	}
	if c.live == nil {
		c.start()
		return true
	}
	return c.act(c.live)
}

// superseded looks for claims as an instance that waits does. One that is not shown any keeps its office all the same.
func (c *claimant) superseded(i *instance) error {
	if c.m.leaves != SnapshotsCount {
		return i.Check()
	}
	for e, ok := next(i.claims); ok; e, ok = next(i.claims) {
		if journal.BeginsTerm(e.Envelope) && e.Source == c.service {
			return runner.ErrSuperseded
		}
	}
	return nil
}

// act lets an instance do something.
func (c *claimant) act(i *instance) (did bool) {
	did, err := i.Step(context.Background())
	c.keeps(i)
	if err != nil {
		c.end(i)
		return true
	}
	return did
}

// end lets go of an instance that has lost its ownership.
func (c *claimant) end(i *instance) {
	i.close()
	if c.live == i {
		c.live = nil
	} else {
		c.zombie = nil
	}
}

func (c *claimant) key() snapshot.Key {
	return snapshot.Key{Log: c.m.log.ID(), Service: c.service, Partition: c.partition}
}

// stageActor is profiler, prioritizer or selector.
type stageActor struct {
	claimant
	stage runner.Stage
}

func newStageActor(m *machine, partition int32, s runner.Stage) *stageActor {
	a := &stageActor{claimant: claimant{m: m, service: s.Name, output: s.Output, partition: partition}, stage: s}
	a.take = a.begin
	return a
}

// begin starts an instance of some version, and lets it fold what is there.
func (a *stageActor) begin(i *instance) (owner, error) {
	code := a.m.leaving(a.m.version(a.stage))
	if sameCores(code, a.stage) {
		a.opens(i)
	}
	return a.fold(i, code.Service())
}

// fold starts an instance, and lets it fold what was written.
func (c *claimant) fold(i *instance, s runner.Service) (owner, error) {
	ctx := context.Background()
	o, err := runner.Take(ctx, c.options(i), s, c.partition)
	if err != nil {
		return nil, err
	}
	for !o.Live() {
		did, err := o.Step(ctx)
		if err == nil && !did {
			panic("the " + c.service + " does not find what it has written, or what that answers")
		}
		if err != nil {
			o.Close()
			return nil, err
		}
	}
	c.opened(i)
	return o, nil
}

// enumeratorActor merges the topics.
type enumeratorActor struct {
	claimant
	sites []*site
	// told are the settings that the instance in office was started with.
	told map[string]*eventsv1.QueueSettings
}

func newEnumeratorActor(m *machine, partition int32, sites []*site) *enumeratorActor {
	a := &enumeratorActor{claimant: claimant{m: m, service: events.ServiceEnumerator, output: events.TopicSpeculations, partition: partition}, sites: sites}
	a.take = a.begin
	return a
}

func (a *enumeratorActor) begin(i *instance) (owner, error) {
	a.opens(i)
	a.told = a.settings()
	configured := maps.Clone(a.told)
	for name, s := range configured {
		configured[name] = a.m.telling(s)
	}
	return a.fold(i, enumerator.Service(enumerator.Options{Options: a.options(i), Settings: configured}, a.partition))
}

func (a *enumeratorActor) settings() map[string]*eventsv1.QueueSettings {
	told := map[string]*eventsv1.QueueSettings{}
	for _, x := range a.sites {
		told[x.queue] = x.settings
	}
	return told
}

// step starts it again once it is configured otherwise.
func (a *enumeratorActor) step() bool {
	if a.live != nil && !maps.Equal(a.told, a.settings()) {
		a.live.close()
		a.live = nil
	}
	return a.claimant.step()
}

// tick lets the cores know the time.
func (a *enumeratorActor) tick(x *site) {
	if a.live == nil {
		return
	}
	if err := a.live.owner.(*runner.Owner).Tick(context.Background(), x.queue); err != nil {
		a.end(a.live)
	}
}

// telling is the configuration as the enumerator puts it into the log.
func (m *machine) telling(s *eventsv1.QueueSettings) *eventsv1.QueueSettings {
	if m.leaves == M19aRetries {
		s = proto.CloneOf(s)
		s.Steps.FailedRetries, s.Steps.TimedOutRetries, s.Steps.InfrastructureRetries = 0, 0, 0
	}
	return s
}

// writing is a record as an enumerator writes it that leaves out a rule, or lies.
func (m *machine) writing(s *eventsv1.Speculation) *eventsv1.Speculation {
	if m.sabotage == SabotageProposals {
		s = m.nonsense(s)
	}
	switch m.leaves {
	case StampsRise:
		s = proto.CloneOf(s)
		s.StampUs = m.time()
	case M19Holds, GuardFirst:
		if s.Delta == nil {
			return s
		}
		s = proto.CloneOf(s)
		for _, n := range s.Delta.Nodes {
			if m.leaves == GuardFirst {
				n.Guard = nil
			} else {
				n.Holds = nil
			}
		}
		if s.Delta.Mainline != nil && m.leaves == M19Holds {
			s.Delta.Mainline.Paused = false
		}
	}
	return s
}
