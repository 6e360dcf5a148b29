package nodegraph

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// maxRecentTrees is how many trees are kept to compare the next one with. A change is analysed on the mainline, so the
// last few are near.
const maxRecentTrees = 4

// maxEdits is how many files may differ for the graph to be derived from another tree's.
const maxEdits = 500

// recentTrees are the trees that were loaded last, with their graphs.
type recentTrees struct {
	mu      sync.Mutex
	trees   []recentTree // the last one first
	derived int          // how many graphs were made from another tree's
}

type recentTree struct {
	entries []gittree.Entry // by path
	graph   *targets.Graph
	facts   []*facts // by entry; nil for a file that was not read
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

// derive makes the graph of a tree from that of another one which has the same files, some of which have other contents
// that refer to the same. All else that a graph is made of stands in other files, so nodes and edges are the same. It
// gives nil if there is no such tree.
func (l *loading) derive(ctx context.Context, id string, entries []gittree.Entry) (*targets.Graph, []*facts, error) {
	for _, recent := range l.loader.recent.list() {
		edited, ok := edits(recent.entries, entries)
		if !ok {
			continue
		}
		same, err := l.haveSameFacts(ctx, recent, entries, edited)
		if err != nil {
			return nil, nil, err
		}
		if !same {
			continue
		}
		files := make([]targets.FileContent, len(edited))
		for k, i := range edited {
			e := &entries[i]
			files[k] = targets.FileContent{Path: e.Path, Mode: e.Mode, Object: e.Object}
		}
		if graph, ok := recent.graph.Successor(id, files); ok {
			return graph, recent.facts, nil
		}
	}
	return nil, nil, nil
}

// edits returns the files whose content differs between two trees; false if anything else does, or where what a file
// says decides about packages.
func edits(old, now []gittree.Entry) (edited []int32, ok bool) {
	if len(old) != len(now) {
		return nil, false
	}
	for i := range now {
		o, n := &old[i], &now[i]
		switch {
		case o.Path != n.Path || o.Mode != n.Mode || o.Kind != n.Kind:
			return nil, false
		case o.Object == n.Object:
			continue
		}
		name := nameOf(n.Path)
		if n.Mode&modeType != modeFile || name == manifestName || name == pnpmWorkspace || isLockName(name) || len(edited) == maxEdits {
			return nil, false
		}
		edited = append(edited, int32(i))
	}
	return edited, true
}

// haveSameFacts reports whether edited files refer to the same as before. A file that was not read before is one whose
// content nothing rests on.
func (l *loading) haveSameFacts(ctx context.Context, old recentTree, entries []gittree.Entry, edited []int32) (bool, error) {
	for _, i := range edited {
		if old.facts[i] == nil {
			continue
		}
		kind := kindOf(nameOf(entries[i].Path))
		read, err := parseBlobs(ctx, l, &l.loader.facts, []string{kind + " " + entries[i].Object}, maxSourceBytes, func(content []byte) *facts { return factsOf(kind, content) })
		if err != nil {
			return false, err
		}
		if read[0] == nil || !reflect.DeepEqual(read[0], old.facts[i]) {
			return false, nil
		}
	}
	return true, nil
}
