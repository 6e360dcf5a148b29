package adopt

import (
	"context"
	"path"
	"slices"
	"strings"

	"landfall.build/platform/gitrepo"
)

// unapplied returns the .gitattributes files of the tree by which git would change what it checks out, with the attributes that say
// so. Checkouts hold the bytes of the repository.
func (s *source) unapplied(ctx context.Context) (files, attributes []string, err error) {
	entries, err := s.Tree(ctx, s.tree)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if path.Base(e.Path) != ".gitattributes" || e.Kind != gitrepo.File {
			continue
		}
		text, err := s.Blob(ctx, e.Object, maxRead)
		if err != nil {
			continue // too large for git, too
		}
		if found := conversions(string(text)); len(found) > 0 {
			files = append(files, e.Path)
			attributes = append(attributes, found...)
		}
	}
	slices.Sort(attributes)
	return files, slices.Compact(attributes), nil
}

// conversions returns the attributes of a .gitattributes file by which a checkout differs from the repository. Line ends are LF where
// steps run, unless a file says otherwise.
func conversions(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '"' { // a pattern with blanks
			if end := strings.LastIndexByte(line, '"'); end > 0 {
				line = "pattern" + line[end+1:]
			}
		}
		for _, one := range strings.Fields(line)[1:] {
			name, value, _ := strings.Cut(one, "=")
			switch {
			case one == "eol=crlf", one == "ident", (name == "filter" || name == "working-tree-encoding") && value != "":
				found = append(found, one)
			}
		}
	}
	return found
}
