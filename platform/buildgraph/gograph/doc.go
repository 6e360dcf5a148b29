// Package gograph makes the target graph of a repository of Go modules from git
// objects alone: no checkout, no go command, no network.
//
// A package is a target named by its import path, its tests are the target
// "path [test]", and a module as a whole is "path [module]". The README says what
// is in the hash of each, and what is not.
//
// Everything holds for all platforms at once: a file counts whatever its build
// constraints say. Only whether a target has commands depends on the platform,
// since go refuses to build a package that has no file for it.
package gograph
