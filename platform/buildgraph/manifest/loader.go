package manifest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"landfall.build/engine/lru"
	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// WholeRepository returns the graph of a repository without manifests: one target,
// //:repository, whose version is the tree's id and the commands, so any two
// changes conflict.
func WholeRepository(tree string, commands []targets.Command) *targets.Graph {
	return targets.Whole(tree, commands)
}

// Load makes the graph of a tree without remembering anything; see Loader.Load.
func Load(ctx context.Context, tree gittree.Tree) (*targets.Graph, error) {
	return NewLoader(Memory{}).Load(ctx, "", tree)
}

// Memory bounds what a Loader remembers, in approximate bytes. A zero field
// takes the default.
type Memory struct {
	// Files is for parsed manifests, by path and content id; default 64 MiB.
	Files int64
	// Graphs is for whole graphs, by tree id; default 512 MiB.
	Graphs int64
}

// Loader makes graphs of trees and remembers what the next tree has in common
// with the last ones. What it remembers never changes a result. It may be used
// from several goroutines.
type Loader struct {
	// Closed has steps find the files alone that their targets depend on. Others: adapters besides find targets. Both are set before the
	// first Load.
	Closed, Others bool

	mu     sync.Mutex
	files  *lru.Cache[fileKey, *parsedFile]
	graphs *lru.Cache[string, *targets.Graph]
}

// fileKey: what a manifest means depends on where it stands.
type fileKey struct{ path, object string }

// NewLoader returns a loader that remembers nothing yet.
func NewLoader(memory Memory) *Loader {
	if memory.Files == 0 {
		memory.Files = 64 << 20
	}
	if memory.Graphs == 0 {
		memory.Graphs = 512 << 20
	}
	return &Loader{
		files:  lru.New[fileKey, *parsedFile](memory.Files),
		graphs: lru.New[string, *targets.Graph](memory.Graphs),
	}
}

// Load makes the graph of the tree with that id; with an empty id the graph is
// not remembered. Its errors are
//
//   - ErrNoManifest: the tree has no manifest; fall back to WholeRepository;
//   - *Invalid: its manifests are wrong; targets.Unknown stands for the tree;
//   - anything else: the tree could not be read; try again.
func (l *Loader) Load(ctx context.Context, id string, tree gittree.Tree) (*targets.Graph, error) {
	if id != "" {
		l.mu.Lock()
		graph, ok := l.graphs.Get(id)
		l.mu.Unlock()
		if ok {
			return graph, nil
		}
	}
	graph, err := l.load(ctx, id, tree)
	if err != nil {
		return nil, err
	}
	if id != "" {
		nodes, edges := graph.Size()
		l.mu.Lock()
		l.graphs.Put(id, graph, int64(nodes)*160+int64(edges)*4)
		l.mu.Unlock()
	}
	return graph, nil
}

func (l *Loader) load(ctx context.Context, id string, tree gittree.Tree) (*targets.Graph, error) {
	entries, err := tree.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	s := newSnapshot(entries)
	if len(s.manifests) == 0 {
		return nil, ErrNoManifest
	}
	files, err := l.parseAll(ctx, s, tree)
	if err != nil {
		return nil, err
	}
	r := resolve(s, files, l.Others)
	if err := r.problems.invalid(); err != nil {
		return nil, err
	}
	return assemble(ctx, id, r, l.Closed)
}

// parseAll reads the manifests.
func (l *Loader) parseAll(ctx context.Context, s *snapshot, tree gittree.Tree) ([]*parsedFile, error) {
	files := make([]*parsedFile, 0, len(s.manifests))
	total := 0
	for _, entry := range s.manifests {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		file, err := l.parse(ctx, entry, tree)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		// The sum is that of the tree, remembered files or not: what was loaded
		// before must not decide whether a tree is accepted.
		if total += file.bytes; total > maxTotalBytes {
			return append(files, brokenFile(entry.Path, "with the manifests before it is more than 128 MiB; join targets")), nil
		}
	}
	return files, nil
}

// parse reads one manifest, unless it was read before.
func (l *Loader) parse(ctx context.Context, entry gittree.Entry, tree gittree.Tree) (*parsedFile, error) {
	if entry.Kind != "blob" || entry.Mode&0o170000 != 0o100000 {
		return brokenFile(entry.Path, "is a symbolic link or submodule; a manifest must be a file"), nil
	}
	key := fileKey{entry.Path, entry.Object}
	l.mu.Lock()
	file, ok := l.files.Get(key)
	l.mu.Unlock()
	if ok {
		return file, nil
	}
	content, err := tree.Blob(ctx, entry.Object, maxFileBytes)
	switch {
	case errors.Is(err, gittree.ErrTooLarge) || err == nil && len(content) > maxFileBytes:
		return brokenFile(entry.Path, "is larger than 1 MiB; split it over folders"), nil
	case err != nil:
		return nil, fmt.Errorf("read %s (%s): %w", entry.Path, entry.Object, err)
	}
	file = parseFile(entry.Path, content)
	l.mu.Lock()
	l.files.Put(key, file, int64(len(content))*4+1024)
	l.mu.Unlock()
	return file, nil
}

func brokenFile(path, message string) *parsedFile {
	file := &parsedFile{path: path}
	file.problems.add(path, 0, "%s", message)
	return file
}
