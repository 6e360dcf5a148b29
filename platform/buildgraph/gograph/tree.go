package gograph

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoModule is returned for a tree without a go.mod. The caller takes another
// adapter.
var ErrNoModule = errors.New("no go.mod in the repository")

// Invalid is the error for a tree whose module files are wrong. No go command
// works in such a module, and loading the tree again gives the same.
type Invalid struct {
	// Problems are lines of the form "path:line: what is wrong".
	Problems []string
}

func (e *Invalid) Error() string { return strings.Join(e.Problems, "\n") }

// maxProblems bounds how many problems of a tree are listed.
const maxProblems = 20

func (e *Invalid) add(format string, args ...any) {
	if len(e.Problems) < maxProblems {
		e.Problems = append(e.Problems, fmt.Sprintf(format, args...))
	}
}

// Bounds of what Load accepts. They are far above what people write and keep a
// hostile tree from taking the service's time and memory. Where one is passed
// the graph is incomplete: the change conflicts with everything (M4).
const (
	maxGoBytes      = 32 << 20 // a Go, C or assembly file
	maxModuleBytes  = 4 << 20  // a go.mod or go.work
	maxSumBytes     = 32 << 20 // a go.sum
	maxVendorBytes  = 32 << 20 // a modules.txt
	maxLinkBytes    = 4096     // a symbolic link
	maxModules      = 20_000   // in the repository
	maxRequirements = 100_000  // of one go.mod
	maxEdges        = 10_000_000
	maxViews        = 1_000_000
	maxHeaderWork   = 20_000_000  // for finding the files that C code includes: see headers
	maxMatchWork    = 200_000_000 // comparisons of names by all patterns of a tree
)
