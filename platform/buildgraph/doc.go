// Package buildgraph says what landing commits make of a repository's target graph: δ and the affected
// sets of M1 and M23, computed from trees of a git mirror.
//
// The analyzer, the builder and the land guard all ask here, so that "affected" is one code path: what
// differs between them is only the trees that they ask about.
//
// What speaks about the change (it does not merge, it defines no valid targets) is in a Result. An error
// is never about the change: the mirror could not be read, or the context ended.
package buildgraph
