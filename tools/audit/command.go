package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/events"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/tools/remote"
)

// maxCommits bounds a range: an audit of more is better done in pieces.
const maxCommits = 10_000

// NotGreen is the error of an audit that found commits that are not. It has been printed when it is returned.
type NotGreen struct{ Commits, Of int }

func (e NotGreen) Error() string {
	return fmt.Sprintf("%d of %d commits are not green", e.Commits, e.Of)
}

// ExitCode returns the command's exit code.
func (e NotGreen) ExitCode() int { return 1 }

type flags struct {
	repo, branch, from, to string
	config, queue          string
	environment            map[string]string
	workers, retries       int
	// resources is how much there is of what steps take, as the configuration has it of its builder.
	resources          map[string]int
	full, cold, asJSON bool
}

// Command is `landfall audit`. Its error is a NotGreen if a commit is not green.
func Command(logger *slog.Logger) *cobra.Command {
	f := &flags{}
	c := &cobra.Command{
		Use:   "audit",
		Short: "Prove a mainline green, commit by commit, by building it again",
		Long: `Check out every commit of a mainline (by first parents) and build each distinct target version from
scratch. Nothing that the queue recorded is read or believed.

The range is what --to has and --from has not: --from itself is not audited. Without --from it is the
whole history. Target versions are equal if their hashes are: each is built at the last commit that has
it, and one that is red there at the first too. If it passes there, something has changed that no hash
covers, such as an ignored file, and the commit since which it is red is searched for. --full builds
every target at every commit all the same.

What the targets are says the configuration (--config, else landfall.config.yaml in the clone), else what fits the repository.

Compilers' caches may be shared, as they go by content: GOCACHE is taken from the configuration, --env or this
environment. Steps of Go packages that include files which Go's cache does not go by have empty ones. --cold begins with an empty one.

Exit codes: 0 all green, 1 a commit is not green, 3 the audit could not be made.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), logger)
		},
	}
	s := c.Flags()
	s.StringVar(&f.repo, "repo", ".", "the repository: a path or a URL")
	s.StringVar(&f.branch, "branch", "", "the mainline (default: the queue's, else main)")
	s.StringVar(&f.from, "from", "", "audit what came after this commit: an id, a name, or main~10 (default: from the first on)")
	s.StringVar(&f.to, "to", "", "audit up to this commit (default: the branch's head)")
	s.BoolVar(&f.full, "full", false, "build every target at every commit, equal ones too")
	s.BoolVar(&f.cold, "cold", false, "begin with an empty compiler cache")
	s.BoolVar(&f.asJSON, "json", false, "print one JSON value on standard output and nothing else there")
	s.StringVar(&f.config, "config", "", "take targets, and steps' environment and limits, from the queue of this configuration file (default: "+configurationFile+" in the root of the clone)")
	s.StringVar(&f.queue, "queue", "", "the queue of --config (default: the one of this repository's branch)")
	s.StringToStringVar(&f.environment, "env", nil, "variables that steps see, as NAME=value")
	s.IntVar(&f.workers, "workers", runtime.NumCPU(), "steps to run at the same time")
	s.IntVar(&f.retries, "retries", 1, "run a step that did not pass again, so often: one that passes then is flaky, not red")
	return c
}

// maxRetries bounds how often a step is run again: beyond that it is a loop.
const maxRetries = 100

func (f *flags) run(ctx context.Context, out, progress io.Writer, logger *slog.Logger) error {
	switch {
	case f.workers < 1:
		return fmt.Errorf("--workers is %d; at least 1 is needed", f.workers)
	case f.retries < 0 || f.retries > maxRetries:
		return fmt.Errorf("--retries is %d; it is 0 to %d", f.retries, maxRetries)
	}
	var err error
	if f.repo, err = located(ctx, f.repo); err != nil {
		return err
	}
	queue, named, err := f.settings(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "landfall-audit-")
	if err != nil {
		return fmt.Errorf("a folder for the audit: %w", err)
	}
	defer os.RemoveAll(dir)
	f.setCaches(queue.Steps.Environment.Variables, dir)
	repo, err := gitrepo.Open(ctx, gitrepo.Options{Remote: f.repo, Dir: filepath.Join(dir, "mirror.git"), Log: logger})
	if err != nil {
		return err
	}
	defer repo.Close()
	commits, err := Range(ctx, repo, f.branch, f.from, f.to)
	if errors.Is(err, gitrepo.ErrNoSuchCommit) && f.behind(ctx) != "" {
		return fmt.Errorf("%w. The clone lacks what has landed since: git -C %s pull, or --repo %s", err, f.repo, clean(remote.Upstream(ctx, f.repo)))
	}
	if err != nil {
		return err
	}
	f.sayBehind(ctx, progress)
	if !named {
		if err := fit(ctx, repo, commits, &queue); err != nil {
			return err
		}
	}
	meter := NewMeter(progress)
	auditor, err := New(Options{
		Repo: repo, Queue: queue.Name, Analysis: queue.Analysis, Steps: queue.Steps, Workers: max(1, f.workers), Resources: f.resources, Retries: f.retries, Full: f.full,
		Dir: dir, Logger: logger, Progress: meter.Show,
	})
	if err != nil {
		return err
	}
	defer auditor.Close()
	report, err := auditor.Judge(ctx, commits)
	meter.End()
	if err != nil {
		return err
	}
	if f.asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(f.summary(report))
	} else {
		report.Write(out)
	}
	if green := report.Green(); err == nil && green < len(report.Commits) {
		return NotGreen{len(report.Commits) - green, len(report.Commits)}
	}
	return err
}

// configurationFile is where a configuration is looked for in a clone, as landfall init writes it.
const configurationFile = "landfall.config.yaml"

// settings returns those of a queue of --config or of the clone's configuration, else the defaults. named reports whether they
// are a queue's.
func (f *flags) settings(ctx context.Context) (queue configuration.Queue, named bool, err error) {
	defaults := configuration.Defaults{Workers: runtime.NumCPU(), Path: os.Getenv("PATH")}
	queue = configuration.NewQueue("audit", defaults)
	file := f.config
	if file == "" {
		beside := filepath.Join(f.repo, configurationFile)
		if _, err := os.Stat(beside); err == nil {
			file = beside
		}
	}
	if file != "" {
		config, err := configuration.Load(file, defaults)
		if err != nil {
			return queue, false, err
		}
		f.resources = config.Builder.Resources
		if queue, err = f.choose(ctx, config, file); err != nil {
			return queue, false, err
		}
	} else if f.queue != "" {
		return queue, false, fmt.Errorf("--queue names a queue of --config, or of %s in the clone: there is neither", configurationFile)
	}
	f.branch = cmp.Or(f.branch, queue.Branch)
	variables := map[string]string{}
	maps.Copy(variables, queue.Steps.Environment.Variables)
	maps.Copy(variables, f.environment)
	queue.Steps.Environment.Variables = variables
	return queue, file != "", nil
}

// choose returns the queue that --queue names, else the first that lands on the branch of the repository, else the only one of the
// clone's own configuration.
func (f *flags) choose(ctx context.Context, config *configuration.Configuration, file string) (configuration.Queue, error) {
	names := config.QueueNames()
	onBranch := func(name string) bool { return f.branch == "" || config.Queues[name].Branch == f.branch }
	name := f.queue
	for _, q := range names {
		if name == "" && onBranch(q) && remote.Same(ctx, config.RepositoryOf(config.Queues[q]).URL, f.repo) {
			name = q
		}
	}
	if name == "" && f.config == "" && len(names) == 1 && onBranch(names[0]) {
		name = names[0]
	}
	if name == "" {
		branch := ""
		if f.branch != "" {
			branch = "branch " + f.branch + " of "
		}
		return configuration.Queue{}, fmt.Errorf("no queue of %s lands on %s%s; name one with --queue: %s", file, branch, f.repo, strings.Join(names, ", "))
	}
	return config.Queue(name)
}

// fit has a queue without a configuration use the adapters for what the last commit holds, as `landfall up` does.
func fit(ctx context.Context, repo *gitrepo.Repo, commits []string, queue *configuration.Queue) error {
	if len(commits) == 0 {
		return nil
	}
	tree, err := repo.TreeOf(ctx, commits[len(commits)-1])
	if err != nil {
		return err
	}
	queue.Analysis.Uncovered.Ignore = buildgraph.DocumentPatterns
	found, err := buildgraph.DetectIn(ctx, repo, tree)
	if err == nil {
		buildgraph.SetAdapters(&queue.Analysis, buildgraph.Fitting(found))
	}
	return err
}

// behind returns the remote's head of the branch if the clone's branch lacks it, else "".
func (f *flags) behind(ctx context.Context) string {
	if !filepath.IsAbs(f.repo) {
		return ""
	}
	return remote.Ahead(ctx, f.repo, f.branch)
}

// sayBehind says that the clone's branch lacks commits of the remote's, which the audit does not see.
func (f *flags) sayBehind(ctx context.Context, progress io.Writer) {
	if f.to != "" {
		return
	}
	if head := f.behind(ctx); head != "" {
		fmt.Fprintf(progress, "%s of this clone lacks what has landed since: the remote's is at %s. To audit that, too: git pull, or --repo %s\n",
			f.branch, events.ShortID(head), clean(remote.Upstream(ctx, f.repo)))
	}
}

// setCaches decides on the one cache without which a Go step compiles the standard library.
func (f *flags) setCaches(variables map[string]string, dir string) {
	const cache = "GOCACHE"
	if f.cold {
		variables[cache] = filepath.Join(dir, "gocache")
		return
	}
	if variables[cache] != "" {
		return
	}
	if own := os.Getenv(cache); filepath.IsAbs(own) {
		variables[cache] = own
	} else if user, err := os.UserCacheDir(); err == nil {
		variables[cache] = filepath.Join(user, "go-build")
	}
}

// located makes a path the absolute one of its repository, since git runs elsewhere; a URL stays.
func located(ctx context.Context, repo string) (string, error) {
	path, err := remote.Local(ctx, repo)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w; give --repo a path or a URL", err)
	case path == "":
		return repo, nil
	}
	return remote.Root(ctx, path), nil
}

// Range returns the first parents of a branch from after `from` ("": the first commit is in it) to `to` ("":
// the branch's head), oldest first. It asks the remote for the branch.
func Range(ctx context.Context, repo *gitrepo.Repo, branch, from, to string) ([]string, error) {
	if err := repo.Fetch(ctx, gitrepo.Wanted{Branches: []string{branch}}); err != nil {
		return nil, err
	}
	if to == "" {
		to = branch
	}
	named := func(flag, name string) (string, error) {
		commit, err := resolve(ctx, repo, name)
		if err != nil {
			err = fmt.Errorf("--%s %s: %w; give a commit of %s by its id, or as %s~10", flag, name, err, branch, branch)
		}
		return commit, err
	}
	last, err := named("to", to)
	if err != nil {
		return nil, err
	}
	first := ""
	if from != "" {
		if first, err = named("from", from); err != nil {
			return nil, err
		}
	}
	commits, err := repo.FirstParents(ctx, first, last, maxCommits+1)
	if err != nil {
		return nil, err
	}
	if len(commits) > maxCommits {
		return nil, fmt.Errorf("more than %d commits; audit them in pieces, with --from and --to", maxCommits)
	}
	return commits, nil
}

// resolve finds a commit by a name, an id or its beginning; name~3 is three first parents before it.
func resolve(ctx context.Context, repo *gitrepo.Repo, name string) (string, error) {
	base, steps, counted := strings.Cut(name, "~")
	commit, err := repo.Resolve(ctx, base)
	if err != nil || !counted {
		return commit, err
	}
	n, err := strconv.Atoi(steps)
	if err != nil || n < 0 || n > maxCommits {
		return "", fmt.Errorf("%q names no commit; after ~ comes a number of at most %d", name, maxCommits)
	}
	line, err := repo.FirstParents(ctx, "", commit, n+1)
	if err == nil && len(line) <= n {
		err = fmt.Errorf("%s has only %d commits before it", base, len(line)-1)
	}
	if err != nil {
		return "", err
	}
	return line[0], nil
}

type summary struct {
	Repository string  `json:"repository"`
	Branch     string  `json:"branch"`
	Commits    int     `json:"commits_audited"`
	Green      int     `json:"commits_green"`
	Versions   int     `json:"target_versions"`
	Steps      int     `json:"steps_run"`
	Seconds    float64 `json:"seconds"`
	// NotGreen has a Commit for each that is not.
	NotGreen []Commit `json:"not_green"`
	// RedInQuarantined has a Commit for each with quarantined targets that are not green.
	RedInQuarantined []Commit   `json:"red_in_quarantined"`
	Flaky            []*Finding `json:"flaky"`
}

func (f *flags) summary(r *Report) summary {
	s := summary{
		Repository: f.repo, Branch: f.branch, Commits: len(r.Commits), Green: r.Green(), Versions: r.Versions, Steps: r.Steps,
		Seconds: r.Took.Round(time.Millisecond).Seconds(), NotGreen: []Commit{}, RedInQuarantined: []Commit{}, Flaky: append([]*Finding{}, r.Flaky...),
	}
	for _, c := range r.Commits {
		if !c.Green() {
			s.NotGreen = append(s.NotGreen, c)
		}
		if len(c.Quarantined) > 0 {
			s.RedInQuarantined = append(s.RedInQuarantined, c)
		}
	}
	return s
}
