package policy

import (
	"slices"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// BatchSize is how many changes are verified together at most: the default of GitHub's merge queue.
const BatchSize = 5

// Batching is a policy that verifies several changes by one build. A pass is proof for each; a failure says nothing about
// any of them.
type Batching interface {
	Policy
	// Batches are those that are to run now, each in queue order, the first ones first. A member's path
	// assumes those of its batch before it.
	Batches() [][]string
	// Failed is called when a batch of more than one did not pass.
	Failed(batch []string)
}

// bisecting batches changes in queue order as they come, and halves what fails. Batches run side by side
// unless one meets another.
type bisecting struct {
	direct
	size int
	// open are the batches under way, in queue order. Of one that failed, the second half waits behind
	// the first until that is decided.
	open [][]string
	in   map[string]bool
}

func newBisecting(s Settings) Policy {
	b := &bisecting{size: BatchSize, in: map[string]bool{}}
	b.direct = inOrder(b.members)
	return b
}

// members are the paths of all batches that are to run, after new ones were formed of what waits.
func (b *bisecting) members(g *graph.Graph) (best []*eventsv1.RankedBuild) {
	b.dropDecided(g)
	b.form(g)
	for _, batch := range b.running(g) {
		for i, id := range batch {
			n := g.Node(id)
			r := &eventsv1.RankedBuild{Change: n.Change}
			for _, a := range n.Ahead {
				if slices.Contains(batch[:i], a.Change.Change) {
					r.Assumed = append(r.Assumed, a.Change)
				}
			}
			best = append(best, r)
		}
	}
	return best
}

func (b *bisecting) dropDecided(g *graph.Graph) {
	for i := range b.open {
		b.open[i] = slices.DeleteFunc(b.open[i], func(id string) bool {
			gone := g.Node(id) == nil
			if gone {
				delete(b.in, id)
			}
			return gone
		})
	}
	b.open = slices.DeleteFunc(b.open, func(batch []string) bool { return len(batch) == 0 })
}

// form makes batches of the changes that meet nothing pending outside of one new batch. One that meets
// nothing at all begins a batch of its own: it gains nothing from being verified with others.
func (b *bisecting) form(g *graph.Graph) {
	var batches [][]string
	for _, n := range g.Order() {
		id := n.Change.Change
		if !n.Analyzed || b.in[id] {
			continue
		}
		at := slices.IndexFunc(batches, func(batch []string) bool { return len(batch) < b.size && within(n, batch) })
		switch {
		case len(n.Ahead) > 0 && at < 0:
			continue
		case len(n.Ahead) == 0:
			batches = append(batches, []string{id})
		default:
			batches[at] = append(batches[at], id)
		}
		b.in[id] = true
	}
	b.open = append(b.open, batches...)
}

// within reports whether all that a change has ahead is in the batch.
func within(n *graph.Node, batch []string) bool {
	for _, a := range n.Ahead {
		if !slices.Contains(batch, a.Change.Change) {
			return false
		}
	}
	return true
}

// running are the batches whose members meet nothing pending outside.
func (b *bisecting) running(g *graph.Graph) (now [][]string) {
	for _, batch := range b.open {
		ready := true
		for i, id := range batch {
			ready = ready && within(g.Node(id), batch[:i])
		}
		if ready {
			now = append(now, batch)
		}
	}
	return now
}

func (b *bisecting) Batches() [][]string { return b.running(b.graph) }

func (b *bisecting) Failed(batch []string) {
	i := slices.IndexFunc(b.open, func(o []string) bool { return slices.Equal(o, batch) })
	if i < 0 || len(batch) < 2 {
		return
	}
	half := len(batch) / 2
	b.open = slices.Replace(b.open, i, i+1, slices.Clone(batch[:half]), slices.Clone(batch[half:]))
}
