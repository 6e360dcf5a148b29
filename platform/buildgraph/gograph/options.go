package gograph

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/glob"
)

// Options describe how a queue's Go code is built. They are part of every target's
// hash as far as they can matter to it.
type Options struct {
	// Env holds the NAME=value entries that steps see, each name once: GOFLAGS, GOOS, GOARCH,
	// CGO_ENABLED, GOEXPERIMENT, GOWORK and others. GOOS, GOARCH, CGO_ENABLED and
	// -tags in GOFLAGS decide which targets have commands (default: linux, amd64,
	// with cgo); GOWORK=off does away with workspaces, -mod in GOFLAGS with vendor
	// folders.
	Env []string
	// Toolchain is what else decides how Go code is built, such as the version of
	// the go command or the digest of the image that steps run in.
	Toolchain string
	// Inputs are files that targets depend on without saying so.
	Inputs []Input
	// Commands verify the targets.
	Commands Commands
	// IgnoreFolders are folders, relative to the root, that are not searched for
	// modules: fixtures with a go.mod that is wrong on purpose. Their files count
	// as data of the tests above them.
	IgnoreFolders []string
	// Requirements knows what external modules require; nil means that nothing is
	// known but what the repository holds.
	Requirements Requirements
	// Closed has steps find the files alone that their targets depend on, and those that the tool needs everywhere.
	Closed bool
}

// Input is a set of undeclared inputs, such as a file that a test opens by
// ../../x.yaml.
type Input struct {
	// Folders are patterns of the folders whose targets depend on the files; none
	// means every target.
	Folders []string
	// Files are patterns of the files.
	//
	// Patterns are relative to the repository's root. * ? and [a-z] stay within a
	// name, ** alone between slashes stands for any number of folders, at the end
	// for everything below.
	Files []string
}

// Commands are the templates of what verifies the targets of each kind. Untested
// verifies a package that has no tests in place of Library; a program without tests
// is verified by both. Vendored is the template of modules for which go list -m all fails: external packages come from a
// vendor folder, or a workspace's modules require each other at no version. What a command
// of Module or Vendored finds may rest on module files alone: no package is part of
// a module's version.
type Commands struct {
	Library, Untested, Test, Module, Vendored []Template
}

// Template is a command for each target. In Argv and Dir
//
//	{dir}     is the package's folder as go wants it: ./cmd/x, relative to the module's;
//	{import}  is the package's import path;
//	{module}  is the module's folder, relative to the repository's root, "." for the root.
type Template struct {
	Name string
	Argv []string
	// Dir is the working directory, relative to the repository's root; empty for
	// the module's folder.
	Dir     string
	Timeout time.Duration
}

// site is where a template is applied.
type site struct{ dir, importPath, module string }

func expand(templates []Template, s site, env []string) []targets.Command {
	if len(templates) == 0 {
		return nil
	}
	fields := strings.NewReplacer("{dir}", s.dir, "{import}", s.importPath, "{module}", cmp.Or(s.module, "."))
	commands := make([]targets.Command, len(templates))
	for i, t := range templates {
		c := targets.Command{Name: t.Name, Dir: s.module, Timeout: t.Timeout, Env: env, Argv: make([]string, len(t.Argv))}
		if t.Dir != "" {
			c.Dir = fields.Replace(t.Dir)
			if c.Dir == "." {
				c.Dir = ""
			}
		}
		for j, arg := range t.Argv {
			c.Argv[j] = fields.Replace(arg)
		}
		if len(templates) == 1 {
			c.Group = groupOf(t.Argv, s)
		}
		commands[i] = c
	}
	return commands
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
	if profile, set := o.flag("pgo"); set && profile != "off" && profile != "auto" {
		problems = append(problems, fmt.Errorf("GOFLAGS sets -pgo=%s; the Go adapter follows only off and auto (default.pgo beside a program)", profile))
	}
	for _, name := range []string{"coverpkg", "modfile", "overlay"} {
		if _, set := o.flag(name); set {
			problems = append(problems, fmt.Errorf("GOFLAGS sets -%s, which the Go adapter cannot follow; take it out", name))
		}
	}
	if work := o.variable("GOWORK"); work != "" && work != "off" && work != "auto" {
		problems = append(problems, fmt.Errorf("GOWORK is %q; the Go adapter follows only off and auto", work))
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
	for _, t := range slices.Concat(o.Commands.Library, o.Commands.Untested, o.Commands.Test, o.Commands.Module, o.Commands.Vendored) {
		if t.Name == "" || len(t.Argv) == 0 || t.Argv[0] == "" || t.Timeout < 0 {
			problems = append(problems, fmt.Errorf("command %q: it needs a name, a program and no negative time limit", t.Name))
		}
	}
	return errors.Join(problems...)
}

// normal returns the options in the form that hashes and comparisons rest on, not
// sharing memory with the caller's.
func (o Options) normal() Options {
	o.Env = slices.Sorted(slices.Values(o.Env))
	o.IgnoreFolders = slices.Sorted(slices.Values(o.IgnoreFolders))
	o.Inputs = slices.Clone(o.Inputs)
	return o
}

// variable returns the value of an environment variable, empty if it is not set.
func (o Options) variable(name string) string {
	for _, entry := range o.Env {
		if n, value, _ := strings.Cut(entry, "="); n == name {
			return value
		}
	}
	return ""
}

// flag returns the value of a flag in GOFLAGS, such as "mod" for -mod=vendor.
func (o Options) flag(name string) (value string, set bool) {
	for word := range strings.FieldsSeq(o.variable("GOFLAGS")) {
		word = "-" + strings.TrimLeft(word, "-")
		if v, ok := strings.CutPrefix(word, "-"+name+"="); ok {
			value, set = v, true
		}
	}
	return value, set
}
