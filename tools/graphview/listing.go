package graphview

import (
	"context"

	"landfall.build/engine/targets"
)

// Listing is what `landfall targets --json` prints.
type Listing struct {
	// Rev is the full id of the commit, Tree that of its tree.
	Rev     string         `json:"rev"`
	Tree    string         `json:"tree"`
	Targets []ListedTarget `json:"targets"`
}

// ListedTarget is one target of a tree.
type ListedTarget struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Hash has 64 hexadecimal digits and covers everything that can affect the target.
	Hash string `json:"hash"`
	// Deps are the targets that it depends on directly.
	Deps []string `json:"deps"`
	// Owners are the people and teams that the commit's manifests and CODEOWNERS file name for it.
	Owners []string `json:"owners"`
}

// list makes the listing of a commit.
func (v *view) list(ctx context.Context, name, rev string) (*Listing, error) {
	tree, err := v.TreeOf(ctx, rev)
	if err != nil {
		return nil, err
	}
	graph, err := v.graph(ctx, name, tree)
	if err != nil {
		return nil, err
	}
	owners, err := v.loader.Owners(ctx, v.Repo, tree)
	if err != nil {
		return nil, err
	}
	l := &Listing{Rev: rev, Tree: tree, Targets: []ListedTarget{}}
	for t := range graph.Targets() {
		l.Targets = append(l.Targets, ListedTarget{Name: t.Name, Kind: t.Kind, Hash: t.Hash.String(), Deps: targetsBehind(graph, t.Name), Owners: append([]string{}, owners.Of(graph, t.Name)...)})
	}
	return l, nil
}

// targetsBehind are the targets that a target depends on directly.
func targetsBehind(graph *targets.Graph, name string) []string {
	deps := []string{}
	for _, label := range graph.Dependencies(name) {
		if _, is := graph.Target(label); is {
			deps = append(deps, label)
		}
	}
	return deps
}
