package buildgraph

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/bazelgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/sandbox"
)

// bazelPackages is the adapter of Bazel with what one queue's steps see.
type bazelPackages struct {
	options bazelgraph.Options
	branch  string // the mainline
	once    sync.Once
	loader  *bazelgraph.Loader
	// refused is why there is no loader, if there is none.
	refused error
}

// bazelAdapter returns the adapter of Bazel, which sees the whole tree.
func bazelAdapter(queue configuration.Queue) adapter {
	p := &bazelPackages{options: bazelOptions(queue), branch: queue.Branch}
	return adapter{name: configuration.AdapterBazel, scheme: bazelgraph.Scheme, graph: p.graph, close: p.close}
}

// bazelOptions returns what a queue's settings mean to the adapter.
func bazelOptions(queue configuration.Queue) bazelgraph.Options {
	b := queue.Analysis.Bazel
	options := bazelgraph.Options{
		Binary: b.Binary, StartupFlags: b.StartupFlags, QueryFlags: b.QueryFlags,
		Env: queue.Steps.Environment.List(), Heap: int64(b.Heap), Output: int64(b.Output),
		Limit: queue.Analysis.Timeout, Build: b.Build, Test: b.Test,
	}
	if queue.Steps.Isolation != configuration.IsolationOff {
		options.Sandbox, options.SandboxRequired = bazelSandbox(queue), queue.Steps.Isolation == configuration.IsolationRequired
	}
	for _, in := range queue.Analysis.Inputs {
		options.Inputs = append(options.Inputs, bazelgraph.Input{Folders: in.Folders, Files: in.Files})
	}
	return options
}

// bazelSandbox returns what Bazel sees and reaches: what steps do, but for what they share.
func bazelSandbox(queue configuration.Queue) *sandbox.Spec {
	home, _ := os.UserHomeDir() // "" for a user without a home
	spec := &sandbox.Spec{
		Read:    append(sandbox.ToolPaths(queue.Steps.Environment.Path, home), queue.Steps.Read...),
		Network: sandbox.Network(queue.Steps.Network),
		Deny:    queue.Steps.DeniedNetworks(),
	}
	for _, secret := range queue.Steps.Secrets {
		if secret.File != "" {
			spec.Hide = append(spec.Hide, secret.File)
		}
	}
	return spec
}

// worktrees is what Bazel needs of a mirror besides its objects: *gitrepo.Repo has it.
type worktrees interface {
	Dir() string
	TreeOf(ctx context.Context, treeish string) (string, error)
	AddWorktree(ctx context.Context, dir string) (*gitrepo.Worktree, error)
}

// load makes the loader when the first graph is wanted, since only then it is known where the mirror is. Its
// checkout lies beside that.
func (p *bazelPackages) load(repo Repository) (*bazelgraph.Loader, error) {
	p.once.Do(func() {
		mirror, is := repo.(worktrees)
		if !is {
			p.refused = errors.New("there is no mirror to check out from")
			return
		}
		p.loader, p.refused = bazelgraph.NewLoader(p.options, func(ctx context.Context) (bazelgraph.Place, error) {
			return takePlace(ctx, mirror, p.branch)
		})
	})
	return p.loader, p.refused
}

// maxPlaces is how many processes and queues of one data folder may each have a Bazel of their own.
const maxPlaces = 64

// takePlace takes the first folder beside the mirror that nobody has: after a restart it is the same one, with
// the tree, what Bazel has fetched, and without a sandbox maybe the server that a killed process left behind.
func takePlace(ctx context.Context, mirror worktrees, branch string) (bazelgraph.Place, error) {
	// A repository rule can leave a setuid program here. Nobody but the service's user may start it.
	places := mirror.Dir() + ".bazel"
	err := os.MkdirAll(places, 0o700)
	if err == nil {
		err = os.Chmod(places, 0o700)
	}
	if err != nil {
		return bazelgraph.Place{}, err
	}
	for n := range maxPlaces {
		place := filepath.Join(places, strconv.Itoa(n))
		if err := os.MkdirAll(place, 0o755); err != nil {
			return bazelgraph.Place{}, err
		}
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		var tree *gitrepo.Worktree
		tree, err = mirror.AddWorktree(soon, filepath.Join(place, "tree"))
		cancel()
		if err == nil {
			return bazelgraph.Place{Checkout: tree, Dir: place, IsMainline: func(ctx context.Context, tree string) bool {
				head, err := mirror.TreeOf(ctx, branch)
				return err == nil && head == tree
			}}, nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	return bazelgraph.Place{}, err
}

// close ends the server, if there is one.
func (p *bazelPackages) close() {
	p.once.Do(func() { p.refused = errors.New("the loader of target graphs is closed") })
	if p.loader != nil {
		p.loader.Close()
	}
}

// graph makes the graph of a tree.
func (p *bazelPackages) graph(ctx context.Context, repo Repository, tree string) (*targets.Graph, error) {
	loader, refused := p.load(repo)
	if refused != nil {
		return targets.Unknown(tree, nil, refused.Error()), nil
	}
	graph, err := loader.Load(ctx, repo, tree)
	invalid, isInvalid := errors.AsType[*bazelgraph.Invalid](err)
	failure, isFailure := errors.AsType[*bazelgraph.Failure](err)
	switch {
	case isInvalid:
		return nil, &Invalid{Message: invalid.Message}
	case isFailure:
		return targets.Unknown(tree, nil, failure.Reason), nil
	case errors.Is(err, bazelgraph.ErrNoWorkspace):
		return nil, &absentError{"MODULE.bazel: the repository has none, nor a WORKSPACE, and the queue's adapter is \"bazel\"; add one, or set the adapter to \"auto\""}
	}
	return graph, err
}
