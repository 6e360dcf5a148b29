package bazelgraph

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"landfall.build/services/analyzer/targets"
)

// Options say how a queue's Bazel is run. Binary, Env and the query flags are part of every target's hash.
type Options struct {
	// Binary is Bazel, or Bazelisk: a name that is looked for in Env's PATH, or an absolute path.
	Binary string
	// StartupFlags and QueryFlags go before those of the adapter, which win: a query that goes on past
	// errors or leaves dependencies out is not to be had.
	StartupFlags, QueryFlags []string
	// Env holds NAME=value entries, each name once: all that Bazel sees besides HOME, TMPDIR, USER, TZ and LC_ALL.
	Env []string
	// Heap bounds the server's Java heap, Output what one query prints, both in bytes.
	Heap, Output int64
	// Limit is how long one query may take, with the start of the server.
	Limit time.Duration
	// Idle is how long a server lives that nobody asks any more: one whose service was killed.
	Idle time.Duration
	// Build and Test verify rules: a program and its arguments, in which {label} is the target's. Test is
	// for rules that are tests.
	Build, Test []string
	// Inputs are files that targets depend on without saying so.
	Inputs []Input
}

// Input is a set of undeclared inputs: files that a repository rule or a step reads.
type Input struct {
	// Folders are patterns of the packages whose targets depend on the files; none means every target.
	Folders []string
	// Files are patterns of the files. Patterns are relative to the repository's root; * ? and [a-z] stay
	// within a name, ** alone between slashes stands for any number of folders, at the end for everything
	// below.
	Files []string
}

// Defaults of Options that are zero.
const (
	defaultHeap   = 2 << 30
	defaultOutput = 2 << 30
	defaultLimit  = 2 * time.Minute
	defaultIdle   = 5 * time.Minute
)

// complete fills in the defaults, and lists what cannot be meant.
func (o Options) complete() (Options, error) {
	if o.Binary == "" {
		o.Binary = "bazel"
	}
	if o.Heap == 0 {
		o.Heap = defaultHeap
	}
	if o.Output == 0 {
		o.Output = defaultOutput
	}
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	if o.Idle == 0 {
		o.Idle = defaultIdle
	}
	if len(o.Build) == 0 {
		o.Build = []string{o.Binary, "build", "--", "{label}"}
	}
	if len(o.Test) == 0 {
		o.Test = []string{o.Binary, "test", "--", "{label}"}
	}
	if o.variable("PATH") == "" {
		o.Env = append(slices.Clone(o.Env), "PATH=/usr/local/bin:/usr/bin:/bin")
	}
	o.Env = slices.Sorted(slices.Values(o.Env))
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
		for _, pattern := range slices.Concat(in.Folders, in.Files) {
			if pattern == "" || path.IsAbs(pattern) || path.Clean(pattern) != pattern || strings.HasPrefix(pattern, "..") {
				problems = append(problems, fmt.Errorf("pattern %q of an input: write a path relative to the repository's root, with neither . nor .. in it", pattern))
			}
		}
		if len(in.Files) == 0 {
			problems = append(problems, errors.New("an input without files; name some"))
		}
	}
	for _, command := range [][]string{o.Build, o.Test} {
		if !slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "{label}") }) {
			problems = append(problems, fmt.Errorf("the command %q does not name {label}: it would verify something else", command))
		}
	}
	return o, errors.Join(problems...)
}

// variable gives the value of an environment variable, empty if it is not set.
func (o *Options) variable(name string) string {
	for _, entry := range o.Env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// commands verify a rule. A suite has nothing of its own to run, and a rule with the tag "manual" is one
// that Bazel leaves out of //... too.
func (o *Options) commands(r *rule) []targets.Command {
	if r.manual || r.class == "test_suite" {
		return nil
	}
	name, words := "build", o.Build
	if strings.HasSuffix(r.class, "_test") {
		name, words = "test", o.Test
	}
	argv := make([]string, len(words))
	for i, word := range words {
		argv[i] = strings.ReplaceAll(word, "{label}", r.label.String())
	}
	return []targets.Command{{Name: name, Argv: argv}}
}

// matches tells whether a path fits a pattern of an input.
func matches(pattern, name string) bool {
	return matchParts(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

// matchParts keeps, for each part of the name, which parts of the pattern can come next, so that its time is
// their product, whatever the pattern.
func matchParts(pattern, name []string) bool {
	// at[i]: the first i parts of the pattern can stand for the parts of the name that were read.
	at := make([]bool, len(pattern)+1)
	at[0] = true
	stars := func() {
		for i, part := range pattern {
			if part == "**" && at[i] && i < len(pattern)-1 {
				at[i+1] = true
			}
		}
	}
	stars()
	for _, part := range name {
		next := make([]bool, len(pattern)+1)
		for i, p := range pattern {
			switch {
			case !at[i]:
			case p == "**":
				next[i] = true
				if i == len(pattern)-1 {
					next[i+1] = true
				}
			default:
				if ok, err := path.Match(p, part); err == nil && ok {
					next[i+1] = true
				}
			}
		}
		at = next
		stars()
	}
	return at[len(pattern)]
}
