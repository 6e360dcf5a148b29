package cargograph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNoPackage is returned for a tree without a Cargo.toml that counts. The caller takes another adapter.
var ErrNoPackage = errors.New("no Cargo.toml in the repository")

// Invalid is the error for a tree whose Cargo.toml, Cargo.lock or configuration files are wrong. No cargo command works
// there, and loading the tree again gives the same.
type Invalid struct {
	// Problems are lines of the form "path:line: what is wrong".
	Problems []string
}

func (e *Invalid) Error() string { return strings.Join(e.Problems, "\n") }

// problem is one mistake in one file, whatever its path.
type problem struct {
	line    int
	message string
}

// problems collects mistakes of a tree.
type problems []string

func (p *problems) add(path string, found []problem) {
	for _, one := range found {
		*p = append(*p, fmt.Sprintf("%s:%d: %s", path, max(one.line, 1), one.message))
	}
}

// invalid returns the error, or nil if there are no problems.
func (p problems) invalid() error {
	if len(p) == 0 {
		return nil
	}
	slices.Sort(p)
	p = slices.Compact(p)
	if len(p) > maxProblems {
		p = append(p[:maxProblems:maxProblems], fmt.Sprintf("and %d more", len(p)-maxProblems))
	}
	return &Invalid{Problems: p}
}

// Bounds of what Load accepts. They are far above what people write and keep a hostile tree from taking the service's time
// and memory.
const (
	maxProblems      = 20
	maxManifestBytes = 4 << 20  // a Cargo.toml or configuration file
	maxLockBytes     = 64 << 20 // a Cargo.lock
	maxSourceBytes   = 32 << 20 // a Rust file
	maxLinkBytes     = 4096     // a symbolic link
	maxManifests     = 50_000
	maxEdges         = 20_000_000
	maxWork          = 200_000_000 // names compared by globs, literals resolved
)
