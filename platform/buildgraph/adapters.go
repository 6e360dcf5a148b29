package buildgraph

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"landfall.build/engine/lru"
	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/bazelgraph"
	"landfall.build/platform/buildgraph/gittree"
	"landfall.build/platform/buildgraph/glob"
	"landfall.build/platform/buildgraph/gograph"
	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/configuration"
)

// adapter finds the targets of one build system.
type adapter struct {
	name configuration.Adapter
	// scheme is part of the hash of each of its targets.
	scheme string
	// graph returns what it makes of a tree: an *absentError if the tree holds nothing of its build system, *Invalid if
	// definitions are wrong, a graph that is not known to be whole if its tool fails.
	graph func(ctx context.Context, repo Repository, tree string) (*targets.Graph, error)
	// owners returns what it knows about who owns targets; nil if it knows nothing.
	owners func(ctx context.Context, repo Repository, tree string) (*manifest.Owners, error)
	// close ends what it keeps running; nil for nothing.
	close func()
}

// Schemes returns the scheme of each adapter: releases in which one differs name the same targets by other hashes.
func Schemes() map[configuration.Adapter]string {
	all := maps.Clone(schemes)
	all[configuration.AdapterManifest], all[configuration.AdapterGo], all[configuration.AdapterBazel] = manifest.Scheme, gograph.Scheme, bazelgraph.Scheme
	return all
}

// absentError says that a tree holds nothing of an adapter's build system.
type absentError struct {
	// message is what is wrong if it is the only adapter.
	message string
}

func (e *absentError) Error() string { return e.message }

// adaptersOf returns the adapters of a queue, none for a repository that is one target.
func adaptersOf(queue configuration.Queue, manifests *manifest.Loader) []adapter {
	var adapters []adapter
	for _, use := range queue.Analysis.Uses() {
		switch use.Adapter {
		case configuration.AdapterAuto, configuration.AdapterManifest:
			adapters = append(adapters, manifestAdapter(queue, use, manifests))
		case configuration.AdapterGo:
			adapters = append(adapters, goAdapter(queue, use))
		case configuration.AdapterBazel:
			adapters = append(adapters, bazelAdapter(queue))
		case configuration.AdapterNode:
			adapters = append(adapters, nodeAdapter(queue, use))
		case configuration.AdapterCargo:
			adapters = append(adapters, cargoAdapter(queue, use))
		case configuration.AdapterPython:
			adapters = append(adapters, pythonAdapter(queue, use))
		}
	}
	return adapters
}

// manifestAdapter returns the adapter of manifests. Loaders of the whole tree may share what they remember.
func manifestAdapter(queue configuration.Queue, use configuration.AdapterUse, shared *manifest.Loader) adapter {
	others := len(queue.Analysis.Uses()) > 1
	if shared == nil || restricts(use) || closed(queue) || others {
		shared = manifest.NewLoader(manifest.Memory{})
		shared.Closed, shared.Others = closed(queue), others
	}
	owners := func(ctx context.Context, repo Repository, tree string) (*manifest.Owners, error) {
		return shared.Owners(ctx, within(gittree.New(repo, tree), use))
	}
	return adapter{name: configuration.AdapterManifest, scheme: manifest.Scheme, owners: owners, graph: func(ctx context.Context, repo Repository, tree string) (*targets.Graph, error) {
		graph, err := shared.Load(ctx, tree, within(gittree.New(repo, tree), use))
		if invalid, is := errors.AsType[*manifest.Invalid](err); is {
			return nil, &Invalid{Message: invalid.Error()}
		}
		if errors.Is(err, manifest.ErrNoManifest) {
			return nil, &absentError{manifest.FileName + ": the repository has none, and the queue's adapter is \"manifest\"; " +
				"add one, or set the adapter to \"auto\""}
		}
		return graph, err
	}}
}

// closed reports whether the steps of a queue find only the files that their targets depend on.
func closed(queue configuration.Queue) bool {
	return queue.Steps.Workspace == configuration.WorkspaceClosed
}

// restricts reports whether an adapter sees some folders alone.
func restricts(use configuration.AdapterUse) bool { return len(use.Folders)+len(use.Except) > 0 }

// within returns what an adapter sees of a tree.
func within(tree gittree.Tree, use configuration.AdapterUse) gittree.Tree {
	if !restricts(use) {
		return tree
	}
	// The configuration's patterns are valid.
	folders, _ := glob.ParseAll(use.Folders)
	except, _ := glob.ParseAll(use.Except)
	return folderTree{tree, folders, except}
}

// folderTree is a tree in which some folders are not seen.
type folderTree struct {
	gittree.Tree
	folders, except []glob.Pattern
}

// Entries implements gittree.Tree.
func (t folderTree) Entries(ctx context.Context) ([]gittree.Entry, error) {
	entries, err := t.Tree.Entries(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(entries), func(e gittree.Entry) bool {
		folder := path.Dir(e.Path)
		sees, known := seen[folder]
		if !known {
			sees = (len(t.folders) == 0 || covers(t.folders, folder)) && !covers(t.except, folder)
			seen[folder] = sees
		}
		return !sees
	}), nil
}

// covers reports whether a pattern names the folder or one above it; "." names the root.
func covers(patterns []glob.Pattern, folder string) bool {
	for ; ; folder = path.Dir(folder) {
		name := strings.TrimPrefix(folder, ".")
		if slices.ContainsFunc(patterns, func(p glob.Pattern) bool {
			return p.MatchesFolder(name) || folder == "." && len(p) == 1 && p[0].Text == "."
		}) {
			return true
		}
		if folder == "." {
			return false
		}
	}
}

// filesOf returns a graph of all files of a tree: those in folders that no adapter sees are nodes too (M2).
func filesOf(ctx context.Context, repo Repository, tree string) (targets.Member, error) {
	entries, err := gittree.New(repo, tree).Entries(ctx)
	if err != nil {
		return targets.Member{}, err
	}
	b := targets.NewBuilder("files", tree)
	for _, e := range entries {
		b.File(e.Path, e.Mode, e.Object)
	}
	graph, err := b.Build()
	return targets.Member{Name: "files", Graph: graph}, err
}

// mergedGraphs remembers the graphs of several adapters by tree.
type mergedGraphs struct {
	mu     sync.Mutex
	graphs *lru.Cache[string, *targets.Graph]
}

// mergedInMemory bounds what is remembered, in approximate bytes.
const mergedInMemory = 512 << 20

func newMergedGraphs() *mergedGraphs {
	return &mergedGraphs{graphs: lru.New[string, *targets.Graph](mergedInMemory)}
}

func (m *mergedGraphs) get(tree string) *targets.Graph {
	m.mu.Lock()
	defer m.mu.Unlock()
	graph, _ := m.graphs.Get(tree)
	return graph
}

func (m *mergedGraphs) put(graph *targets.Graph) {
	nodes, edges := graph.Size()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.graphs.Put(graph.Tree(), graph, int64(nodes)*160+int64(edges)*4)
}
