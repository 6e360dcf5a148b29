package bazelgraph

import (
	"context"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// starlarkFile defines a .bzl file with what it loads.
func (a *assembler) starlarkFile(ctx context.Context, file string) (targets.Node, error) {
	if node, ok := a.starlark[file]; ok {
		return node, nil
	}
	pending := []string{file}
	for len(pending) > 0 {
		file := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if _, ok := a.starlark[file]; ok {
			continue
		}
		node := a.builder.Definition("starlark "+file, nil)
		a.starlark[file] = node
		a.addPath(node, file)
		list, _, err := a.text(ctx, file)
		if err != nil {
			return 0, err
		}
		for _, l := range a.loads(file, list) {
			a.edge(node, a.reference(l))
			a.refer(node, targets.KindDefinition, "starlark "+l.path())
			pending = append(pending, l.path())
		}
	}
	return a.starlark[file], nil
}

// loads returns the .bzl files that the texts of a file name: all that it loads, and maybe some more.
func (a *assembler) loads(file string, list []token) []label {
	dir, _ := split(file)
	pkg := a.home(dir)
	var loads []label
	for _, t := range list {
		if t.kind != tokenText || !strings.HasSuffix(t.text, ".bzl") && !strings.HasSuffix(t.text, ".scl") {
			continue
		}
		if l, ok := parseMention(t.text, pkg, a.mentions.own); ok && !slices.Contains(loads, l) {
			loads = append(loads, l)
		}
	}
	return loads
}

// addStarlark makes a node depend on the .bzl files that a file names.
func (a *assembler) addStarlark(ctx context.Context, from targets.Node, file string) error {
	list, _, err := a.text(ctx, file)
	if err != nil {
		return err
	}
	for _, l := range a.loads(file, list) {
		node, err := a.starlarkFile(ctx, l.path())
		if err != nil {
			return err
		}
		a.edge(from, node)
		a.edge(from, a.reference(l))
	}
	return nil
}
