package audit

import (
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

	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
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
	full, cold, asJSON     bool
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
whole history. Target versions are equal if their hashes are; --full builds every target at every
commit all the same.

Compilers' caches may be shared, as they go by content: GOCACHE is taken from --config, --env or this
environment. --cold begins with an empty one.

Exit codes: 0 all green, 1 a commit is not green, 3 the audit could not be made.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), logger)
		},
	}
	s := c.Flags()
	s.StringVar(&f.repo, "repo", ".", "the repository: a path or a URL")
	s.StringVar(&f.branch, "branch", "main", "the mainline")
	s.StringVar(&f.from, "from", "", "audit what came after this commit: an id, a name, or main~10 (default: from the first on)")
	s.StringVar(&f.to, "to", "", "audit up to this commit (default: the branch's head)")
	s.BoolVar(&f.full, "full", false, "build every target at every commit, equal ones too")
	s.BoolVar(&f.cold, "cold", false, "begin with an empty compiler cache")
	s.BoolVar(&f.asJSON, "json", false, "print one JSON value on standard output and nothing else there")
	s.StringVar(&f.config, "config", "", "take steps' environment and limits from the queue of this configuration file")
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
	queue, err := f.settings()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "landfall-audit-")
	if err != nil {
		return fmt.Errorf("a folder for the audit: %w", err)
	}
	defer os.RemoveAll(dir)
	f.setCaches(queue.Steps.Environment.Variables, dir)
	if f.repo, err = remote(f.repo); err != nil {
		return err
	}
	repo, err := gitrepo.Open(ctx, gitrepo.Options{Remote: f.repo, Dir: filepath.Join(dir, "mirror.git"), Log: logger})
	if err != nil {
		return err
	}
	defer repo.Close()
	commits, err := Range(ctx, repo, f.branch, f.from, f.to)
	if err != nil {
		return err
	}
	meter := NewMeter(progress)
	auditor, err := New(Options{
		Repo: repo, Queue: queue.Name, Analysis: queue.Analysis, Steps: queue.Steps, Workers: max(1, f.workers), Retries: f.retries, Full: f.full,
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

// settings returns those of a queue, or the defaults.
func (f *flags) settings() (configuration.Queue, error) {
	defaults := configuration.Defaults{Workers: runtime.NumCPU(), Path: os.Getenv("PATH")}
	queue := configuration.NewQueue("audit", defaults)
	if f.config != "" {
		config, err := configuration.Load(f.config, defaults)
		if err != nil {
			return queue, err
		}
		name := f.queue
		for _, q := range config.QueueNames() {
			if name == "" && config.Queues[q].Branch == f.branch && sameRepository(config.RepositoryOf(config.Queues[q]).URL, f.repo) {
				name = q
			}
		}
		if name == "" {
			return queue, fmt.Errorf("no queue of %s lands on branch %s of %s; name one with --queue: %s", f.config, f.branch, f.repo, strings.Join(config.QueueNames(), ", "))
		}
		if queue, err = config.Queue(name); err != nil {
			return queue, err
		}
	} else if f.queue != "" {
		return queue, errors.New("--queue names a queue of --config; give that too")
	}
	variables := map[string]string{}
	maps.Copy(variables, queue.Steps.Environment.Variables)
	maps.Copy(variables, f.environment)
	queue.Steps.Environment.Variables = variables
	return queue, nil
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

// remote makes a path absolute, since git runs elsewhere; a URL stays.
func remote(repo string) (string, error) {
	if _, err := os.Stat(repo); err == nil {
		return filepath.Abs(repo)
	}
	if !strings.Contains(repo, ":") {
		return "", fmt.Errorf("there is no repository %s; give --repo a path or a URL", repo)
	}
	return repo, nil
}

func sameRepository(configured, given string) bool {
	absolute, err := filepath.Abs(given)
	return configured == given || err == nil && filepath.Clean(configured) == absolute
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
