// Package graphview shows what the analyzer sees: the targets of a commit, what a difference does to
// them, and which changes conflict and why (`landfall targets`, `affected` and `conflicts`).
//
// It asks platform/buildgraph, as the services do, so there is no second opinion about what is
// affected. Nothing is checked out and nothing of the log is read.
package graphview
