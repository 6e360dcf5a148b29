package proof

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/lineup"
	"landfall.build/engine/snapshotv1"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/services/gateway/state"
	"landfall.build/services/gateway/view"
)

// gatewayActor is one instance of the gateway: it decides on what it has read.
type gatewayActor struct {
	m        *machine
	x        *site
	name     string
	instance int
	cursor   journal.Cursor
	folded   gatewayFold
	writes   int
	// dir is where it keeps its snapshots.
	dir directory
}

func newGatewayActor(x *site, number int) *gatewayActor {
	g := &gatewayActor{m: x.m, x: x, name: strconv.Itoa(number + 1)}
	g.start()
	return g
}

// gatewayFold is what it holds of landfall.changes.
type gatewayFold struct {
	terms *journal.Terms
	next  int64
	queue *state.Queue
}

// start begins with the log, or with a snapshot.
func (g *gatewayActor) start() {
	g.instance++
	g.folded = gatewayFold{terms: journal.NewTerms(events.TopicChanges), queue: state.New(g.x.queue, view.DefaultLimits())}
	if k, ok := g.m.kept(g.dir); ok {
		m := &snapshotv1.GatewayPartition{}
		must(0, proto.Unmarshal(k, m))
		topic := m.Topics[0]
		g.folded = gatewayFold{
			terms: journal.RestoreTerms(topic.Topic, topic.Terms), next: topic.Next, queue: must(state.Restore(m.Queues[0], view.DefaultLimits())),
		}
		g.m.tally[Thaws]++
	}
	g.cursor = g.m.follow(events.TopicChanges, g.x.partition, g.folded.next)
}

// freeze writes down what it has folded.
func (g *gatewayActor) freeze() ([]byte, error) {
	return proto.Marshal(&snapshotv1.GatewayPartition{
		Topics: []*snapshotv1.GatewayTopic{{Topic: events.TopicChanges, Next: g.folded.next, Terms: g.folded.terms.Snapshot()}},
		Queues: []*snapshotv1.GatewayQueue{g.folded.queue.Snapshot(g.x.queue)},
	})
}

// read folds what has arrived.
func (g *gatewayActor) read() {
	for e, ok := next(g.cursor); ok; e, ok = next(g.cursor) {
		g.folded.next = e.Offset + 1
		if g.folded.terms.Counts(e) && e.Queue == g.x.queue && e.Message != nil {
			g.folded.queue.Fold(e, func(*eventsv1.RequestRefused) string { return "" })
		}
	}
	g.m.saves(&g.dir, g.freeze)
}

// step reads what has arrived. Gateways also read when they are asked.
func (g *gatewayActor) step() bool { return false }

func (g *gatewayActor) crash() {
	g.cursor.Close()
	g.start()
}

// write says whether it was written: the gateway may die of it, and nobody is told whether it was.
func (g *gatewayActor) write(id string, fact proto.Message) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			if _, is := v.(died); !is {
				panic(v)
			}
			g.crash()
		}
	}()
	g.writes++
	g.m.appendEffect(g.x, events.TopicChanges, events.ServiceGateway, g.name, id, fact)
	return true
}

// request is a land request as clients send it, as often as they like.
type request struct {
	change   string
	edits    []*atom
	requires []string
	// revision is 0 for the next one.
	revision uint64
}

// errNotRead ends an answer in the middle: the gateway died, and whoever reads the request next answers it.
var errNotRead = errors.New("the gateway died")

// land answers a request as the production gateway does.
func (g *gatewayActor) land(q request) error {
	if g.m.r.IntN(4) != 0 {
		g.read()
	}
	pinned := admission.Pinned{Mainline: g.x.main.head}
	for n, a := range q.edits {
		pinned.Entries = append(pinned.Entries, &eventsv1.Entry{Commit: a.id, Review: g.x.main.reviews.of(q.change, n, a.id)})
		pinned.LandingCommits = append(pinned.LandingCommits, &eventsv1.LandingCommit{Head: a.id, Entry: uint32(n)})
	}
	requires := slices.DeleteFunc(slices.Clone(q.requires), func(r string) bool { return g.folded.queue.View.Lineup().Known(r) == 0 })
	g.writes++
	answer := admission.Decide(g.folded.queue.Known(), admission.Limits{Pending: 100, Stack: 10, Requires: 10}, admission.Request{
		ID:         fmt.Sprintf("%s.%d/%d", g.name, g.instance, g.writes),
		Land:       &eventsv1.LandRequest{Queue: g.x.queue, Change: q.change, Revision: q.revision, Requires: requires, Benefit: 1},
		ReceivedUS: g.m.time(),
	}, pinned)
	if _, refused := answer.(*eventsv1.RequestRefused); refused {
		return nil
	}
	if _, revised := answer.(*eventsv1.ChangeRevised); revised {
		g.m.tally[Revisions]++
	}
	if len(requires) > 0 {
		g.m.tally[Requirements]++
	}
	if !g.write(fmt.Sprintf("land %s.%d %d", g.name, g.instance, g.writes), answer) {
		return errNotRead
	}
	return nil
}

// land delivers a request, until a gateway has read it, and perhaps once more.
func (x *site) land(q request) {
	for {
		if err := x.gateway().land(q); err == nil {
			break
		}
	}
	if x.m.r.IntN(8) == 0 {
		x.m.tally[Redeliveries]++
		_ = x.gateway().land(q)
	}
}

// landAgain asks for the same commits once more, under the next revision, if they are out of the queue and
// have not landed.
func (x *site) landAgain(q request) {
	x.lineup.read()
	settled, out := x.lineup.queue.SettledAs(q.change)
	if !out || settled.State == lineup.Landed || x.lineup.queue.Pending(q.change) != nil {
		return
	}
	q.revision = settled.Revision + 1
	x.m.tally[Resubmissions]++
	x.land(q)
}
