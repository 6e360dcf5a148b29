package gograph

import (
	"context"
	"slices"
	"sync"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// maxRecentTrees is how many trees are kept to compare the next one with. A change
// is analysed on the mainline, so the last few are near.
const maxRecentTrees = 4

// maxEdits is how many files may differ for the graph to be derived from another
// tree's: each costs a comparison with what the file said before.
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
	// followed are the entries that were read because C code names them.
	followed map[int32]bool
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

// derive makes the graph of a tree from that of another one which has the same
// files, some of which have other contents with the same meaning: the same imports,
// patterns, constraints. All else that a graph is made of stands in other files, so
// nodes and edges are the same. It gives nil if there is no such tree.
func (l *loading) derive(ctx context.Context, id string) (*targets.Graph, error) {
	for _, recent := range l.loader.recent.list() {
		edited, ok := edits(recent.entries, l.snapshot.entries)
		if !ok {
			continue
		}
		same, err := l.haveSameFacts(ctx, recent, edited)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// What cannot be read any more of an old tree is no reason to fail; what
		// cannot be of this one fails where it is needed.
		if err != nil || !same {
			continue
		}
		files := make([]targets.FileContent, len(edited))
		for i, at := range edited {
			e := &l.snapshot.entries[at]
			files[i] = targets.FileContent{Path: e.Path, Mode: e.Mode, Object: e.Object}
		}
		if graph, ok := recent.graph.Successor(id, files); ok {
			l.followed = recent.followed
			return graph, nil
		}
	}
	return nil, nil
}

// edits returns the files whose content differs between two trees; false if anything
// else does, or where what a file says decides about more than itself.
func edits(old, now []gittree.Entry) (edited []int32, ok bool) {
	if len(old) != len(now) {
		return nil, false
	}
	for i := range now {
		o, n := &old[i], &now[i]
		if o.Path != n.Path || o.Mode != n.Mode || o.Kind != n.Kind {
			return nil, false
		}
		name := nameOf(n.Path)
		switch {
		case n.Mode&modeType == modeLink && (decidesModules(name) || classOf(name) != otherFile):
			return nil, false // What it says stands in a file of any name.
		case o.Object == n.Object:
		case n.Mode&modeType != modeFile || decidesModules(name) || len(edited) == maxEdits:
			return nil, false
		default:
			edited = append(edited, int32(i))
		}
	}
	return edited, true
}

const modeFile = 0o100000

// decidesModules reports whether a file of that name says which modules there are and
// how they are pinned.
func decidesModules(name string) bool {
	switch name {
	case "go.mod", "go.work", "go.sum", "go.work.sum", "modules.txt":
		return true
	}
	return false
}

// haveSameFacts reports whether edited files still have the same facts.
func (l *loading) haveSameFacts(ctx context.Context, old recentTree, edited []int32) (bool, error) {
	var keys []factKey
	for _, at := range edited {
		key, examined := factKeyOf(l.snapshot.entries[at].Path, l.snapshot.entries[at].Object)
		if examined {
			keys = append(keys, factKey{old.entries[at].Object, key.foreign, key.forTests}, key)
		}
		if asC := (factKey{object: l.snapshot.entries[at].Object, foreign: true}); old.followed[at] && (!examined || key != asC) {
			keys = append(keys, factKey{object: old.entries[at].Object, foreign: true}, asC)
		}
	}
	found, err := l.factsOf(ctx, keys)
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

// factsOf returns what files say, from memory where that is possible.
func (l *loading) factsOf(ctx context.Context, keys []factKey) ([]*facts, error) {
	found := make([]*facts, len(keys))
	wanted := map[factKey][]*source{}
	var missing []factKey
	sources := make([]source, len(keys))
	for i, key := range keys {
		if found[i] = l.loader.facts.get(key); found[i] != nil {
			continue
		}
		if wanted[key] == nil {
			missing = append(missing, key)
		}
		wanted[key] = append(wanted[key], &sources[i])
	}
	if err := l.readFacts(ctx, missing, wanted); err != nil {
		return nil, err
	}
	for i := range found {
		if found[i] == nil {
			found[i] = sources[i].facts
		}
	}
	return found, nil
}

// equal reports whether two files say the same. One that was not examined into says
// nothing that could be compared.
func (f *facts) equal(g *facts) bool {
	return !f.unread && !g.unread && f.cgo == g.cgo && f.computed == g.computed && f.constraint == g.constraint &&
		slices.Equal(f.imports, g.imports) && slices.Equal(f.embeds, g.embeds) && slices.Equal(f.reaches, g.reaches) &&
		slices.Equal(f.includes, g.includes) && slices.Equal(f.outside, g.outside) && slices.Equal(f.beside, g.beside)
}
