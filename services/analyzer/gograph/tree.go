package gograph

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrNoModule is returned for a tree without a go.mod. The caller takes another
// adapter.
var ErrNoModule = errors.New("no go.mod in the repository")

// ErrTooLarge is what a Tree's Blob wraps when the blob is larger than asked for.
var ErrTooLarge = errors.New("blob is larger than asked for")

// Entry is one path of a tree that is not itself a folder.
type Entry struct {
	// Path is relative to the root, with slashes.
	Path string
	// Mode is git's: 0o100644, 0o100755, 0o120000 (symbolic link), 0o160000
	// (submodule).
	Mode uint32
	// Kind is git's: blob, commit; entries of kind tree are passed over.
	Kind string
	// Object is the content's id.
	Object string
}

// Tree is what Load reads: one tree of a repository, unchanging. Its methods are
// called from several goroutines at once.
type Tree interface {
	// Entries gives all paths below the root, in any order.
	Entries(ctx context.Context) ([]Entry, error)
	// Blob gives a content by its id; an error that wraps ErrTooLarge when it is
	// longer than max bytes.
	Blob(ctx context.Context, object string, max int64) ([]byte, error)
}

// BatchTree is a Tree that reads many blobs in one go, which git does several
// times faster.
type BatchTree interface {
	Tree
	// Blobs calls visit once for each object, in any order, one call at a time. An
	// error given to visit is about that object and as of Blob; one that visit
	// returns, or that Blobs returns of its own, ends the reading. The content may
	// be used until visit returns.
	Blobs(ctx context.Context, objects []string, max int64, visit func(i int, content []byte, err error) error) error
}

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
