// Package bazelgraph makes the target graph of a Bazel workspace: Bazel itself says what the rules of a
// tree are (bazel query, in a checkout of its own), and git what the files hold.
//
// A rule is a target named by its label. What defines the rules of a package (its BUILD file, the .bzl
// files behind it, the names that its globs are matched with) is the target "//p [package]", which no step
// verifies: two changes that can only together make a rule another one meet there, while a rule's own
// hash holds what Bazel made of it and not the text. The README says what is in which hash.
//
// Nothing is guessed where Bazel does not answer: the error is *Failure, and the tree one target (M4).
package bazelgraph
