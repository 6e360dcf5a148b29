// Package manifest is the adapter for repositories that say themselves what
// their targets are: files named landfall.yaml, one per folder where wanted,
// name targets, their sources, their dependencies and the steps that verify
// them. README.md describes the format. A repository without any is one target
// (WholeRepository).
//
// The package reads a tree through the Tree interface only, never a checkout,
// and the same tree gives the same graph whatever was loaded before.
package manifest
