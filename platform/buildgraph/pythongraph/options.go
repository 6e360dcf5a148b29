package pythongraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph/glob"
)

// Options describe how a queue's Python code is verified. They are part of every target's hash as far as they can matter to it.
type Options struct {
	// Env holds the NAME=value entries that decide how Python code runs, each name once: PYTHONPATH, PYTEST_ADDOPTS, …
	Env []string
	// Toolchain is what else decides it: the version of the interpreter, what it has installed, the digest of the image.
	Toolchain string
	// Inputs are files that targets depend on without saying so.
	Inputs []Input
	// Commands verify the targets. A nil field takes its default (DefaultCommands); an empty list is no command.
	Commands Commands
	// Roots are folders, relative to the repository's root, in which every project looks for modules besides its own.
	Roots []string
	// IgnoreFolders are folders, relative to the root, in and below which there are neither projects nor tests. Their files
	// count as data.
	IgnoreFolders []string
	// Closed has steps find the files alone that their targets depend on, and those that the tool needs everywhere.
	Closed bool
}

// Input is a set of undeclared inputs, such as a file that a test opens by ../../x.yaml.
type Input struct {
	// Folders are patterns of the folders whose targets depend on the files; none means every target.
	Folders []string
	// Files are patterns of the files.
	//
	// Patterns are relative to the repository's root. * ? and [a-z] stay within a name, ** alone between slashes stands for
	// any number of folders, at the end for everything below.
	Files []string
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
	for _, dir := range slices.Concat(o.Roots, o.IgnoreFolders) {
		if clean, ok := join("", dir); !ok || clean != dir {
			problems = append(problems, fmt.Errorf("folder %q: write a path relative to the repository's root", dir))
		}
	}
	for _, s := range []Steps{o.Commands.UV, o.Commands.Poetry, o.Commands.Plain, {Package: o.Commands.Lock}} {
		for _, t := range slices.Concat(s.Package, s.Test, s.Collect, s.Whole) {
			if t.Name == "" || len(t.Argv) == 0 || t.Argv[0] == "" || t.Timeout < 0 {
				problems = append(problems, fmt.Errorf("command %q: it needs a name, a program and no negative time limit", t.Name))
			}
		}
	}
	return errors.Join(problems...)
}

// complete returns the options with defaults, in the form that hashes rest on, not sharing memory with the caller's.
func (o Options) complete() Options {
	o.Env = slices.Sorted(slices.Values(o.Env))
	o.Roots = slices.Sorted(slices.Values(o.Roots))
	o.IgnoreFolders = slices.Sorted(slices.Values(o.IgnoreFolders))
	o.Inputs = slices.Clone(o.Inputs)
	defaults := DefaultCommands()
	for _, pair := range []struct{ given, otherwise *[]Template }{
		{&o.Commands.UV.Package, &defaults.UV.Package}, {&o.Commands.UV.Test, &defaults.UV.Test},
		{&o.Commands.Poetry.Package, &defaults.Poetry.Package}, {&o.Commands.Poetry.Test, &defaults.Poetry.Test},
		{&o.Commands.Plain.Package, &defaults.Plain.Package}, {&o.Commands.Plain.Test, &defaults.Plain.Test},
		{&o.Commands.UV.Collect, &defaults.UV.Collect}, {&o.Commands.Poetry.Collect, &defaults.Poetry.Collect}, {&o.Commands.Plain.Collect, &defaults.Plain.Collect},
		{&o.Commands.UV.Whole, &defaults.UV.Whole}, {&o.Commands.Poetry.Whole, &defaults.Poetry.Whole}, {&o.Commands.Plain.Whole, &defaults.Plain.Whole},
		{&o.Commands.Lock, &defaults.Lock},
	} {
		if *pair.given == nil {
			*pair.given = *pair.otherwise
		}
	}
	return o
}
