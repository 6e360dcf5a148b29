// Package targets is the engine of conflict analysis: it hashes a target graph,
// finds what a change creates or alters in it, and whether two changes can matter
// to each other (M1).
//
// Adapters (one per build system) put what they know into a Builder and decide
// nothing else: targets, files, listings, definitions, externals and the edges
// between them. Everything that counts for safety is here, once: the hash of a
// node covers whatever can reach it, so "affected" is "the hash differs" and
// there is no second opinion about it.
//
// For M1 to be exact, an adapter must uphold four things:
//
//   - Whatever can change what a target is has a node, and the target an edge to
//     it: sources, the listings its globs walk, its definition, macros behind
//     that, external modules, the environment.
//   - Files and listings of the whole tree are nodes, used or not. A change that
//     makes a target depend on a file meets another change that edits this file
//     only if the second one's analysis shows the file as changed.
//   - What is referred to but not there keeps its edge (Ref without a
//     definition). A name that appears later is then a difference.
//   - Which edges a target has rests on its definition and on listings among its
//     dependencies, and each node's content is a function of things that merge:
//     a set of files, a file's text. That a folder exists is not: it does through
//     any file in it, and two changes can make it vanish together.
//
// A file that no target with steps reaches is nobody's: no step runs for it. An adapter names
// the files that it reads itself, such as build files (Interprets), and the targets of which
// the repository says that they need no steps (NeedsNoSteps), so that what is left over is
// what the repository's targets have left out (Uncovered).
//
// An adapter that cannot know marks the graph (Incomplete, Unknown), and the change
// conflicts with everything (M4).
//
// The package is pure: no I/O, no clock, no map order in any result.
package targets
