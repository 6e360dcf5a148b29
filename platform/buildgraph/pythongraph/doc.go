// Package pythongraph makes the target graph of a repository of Python projects from git objects alone: no checkout, no
// Python, no network.
//
// A project is the target "python://folder", the tests of a folder are "python://folder [test]", and a lock file of uv is
// "python://folder [lock]". The README says what is in the hash of each, and what is not.
//
// Imports are followed for all versions of Python at once, and an import leads to everything that can answer it: which
// folder comes first in sys.path is not examined into.
package pythongraph
