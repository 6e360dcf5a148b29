package proof

import (
	"math/rand/v2"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/steps"
	"landfall.build/engine/targets"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
)

// queueNames are those that a schedule's queues get.
var queueNames = []string{"main", "stable", "next"}

// site is one queue: its mainline, who works on it, and those who serve it alone.
type site struct {
	m         *machine
	queue     string
	partition int32
	main      *mainline
	editor    *editor
	// settings are what the configuration says now.
	settings *eventsv1.QueueSettings
	// hubs are those of all settings that it has had, or will have.
	hubs []*targets.Hubs
	// broken are the targets that fail whatever their tree holds.
	broken map[string]bool
	// least is how often a step is tried again at least, whatever the settings.
	least retries
	// lineup is what bystanders know of the queue.
	lineup    *lineupFold
	gateways  []*gatewayActor
	analyzers []*analyzerActor
	builders  []*builderActor

	// repaired counts the pushes that mended the mainline at the end.
	repaired int
	// retries counts how often what is blocked was retried.
	retries int
	// waitedFor is how often commits had been gone when time was last let pass for them.
	waitedFor int
	// bystanders counts the changes that were landed for those that the remote refuses.
	bystanders int
	// ran are the versions at which an attempt has ended, forgotten those that a builder had everybody forget.
	ran       []steps.Version
	forgotten map[steps.Version]bool
}

// retries are how often a step is tried again that ends so.
type retries struct{ failed, timedOut, couldNotRun int }

func retriesOf(p *eventsv1.StepPolicy) retries {
	return retries{int(p.FailedRetries), int(p.TimedOutRetries), int(p.InfrastructureRetries)}
}

// orLess is the smaller of each.
func (r retries) orLess(o retries) retries {
	return retries{min(r.failed, o.failed), min(r.timedOut, o.timedOut), min(r.couldNotRun, o.couldNotRun)}
}

// isHub says that a target is, was or will be a hub.
func (x *site) isHub(target string) bool {
	return slices.ContainsFunc(x.hubs, func(h *targets.Hubs) bool { return h.Has(target) })
}

func (m *machine) newSite(name string, draws *rand.Rand, settings *eventsv1.QueueSettings) *site {
	editor := newEditor(draws)
	x := &site{
		forgotten: map[steps.Version]bool{},
		m:         m, queue: name, partition: events.PartitionOf(name, m.log.Partitions()),
		main: newMainline(editor.repo), editor: editor, settings: settings, least: retriesOf(settings.Steps),
	}
	x.lineup = m.newLineupFold(x)
	for i := range 2 {
		g, a, b := newGatewayActor(x, i), newAnalyzerActor(x, i), newBuilderActor(x, i)
		x.gateways, x.analyzers, x.builders = append(x.gateways, g), append(x.analyzers, a), append(x.builders, b)
		m.actors = append(m.actors, a, b)
	}
	m.sites = append(m.sites, x)
	return x
}

// gateway is the one that a client happens to ask.
func (x *site) gateway() *gatewayActor { return x.gateways[x.m.r.IntN(len(x.gateways))] }

// steer writes what an operator asks for. Who gets no answer asks again.
func (x *site) steer(id string, fact proto.Message) {
	for !x.gateway().write(id, fact) {
	}
}

// started says that the queue knows the mainline: what it starts from is green.
func (x *site) started() bool {
	x.lineup.read()
	return x.lineup.queue.Head != ""
}

// push puts edits on a commit and moves the branch there, past the queue, if they merge.
func (x *site) push(edits []*atom, onto, salt string) bool {
	m := x.main
	if !x.started() {
		return false
	}
	trees, obstacle := m.repository.apply(m.commits[onto].tree, edits)
	if obstacle != "" {
		return false
	}
	tip := onto
	for i, t := range trees {
		tip = m.commit(tip, t, "", edits[i:i+1], onto, salt)
	}
	for name, red := range trees[len(trees)-1].truth().red {
		if red && !m.tree().truth().red[name] {
			x.m.tally[RedPushes]++
			break
		}
	}
	m.point(tip)
	x.m.tally[Pushes]++
	return true
}

// intended is what is being landed, nil if nothing is.
func (x *site) intended() *eventsv1.LandIntended {
	if x.lineup.read(); x.lineup.queue.Intention != nil {
		return x.lineup.queue.Intention.Fact
	}
	return nil
}

// sitesOn are the queues of a partition.
func (m *machine) sitesOn(partition int32) (list []*site) {
	for _, x := range m.sites {
		if x.partition == partition {
			list = append(list, x)
		}
	}
	return list
}

func (m *machine) enumeratorOf(x *site) *enumeratorActor {
	for _, e := range m.enumerators {
		if e.partition == x.partition {
			return e
		}
	}
	return nil
}

func (m *machine) builders() (list []*builderActor) {
	for _, x := range m.sites {
		list = append(list, x.builders...)
	}
	return list
}

// takeBack lets a person take the branch back to where a push that was given up was made for.
func (x *site) takeBack() {
	m := x.main
	if len(m.inFlight) == 0 || x.intended() != nil {
		return
	}
	p := m.inFlight[0]
	if p.base != m.head && m.contains(m.head, p.base) && !m.contains(m.head, p.tip) && !m.removed[p.tip] {
		m.point(p.base)
		x.m.tally[Resets]++
	}
}

// arriveLate lets pushes arrive whose writers got no answer long ago.
func (m *machine) arriveLate() {
	for _, x := range m.sites {
		if m.leaves == NeverAgain {
			x.takeBack()
		}
		x.main.arriveLate()
	}
}
