package manifest

import (
	"context"
	"fmt"
	"slices"

	"landfall.build/engine/targets"
)

// Scheme is part of every target's hash; it changes when what a manifest means
// does.
const Scheme = "manifest/2"

// environmentNode names the definition that every target depends on.
const environmentNode = "environment"

// assembler puts a repository into the engine's builder.
type assembler struct {
	repository *repository
	builder    *targets.Builder
	files      map[string]targets.Node
	listings   map[string]targets.Node
	walker     walker
	from       targets.Node // the node whose patterns are walked
	exclude    []*pattern
	edges      int
	target     *definition
}

// assemble makes the graph of a repository without problems.
func assemble(ctx context.Context, id string, r *repository, closed bool) (*targets.Graph, error) {
	a := &assembler{
		repository: r, builder: targets.NewBuilder(Scheme, id),
		files:    make(map[string]targets.Node, len(r.snapshot.entries)),
		listings: make(map[string]targets.Node, 2*len(r.snapshot.folders)),
	}
	a.walker = walker{snapshot: r.snapshot, file: a.addFile, listing: a.addListing}
	if closed {
		a.builder.Closed()
	}
	a.addTree()
	if err := a.addTargets(ctx); err != nil {
		return nil, err
	}
	for _, e := range a.repository.edges {
		a.builder.Declare(e)
	}
	return a.builder.Build()
}

// addTree defines every file and listing, used or not (the engine's contract).
func (a *assembler) addTree() {
	for _, e := range a.repository.snapshot.entries {
		a.files[e.Path] = a.builder.File(e.Path, e.Mode, e.Object)
	}
	for _, e := range a.repository.snapshot.manifests {
		a.builder.Interprets(e.Path)
	}
	a.repository.snapshot.listings(func(name string, names []string) {
		a.listings[name] = a.builder.Listing(name, names)
	})
}

func (a *assembler) addTargets(ctx context.Context) error {
	r := a.repository
	environment := a.builder.Definition(environmentNode, r.settings())
	a.from = environment
	for _, p := range r.inputs {
		if err := a.walk(p); err != nil {
			return err
		}
	}
	for i, d := range r.targets {
		if i%64 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if a.from = a.builder.Target(d.name, d.kind, a.commands(d)); len(d.steps) == 0 {
			a.builder.NeedsNoSteps(a.from)
		}
		a.target, a.exclude = d, d.exclude
		a.edge(environment)
		a.edge(a.builder.Definition(d.name, d.normal))
		for _, dep := range d.deps {
			a.edge(a.builder.Ref(targets.KindTarget, dep.text))
		}
		for _, dep := range d.foreign {
			a.builder.Declare(targets.Edge{From: d.name, To: dep.text, Place: fmt.Sprintf("%s:%d", d.file, dep.line)})
		}
		for _, s := range d.sources {
			if err := a.walk(s.pattern); err != nil {
				return err
			}
		}
		for _, output := range targets.Outputs(d.steps) {
			if a.addOutput(d, output); a.edges > maxEdges {
				return a.tooMany(output)
			}
		}
	}
	return nil
}

// addOutput gives a target a node for what it leaves, and edges to whatever may not be in the same place: a change that puts
// something there meets the one that adds the output.
func (a *assembler) addOutput(d *definition, output string) {
	a.edge(a.builder.Definition(outputNode(output), []byte(d.name)))
	a.edge(a.fileNode(output))
	a.addListing(allBelow(output))
	for above, _ := split(output); above != ""; above, _ = split(above) {
		a.edge(a.builder.Ref(targets.KindDefinition, outputNode(above)))
		a.edge(a.fileNode(above))
	}
}

// outputNode names the definition of an output. No label of a target begins like it.
func outputNode(output string) string { return "output " + output }

// commands returns the steps with the environment that they see.
func (a *assembler) commands(d *definition) []targets.Command {
	commands := make([]targets.Command, len(d.steps))
	for i, step := range d.steps {
		step.Env = a.repository.environment
		step.Needs.Caches = union(step.Needs.Caches, a.repository.caches)
		if step.Group != nil && len(d.steps) == 1 {
			group := *step.Group
			group.Label = d.name
			step.Group = &group
		} else {
			step.Group = nil // the others would have to run beside it
		}
		commands[i] = step
	}
	return commands
}

// union returns the names of both lists, sorted.
func union(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

func (a *assembler) walk(p *pattern) error {
	err := a.walker.walk(p)
	if err == nil && a.edges <= maxEdges {
		return nil
	}
	return a.tooMany(p.text)
}

// tooMany returns the error for a tree whose targets cannot be followed any further than to a pattern or an output.
func (a *assembler) tooMany(at string) error {
	var problems problems
	message := fmt.Sprintf("the sources and outputs of the repository's targets are more than can be followed (at %s); narrow the patterns", clip(at))
	if a.target == nil {
		problems.add(FileName, 0, "%s", message)
	} else {
		problems.add(a.target.file, a.target.line, "%s", message)
	}
	return problems.invalid()
}

func (a *assembler) edge(to targets.Node) {
	a.edges++
	a.builder.Edge(a.from, to)
}

func (a *assembler) addFile(path string) {
	a.walker.work += len(a.exclude)
	if a.edges > maxEdges || excluded(path, a.exclude) {
		return
	}
	a.edge(a.fileNode(path))
}

// fileNode returns the node of a file, which need not be there.
func (a *assembler) fileNode(path string) targets.Node {
	node, ok := a.files[path]
	if !ok {
		node = a.builder.Ref(targets.KindFile, path)
		a.files[path] = node
	}
	return node
}

func (a *assembler) addListing(name string) {
	if a.edges > maxEdges {
		return
	}
	node, ok := a.listings[name]
	if !ok {
		node = a.builder.Ref(targets.KindListing, name)
		a.listings[name] = node
	}
	a.edge(node)
}
