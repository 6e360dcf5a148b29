package bazelgraph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/bounds"
	"landfall.build/platform/buildgraph/glob"
	"landfall.build/platform/sandbox"
)

// Options describe how a queue's Bazel is run. Binary, Env and the query flags are part of every target's hash.
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
	// Sandbox is what Bazel sees besides its own folders and the program; nil runs it with the rights of this process. Where
	// the system has no sandbox, SandboxRequired refuses to run it.
	Sandbox         *sandbox.Spec
	SandboxRequired bool
	// Limits bound all that Bazel runs in a sandbox.
	Limits bounds.Limits
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

	defaultProcesses = 4096
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
	if !o.Limits.Set() {
		// Beside the heap, a Java machine has code, stacks and its own tables; repository rules run programs.
		o.Limits = bounds.Limits{Memory: 2*o.Heap + 1<<30, Processes: defaultProcesses, Setting: "analysis.bazel.heap"}
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
			if _, err := glob.Parse(pattern); err != nil {
				problems = append(problems, fmt.Errorf("pattern %q of an input: %w", pattern, err))
			}
		}
		if len(in.Files) == 0 {
			problems = append(problems, errors.New("an input without files; name some"))
		}
	}
	for _, command := range [][]string{o.Build, o.Test} {
		if !slices.ContainsFunc(command, func(word string) bool { return strings.Contains(word, "{label}") }) {
			problems = append(problems, fmt.Errorf("the command %q does not name {label}: it would not verify the target", command))
		}
	}
	return o, errors.Join(problems...)
}

// variable returns the value of an environment variable, empty if it is not set.
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
	return []targets.Command{{Name: name, Argv: argv, Group: o.groupOf(name, words, r.label.String())}}
}

// groupOf returns how one Bazel verifies several labels, for a command that is Bazel's own and has the label as its last word: nil
// for any other.
func (o *Options) groupOf(verb string, words []string, label string) *targets.Group {
	last := len(words) - 1
	if last < 3 || words[0] != o.Binary || words[last] != "{label}" || words[last-1] != "--" || strings.Contains(strings.Join(words[:last], " "), "{label}") {
		return nil
	}
	at := slices.IndexFunc(words[1:], func(word string) bool { return !strings.HasPrefix(word, "-") }) + 1
	if words[at] != verb {
		return nil
	}
	results := map[string]targets.Results{"build": targets.BazelBuild, "test": targets.BazelTest}[verb]
	return &targets.Group{Argv: slices.Concat(words[:last-1], []string{"--keep_going", "--"}), Member: label, Label: label, Results: results}
}

// input is an Input whose patterns are parsed.
type input struct{ folders, files []glob.Pattern }

func inputsOf(o Options) []input {
	inputs := make([]input, len(o.Inputs))
	for i, in := range o.Inputs {
		// Options.complete has refused what is no pattern.
		inputs[i].folders, _ = glob.ParseAll(in.Folders)
		inputs[i].files, _ = glob.ParseAll(in.Files)
	}
	return inputs
}

// matchesAny reports whether one of the patterns matches a file or a package. A pattern that ends in ** matches what is
// below a package, not the package itself.
func matchesAny(patterns []glob.Pattern, name string) bool {
	return slices.ContainsFunc(patterns, func(p glob.Pattern) bool { return p.MatchesFile(name) })
}
