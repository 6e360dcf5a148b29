package nodegraph

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrNoPackage is returned for a tree without a package.json that counts. The caller takes another adapter.
var ErrNoPackage = errors.New("no package.json in the repository")

// Invalid is the error for a tree whose manifests or lock files are wrong. No package manager installs such a project,
// and loading the tree again gives the same.
type Invalid struct {
	// Problems are lines of the form "path:line: what is wrong", in order, at most 20.
	Problems []string
}

// Error lists the problems, one a line.
func (e *Invalid) Error() string { return strings.Join(e.Problems, "\n") }

// maxProblems bounds how many problems of a tree are listed.
const maxProblems = 20

// problems collects what is wrong with a tree.
type problems []string

func (p *problems) add(file string, line int, format string, args ...any) {
	*p = append(*p, fmt.Sprintf("%s:%d: %s", file, max(line, 1), fmt.Sprintf(format, args...)))
}

// invalid returns the error, or nil if there are no problems.
func (p problems) invalid() error {
	if len(p) == 0 {
		return nil
	}
	slices.Sort(p)
	p = slices.Compact(p)
	return &Invalid{Problems: p[:min(len(p), maxProblems)]}
}

// Bounds of what Load accepts. They are far above what people write and keep a hostile tree from taking the service's
// time and memory. Where one is passed the graph is incomplete: the change conflicts with everything (M4).
const (
	maxManifestBytes = 4 << 20   // a package.json or pnpm-workspace.yaml
	maxLockBytes     = 128 << 20 // a lock file
	maxKeyBytes      = 1000      // a folder in package-lock.json: each above it is looked into for what it needs
	maxSourceBytes   = 32 << 20  // a source or configuration file
	maxLinkBytes     = 4096      // a symbolic link
	maxPackages      = 100_000
	maxEdges         = 10_000_000
	maxMatchWork     = 200_000_000 // comparisons of folders with the patterns of workspaces, of files with those of inputs
)

// normalText returns values in a form that has one meaning: equal bytes, equal values.
func normalText(what string, values ...string) []byte {
	text := strconv.AppendQuote(nil, what)
	for _, value := range values {
		text = append(text, ' ')
		text = strconv.AppendQuote(text, value)
	}
	return append(text, '\n')
}
