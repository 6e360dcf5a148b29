// Package speculation is the enumerator's core: it folds every fact of a queue, in one order, into the
// speculation graph – who is pending, who conflicts with whom, in which classes of targets they meet,
// and what is known of each version – and says what changed in it.
//
// The tree of 2^n builds is never written down. A change's ahead set is the tree, factored; evidence is
// kept by target version (M24) and shown by class (M25), so a path is known when its versions are,
// whoever built them.
//
// It is pure: facts carry their time, and the same facts give the same deltas, byte for byte.
package speculation

import (
	"maps"
	"sort"

	"google.golang.org/protobuf/proto"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/analyzer/targets"
	"landfall.build/services/evidence"
	"landfall.build/services/foreign"
	"landfall.build/services/graph"
	"landfall.build/services/lineup"
)

// WholeRepository is the one target of a change, or of a repository, whose targets cannot be computed (M4).
const WholeRepository = targets.Repository

// Bounds on what is remembered of the past: a build that is older than this many moves of the mainline,
// or of that many departed changes, yields no evidence by label any more (its hashes still do).
const (
	keptMoves    = 256
	keptDeparted = 1024
)

// Queue is the state of one queue.
type Queue struct {
	Lineup   *lineup.Queue
	settings *eventsv1.QueueSettings

	analyses map[string]*analysis // by change id, of the pending revision
	departed map[refKey]*analysis
	leftFIFO []refKey

	// Indexes over the pending analyses.
	byTarget map[string]map[string]bool // target → changes whose D holds it
	byLeaf   map[string]map[string]bool
	byEdge   map[string]map[string]bool // node → changes whose N holds it
	all      map[string]bool            // changes whose targets are unknown (M4)
	edges    map[string]map[string]*relation
	// structural holds the edges that are: few, and asked for at every target of every member.
	structural map[string]map[string]bool
	// led holds, of these, those ahead of a change that lead into its targets: on top of them it may affect more than by itself.
	led map[string]map[string]bool
	// hubs are the targets in which changes may meet without a conflict; insisting are the changes for which
	// they are none any more.
	hubs      *targets.Hubs
	insisting map[string]bool
	hubNames  []string

	history   *history
	ledger    *evidence.Ledger
	labels    map[label]*observation // the observation that names a label's hash
	observed  map[string][]*observation
	byVersion map[evidence.Version][]*observation
	builds    builds
	past      past

	// foreign is what came past the queue (M23a).
	foreign *foreign.Pushes

	state map[string]*changeState
	// guarded are the changes of which the land guard has asked for something.
	guarded map[string]bool
	// landings are the last ones, and pushed is the last direct push that is analysed, by sequence: what may have
	// mended a change that did not merge.
	landings []landedNeighbour
	pushed   uint64

	dirty             map[string]bool
	allDirty          bool
	published         map[string]*eventsv1.Node
	publishedMainline *eventsv1.Mainline
	publishedSettings string

	out        pendingDelta
	unverified unverified
}

type refKey struct {
	change   string
	revision uint64
}

func keyOf(r *eventsv1.ChangeRef) refKey { return refKey{r.GetChange(), r.GetRevision()} }

// changeState is what is kept of a pending revision beside its analysis.
type changeState struct {
	epoch uint64
	guard *eventsv1.Refused
	paths []pathObservation
	// landedNeighbours are the moves of the mainline that conflict with it, since it is pending.
	landedNeighbours []landedNeighbour
	// overtaken counts the changes behind it that landed and altered a hub of its own under it.
	overtaken int
}

type landedNeighbour struct {
	sequence uint64
	ref      refKey // zero for a direct push
}

// pathObservation is evidence about a whole path: its tree could not be made.
type pathObservation struct {
	assumed  []refKey
	sequence uint64
	outcome  eventsv1.PreparationOutcome
	message  string
}

type build struct {
	change   refKey
	assumed  []*eventsv1.ChangeRef
	versions []evidence.Version
}

// unverified counts in a row how often the mainline itself could not be prepared at a head.
type unverified struct {
	head  string
	times uint32
}

// pendingDelta collects what is not a diff of nodes.
type pendingDelta struct {
	gone      []*eventsv1.NodeGone
	builds    []*eventsv1.BuildProgress
	answered  []*eventsv1.Answered
	durations []*eventsv1.StepDuration
	// tick: those behind have something to do though nothing of the graph changed.
	tick bool
}

// New is a queue of which nothing is known.
func New() *Queue {
	return &Queue{
		Lineup:     lineup.New(),
		analyses:   map[string]*analysis{},
		departed:   map[refKey]*analysis{},
		byTarget:   map[string]map[string]bool{},
		byLeaf:     map[string]map[string]bool{},
		byEdge:     map[string]map[string]bool{},
		all:        map[string]bool{},
		edges:      map[string]map[string]*relation{},
		structural: map[string]map[string]bool{},
		led:        map[string]map[string]bool{},
		insisting:  map[string]bool{},
		history:    newHistory(),
		ledger:     evidence.NewLedger(),
		labels:     map[label]*observation{},
		observed:   map[string][]*observation{},
		byVersion:  map[evidence.Version][]*observation{},
		builds:     newBuilds(),
		foreign:    foreign.New(),
		state:      map[string]*changeState{},
		guarded:    map[string]bool{},
		dirty:      map[string]bool{},
		published:  map[string]*eventsv1.Node{},
	}
}

// Settings are the queue's settings as the log has them, nil before the first.
func (q *Queue) Settings() *eventsv1.QueueSettings { return q.settings }

// Idle says that nothing is pending: no tick is worth writing.
func (q *Queue) Idle() bool { return len(q.Lineup.Order()) == 0 }

// Decide gives the graph's delta since the last one that was folded, nil if nothing changed. It changes
// nothing; Fold does.
func (q *Queue) Decide() *eventsv1.GraphDelta {
	d := &eventsv1.GraphDelta{
		Gone: q.out.gone, Builds: q.out.builds, Answered: q.out.answered, Durations: q.out.durations,
	}
	changed := q.out.tick || len(d.Gone)+len(d.Builds)+len(d.Answered)+len(d.Durations) > 0
	if q.settings != nil && q.settings.Hash != q.publishedSettings {
		d.Settings, changed = q.settings, true
	}
	if m := q.mainline(); !proto.Equal(m, q.publishedMainline) {
		d.Mainline, changed = m, true
	}
	for _, id := range q.dirtyInOrder() {
		n := q.node(id)
		if n != nil && !sameNode(n, q.known(id)) {
			d.Nodes, changed = append(d.Nodes, n), true
		}
	}
	if !changed {
		return nil
	}
	return d
}

// known is the node that those who fold the delta have of a change, if the delta does not tell it (graph.Without): most of what is
// behind a change that leaves needs no more.
func (q *Queue) known(id string) *eventsv1.Node {
	n := q.published[id]
	if n != nil {
		for _, g := range q.out.gone {
			n = graph.Without(n, g)
		}
	}
	return n
}

// eachDirty gives the published nodes that may differ from what there is now.
func (q *Queue) eachDirty(yield func(*eventsv1.Node) bool) {
	if q.allDirty {
		maps.Values(q.published)(yield)
		return
	}
	for id := range q.dirty {
		if n := q.published[id]; n != nil && !yield(n) {
			return
		}
	}
}

// dirtyInOrder lists the changes whose node may differ from the published one, in queue order, the
// mainline's own pseudo-change first.
func (q *Queue) dirtyInOrder() []string {
	var ids []string
	if q.allDirty || q.dirty[""] {
		ids = append(ids, "")
	}
	if q.allDirty || len(q.dirty) > len(q.Lineup.Order())/4 {
		for _, c := range q.Lineup.Order() {
			if q.allDirty || q.dirty[c.ID()] {
				ids = append(ids, c.ID())
			}
		}
		return ids
	}
	var few []*lineup.Change
	for id := range q.dirty {
		if c := q.Lineup.Pending(id); c != nil {
			few = append(few, c)
		}
	}
	sort.Slice(few, func(i, j int) bool { return few[i].Position < few[j].Position })
	for _, c := range few {
		ids = append(ids, c.ID())
	}
	return ids
}

// Fold takes a delta as published: the one that Decide gave, or the one that the log holds.
func (q *Queue) Fold(d *eventsv1.GraphDelta) {
	if d == nil {
		return
	}
	if d.Settings != nil {
		q.publishedSettings = d.Settings.Hash
	}
	if d.Mainline != nil {
		q.publishedMainline = d.Mainline
	}
	for n := range graph.EachWithout(q.eachDirty, d) { // whoever has ahead what has left is
		q.published[n.Change.Change] = n
	}
	for _, n := range d.Nodes {
		q.published[n.GetChange().GetChange()] = n
	}
	q.dirty, q.allDirty, q.out = map[string]bool{}, false, pendingDelta{}
}

func (q *Queue) mainline() *eventsv1.Mainline {
	m := &eventsv1.Mainline{
		Head: q.Lineup.Head, Sequence: q.Lineup.Sequence,
		Analyzed: q.Lineup.Head != "" && q.foreign.Known(),
	}
	if p := q.Lineup.Paused; p != nil {
		m.Paused, m.PausedBy, m.PausedWhy = true, p.Who, p.Why
	}
	return m
}
