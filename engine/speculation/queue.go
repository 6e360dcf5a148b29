// Package speculation is the enumerator's core: it folds every fact of a queue, in one order, into the speculation graph,
// and writes what changed in it as deltas. The graph holds who is pending, who conflicts with whom, in which classes of
// targets they meet, and what is known of each version.
//
// The tree of 2^n builds is never written down. The changes that each change has ahead are the tree, factored; evidence is
// kept by target version (M24) and shown by class (M25), so a path is known when its versions are, whoever built them.
//
// It is pure: facts carry their time, and the same facts give the same deltas, byte for byte.
package speculation

import (
	"maps"
	"math"
	"slices"
	"sort"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	"landfall.build/engine/graph"
	"landfall.build/engine/lineup"
	"landfall.build/engine/survey"
	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// WholeRepository is the one target of a change, or of a repository, whose targets cannot be computed (M4).
const WholeRepository = targets.Repository

// Bounds on what is remembered: a build on a head that is older than this many moves of the mainline, or on top of a change
// that left so many departures ago, gives no evidence by label any more. Its hashes still do. keptNames bounds the targets and files
// that the changes which left have together.
const (
	keptMoves    = 256
	keptDeparted = 1024
	keptNames    = 4 << 20
)

// Queue is the state of one queue. The zero value is not usable; see New.
type Queue struct {
	Lineup   *lineup.Queue
	settings *eventsv1.QueueSettings

	analyses  analyses
	conflicts conflicts
	known     known
	builds    builds

	landed *landed
	// landings are the last ones, and lastPush is the move of the last direct push that is analysed: either may have
	// mended a change that did not merge.
	landings []landing
	lastPush uint64
	// pushes are the commits that came past the queue (M23a).
	pushes  *directpush.Pushes
	proving proving

	// changes holds what is known of each pending revision beside its analysis, guarded those of them that have a guard.
	changes map[string]*changeState
	guarded map[string]bool

	published published
	delta     delta
}

// maxNodeBytes bounds the nodes of a delta, so that the delta fits into a record beside its facts, and into one of the profiler's beside its
// predictions. A single node may take more.
const maxNodeBytes = 12 << 20

// revision names what a tree can hold, and what can come onto the mainline.
type revision struct {
	kind   kind
	change string // the commit of a direct push; empty for the mainline
	number uint64
}

// kind says what a revision is of.
type kind uint8

const (
	// ofChange is a revision of a change.
	ofChange kind = iota
	// ofMainline is the mainline itself, which is built to verify what came past the queue.
	ofMainline
	// ofPush is a commit that came past the queue.
	ofPush
)

// revisionOf reads a reference of the log, where the mainline is the change without a name.
func revisionOf(r *eventsv1.ChangeRef) revision {
	if r.GetChange() == "" {
		return revision{kind: ofMainline}
	}
	return revision{change: r.GetChange(), number: r.GetRevision()}
}

// ref is the revision as the log names it.
func (r revision) ref() *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: r.change, Revision: r.number}
}

// analyses are those of the pending revisions, by change, and those of the last that left.
type analyses struct {
	pending  map[string]*analysis
	departed map[revision]*analysis
	// departedOrder names those in departed, the first that left first.
	departedOrder []revision
	// names is how many those in departed have.
	names int `snapshot:"-"`
}

// known is the evidence about target versions, and which versions the pending changes may make.
type known struct {
	ledger *evidence.Ledger
	// labels holds the observation that names a label's hash.
	labels    map[label]*observation
	observed  map[string][]*observation // by target
	byVersion map[evidence.Version][]*observation
	marks     marks
}

// changeState is what is known of a pending revision beside its analysis.
type changeState struct {
	epoch       uint64
	guard       *eventsv1.Refused
	failedTrees []failedTree
	// unmade counts in a row the refusals because the lander could not make the change's tree.
	unmade uint32
	// landings are the moves of the mainline by what conflicts with the change, since it is pending.
	landings []landing
	// overtaken counts the changes behind it that landed and altered a hub of its own under it.
	overtaken int
}

// addLanding adds a move and forgets those that no tree can be older than: a tree that is yet to fail stands on one of the last
// keptMoves heads.
func (st *changeState) addLanding(l landing) {
	st.landings = append(st.landings, l)
	old := 0
	for old < len(st.landings) && st.landings[old].sequence+keptMoves < l.sequence &&
		!slices.ContainsFunc(st.failedTrees, func(t failedTree) bool { return t.sequence < st.landings[old].sequence }) {
		old++
	}
	st.landings = slices.Delete(st.landings, 0, old)
}

// landing is a change or a direct push that came onto the mainline with a move of it.
type landing struct {
	sequence uint64
	revision revision
}

// failedTree is a tree of a change, on top of others, that could not be made.
type failedTree struct {
	assumed  []revision
	sequence uint64 // the move of the mainline that it was to stand on
	outcome  eventsv1.PreparationOutcome
	message  string
}

// proving is the state of the builds of the mainline itself.
type proving struct {
	failed failedChecks
	// survey is what is left to prove of what the mainline had before the queue (M23b).
	survey *survey.Survey
}

// failedChecks counts in a row how often the mainline itself could not be prepared at a head.
type failedChecks struct {
	head  string
	times uint32
}

// published is the graph as the deltas so far have told it.
type published struct {
	// room is how many bytes the nodes of a delta may take together.
	room     int `snapshot:"-"`
	nodes    map[string]*eventsv1.Node
	check    *eventsv1.Node // the pseudo-change that verifies what came past the queue
	mainline *eventsv1.Mainline
	settings string // their hash
	survey   *eventsv1.Survey
}

// delta is what the next delta may have to tell.
type delta struct {
	// dirty are the pending changes whose node may differ from the published one; with allDirty it is all of them and the
	// check, which is in no map.
	dirty map[string]bool
	// known holds, by pending change, targets whose outcomes may differ from the published ones. The rest of the node does not, unless
	// the change is dirty.
	known    map[string]map[string]bool
	check    bool
	allDirty bool

	gone      []*eventsv1.NodeGone
	builds    []*eventsv1.BuildProgress
	answered  []*eventsv1.Answered
	durations []*eventsv1.StepDuration
	// tick asks for a delta though nothing of the graph changed: the stages behind have something to do.
	tick bool
}

func newDelta() delta { return delta{dirty: map[string]bool{}, known: map[string]map[string]bool{}} }

// New returns a queue without facts.
func New() *Queue {
	return &Queue{
		Lineup:    lineup.New(),
		analyses:  analyses{pending: map[string]*analysis{}, departed: map[revision]*analysis{}},
		conflicts: newConflicts(),
		known: known{
			ledger: evidence.NewLedger(), labels: map[label]*observation{},
			observed: map[string][]*observation{}, byVersion: map[evidence.Version][]*observation{},
		},
		builds:    newBuilds(),
		landed:    newLanded(),
		pushes:    directpush.New(),
		proving:   proving{survey: survey.New()},
		changes:   map[string]*changeState{},
		guarded:   map[string]bool{},
		published: published{room: maxNodeBytes, nodes: map[string]*eventsv1.Node{}},
		delta:     newDelta(),
	}
}

// Settings returns the queue's settings as the log has them, nil before the first.
func (q *Queue) Settings() *eventsv1.QueueSettings { return q.settings }

// Idle reports whether nothing is pending, so that no tick is worth writing.
func (q *Queue) Idle() bool { return len(q.Lineup.Order()) == 0 }

// Decide returns what changed in the graph since the last delta that was folded, nil if nothing did. It changes no state;
// Fold does.
func (q *Queue) Decide() *eventsv1.GraphDelta {
	d := &eventsv1.GraphDelta{
		Gone: q.delta.gone, Builds: q.delta.builds, Answered: q.delta.answered, Durations: q.delta.durations,
	}
	changed := q.delta.tick || len(d.Gone)+len(d.Builds)+len(d.Answered)+len(d.Durations) > 0
	if q.settings != nil && q.settings.Hash != q.published.settings {
		d.Settings, changed = q.settings, true
	}
	if m := q.toProve(); !sameSurvey(m, q.published.survey) {
		d.Survey, changed = m, true
	}
	room := q.published.room
	if q.delta.allDirty || q.delta.check {
		if n := q.check(); n != nil && !sameNode(n, q.published.check) {
			d.Nodes, changed = append(d.Nodes, n), true
			room -= proto.Size(n)
		}
	}
	for _, c := range q.dirtyInOrder() {
		id := c.ID()
		published := q.knownToReaders(id)
		n := published
		if published == nil || q.delta.allDirty || q.delta.dirty[id] {
			n = q.node(c)
		} else if a := q.analyses.pending[id]; published.Analyzed && a.known() {
			n = q.nodeKnowing(c, a, published, q.delta.known[id])
		}
		if sameNode(n, published) {
			continue
		}
		if room -= proto.Size(n); room < 0 && len(d.Nodes) > 0 {
			d.More = true
			break
		}
		d.Nodes, changed = append(d.Nodes, n), true
	}
	m := q.mainline()
	if d.More {
		m.Analyzed = false // nothing is decided before the rest is there
	}
	if !proto.Equal(m, q.published.mainline) {
		d.Mainline, changed = m, true
	}
	if !changed {
		return nil
	}
	return d
}

// Unbounded has each delta hold all that has changed, for readers that have it from no log.
func (q *Queue) Unbounded() *Queue {
	q.published.room = math.MaxInt
	return q
}

// knownToReaders returns the node that readers of the delta will have of a change if the delta holds none of it. For most
// of those behind a change that leaves, graph.Without gives all that there is to tell.
func (q *Queue) knownToReaders(id string) *eventsv1.Node {
	n := q.published.nodes[id]
	if n != nil {
		for _, g := range q.delta.gone {
			n = graph.Without(n, g)
		}
	}
	return n
}

// eachDirty yields the published nodes that may differ from what there is now.
func (q *Queue) eachDirty(yield func(*eventsv1.Node) bool) {
	if q.delta.allDirty {
		maps.Values(q.published.nodes)(yield)
		return
	}
	for id := range q.delta.dirty {
		if n := q.published.nodes[id]; n != nil && !yield(n) {
			return
		}
	}
}

// dirtyInOrder returns, in queue order, the pending changes whose node may differ from the published one.
func (q *Queue) dirtyInOrder() []*lineup.Change {
	if q.delta.allDirty {
		return q.Lineup.Order()
	}
	var changes []*lineup.Change
	add := func(id string) {
		if c := q.Lineup.Pending(id); c != nil {
			changes = append(changes, c)
		}
	}
	for id := range q.delta.dirty {
		add(id)
	}
	for id := range q.delta.known {
		if !q.delta.dirty[id] {
			add(id)
		}
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Position < changes[j].Position })
	return changes
}

// Fold takes a delta as published: the one that Decide returned, or the one that the log holds.
func (q *Queue) Fold(d *eventsv1.GraphDelta) {
	if d == nil {
		return
	}
	if d.Settings != nil {
		q.published.settings = d.Settings.Hash
	}
	if d.Mainline != nil {
		q.published.mainline = d.Mainline
	}
	if d.Survey != nil {
		q.published.survey = d.Survey
	}
	for n := range graph.EachWithout(q.eachDirty, d) { // all that have what has left ahead are dirty
		q.published.nodes[n.Change.Change] = n
	}
	for _, n := range d.Nodes {
		if n.Mainline {
			q.published.check = n
		} else {
			q.published.nodes[n.GetChange().GetChange()] = n
		}
	}
	q.delta = q.left(d)
}

// left returns what is left to tell once a delta was written: nothing, unless it was more than a record holds.
func (q *Queue) left(d *eventsv1.GraphDelta) delta {
	left := newDelta()
	if !d.More {
		return left
	}
	left.dirty, left.known, left.check = q.delta.dirty, q.delta.known, q.delta.check || q.delta.allDirty
	if q.delta.allDirty {
		for _, c := range q.Lineup.Order() {
			left.dirty[c.ID()] = true
		}
	}
	for _, n := range d.Nodes {
		if n.Mainline {
			left.check = false
		}
		delete(left.dirty, n.GetChange().GetChange())
		delete(left.known, n.GetChange().GetChange())
	}
	return left
}

func (q *Queue) mainline() *eventsv1.Mainline {
	m := &eventsv1.Mainline{
		Head: q.Lineup.Head, Sequence: q.Lineup.Sequence,
		Analyzed: q.Lineup.Head != "" && q.pushes.Known(), RefusedByRemote: q.Lineup.RefusedByRemote.GetMessage(),
	}
	if p := q.Lineup.Paused; p != nil {
		m.Paused, m.PausedBy, m.PausedWhy = true, p.Who, p.Why
	}
	return m
}
