package gograph

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"landfall.build/engine/lru"
	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// Scheme is part of every target's hash; it changes when what the adapter takes
// a tree for does.
const Scheme = "go/10"

// Memory bounds what a Loader remembers, in approximate bytes. A zero field
// takes the default.
type Memory struct {
	// Graphs is for whole graphs, by tree id; default 512 MiB.
	Graphs int64
	// Modules is for go.mod, go.work, go.sum and modules.txt files and symbolic
	// links, by blob id, each kind by itself; default 64 MiB.
	Modules int64
}

// Loader makes the target graphs of trees for one set of options, and remembers
// what the next tree has in common with the last ones. What it remembers never
// changes a result. It may be used from several goroutines.
type Loader struct {
	options  Options
	platform platform
	inputs   []input
	cgoFlags facts // of the environment
	facts    *Facts

	recent      recentTrees
	remembrance remembrance
	graphs      memo[targets.Graph]
	moduleFiles memo[moduleFile]
	workFiles   memo[moduleFile]
	sumFiles    memo[sumFile]
	vendorFiles memo[vendorFile]
	linkTexts   memo[string]
	required    memo[moduleFile]
}

// NewLoader returns a loader that remembers nothing yet but for the facts, which
// loaders may share; nil gives it facts of its own, 256 MiB in memory. Its error
// lists what is wrong with the options.
func NewLoader(options Options, memory Memory, facts *Facts) (*Loader, error) {
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("options of the Go adapter: %w", err)
	}
	if memory.Graphs == 0 {
		memory.Graphs = 512 << 20
	}
	if memory.Modules == 0 {
		memory.Modules = 64 << 20
	}
	if facts == nil {
		facts = NewFacts(256 << 20)
	}
	l := &Loader{options: options.normal(), facts: facts}
	l.platform, l.inputs, l.cgoFlags = platformOf(l.options), inputsOf(l.options), cgoFlagsOf(l.options)
	l.graphs.init(memory.Graphs)
	for _, m := range []interface{ init(int64) }{&l.moduleFiles, &l.workFiles, &l.sumFiles, &l.vendorFiles, &l.linkTexts, &l.required} {
		m.init(memory.Modules)
	}
	return l, nil
}

// Load makes the graph of the tree with that id; with an empty id the graph is
// not remembered. What is wrong with single files makes the graph incomplete
// (Graph.Unknown gives the reasons) or is covered by the hashes of the targets
// that hold them. The errors are
//
//   - ErrNoModule: the tree has no Go module; take another adapter;
//   - *Invalid: a go.mod or go.work is wrong; targets.Unknown stands for the tree;
//   - anything else: the tree, or Requirements, could not be read; try again.
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
	run := &loading{loader: l, tree: tree, snapshot: &snapshot{entries: ordered(entries)}}
	graph, err := run.derive(ctx, id)
	derived := err == nil && graph != nil
	if !derived {
		if graph, err = run.whole(ctx, id); err != nil {
			return nil, err
		}
	}
	l.facts.flush(flushAt)
	if len(graph.Unknown()) == 0 {
		l.recent.put(recentTree{run.snapshot.entries, graph, run.followed}, derived)
	}
	if id != "" {
		nodes, edges := graph.Size()
		l.graphs.put(id, graph, int64(nodes)*160+int64(edges)*4)
	}
	return graph, nil
}

// whole makes a graph from nothing.
func (l *loading) whole(ctx context.Context, id string) (*targets.Graph, error) {
	l.snapshot = newSnapshot(l.snapshot.entries)
	survey, err := l.survey(ctx)
	if err != nil {
		return nil, err
	}
	l.followed = survey.followed
	return l.assemble(ctx, id, survey)
}

// loading is one Load.
type loading struct {
	loader   *Loader
	tree     gittree.Tree
	snapshot *snapshot
	followed map[int32]bool // of the survey, or of the tree that the graph is derived from
}

// memo remembers values that never change, by the ids of blobs or trees.
type memo[V any] struct {
	mu    sync.Mutex
	known *lru.Cache[string, *V]
}

func (m *memo[V]) init(limit int64) { m.known = lru.New[string, *V](limit) }

func (m *memo[V]) get(id string) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, _ := m.known.Get(id)
	return value
}

func (m *memo[V]) put(id string, value *V, weight int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.Put(id, value, weight)
}

// parseBlobs returns what parse makes of each blob, from memory where that is
// possible; nil for a blob that is larger than max.
func parseBlobs[V any](ctx context.Context, l *loading, m *memo[V], objects []string, max int64, parse func([]byte) *V) ([]*V, error) {
	values := make([]*V, len(objects))
	var missing []string
	waiting := map[string][]int{}
	for i, object := range objects {
		if values[i] = m.get(object); values[i] == nil {
			if waiting[object] == nil {
				missing = append(missing, object)
			}
			waiting[object] = append(waiting[object], i)
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
		m.put(missing[k], value, int64(len(content))*2+200)
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

// read reads blobs. visit is called at most once for each, from several
// goroutines at once.
func (l *loading) read(ctx context.Context, objects []string, max int64, visit func(i int, content []byte, err error) error) error {
	if len(objects) == 0 {
		return ctx.Err()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var all sync.WaitGroup
	for range min(readers, len(objects)) {
		all.Go(func() {
			for i := range next {
				content, err := l.tree.Blob(ctx, objects[i], max)
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
	for i := range objects {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}
