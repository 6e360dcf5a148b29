package cargograph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/glob"
)

// Options describe how a queue's Rust code is built. They are part of every target's hash as far as they can matter to it.
type Options struct {
	// Env holds the NAME=value entries that decide what steps build, each name once: RUSTFLAGS, CARGO_BUILD_TARGET and others.
	// Where things are (CARGO_HOME, CARGO_TARGET_DIR) is not among them.
	Env []string
	// Toolchain is what else decides how Rust code is built, such as the version of rustc or the digest of the image that
	// steps run in.
	Toolchain string
	// Inputs are files that targets depend on without saying so.
	Inputs []Input
	// Commands verify the targets; DefaultCommands gives those that fit most repositories.
	Commands Commands
	// IgnoreFolders are folders, relative to the root, in and below which a Cargo.toml counts only if another leads to it.
	IgnoreFolders []string
	// Closed has steps find the files alone that their targets depend on, and those that the tool needs everywhere.
	Closed bool
}

// Input is a set of undeclared inputs, such as a file that a test finds by walking upwards.
type Input struct {
	// Folders are patterns of the folders whose packages depend on the files; none means every package.
	Folders []string
	// Files are patterns of the files.
	//
	// Patterns are relative to the repository's root. * ? and [a-z] stay within a name, ** alone between slashes stands for
	// any number of folders, at the end for everything below.
	Files []string
}

// Commands are the templates of what verifies the targets of each kind. What a command of Workspace finds may rest on
// manifests, configuration and Cargo.lock alone: no source is part of a workspace's version.
type Commands struct {
	Package, Test, Workspace []Template
}

// Template is a command for each target. In Argv and Dir
//
//	{manifest}  is the package's Cargo.toml, relative to the workspace's folder;
//	{dir}       is the package's folder, relative to the repository's root, "." for the root;
//	{name}      is the package's name, {version} its version;
//	{workspace} is the workspace's folder, relative to the repository's root, "." for the root.
//
// The argument {locked} is --locked where the workspace has a Cargo.lock, and left out where it has none.
type Template struct {
	Name string
	Argv []string
	// Dir is the working directory, relative to the repository's root; empty for the workspace's folder.
	Dir     string
	Timeout time.Duration
}

// DefaultCommands builds what a package is, runs its tests, and finds whether the requirements of a workspace fit its
// Cargo.lock. The package is named by folder and version: other packages of its name may be among the dependencies.
func DefaultCommands() Commands {
	cargo := func(name, command string) []Template {
		return []Template{{Name: name, Argv: []string{"cargo", command, "{locked}", "--manifest-path", "{manifest}", "--package", "{name}@{version}"}}}
	}
	return Commands{
		Package: cargo("build", "build"), Test: cargo("test", "test"),
		Workspace: []Template{{Name: "resolve", Argv: []string{"cargo", "fetch", "{locked}"}}},
	}
}

// expand returns the commands of a crate, or of a workspace as a whole.
func (o *Options) expand(templates []Template, w *workspace, c *crate) []targets.Command {
	if len(templates) == 0 {
		return nil
	}
	orRoot := func(dir string) string {
		if dir == "" {
			return "."
		}
		return dir
	}
	words := []string{"{workspace}", orRoot(w.path)}
	if c != nil {
		words = append(words, "{manifest}", relative(w.path, below(c.path, manifestName)), "{dir}", orRoot(c.path),
			"{name}", c.manifest.pkg.name, "{version}", c.version())
	}
	fields := strings.NewReplacer(words...)
	commands := make([]targets.Command, len(templates))
	for i, t := range templates {
		one := targets.Command{Name: t.Name, Dir: w.path, Timeout: t.Timeout}
		if t.Dir != "" {
			if one.Dir = fields.Replace(t.Dir); one.Dir == "." {
				one.Dir = ""
			}
		}
		for _, arg := range t.Argv {
			switch {
			case arg != "{locked}":
				one.Argv = append(one.Argv, fields.Replace(arg))
			case w.lock != nil:
				one.Argv = append(one.Argv, "--locked")
			}
		}
		commands[i] = one
	}
	return commands
}

// check finds what cannot be meant.
func (o *Options) check() error {
	var found []error
	names := map[string]bool{}
	for _, entry := range o.Env {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || names[name] {
			found = append(found, fmt.Errorf("environment entry %q: write each variable once, as NAME=value", entry))
		}
		names[name] = true
	}
	for _, in := range o.Inputs {
		for _, text := range slices.Concat(in.Folders, in.Files) {
			if _, err := glob.Parse(text); err != nil {
				found = append(found, fmt.Errorf("pattern %q of an input: %w", text, err))
			}
		}
		if len(in.Files) == 0 {
			found = append(found, errors.New("an input without files; name some"))
		}
	}
	for _, t := range slices.Concat(o.Commands.Package, o.Commands.Test, o.Commands.Workspace) {
		if t.Name == "" || len(t.Argv) == 0 || t.Argv[0] == "" || t.Timeout < 0 {
			found = append(found, fmt.Errorf("command %q: it needs a name, a program and no negative time limit", t.Name))
		}
	}
	return errors.Join(found...)
}

// normal returns the options in the form that hashes rest on, not sharing memory with the caller's.
func (o Options) normal() Options {
	o.Env = slices.Sorted(slices.Values(o.Env))
	o.IgnoreFolders = slices.Clone(o.IgnoreFolders)
	for i, dir := range o.IgnoreFolders {
		o.IgnoreFolders[i], _ = join("", strings.Trim(dir, "/"))
	}
	slices.Sort(o.IgnoreFolders)
	o.Inputs = slices.Clone(o.Inputs)
	return o
}
