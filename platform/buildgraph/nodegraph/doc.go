// Package nodegraph is the adapter for JavaScript and TypeScript: workspaces of npm, pnpm and yarn, and single
// packages. It reads package.json files, lock files, configuration and sources from git objects, never a checkout,
// and runs nothing: no node, no package manager, no network. README.md says what is in a hash.
//
// The package that holds a file is the one of the nearest package folder above it. Whatever a package can reach beyond
// its own folder has an edge: members of its workspace by name, other files by relative path, external packages by
// what the lock file pins, configuration files that tools look for upwards. Where a path or a name leads nowhere, the
// edge to what would answer it is kept, so that two changes of which one creates what the other looks for always
// meet.
package nodegraph
