// Package audit proves commits of a mainline green, or names the red ones, without trusting the queue: it
// reads no evidence of the queue, but builds each distinct target version of the commits again.
//
// A target version (name, hash) is run once however many commits have it, because the hash covers
// everything that can affect it; with Full every target runs at every
// commit. It is run at the last commit that has it. If it is not green there, it is run at the first, too: one that passes there, and
// goes on to fail at the last, has become red by something that its hash does not cover, and the commit since which it is red is
// searched for. A commit whose tree defines no targets is verified as the queue verifies such a change. Target graphs and steps are read and run by the code that the queue uses (buildgraph,
// execution); what is proven is therefore the queue's decisions, not its reading of the manifests.
//
// What a landing commit names as quarantined (M24a) may be red there, and in the commits after it for as long as it is the same
// version: it is listed apart. Commits that are audited without the one that names it do not know that.
package audit

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/outputs"
)

// Options configure an audit.
type Options struct {
	// Repo is a mirror that holds the commits.
	Repo *gitrepo.Repo
	// Analysis is how targets are found.
	Analysis configuration.Analysis
	// Queue is the name that steps see.
	Queue string
	// Steps bounds a step and gives its environment.
	Steps configuration.Steps
	// Workers is how many steps run at the same time; at least 1.
	Workers int
	// Resources is how much there is of what steps take. Of one that is not named a single step takes at a time.
	Resources map[string]int
	// Retries is how often a step that did not pass is run again; one that passes then is flaky, not red.
	Retries int
	// Full runs every target at every commit, equal ones too.
	Full bool
	// Dir takes worktrees and scratch files. It must be the auditor's own.
	Dir    string
	Logger *slog.Logger
	// Progress, if set, is called whenever a step starts or ends, by one goroutine at a time.
	Progress func(Progress)
}

// Verdict is the result of a target version.
type Verdict int

// The verdicts.
const (
	// Green: its steps passed, or it has none.
	Green Verdict = iota
	// Red: a step failed, or the tree defines no valid targets.
	Red
	// Unproven: its steps ran past their limit or could not run, or nothing can verify it.
	Unproven
)

// String returns the verdict in a word.
func (v Verdict) String() string {
	switch v {
	case Green:
		return "green"
	case Red:
		return "red"
	}
	return "unproven"
}

// Finding is a target version with its result.
type Finding struct {
	Target string `json:"target"`
	// Hash is empty for a tree that defines no valid targets.
	Hash    string  `json:"hash,omitempty"`
	Verdict Verdict `json:"-"`
	Outcome string  `json:"outcome"`
	// Command names the step's command that did not pass.
	Command string `json:"command,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Lines are the decisive ones of the output, at most 3: what a rejection by the queue shows.
	Lines []string `json:"lines,omitempty"`
	// Tail is the end of the output, at most 16 KiB.
	Tail string `json:"output_tail,omitempty"`
	// First is the first of the audited commits that has the version; later ones inherit it. Empty for a green one.
	First string `json:"first_commit,omitempty"`
	// PassedAt is the audited commit before First that has the version, if it passes there: something has changed that the hash does not cover.
	PassedAt string `json:"passed_at,omitempty"`
	// Runs is how often it was run.
	Runs     int           `json:"runs"`
	Duration time.Duration `json:"-"`
	// excused: a commit says that the version need not be green.
	excused bool
}

// Commit is what is known about one commit.
type Commit struct {
	ID     string `json:"commit"`
	Title  string `json:"title"`
	Author string `json:"author"`
	// Targets counts those of the commit.
	Targets int `json:"targets"`
	// Bad are the target versions of the commit that are not green, by name.
	Bad []*Finding `json:"bad,omitempty"`
	// Quarantined are those that are not green and need not be: this commit, or the one before that has the same version, names
	// the target as quarantined.
	Quarantined []*Finding `json:"quarantined,omitempty"`
}

// Green reports whether every target of the commit is, those apart that were quarantined when it landed.
func (c Commit) Green() bool { return len(c.Bad) == 0 }

// Report is the outcome of an audit.
type Report struct {
	// Commits in the order in which they were given.
	Commits []Commit
	// Versions counts the distinct target versions of the commits, those without steps left out.
	Versions int
	// Steps counts the runs of this audit, repetitions among them.
	Steps int
	// Flaky versions passed only when they were run again, or passed and failed at one commit.
	Flaky []*Finding
	// Took is how long it took, Busy the sum of the steps' durations.
	Took, Busy time.Duration
}

// Green counts the commits that are.
func (r *Report) Green() int {
	n := 0
	for _, c := range r.Commits {
		if c.Green() {
			n++
		}
	}
	return n
}

// Auditor judges commits. It remembers what it ran itself, from one call to the next. It is for one
// goroutine.
type Auditor struct {
	o      Options
	loader *buildgraph.Loader
	// known has the versions that were run, in this call or an earlier one.
	known map[version]*Finding
	// usual is how long a target took the last time.
	usual map[string]time.Duration
	pool  []*worker
	// outputs keeps what steps leave for those of dependents: those of this audit.
	outputs *outputs.Keeper
}

type version struct{ target, hash string }

// New makes an auditor. Close it when done.
func New(o Options) (*Auditor, error) {
	if o.Workers < 1 || o.Dir == "" || o.Repo == nil || o.Logger == nil {
		return nil, fmt.Errorf("an audit needs a repository, a folder of its own, a logger and a worker at least")
	}
	folder, err := outputs.OpenFolder(filepath.Join(o.Dir, "outputs"))
	if err != nil {
		return nil, err
	}
	return &Auditor{
		outputs: &outputs.Keeper{Folder: folder, Logger: o.Logger, Limits: outputs.Limits{Age: math.MaxInt64, Size: math.MaxInt64}},
		o:       o, loader: buildgraph.NewLoader(configuration.Queue{Analysis: o.Analysis, Steps: o.Steps}, nil),
		known: map[version]*Finding{}, usual: map[string]time.Duration{},
	}, nil
}

// Close removes the worktrees.
func (a *Auditor) Close() error {
	a.loader.Close()
	var first error
	for _, w := range a.pool {
		if err := w.tree.Remove(); err != nil && first == nil {
			first = err
		}
	}
	a.pool = nil
	return first
}

// Judge builds what the commits consist of. After an error nothing is known: the repository could not
// be read, or the context ended. What speaks against a commit is in the report.
func (a *Auditor) Judge(ctx context.Context, commits []string) (*Report, error) {
	begun := time.Now()
	infos, err := a.o.Repo.CommitInfos(ctx, commits)
	if err != nil {
		return nil, fmt.Errorf("the commits to audit: %w", err)
	}
	report := &Report{Commits: make([]Commit, len(infos))}
	wanted := &agenda{}
	spans := map[version]*span{}
	// parts has, for each commit, what its targets' findings will be.
	parts := make([][]*Finding, len(infos))
	distinct := map[version]bool{}
	// excused has the versions of each commit that need not be green, as of the commit before.
	excused := make([]map[version]bool, len(infos))
	for i, info := range infos {
		named, before := quarantinedBy(info.Message), map[version]bool(nil)
		if i > 0 {
			before = excused[i-1]
		}
		excused[i] = map[version]bool{}
		report.Commits[i] = Commit{ID: info.ID, Title: Subject(info.Message), Author: info.AuthorName}
		part, invalid, err := a.loader.Part(ctx, a.o.Repo, info.Tree)
		if err != nil {
			return nil, fmt.Errorf("the targets of commit %s: %w", info.ID, err)
		}
		alone, undefined, err := a.undefined(ctx, info, part, invalid)
		if err != nil {
			return nil, fmt.Errorf("what commit %s does to its parent: %w", info.ID, err)
		}
		if invalid != nil && !undefined {
			parts[i] = []*Finding{{
				Target: targets.Repository, Verdict: Red, Outcome: "invalid", Reason: "The tree defines no valid targets.", Tail: invalid.Message,
			}}
			continue
		}
		found := part.Graph.Targets()
		if undefined {
			found = slices.Values(alone)
		}
		for t := range found {
			report.Commits[i].Targets++
			if buildgraph.IsTrivial(t) {
				continue
			}
			key := version{t.Name, t.Hash.String()}
			distinct[key] = true
			f, task := a.finding(key, part, t)
			parts[i] = append(parts[i], f)
			if task != nil {
				spans[key] = &span{task: task}
				wanted.add(task)
			}
			if s := spans[key]; s != nil && !a.o.Full {
				s.add(i, part, t)
			}
			if slices.Contains(named, t.Name) || before[key] {
				excused[i][key], f.excused = true, true
			}
		}
	}
	report.Versions = len(distinct)
	if err := a.run(ctx, wanted, report); err != nil {
		return nil, err
	}
	if err := a.sinceWhen(ctx, spans, parts, report); err != nil {
		return nil, err
	}
	first := map[version]string{}
	for i, findings := range parts {
		for _, f := range findings {
			c := &report.Commits[i]
			if f.Verdict == Green {
				continue
			}
			key := version{f.Target, f.Hash}
			if first[key] == "" {
				first[key] = c.ID
			}
			f.First = first[key]
			switch {
			case excused[i][key]:
				c.Quarantined = append(c.Quarantined, f)
			default:
				c.Bad = append(c.Bad, f)
			}
		}
	}
	report.Took = time.Since(begun)
	return report, nil
}

// undefined reports whether a commit's tree defines no target, without being at fault, and returns what the queue verifies of such a
// commit as a change: the whole repository, or nothing if it alters only files that the queue ignores.
func (a *Auditor) undefined(ctx context.Context, commit gitrepo.Commit, part buildgraph.Part, invalid *buildgraph.Invalid) (whole []targets.Target, undefined bool, err error) {
	one := false // the tree is one target
	for t := range part.Graph.Targets() {
		if t.Name != targets.Repository {
			return nil, false, nil
		}
		one = true
	}
	if invalid != nil && !invalid.Absent {
		return nil, false, nil
	}
	verified, _ := part.Target(targets.Repository)
	if len(commit.Parents) == 0 {
		matters := func(path string) bool { return !a.loader.Ignores(path) }
		if one || slices.ContainsFunc(part.Graph.Uncovered(), matters) {
			whole = append(whole, verified)
		}
		return whole, true, nil
	}
	parents, err := a.o.Repo.CommitInfos(ctx, commit.Parents[:1])
	if err != nil {
		return nil, false, err
	}
	change, err := buildgraph.Compare(ctx, a.loader, a.o.Repo, parents[0].Tree, []string{commit.Tree})
	if err != nil {
		return nil, false, err
	}
	if change.Invalid != nil {
		return nil, false, nil
	}
	for _, v := range change.Targets {
		if v.Target == targets.Repository {
			whole = append(whole, verified)
		}
	}
	return whole, true, nil
}

// finding returns the finding of a version, and the task that makes it if it has to be run.
func (a *Auditor) finding(key version, part buildgraph.Part, t targets.Target) (*Finding, *task) {
	if f := a.known[key]; f != nil && !a.o.Full {
		return f, nil
	}
	f := &Finding{Target: key.target, Hash: key.hash, Verdict: Unproven}
	a.known[key] = f
	if len(t.Commands) == 0 {
		f.Outcome, f.Reason = "unverifiable", "The commit has no known targets, and no step says how to verify it as a whole (whole_repository_steps in the configuration)."
		return f, nil
	}
	return f, &task{tree: part.Tree, leaving: part.Graph.Leaving(), target: t, finding: f}
}

// quarantinedBy returns the targets that a landing commit names as quarantined. Its message ends with what the lander says of it.
func quarantinedBy(message string) (names []string) {
	message = strings.TrimSpace(message)
	for line := range strings.Lines(message[strings.LastIndex("\n\n"+message, "\n\n"):]) {
		if name, is := strings.CutPrefix(strings.TrimSpace(line), "Landfall-Quarantined: "); is {
			names = append(names, name)
		}
	}
	return names
}

// settle turns a run's result into a finding.
func (f *Finding) settle(r execution.Result, lines []string, took time.Duration) {
	f.Runs++
	f.Duration = took
	f.Outcome, f.Command, f.Reason, f.Lines, f.Tail = r.Outcome.String(), r.FailedCommand, r.Reason, lines, string(r.Tail)
	switch r.Outcome {
	case execution.Passed:
		f.Verdict, f.Lines, f.Tail = Green, nil, ""
	case execution.Failed:
		f.Verdict = Red
	default:
		f.Verdict = Unproven
	}
}
