package plan

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"landfall.build/engine/memberset"
	"landfall.build/engine/profile"
	eventsv1 "landfall.build/events/v1"
)

// queue is a snapshot that has been checked.
type queue struct {
	now              time.Time
	slots            int
	limited          bool // slots is given
	threshold, abort float64
	bypass           *float64 // nil: no bypass
	changes          []*change
	byID             map[string]int
	builds           []*build
	runs             map[pathKey]int // the running builds, as indices in builds
}

// pathKey is a path of the change at a place in the queue.
type pathKey struct {
	place   int
	assumed string // a memberset's key
}

type change struct {
	id             string
	success        float64
	assumedSuccess bool // success is the default
	benefit        float64
	held           bool
	timed          bool // duration is given
	duration       profile.Duration
	ahead          []member // A(c), in queue order
	classes        [][]int  // indices into ahead
}

type member struct {
	at       int // its place in the queue
	conflict float64
	// assumed reports whether conflict is the default.
	assumed                       bool
	conflicts, required, unmerged bool
}

type build struct {
	change  *change
	assumed memberset.Set
	state   string
	failed  []int
	elapsed time.Duration // of one that runs
}

// read returns the queue of a snapshot, or an error that names everything that is wrong with it.
func read(in io.Reader) (*queue, error) {
	p := &problems{}
	d, err := decode(in, p)
	if err != nil {
		return nil, err
	}
	q := d.check(p)
	return q, p.err()
}

// order sets the members, in queue order.
func (c *change) order(links map[int]member) {
	for _, m := range links {
		c.ahead = append(c.ahead, m)
	}
	slices.SortFunc(c.ahead, func(a, b member) int { return a.at - b.at })
}

// indexOf returns the index in A(c) of the change at a place in the queue, -1 if it is no member.
func (c *change) indexOf(place int) int {
	j, found := slices.BinarySearchFunc(c.ahead, place, func(m member, place int) int { return m.at - place })
	if !found {
		return -1
	}
	return j
}

func (q *queue) ref(place int) *eventsv1.ChangeRef {
	return &eventsv1.ChangeRef{Change: q.changes[place].id, Revision: 1}
}

// delta returns the speculation graph as the enumerator would write it.
func (q *queue) delta() *eventsv1.GraphDelta {
	d := &eventsv1.GraphDelta{
		Settings: &eventsv1.QueueSettings{
			Hash: "snapshot", Workers: uint32(q.slots), Best: uint32(max(1, q.slots)),
			Threshold: q.threshold, AbortThreshold: q.abort, BypassThreshold: q.bypass, Steps: &eventsv1.StepPolicy{},
		},
		Mainline: &eventsv1.Mainline{Head: "mainline", Analyzed: true},
	}
	if !q.limited {
		d.Settings.Workers = math.MaxInt32
	}
	nodes := map[*change]*eventsv1.Node{}
	for place, c := range q.changes {
		n := c.node(q, place)
		nodes[c] = n
		d.Nodes = append(d.Nodes, n)
	}
	for i, b := range q.builds {
		b.prove(nodes[b.change], i)
	}
	return d
}

func (c *change) node(q *queue, place int) *eventsv1.Node {
	n := &eventsv1.Node{Change: q.ref(place), Position: int64(place + 1), Analyzed: true, Benefit: c.benefit}
	for _, m := range c.ahead {
		n.Ahead = append(n.Ahead, &eventsv1.Ahead{Change: q.ref(m.at), Conflicts: m.conflicts, Required: m.required, MergeConflict: m.unmerged})
	}
	for i, members := range c.classes {
		k := &eventsv1.Class{Targets: []*eventsv1.TargetVersion{{Target: fmt.Sprintf("class %d of %s", i, c.id), Part: 1}}}
		for _, j := range members {
			k.Members = append(k.Members, uint32(j))
		}
		n.Classes = append(n.Classes, k)
	}
	if c.held {
		n.Holds = []*eventsv1.Hold{{Name: "snapshot"}}
	}
	return n
}

// prove adds the evidence of a finished build to a node (M24, M25). Of two results about one version the first counts (M20a).
func (b *build) prove(n *eventsv1.Node, index int) {
	note := fmt.Sprintf("builds[%d] is %s", index, b.state)
	versions := make([]memberset.Set, len(n.Classes))
	for i, k := range n.Classes {
		versions[i] = memberset.New(len(k.Members))
		for x, m := range k.Members {
			if b.assumed.Has(int(m)) {
				versions[i].Add(x)
			}
		}
	}
	put := func(i int, state eventsv1.OutcomeState) {
		k := n.Classes[i]
		if stateOf(k.Outcomes, versions[i]) == eventsv1.OutcomeState_OUTCOME_STATE_UNSPECIFIED {
			k.Outcomes = append(k.Outcomes, &eventsv1.Outcome{
				Members: versions[i].Bytes(), State: state, Message: note, Version: k.Targets[0],
			})
		}
	}
	switch {
	case b.state == stateGreen:
		for i := range n.Classes {
			put(i, eventsv1.OutcomeState_OUTCOME_STATE_GREEN)
		}
	case b.state == stateRed && len(b.failed) > 0:
		for _, i := range b.failed {
			put(i, eventsv1.OutcomeState_OUTCOME_STATE_RED)
		}
	case b.state == stateRed:
		green := true
		for i, k := range n.Classes {
			green = green && stateOf(k.Outcomes, versions[i]) == eventsv1.OutcomeState_OUTCOME_STATE_GREEN
		}
		if !green && stateOf(n.Paths, b.assumed) == eventsv1.OutcomeState_OUTCOME_STATE_UNSPECIFIED {
			n.Paths = append(n.Paths, &eventsv1.Outcome{Members: b.assumed.Bytes(), State: eventsv1.OutcomeState_OUTCOME_STATE_RED, Message: note})
		}
	}
}

func stateOf(outcomes []*eventsv1.Outcome, members memberset.Set) eventsv1.OutcomeState {
	for _, o := range outcomes {
		if string(o.Members) == string(members.Bytes()) {
			return o.State
		}
	}
	return eventsv1.OutcomeState_OUTCOME_STATE_UNSPECIFIED
}

// predictions returns what the profiler would predict. The duration of a change that has none is NaN: nothing is known to finish before it,
// nor it before anything (F = 0).
func (q *queue) predictions() (list []*eventsv1.Prediction, pairs []*eventsv1.PairPrediction) {
	for place, c := range q.changes {
		p := &eventsv1.Prediction{Change: q.ref(place), Success: c.success, SuccessSource: givenOr(c.assumedSuccess), DurationMeanUs: math.NaN(), DurationStdUs: math.NaN()}
		if c.timed {
			p.DurationMeanUs, p.DurationStdUs = c.duration.Mean*1e6, c.duration.Std*1e6
		}
		list = append(list, p)
		for _, m := range c.ahead {
			pairs = append(pairs, &eventsv1.PairPrediction{Behind: q.ref(place), Ahead: q.ref(m.at), Conflict: m.conflict, Source: givenOr(m.assumed || !m.conflicts)})
		}
	}
	return list, pairs
}
