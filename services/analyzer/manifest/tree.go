package manifest

import (
	"context"
	"errors"
)

// FileName is what manifests are called, in any folder.
const FileName = "landfall.yaml"

// ErrNoManifest is returned for a tree without a landfall.yaml. The
// caller falls back to WholeRepository.
var ErrNoManifest = errors.New("no " + FileName + " in the repository")

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

// Tree is what Load reads: one tree of a repository, unchanging.
type Tree interface {
	// Entries gives all paths below the root, in any order.
	Entries(ctx context.Context) ([]Entry, error)
	// Blob gives a content by its id; an error that wraps ErrTooLarge when it is
	// longer than max bytes.
	Blob(ctx context.Context, object string, max int64) ([]byte, error)
}

// Bounds of what Load accepts. They are far above what people write; they keep a
// hostile tree from taking the service's time and memory.
const (
	maxFileBytes    = 1 << 20
	maxTotalBytes   = 128 << 20 // of all manifests
	maxNesting      = 32        // of collections in a file
	maxTargets      = 200_000
	maxNameBytes    = 200
	maxPatternBytes = 4096
	maxSegments     = 63            // of one pattern: its states fit a word
	maxExcludes     = 100           // patterns of one target, each held against each source
	maxEdges        = 10_000_000    // of one graph
	maxGlobWork     = 1_000_000_000 // comparisons of names by all globs of a tree
)
