package buildgraph

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"landfall.build/engine/targets"
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
	// Absent: the tree holds nothing that the queue's adapters read.
	Absent bool
}

func (e *Invalid) Error() string { return e.Message }

// Loader makes the target graphs of trees by the analysis settings of one queue. It may be used from
// several goroutines. Close it when done.
type Loader struct {
	// adapters find the targets, each in its folders; without any, a tree is one target.
	adapters []adapter
	// named are the names of the adapters, for analyses. reading is what Reading returns.
	named   string
	reading string
	// fallback: a tree in which no adapter finds anything is one target. Else it is invalid.
	fallback bool
	steps    []targets.Command
	// limit bounds how long a tree is read for its Part; 0 does not.
	limit     time.Duration
	merged    *mergedGraphs
	uncovered uncoveredRule

	mu      sync.Mutex
	loading map[string]chan struct{} // by tree: closed when whoever loads it is done
	owners  ownersOfTree
}

// NewLoader returns the loader of a queue. Besides the settings of its analysis it takes the variables of its steps,
// which decide what Go code a step builds (the adapter "go"). Graphs of manifests depend on the tree alone, so queues of
// one repository may share manifests; nil gives the loader one of its own, with bounded memory.
func NewLoader(queue configuration.Queue, manifests *manifest.Loader) *Loader {
	settings := queue.Analysis
	l := &Loader{
		adapters: adaptersOf(queue, manifests), fallback: settings.Adapter == configuration.AdapterAuto, limit: settings.Timeout,
		merged: newMergedGraphs(), uncovered: newUncoveredRule(settings.Uncovered), loading: map[string]chan struct{}{},
	}
	var names []string
	reading := sha256.New()
	fmt.Fprintln(reading, queue.Reading())
	for _, a := range l.adapters {
		names = append(names, string(a.name))
		fmt.Fprintln(reading, a.scheme)
	}
	l.named, l.reading = strings.Join(names, "+"), hex.EncodeToString(reading.Sum(nil))
	for _, s := range settings.WholeRepositorySteps {
		l.steps = append(l.steps, targets.Command{Name: s.Name, Argv: s.Run, Dir: s.Dir, Timeout: s.Timeout, Needs: needsOf(s)})
	}
	return l
}

// Reading identifies how the loader reads trees: two loaders with one reading find the same in a tree.
func (l *Loader) Reading() string { return l.reading }

// needsOf returns what a step of the configuration asks for, as a manifest's would.
func needsOf(s configuration.Step) targets.Needs {
	each := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	needs := targets.Needs{Caches: each(s.Caches), Secrets: each(s.Secrets), Image: s.Image, Exclusive: each(s.Exclusive), RunsOn: each(s.RunsOn)}
	for _, name := range slices.Sorted(maps.Keys(s.Resources)) {
		needs.Resources = append(needs.Resources, targets.Resource{Name: name, Amount: int64(s.Resources[name])})
	}
	return needs
}

// Close ends what the loader keeps running besides: the server of a Bazel. The other adapters have nothing of the kind.
func (l *Loader) Close() {
	for _, a := range l.adapters {
		if a.close != nil {
			a.close()
		}
	}
}

// Graph returns the target graph of the tree with that id. The error is *Invalid if its definitions are
// wrong; any other error means that the tree could not be read.
func (l *Loader) Graph(ctx context.Context, repo Repository, tree string) (*targets.Graph, error) {
	found, err := l.read(ctx, repo, tree)
	if err == nil && found.absent != nil && !l.fallback {
		return nil, found.absent
	}
	return found.graph, err
}

// definitions is what a tree defines.
type definitions struct {
	graph *targets.Graph
	// absent is set if it holds nothing that an adapter reads.
	absent *Invalid
}

func (l *Loader) read(ctx context.Context, repo Repository, tree string) (definitions, error) {
	if len(l.adapters) == 0 {
		return definitions{graph: targets.Whole(tree, l.steps)}, nil
	}
	release, err := l.acquire(ctx, tree)
	if err != nil {
		return definitions{}, err
	}
	defer release()
	graph, err := l.load(ctx, repo, tree)
	absent, _ := errors.AsType[*Invalid](err)
	if absent == nil || !absent.Absent {
		return definitions{graph: graph}, unusable(err)
	}
	if len(l.steps) > 0 {
		return definitions{l.undefined(tree, absent), absent}, nil
	}
	files, err := filesOf(ctx, repo, tree)
	return definitions{files.Graph, absent}, unusable(err)
}

// undefined returns the graph of a tree that holds nothing that an adapter reads, and has to be verified as a whole.
func (l *Loader) undefined(tree string, absent *Invalid) *targets.Graph {
	if l.fallback {
		return targets.Whole(tree, l.steps)
	}
	return targets.Unknown(tree, l.steps, absent.Message)
}

func unknownFor(tree string, steps []targets.Command, invalid *Invalid) *targets.Graph {
	return targets.Unknown(tree, steps, "invalid target definitions: "+invalid.Message)
}

// load asks each adapter and joins what they found.
func (l *Loader) load(ctx context.Context, repo Repository, tree string) (*targets.Graph, error) {
	if graph := l.merged.get(tree); graph != nil {
		return graph, nil
	}
	var members []targets.Member
	var unknown []string
	var absent *absentError
	for _, a := range l.adapters {
		graph, err := a.graph(ctx, repo, tree)
		if missing, is := errors.AsType[*absentError](err); is {
			absent = missing
			continue
		}
		if err != nil {
			if _, is := errors.AsType[*Invalid](err); is {
				return nil, err
			}
			return nil, fmt.Errorf("target graph of tree %s: %w", tree, err)
		}
		members = append(members, targets.Member{Name: string(a.name), Graph: graph})
		unknown = append(unknown, graph.Unknown()...)
	}
	switch {
	case len(unknown) > 0:
		if known := members[0].Graph; len(l.adapters) == 1 && !isWhole(known) {
			return known, nil // some of its targets are known
		}
		return targets.Unknown(tree, l.steps, unknown...), nil
	case len(members) == 0:
		return nil, &Invalid{Message: absent.message, Absent: true}
	case len(l.adapters) == 1 && len(members[0].Graph.Declared()) == 0:
		return members[0].Graph, nil
	}
	if len(l.adapters) > 1 {
		files, err := filesOf(ctx, repo, tree)
		if err != nil {
			return nil, err
		}
		members = append(members, files)
	}
	graph, err := targets.Merge(tree, members)
	if err != nil {
		return nil, &Invalid{Message: err.Error()}
	}
	l.merged.put(graph)
	return graph, nil
}

// isWhole reports whether a graph is of the repository as one target.
func isWhole(graph *targets.Graph) bool {
	_, is := graph.Target(targets.Repository)
	return is
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
	if len(steps) == 0 && !isWhole(graph) && len(graph.Unknown()) == 0 {
		all := graph.Targets()
		if graph.Leaving().Any() {
			all = slices.Values(graph.DependenciesFirst()) // they run one after the other in one tree
		}
		for t := range all {
			for _, c := range t.Commands {
				c.Name, c.Group, c.Outputs = t.Name+" "+c.Name, nil, nil
				steps = append(steps, c)
			}
		}
	}
	return targets.Whole(tree, steps)
}
