package pythongraph

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"landfall.build/engine/lru"
	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
	"landfall.build/platform/buildgraph/glob"
)

// Scheme is part of every target's hash; it changes when what the adapter takes a tree for does.
const Scheme = "python/9"

// Memory bounds what a Loader remembers, in approximate bytes. A zero field takes the default.
type Memory struct {
	// Graphs is for whole graphs, by tree id; default 512 MiB.
	Graphs int64
	// Facts is for what Python files say, by blob id; default 256 MiB.
	Facts int64
	// Files is for pyproject.toml, lock files and the like, by blob id, each kind by itself; default 64 MiB.
	Files int64
}

// Loader makes the target graphs of trees for one set of options, and remembers what the next tree has in common with the
// last ones. What it remembers never changes a result. It may be used from several goroutines.
type Loader struct {
	options Options
	inputs  []input

	// large is held while a large Python file is cut into tokens, which take many times its size.
	large sync.Mutex

	recent       recentTrees
	graphs       memo[targets.Graph]
	facts        memo[facts]
	pyprojects   memo[pyproject]
	setupConfigs memo[setup]
	setupScripts memo[setup]
	requirements memo[requirementsFile]
	locks        memo[lock]
	pytests      memo[pytestSettings]
	linkTexts    memo[string]
	texts        memo[bool]
}

// input is an Input with its patterns parsed.
type input struct{ folders, files []glob.Pattern }

// NewLoader returns a loader that remembers nothing yet. Its error lists what is wrong with the options.
func NewLoader(options Options, memory Memory) (*Loader, error) {
	if err := options.check(); err != nil {
		return nil, fmt.Errorf("options of the Python adapter: %w", err)
	}
	if memory.Graphs == 0 {
		memory.Graphs = 512 << 20
	}
	if memory.Facts == 0 {
		memory.Facts = 256 << 20
	}
	if memory.Files == 0 {
		memory.Files = 64 << 20
	}
	l := &Loader{options: options.complete()}
	for _, in := range l.options.Inputs {
		// The patterns were checked.
		folders, _ := glob.ParseAll(in.Folders)
		files, _ := glob.ParseAll(in.Files)
		l.inputs = append(l.inputs, input{folders, files})
	}
	l.graphs.init(memory.Graphs)
	l.facts.init(memory.Facts)
	for _, m := range []interface{ init(int64) }{
		&l.pyprojects, &l.setupConfigs, &l.setupScripts, &l.requirements, &l.locks, &l.pytests, &l.linkTexts, &l.texts,
	} {
		m.init(memory.Files)
	}
	return l, nil
}

// Load makes the graph of the tree with that id; with an empty id the graph is not remembered. The errors are
//
//   - ErrNoProject: the tree has no Python project; take another adapter;
//   - *Invalid: a pyproject.toml or a lock file is wrong; targets.Unknown stands for the tree;
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
	run := &loading{loader: l, tree: tree, entries: ordered(entries)}
	graph, err := run.derive(ctx, id)
	derived := err == nil && graph != nil
	if !derived {
		if graph, err = run.whole(ctx, id); err != nil {
			return nil, err
		}
	}
	if len(graph.Unknown()) == 0 {
		l.recent.put(recentTree{run.entries, graph, run.read}, derived)
	}
	if id != "" {
		nodes, edges := graph.Size()
		l.graphs.put(id, graph, int64(nodes)*160+int64(edges)*4)
	}
	return graph, nil
}

// loading is one Load.
type loading struct {
	loader  *Loader
	tree    gittree.Tree
	entries []gittree.Entry // by path
	// read holds the paths of entries that were read for anything but their facts.
	read map[string]bool
}

// whole makes a graph from nothing.
func (l *loading) whole(ctx context.Context, id string) (*targets.Graph, error) {
	l.read = map[string]bool{}
	s, err := l.survey(ctx)
	if err != nil {
		return nil, err
	}
	return l.assemble(ctx, id, s)
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

// parseBlobs returns what parse makes of each blob, from memory where that is possible; nil for a blob that is larger than
// max.
func parseBlobs[V any](ctx context.Context, l *loading, m *memo[V], objects []string, max int64, parse func([]byte) (*V, int64)) ([]*V, error) {
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
	err := l.readBlobs(ctx, missing, max, func(k int, content []byte, err error) error {
		switch {
		case errors.Is(err, gittree.ErrTooLarge):
			return nil
		case err != nil:
			return fmt.Errorf("read blob %s: %w", missing[k], err)
		}
		value, weight := parse(content)
		m.put(missing[k], value, weight)
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

// readBlobs reads blobs. visit is called at most once for each, from several goroutines at once.
func (l *loading) readBlobs(ctx context.Context, objects []string, max int64, visit func(i int, content []byte, err error) error) error {
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
