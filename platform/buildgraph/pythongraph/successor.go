package pythongraph

import (
	"context"
	"slices"
	"strings"
	"sync"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// maxRecentTrees is how many trees are kept to compare the next one with. A change is analysed on the mainline, so the last
// few are near.
const maxRecentTrees = 4

// maxEdits is how many files may differ for the graph to be derived from another tree's.
const maxEdits = 500

// recentTrees are the trees that were loaded last, with their graphs.
type recentTrees struct {
	mu    sync.Mutex
	trees []recentTree // the last one first
	// derived counts the graphs that were made from another tree's.
	derived int
}

type recentTree struct {
	entries []gittree.Entry // by path
	graph   *targets.Graph
	// read holds the paths of entries that were read for anything but their facts.
	read map[string]bool
}

func (r *recentTrees) list() []recentTree {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.trees)
}

func (r *recentTrees) put(t recentTree, derived bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if derived {
		r.derived++
	}
	r.trees = append([]recentTree{t}, r.trees[:min(len(r.trees), maxRecentTrees-1)]...)
}

// derive makes the graph of a tree from that of another one which has the same files, some of which have other contents with
// the same meaning. All else that a graph is made of stands in other files, so nodes and edges are the same. It gives nil if
// there is no such tree.
func (l *loading) derive(ctx context.Context, id string) (*targets.Graph, error) {
	for _, recent := range l.loader.recent.list() {
		edited, ok := edits(recent, l.entries)
		if !ok {
			continue
		}
		same, err := l.haveSameFacts(ctx, recent, edited)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// What cannot be read any more of an old tree is no reason to fail; what cannot be of this one fails where it is needed.
		if err != nil || !same {
			continue
		}
		files := make([]targets.FileContent, len(edited))
		for i, at := range edited {
			e := &l.entries[at]
			files[i] = targets.FileContent{Path: e.Path, Mode: e.Mode, Object: e.Object}
		}
		if graph, ok := recent.graph.Successor(id, files); ok {
			l.read = recent.read
			return graph, nil
		}
	}
	return nil, nil
}

// edits returns the files whose content differs between two trees; false if anything else does, or where what a file says
// decides about more than itself.
func edits(old recentTree, now []gittree.Entry) (edited []int32, ok bool) {
	if len(old.entries) != len(now) {
		return nil, false
	}
	for i := range now {
		o, n := &old.entries[i], &now[i]
		switch {
		case o.Path != n.Path || o.Mode != n.Mode || o.Kind != n.Kind:
			return nil, false
		case o.Object == n.Object:
		case n.Mode&modeType != modeFile || old.read[n.Path] || len(edited) == maxEdits:
			return nil, false
		default:
			edited = append(edited, int32(i))
		}
	}
	return edited, true
}

// haveSameFacts reports whether edited files still say the same.
func (l *loading) haveSameFacts(ctx context.Context, old recentTree, edited []int32) (bool, error) {
	var objects []string
	for _, at := range edited {
		if strings.HasSuffix(l.entries[at].Path, ".py") {
			objects = append(objects, old.entries[at].Object, l.entries[at].Object)
		}
	}
	found, err := l.factsOf(ctx, objects)
	if err != nil {
		return false, err
	}
	for i := 0; i < len(found); i += 2 {
		if !found[i].equal(found[i+1]) {
			return false, nil
		}
	}
	return true, nil
}
