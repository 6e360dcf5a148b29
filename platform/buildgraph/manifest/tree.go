package manifest

import (
	"errors"
)

// FileName is what manifests are called, in any folder.
const FileName = "landfall.yaml"

// ErrNoManifest is returned for a tree without a landfall.yaml. The
// caller falls back to WholeRepository.
var ErrNoManifest = errors.New("no " + FileName + " in the repository")

// Bounds of what Load accepts. They are far above what people write; they keep a
// hostile tree from taking the service's time and memory.
const (
	maxFileBytes    = 1 << 20
	maxTotalBytes   = 128 << 20 // of all manifests
	maxNesting      = 32        // of collections in a file
	maxTargets      = 200_000
	maxNameBytes    = 200
	maxPatternBytes = 4096
	maxExcludes     = 100           // patterns of one target, each held against each source
	maxEdges        = 10_000_000    // of one graph
	maxGlobWork     = 1_000_000_000 // comparisons of names by all globs of a tree
)
