package manifest

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"landfall.build/platform/buildgraph/gittree"
)

// maxOwners bounds how many owners a list names.
const maxOwners = 20

// readOwners reads a list of people and teams, in the order in which they are named. They are for people: no version has them.
func (r *fileReader) readOwners(f field, what string) *[]string {
	owners := []string{}
	for _, w := range r.words(f, what) {
		if w.text == "" || len(w.text) > 200 || strings.ContainsFunc(w.text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
			r.problem(w.line, "owner %s is not a name; write one such as @ada, @shop/payments or ada@example.com, without blanks", clip(w.text))
			continue
		}
		owners = append(owners, w.text)
	}
	if len(owners) > maxOwners {
		r.problem(f.line, "owners of %s are more than %d; name a team", what, maxOwners)
		return nil
	}
	return &owners
}

// Owners is what the manifests of a tree say about who owns targets.
type Owners struct {
	targets, folders map[string][]string
}

// Of returns the owners of a target of any adapter, and whether a manifest says so: the target's own definition, else the
// nearest manifest with owners, from the target's folder up to the root.
func (o *Owners) Of(target, folder string) (owners []string, said bool) {
	if owners, said = o.targets[target]; said {
		return owners, true
	}
	for {
		if owners, said = o.folders[folder]; said || folder == "" {
			return owners, said
		}
		folder, _ = split(folder)
	}
}

// Owners reads who owns what from the manifests of a tree. Manifests with mistakes say what can be understood of them.
func (l *Loader) Owners(ctx context.Context, tree gittree.Tree) (*Owners, error) {
	entries, err := tree.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the tree: %w", err)
	}
	files, err := l.parseAll(ctx, newSnapshot(entries), tree)
	if err != nil {
		return nil, err
	}
	o := &Owners{targets: map[string][]string{}, folders: map[string][]string{}}
	for _, file := range files {
		if file.owners != nil {
			folder, _ := split(file.path)
			o.folders[folder] = *file.owners
		}
		for _, d := range file.targets {
			if d.owners != nil {
				o.targets[d.name] = *d.owners
			}
		}
	}
	return o, nil
}
