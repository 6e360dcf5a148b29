package buildgraph

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/cargograph"
	"landfall.build/platform/buildgraph/gittree"
	"landfall.build/platform/buildgraph/nodegraph"
	"landfall.build/platform/buildgraph/pythongraph"
	"landfall.build/platform/configuration"
)

// graphLoader makes the graph of a tree from git objects alone.
type graphLoader interface {
	Load(ctx context.Context, id string, tree gittree.Tree) (*targets.Graph, error)
}

// schemes holds the schemes of the adapters that treeAdapter returns.
var schemes = map[configuration.Adapter]string{
	configuration.AdapterNode: nodegraph.Scheme, configuration.AdapterCargo: cargograph.Scheme, configuration.AdapterPython: pythongraph.Scheme,
}

// treeAdapter returns the adapter of a loader. refused is why there is no loader, if there is none; absent is its error for a tree
// with nothing of its build system, invalid finds what it says of definitions that are wrong.
func treeAdapter(use configuration.AdapterUse, loader graphLoader, refused, absent error, invalid func(error) (string, bool), file string) adapter {
	return adapter{name: use.Adapter, scheme: schemes[use.Adapter], graph: func(ctx context.Context, repo Repository, tree string) (*targets.Graph, error) {
		if refused != nil {
			return targets.Unknown(tree, nil, refused.Error()), nil
		}
		graph, err := loader.Load(ctx, tree, within(gittree.New(repo, tree), use))
		if message, is := invalid(err); is {
			return nil, &Invalid{Message: message}
		}
		if errors.Is(err, absent) {
			return nil, &absentError{file + ": the repository has none, and the queue's adapter is \"" + string(use.Adapter) + "\"; add one, or set the adapter to \"auto\""}
		}
		return graph, err
	}}
}

// nodeAdapter returns the adapter of npm, pnpm and yarn.
func nodeAdapter(queue configuration.Queue, use configuration.AdapterUse) adapter {
	options := nodegraph.Options{Env: decisive(queue, "npm_config_cache", "YARN_CACHE_FOLDER", "YARN_GLOBAL_FOLDER"), Toolchain: use.Toolchain, Closed: closed(queue)}
	for _, in := range queue.Analysis.Inputs {
		options.Inputs = append(options.Inputs, nodegraph.Input{Folders: in.Folders, Files: in.Files})
	}
	template := func(s configuration.AdapterStep) nodegraph.Template {
		return nodegraph.Template{Name: s.Name, Argv: s.Run, Timeout: s.Timeout}
	}
	options.Commands = nodegraph.Commands{
		Install: ofKind(use, "lock", template, nil), Package: ofKind(use, "package", template, nil), Test: ofKind(use, "test", template, nil),
	}
	loader, refused := nodegraph.NewLoader(options, nodegraph.Memory{})
	return treeAdapter(use, loader, refused, nodegraph.ErrNoPackage, said[*nodegraph.Invalid], "package.json")
}

// cargoAdapter returns the adapter of Rust packages.
func cargoAdapter(queue configuration.Queue, use configuration.AdapterUse) adapter {
	options := cargograph.Options{Env: decisive(queue, "CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME"), Toolchain: use.Toolchain, Closed: closed(queue)}
	for _, in := range queue.Analysis.Inputs {
		options.Inputs = append(options.Inputs, cargograph.Input{Folders: in.Folders, Files: in.Files})
	}
	template := func(s configuration.AdapterStep) cargograph.Template {
		return cargograph.Template{Name: s.Name, Argv: s.Run, Timeout: s.Timeout}
	}
	defaults := cargograph.DefaultCommands()
	options.Commands = cargograph.Commands{
		Workspace: ofKind(use, "lock", template, defaults.Workspace), Package: ofKind(use, "package", template, defaults.Package),
		Test: ofKind(use, "test", template, defaults.Test),
	}
	loader, refused := cargograph.NewLoader(options, cargograph.Memory{})
	return treeAdapter(use, loader, refused, cargograph.ErrNoPackage, said[*cargograph.Invalid], "Cargo.toml")
}

// pythonAdapter returns the adapter of Python projects. Steps in the settings are for projects of every kind.
func pythonAdapter(queue configuration.Queue, use configuration.AdapterUse) adapter {
	options := pythongraph.Options{Env: decisive(queue, "PIP_CACHE_DIR", "UV_CACHE_DIR", "UV_LINK_MODE", "POETRY_CACHE_DIR"), Toolchain: use.Toolchain, Closed: closed(queue)}
	for _, in := range queue.Analysis.Inputs {
		options.Inputs = append(options.Inputs, pythongraph.Input{Folders: in.Folders, Files: in.Files})
	}
	template := func(s configuration.AdapterStep) pythongraph.Template {
		return pythongraph.Template{Name: s.Name, Argv: s.Run, Timeout: s.Timeout}
	}
	steps := pythongraph.Steps{Package: ofKind(use, "package", template, nil), Test: ofKind(use, "test", template, nil)}
	if steps.Test != nil {
		steps.Collect = []pythongraph.Template{} // What runs tests is not known.
		steps.Whole = steps.Test
	}
	options.Commands = pythongraph.Commands{UV: steps, Poetry: steps, Plain: steps, Lock: ofKind(use, "lock", template, nil)}
	loader, refused := pythongraph.NewLoader(options, pythongraph.Memory{})
	return treeAdapter(use, loader, refused, pythongraph.ErrNoProject, said[*pythongraph.Invalid], "pyproject.toml")
}

// said returns the message of an error of that type.
func said[E error](err error) (string, bool) {
	if invalid, is := errors.AsType[E](err); is {
		return invalid.Error(), true
	}
	return "", false
}

// ofKind returns the templates of a kind that a queue's settings give an adapter, else the adapter's own.
func ofKind[T any](use configuration.AdapterUse, kind string, template func(configuration.AdapterStep) T, own []T) []T {
	given := slices.ContainsFunc(use.Steps, func(s configuration.AdapterStep) bool { return s.Kind == kind })
	if !given {
		return own
	}
	var list []T
	for _, s := range use.Steps {
		if s.Kind == kind {
			list = append(list, template(s))
		}
	}
	return list
}

// decisive returns the variables of a queue's steps, but for those that only say where things are.
func decisive(queue configuration.Queue, places ...string) []string {
	var list []string
	variables := queue.Steps.Environment.Variables
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		isPlace := slices.ContainsFunc(places, func(place string) bool { return strings.EqualFold(place, name) })
		if !isPlace && !slices.Contains(placesOnly, name) {
			list = append(list, name+"="+variables[name])
		}
	}
	return list
}
