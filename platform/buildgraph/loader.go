package buildgraph

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
)

// Repository is what is needed of a git mirror; *gitrepo.Repo is one.
type Repository interface {
	landing.Repository
	Tree(ctx context.Context, treeish string) ([]gitrepo.Entry, error)
	Blob(ctx context.Context, id string, maxBytes int64) ([]byte, error)
}

// Invalid is the error for a tree whose definitions are wrong. It speaks against the tree: asking again
// gives the same.
type Invalid struct {
	// Message has one problem a line, each with its file and line.
	Message string
	// Unusable: nobody can check the tree out, so not even the whole of it can be built.
	Unusable bool
}

func (e *Invalid) Error() string { return e.Message }

// Loader makes the target graphs of trees by the analysis settings of one queue. It may be used from
// several goroutines. Close it when done.
type Loader struct {
	adapter   configuration.Adapter
	steps     []targets.Command
	manifests *manifest.Loader
	packages  goPackages
	bazel     bazelPackages

	mu      sync.Mutex
	loading map[string]chan struct{} // by tree: closed when whoever loads it is done
}

// NewLoader returns the loader of a queue. Besides the settings of its analysis it takes the variables of its steps,
// which decide what Go code a step builds (the adapter "go"). Graphs of manifests depend on the tree alone, so queues of
// one repository may share manifests; nil gives the loader one of its own, with bounded memory.
func NewLoader(queue configuration.Queue, manifests *manifest.Loader) *Loader {
	settings := queue.Analysis
	if manifests == nil && settings.Adapter != configuration.AdapterGo && settings.Adapter != configuration.AdapterBazel {
		manifests = manifest.NewLoader(manifest.Memory{})
	}
	l := &Loader{adapter: settings.Adapter, manifests: manifests, loading: map[string]chan struct{}{}}
	switch settings.Adapter {
	case configuration.AdapterGo:
		l.packages.options, l.packages.proxy = goOptions(queue), settings.ModuleProxy
	case configuration.AdapterBazel:
		l.bazel.options = bazelOptions(queue)
	}
	for _, s := range settings.WholeRepositorySteps {
		l.steps = append(l.steps, targets.Command{Name: s.Name, Argv: s.Run, Timeout: s.Timeout})
	}
	return l
}

// Close ends what the loader keeps running besides: the server of a Bazel. The adapters of Go and of manifests
// have nothing of the kind.
func (l *Loader) Close() { l.bazel.close() }

// Graph returns the target graph of the tree with that id. The error is *Invalid if its definitions are
// wrong; any other error means that the tree could not be read.
func (l *Loader) Graph(ctx context.Context, repo Repository, tree string) (*targets.Graph, error) {
	if l.adapter == configuration.AdapterWholeRepository {
		return targets.Whole(tree, l.steps), nil
	}
	release, err := l.acquire(ctx, tree)
	if err != nil {
		return nil, err
	}
	defer release()
	switch l.adapter {
	case configuration.AdapterGo:
		graph, err := l.goGraph(ctx, repo, tree)
		return graph, unusable(err)
	case configuration.AdapterBazel:
		graph, err := l.bazelGraph(ctx, repo, tree)
		return graph, unusable(err)
	}
	graph, err := l.manifests.Load(ctx, tree, gittree.New(repo, tree))
	invalid, isInvalid := errors.AsType[*manifest.Invalid](err)
	switch {
	case err == nil:
		return graph, nil
	case isInvalid:
		return nil, &Invalid{Message: invalid.Error()}
	case errors.Is(err, manifest.ErrNoManifest) && l.adapter == configuration.AdapterManifest:
		return nil, &Invalid{Message: manifest.FileName + ": the repository has none, and the queue's adapter is \"manifest\"; " +
			"add one, or set the adapter to \"auto\""}
	case errors.Is(err, manifest.ErrNoManifest):
		return targets.Whole(tree, l.steps), nil
	}
	return nil, unusable(fmt.Errorf("target graph of tree %s: %w", tree, err))
}

// unusable distinguishes a tree that is at fault itself from one that could not be read just now: nobody can check out a
// tree with an entry named .git, and asking again changes nothing.
func unusable(err error) error {
	if errors.Is(err, gitrepo.ErrBadObject) || errors.Is(err, gitrepo.ErrTooLarge) {
		return &Invalid{Message: err.Error(), Unusable: true}
	}
	return err
}

// acquire lets one goroutine at a time load a tree: the others find it remembered. Changes that are
// analysed at the same time all want the graph of the same mainline.
func (l *Loader) acquire(ctx context.Context, tree string) (release func(), err error) {
	for {
		l.mu.Lock()
		busy := l.loading[tree]
		if busy == nil {
			done := make(chan struct{})
			l.loading[tree] = done
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.loading, tree)
				l.mu.Unlock()
				close(done)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// whole returns the tree as one target: (repository, tree id) of M4.
//
// The queue's whole-repository steps verify it. Where there are none, a tree whose targets are known
// nevertheless is verified by all of their steps; a tree about which nothing is known by nothing, and a
// version that nothing can verify cannot be built.
func (l *Loader) whole(tree string, graph *targets.Graph) *targets.Graph {
	steps := l.steps
	if _, isWhole := graph.Target(targets.Repository); len(steps) == 0 && !isWhole && len(graph.Unknown()) == 0 {
		for t := range graph.Targets() {
			for _, c := range t.Commands {
				c.Name = t.Name + " " + c.Name
				steps = append(steps, c)
			}
		}
	}
	return targets.Whole(tree, steps)
}
