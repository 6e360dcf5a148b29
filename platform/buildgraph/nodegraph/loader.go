package nodegraph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"landfall.build/engine/lru"
	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// Scheme is part of every target's hash; it changes when what the adapter takes a tree for does.
const Scheme = "node/9"

// Memory bounds what a Loader remembers, in approximate bytes. A zero field takes the default.
type Memory struct {
	// Graphs is for whole graphs, by tree id; default 512 MiB.
	Graphs int64
	// Locks is for lock files, by blob id; default 256 MiB.
	Locks int64
	// Files is for what manifests, sources and links say, by blob id, each kind by itself; default 128 MiB.
	Files int64
}

// Loader makes the target graphs of trees for one set of options, and remembers what the next tree has in common with
// the last ones. What it remembers never changes a result. It may be used from several goroutines.
type Loader struct {
	options Options
	inputs  []input

	recent     recentTrees
	graphs     memo[targets.Graph]
	manifests  memo[packageFile]
	workspaces memo[pnpmFile]
	locks      memo[lock]
	facts      memo[facts]
	links      memo[string]
}

// NewLoader returns a loader that remembers nothing yet. Its error lists what is wrong with the options.
func NewLoader(options Options, memory Memory) (*Loader, error) {
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("options of the adapter for JavaScript: %w", err)
	}
	if memory.Graphs == 0 {
		memory.Graphs = 512 << 20
	}
	if memory.Locks == 0 {
		memory.Locks = 256 << 20
	}
	if memory.Files == 0 {
		memory.Files = 128 << 20
	}
	l := &Loader{options: options.normal()}
	l.inputs = inputsOf(l.options)
	l.graphs.init(memory.Graphs)
	l.locks.init(memory.Locks)
	for _, m := range []interface{ init(int64) }{&l.manifests, &l.workspaces, &l.facts, &l.links} {
		m.init(memory.Files)
	}
	return l, nil
}

// Load makes the graph of the tree with that id; with an empty id the graph is not remembered. What is not understood
// makes the graph incomplete (Graph.Unknown gives the reasons). The errors are
//
//   - ErrNoPackage: the tree has no package.json that counts; take another adapter;
//   - *Invalid: a manifest or lock file is wrong; targets.Unknown stands for the tree;
//   - anything else: the tree could not be read; try again.
func (l *Loader) Load(ctx context.Context, id string, tree gittree.Tree) (*targets.Graph, error) {
	if id != "" {
		if graph := l.graphs.get(id); graph != nil {
			return graph, nil
		}
	}
	entries, err := tree.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	entries = ordered(entries)
	run := &loading{loader: l, tree: tree}
	graph, facts, err := run.derive(ctx, id, entries)
	derived := graph != nil
	if err == nil && !derived {
		graph, facts, err = run.whole(ctx, id, entries)
	}
	if err != nil {
		return nil, err
	}
	if len(graph.Unknown()) == 0 {
		l.recent.put(recentTree{entries, graph, facts}, derived)
	}
	if id != "" {
		nodes, edges := graph.Size()
		l.graphs.put(id, graph, int64(nodes)*160+int64(edges)*4)
	}
	return graph, nil
}

// whole makes a graph from nothing.
func (l *loading) whole(ctx context.Context, id string, entries []gittree.Entry) (*targets.Graph, []*facts, error) {
	l.snapshot = newSnapshot(entries)
	survey, err := l.survey(ctx)
	if err != nil {
		return nil, nil, err
	}
	return l.assemble(ctx, id, survey)
}

// loading is one Load.
type loading struct {
	loader   *Loader
	tree     gittree.Tree
	snapshot *snapshot
}

// memo remembers values that never change, by the ids of blobs or trees.
type memo[V any] struct {
	mu    sync.Mutex
	known *lru.Cache[string, *V]
}

func (m *memo[V]) init(limit int64) { m.known = lru.New[string, *V](limit) }

func (m *memo[V]) get(key string) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, _ := m.known.Get(key)
	return value
}

func (m *memo[V]) put(key string, value *V, weight int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.Put(key, value, weight)
}

// parseBlobs returns what parse makes of each blob, from memory where that is possible; nil for a blob that is larger
// than max. A key is the blob's id, or how it is read, a blank and the id.
func parseBlobs[V any](ctx context.Context, l *loading, m *memo[V], keys []string, max int64, parse func([]byte) *V) ([]*V, error) {
	values := make([]*V, len(keys))
	var missing []string
	waiting := map[string][]int{}
	for i, key := range keys {
		if values[i] = m.get(key); values[i] == nil {
			if waiting[key] == nil {
				missing = append(missing, key)
			}
			waiting[key] = append(waiting[key], i)
		}
	}
	var mu sync.Mutex
	err := l.read(ctx, missing, max, func(k int, content []byte, err error) error {
		switch {
		case errors.Is(err, gittree.ErrTooLarge):
			return nil
		case err != nil:
			return fmt.Errorf("read blob %s: %w", missing[k], err)
		}
		value := parse(content)
		m.put(missing[k], value, int64(len(content))+400)
		mu.Lock()
		defer mu.Unlock()
		for _, i := range waiting[missing[k]] {
			values[i] = value
		}
		return nil
	})
	return values, err
}

// readers is how many blobs are read at the same time.
const readers = 4

// read reads blobs by the keys of parseBlobs. visit is called at most once for each, from several goroutines at once.
func (l *loading) read(ctx context.Context, keys []string, max int64, visit func(i int, content []byte, err error) error) error {
	if len(keys) == 0 {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var all sync.WaitGroup
	for range min(readers, len(keys)) {
		all.Go(func() {
			for i := range next {
				content, err := l.tree.Blob(ctx, keys[i][strings.LastIndexByte(keys[i], ' ')+1:], max)
				if err == nil && int64(len(content)) > max {
					content, err = nil, gittree.ErrTooLarge
				}
				if ctx.Err() != nil {
					continue
				}
				if err := visit(i, content, err); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range keys {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}
