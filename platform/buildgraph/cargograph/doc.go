// Package cargograph makes the target graph of Rust code, Cargo workspaces and single packages, from git objects alone: no
// checkout, no cargo, no network. What it cannot follow makes the graph incomplete; that README.md lists.
package cargograph
