package nodegraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"landfall.build/platform/buildgraph/glob"
)

// Options describe how a queue's JavaScript is installed, built and tested. They are part of every target's hash as far
// as they can matter to it.
type Options struct {
	// Env holds the NAME=value entries that steps see, each name once.
	Env []string
	// Toolchain is what else decides how code is built, such as the versions of node and of the package manager, or the
	// digest of the image that steps run in.
	Toolchain string
	// Inputs are files that targets depend on without saying so.
	Inputs []Input
	// Commands verify the targets.
	Commands Commands
	// IgnoreFolders are folders, relative to the root, in which no project is looked for: fixtures with lock files of
	// their own. Their files count as those of the package around them.
	IgnoreFolders []string
	// Closed has steps find the files alone that their targets depend on, and those that the tool needs everywhere.
	Closed bool
}

// Input is a set of undeclared inputs, such as a schema that a build reads from a path that it computes.
type Input struct {
	// Folders are patterns of the folders whose packages depend on the files; none means every package.
	Folders []string
	// Files are patterns of the files.
	//
	// Patterns are relative to the repository's root. * ? and [a-z] stay within a name, ** alone between slashes stands
	// for any number of folders, at the end for everything below.
	Files []string
}

// Commands are the templates of what verifies the targets of each kind; nil takes the default of the project's package
// manager, a list that is empty and not nil means none.
type Commands struct {
	// Install is for the target of a project's lock file.
	Install []Template
	// Package is for packages with a script to run: build, and one that checks types.
	Package []Template
	// Test is for packages with a test script.
	Test []Template
}

// Template is a command for each target. In Argv and Dir
//
//	{dir}      is the package's folder relative to the project's, "." for the project's own;
//	{name}     is the package's name;
//	{project}  is the project's folder relative to the repository's root, "." for the root;
//	{manager}  is npm, pnpm, yarn or bun.
//
// An argument that is {runs} stands for any number of arguments, each "dir:script": the scripts to run in order, those
// of the members that the package needs built first.
type Template struct {
	Name string
	Argv []string
	// Dir is the working directory, relative to the repository's root; empty for the project's folder.
	Dir     string
	Timeout time.Duration
}

// check finds what cannot be meant.
func (o Options) check() error {
	var problems []error
	names := map[string]bool{}
	for _, entry := range o.Env {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || names[name] {
			problems = append(problems, fmt.Errorf("environment entry %q: write each variable once, as NAME=value", entry))
		}
		names[name] = true
	}
	for _, in := range o.Inputs {
		for _, text := range slices.Concat(in.Folders, in.Files) {
			if _, err := glob.Parse(text); err != nil {
				problems = append(problems, fmt.Errorf("pattern %q of an input: %w", text, err))
			}
		}
		if len(in.Files) == 0 {
			problems = append(problems, errors.New("an input without files; name some"))
		}
	}
	steps := map[string]bool{}
	for kind, templates := range map[string][]Template{"install": o.Commands.Install, "package": o.Commands.Package, "test": o.Commands.Test} {
		for _, t := range templates {
			if t.Name == "" || len(t.Argv) == 0 || t.Argv[0] == "" || t.Timeout < 0 {
				problems = append(problems, fmt.Errorf("command %q: it needs a name, a program and no negative time limit", t.Name))
			}
			if steps[kind+" "+t.Name] {
				problems = append(problems, fmt.Errorf("two commands for one kind are named %q; rename one", t.Name))
			}
			steps[kind+" "+t.Name] = true
		}
	}
	for _, dir := range o.IgnoreFolders {
		if clean, ok := join("", dir); !ok || clean != dir {
			problems = append(problems, fmt.Errorf("ignored folder %q: %w", dir, glob.ErrNotRelative))
		}
	}
	return errors.Join(problems...)
}

// normal returns the options in the form that hashes rest on, not sharing memory with the caller's.
func (o Options) normal() Options {
	o.Env = slices.Sorted(slices.Values(o.Env))
	o.IgnoreFolders = slices.Sorted(slices.Values(o.IgnoreFolders))
	o.Inputs = slices.Clone(o.Inputs)
	return o
}

// input is an Input whose patterns are parsed.
type input struct {
	text           []byte // what the definition holds besides the files
	folders, files []glob.Pattern
}

// inputsOf parses the inputs of options that were checked.
func inputsOf(o Options) []input {
	inputs := make([]input, len(o.Inputs))
	for i, in := range o.Inputs {
		folders, _ := glob.ParseAll(in.Folders)
		files, _ := glob.ParseAll(in.Files)
		inputs[i] = input{normalText("files", in.Files...), folders, files}
	}
	return inputs
}

// holdsFor reports whether packages of a folder depend on the files.
func (in input) holdsFor(dir string) bool {
	return len(in.folders) == 0 || slices.ContainsFunc(in.folders, func(p glob.Pattern) bool { return p.MatchesFolder(dir) })
}
