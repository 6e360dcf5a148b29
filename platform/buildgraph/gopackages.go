package buildgraph

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
	"landfall.build/platform/buildgraph/gograph"
	"landfall.build/platform/configuration"
)

// goPackages is the adapter of Go modules with what one queue's steps see.
type goPackages struct {
	use     configuration.AdapterUse
	options gograph.Options
	// proxy is where the go.mod files of external modules are, "" for nowhere.
	proxy  string
	once   sync.Once
	loader *gograph.Loader
	// refused is why there is no loader, if there is none: what the queue's steps see cannot be followed.
	refused error
}

// goAdapter returns the adapter of Go modules.
func goAdapter(queue configuration.Queue, use configuration.AdapterUse) adapter {
	p := &goPackages{use: use, options: goOptions(queue, use), proxy: queue.Analysis.ModuleProxy}
	return adapter{name: configuration.AdapterGo, scheme: gograph.Scheme, graph: p.graph}
}

// What is kept of what files say, in bytes: in memory, and on disk beside the mirror.
const (
	factsInMemory = 256 << 20
	factsOnDisk   = 1 << 30
)

// load makes the loader when the first graph is wanted, since only then it is known where the mirror is.
// What files say is kept beside it, so that the next process need not read the repository again.
func (p *goPackages) load(repo Repository) (*gograph.Loader, error) {
	p.once.Do(func() {
		facts := gograph.NewFacts(factsInMemory)
		kept := ""
		if mirror, is := repo.(interface{ Dir() string }); is {
			kept = mirror.Dir() + ".modules"
			// A folder that cannot be written to costs time, no more.
			if opened, err := gograph.OpenFacts(mirror.Dir()+".facts", factsInMemory, factsOnDisk, slog.New(slog.DiscardHandler)); err == nil {
				facts = opened
			}
		}
		if p.proxy != "" {
			if p.options.Requirements, p.refused = modulesFrom(p.proxy, kept); p.refused != nil {
				return
			}
		}
		p.loader, p.refused = gograph.NewLoader(p.options, gograph.Memory{}, facts)
	})
	return p.loader, p.refused
}

// goOptions returns what a queue's settings mean to the adapter.
func goOptions(queue configuration.Queue, use configuration.AdapterUse) gograph.Options {
	variables := queue.Steps.Environment.Variables
	var env []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if decidesGoBuild(name) {
			env = append(env, name+"="+variables[name])
		}
	}
	options := gograph.Options{Env: env, Toolchain: use.Toolchain, Commands: goCommands(), Closed: closed(queue)}
	template := func(s configuration.AdapterStep) gograph.Template {
		return gograph.Template{Name: s.Name, Argv: s.Run, Timeout: s.Timeout}
	}
	own := &options.Commands
	own.Library, own.Test, own.Module = ofKind(use, "package", template, own.Library), ofKind(use, "test", template, own.Test), ofKind(use, "lock", template, own.Module)
	if len(ofKind(use, "package", template, nil)) > 0 {
		own.Untested = nil
	}
	own.Vendored = ofKind(use, "lock", template, own.Vendored)
	for _, in := range queue.Analysis.Inputs {
		options.Inputs = append(options.Inputs, gograph.Input{Folders: in.Folders, Files: in.Files})
	}
	return options
}

// goCommands verify Go targets. They see the step's environment, so none says anything of it.
func goCommands() gograph.Commands {
	template := func(name string, argv ...string) []gograph.Template {
		return []gograph.Template{{Name: name, Argv: argv}}
	}
	return gograph.Commands{
		// Without -o a program would be written into the worktree.
		Library: template("build", "go", "build", "-o", "/dev/null", "{dir}"),
		// go test builds and vets a package without tests, too, but links no program.
		Untested: template("vet", "go", "test", "-count=1", "{dir}"),
		// With -count=1 a test runs although go has a result of it in its cache: that takes files outside of the module for no part
		// of what a test reads.
		Test: template("test", "go", "test", "-count=1", "{dir}"),
		// That the requirements can be met at all, whatever the packages are: these are in no version of a module.
		Module:   template("resolve", "go", "list", "-m", "all"),
		Vendored: template("resolve", "go", "list", "-m"), // go refuses "all" there; it reads all files of a workspace, and compares a vendor folder with go.mod
	}
}

// placesOnly are variables of the go command that say where things are, not what is built.
var placesOnly = strings.Fields(`GOBIN GOCACHE GOCACHEPROG GOINSECURE GOMODCACHE GONOPROXY GONOSUMDB GOPATH GOPRIVATE GOPROXY
	GOSUMDB GOTELEMETRY GOTELEMETRYDIR GOTMPDIR GOVCS GOAUTH`)

// decidesGoBuild reports whether a variable is part of the versions of Go targets.
func decidesGoBuild(name string) bool {
	switch name {
	case "CC", "CXX", "AR", "FC", "PKG_CONFIG":
		return true
	}
	if strings.HasPrefix(name, "PKG_CONFIG_") {
		return true
	}
	return (strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "CGO_")) && !slices.Contains(placesOnly, name)
}

// graph makes the graph of a tree.
func (p *goPackages) graph(ctx context.Context, repo Repository, tree string) (*targets.Graph, error) {
	loader, refused := p.load(repo)
	if refused != nil {
		return targets.Unknown(tree, nil, refused.Error()), nil
	}
	graph, err := loader.Load(ctx, tree, within(gittree.New(repo, tree), p.use))
	if invalid, is := errors.AsType[*gograph.Invalid](err); is {
		return nil, &Invalid{Message: invalid.Error()}
	}
	if errors.Is(err, gograph.ErrNoModule) {
		return nil, &absentError{"go.mod: the repository has none, and the queue's adapter is \"go\"; add one, or set the adapter to \"auto\""}
	}
	return graph, err
}
