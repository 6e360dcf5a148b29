package graphview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/tools/client"
	"landfall.build/tools/progress"
)

// Commands are `landfall targets`, `affected` and `conflicts`.
func Commands(logger *slog.Logger) []*cobra.Command {
	return []*cobra.Command{targetsCommand(logger), affectedCommand(logger), conflictsCommand(logger)}
}

// flags are common to the commands.
type flags struct {
	repo, mirror, config, queue, adapter, toolchain, bazel string
	variables                                              map[string]string
	inputs, hubs, ignore                                   []string
	timeout                                                time.Duration
	asJSON                                                 bool
	// uncommitted are the manifests of the working folder that the commit lacks.
	uncommitted []string
	// unconfigured is set if nobody said what to look through, and there is no configuration.
	unconfigured bool
	logger       *slog.Logger
}

func (f *flags) add(c *cobra.Command) {
	s := c.Flags()
	s.StringVar(&f.repo, "repo", ".", "the repository: a path or a URL")
	s.StringVar(&f.mirror, "mirror", "", "keep the mirror of the repository in this folder (default: in your cache)")
	s.StringVar(&f.config, "config", "", "take the settings of a queue from this file (default: "+configurationFile+" in the root of the tree, else of the clone, if it has one)")
	s.StringVar(&f.queue, "queue", "", "the queue, where the configuration has several")
	s.StringVar(&f.adapter, "adapter", "", "what finds the targets: "+adapterNames()+" (default: the queue's; without one what fits the repository: landfall.yaml or go.mod, whichever is nearer to its root; else a Bazel workspace)")
	s.StringToStringVar(&f.variables, "env", nil, "variables that a queue's steps see, as NAME=value: GOFLAGS and others are part of Go hashes, all of Bazel's")
	s.StringArrayVar(&f.inputs, "input", nil, "files that Go and Bazel targets read and do not declare, as FILES or FOLDERS=FILES, patterns separated by commas (analysis.inputs); several times")
	s.StringArrayVar(&f.ignore, "ignore", nil, "files for which nothing has to be built if no target covers them, as a pattern, besides the queue's analysis.uncovered.ignore; several times")
	s.StringVar(&f.toolchain, "toolchain", "", "what Go code is built with (analysis.toolchain)")
	s.StringVar(&f.bazel, "bazel", "", "the program of the adapter bazel, by name or absolute path (analysis.bazel.binary)")
	s.DurationVar(&f.timeout, "timeout", 0, "how long one query of Bazel may take (default: the queue's analysis.timeout; without a configuration "+bazelLimit.String()+")")
	s.BoolVar(&f.asJSON, "json", false, "print one JSON value on standard output and nothing else there")
}

func adapterNames() string {
	var names []string
	for _, a := range configuration.Adapters() {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

// flagsAlone refuses arguments, and names the flag that somebody who gives one most likely means.
func flagsAlone(flag string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s takes no argument; for the commit say %s %s, for the repository --repo", cmd.Name(), flag, args[0])
		}
		return nil
	}
}

// printer is a result that people read.
type printer interface{ write(io.Writer) error }

// printed makes the error of a command the one value that it prints with --json.
func (f *flags) printed(run func(cmd *cobra.Command) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = cmd.SilenceUsage || f.asJSON
		err := run(cmd)
		if err != nil && f.asJSON {
			return client.PrintFailure(cmd.OutOrStdout(), err)
		}
		return err
	}
}

// run looks at a repository by the tree of a commit, the first of the names, and prints what look finds.
// look gets the ids of all names.
func (f *flags) run(cmd *cobra.Command, names []string, look func(ctx context.Context, v *view, ids []string) (printer, error)) error {
	cmd.SilenceUsage = true
	if f.timeout < 0 {
		return fmt.Errorf("--timeout is %v; give a time above 0, such as 20m", f.timeout)
	}
	p := progress.New(cmd.ErrOrStderr())
	result, err := f.look(cmd.Context(), p, names, look)
	p.End()
	if !f.asJSON {
		if f.unconfigured && err == nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "no %s is in the commit or in %s, so this goes by default settings; a queue may have others (--config)\n", configurationFile, f.repo)
		}
		for _, file := range f.uncommitted {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s is not committed, so it is no part of %s\n", client.Plain(file), names[0])
		}
	}
	if err != nil {
		return err
	}
	if !f.asJSON {
		return result.write(client.Harmless(cmd.OutOrStdout()))
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

func (f *flags) look(ctx context.Context, p *progress.Progress, names []string, look func(context.Context, *view, []string) (printer, error)) (printer, error) {
	p.Begin("fetching "+f.repo, 0)
	s, err := openSource(ctx, f.repo, f.mirror, f.logger)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ids := make([]string, len(names))
	for i, name := range names {
		if ids[i], err = s.commit(ctx, name); err != nil {
			return nil, err
		}
	}
	if names[0] == "HEAD" {
		f.uncommitted = s.uncommitted(ctx, ids[0])
	}
	p.Begin("reading the targets of "+names[0], 0)
	settings, err := f.settings(ctx, s, ids)
	if err != nil {
		return nil, err
	}
	v := &view{source: s, loader: buildgraph.NewLoader(settings, nil), settings: settings, progress: p}
	defer v.loader.Close()
	return look(ctx, v, ids)
}

func targetsCommand(logger *slog.Logger) *cobra.Command {
	f := &flags{logger: logger}
	var rev, target string
	var uncovered bool
	c := &cobra.Command{
		Use:   "targets",
		Short: "List the targets of a commit, with their hashes",
		Long: `List the targets of a commit: what the queue builds and tests, one by one. A hash covers everything that
can affect its target, so two commits with the same hash need one build of it. Last come its owners, by the manifests and the
CODEOWNERS file of the commit.

Go targets are named by import path; a folder's tests are "path [test]", what is left of a module is
"path [module]". Bazel's are named by label; "//path [package]" stands for what decides which rules a package has.

With --uncovered it lists the files that no target covers, each with what a change to it means in the queue
(analysis.uncovered): whole_repository, it conflicts with everything and the whole repository is verified; warn or ignore,
nothing is built for it.

With --files-of TARGET it lists the files that the steps of a target find where workspaces are closed (steps.workspace): those that
it depends on, and manifests and lock files of package managers.

Exit codes: 0 listed, 3 the targets cannot be determined (a queue would take the repository for one target).`,
		Example: "  landfall targets --repo . --rev main\n  landfall targets --repo . --rev HEAD --json | jq -r '.targets[].name'\n  landfall targets --repo . --uncovered\n  landfall targets --files-of 'node://web [test]'",
		Args:    flagsAlone("--rev"),
		RunE: f.printed(func(cmd *cobra.Command) error {
			return f.run(cmd, []string{rev}, func(ctx context.Context, v *view, ids []string) (printer, error) {
				switch {
				case uncovered:
					return v.listUncovered(ctx, rev, ids[0])
				case target != "":
					return v.filesOf(ctx, rev, ids[0], target)
				}
				return v.list(ctx, rev, ids[0])
			})
		}),
	}
	f.add(c)
	c.Flags().StringVar(&rev, "rev", "HEAD", "the commit: a branch, a tag, an id")
	c.Flags().BoolVar(&uncovered, "uncovered", false, "list the files that no target covers, and what a change to them means")
	c.Flags().StringVar(&target, "files-of", "", "list the files that the steps of this target find in a closed workspace")
	c.MarkFlagsMutuallyExclusive("uncovered", "files-of")
	return c
}

func affectedCommand(logger *slog.Logger) *cobra.Command {
	f := &flags{logger: logger}
	var base, head string
	c := &cobra.Command{
		Use:   "affected",
		Short: "Say which targets a branch adds, removes and modifies",
		Long: `Say which targets are others at --head than at the commit where it left --base, git's merge base: those whose hash differs.
What --base has gained since is no doing of --head. "structural" tells that
targets came, went, or depend on others than before; "all" that the targets of a side are not known, or that
no target covers a file, so that the change would conflict with everything; "uncovered" lists such files.

Exit codes: 0 printed, 3 it cannot be determined.`,
		Example: "  landfall affected --repo . --base main --head my-branch\n  landfall affected --repo . --base HEAD~1 --head HEAD --json",
		Args:    flagsAlone("--head"),
		RunE: f.printed(func(cmd *cobra.Command) error {
			if base == "" {
				return errors.New("--base names no commit; give the one to compare with")
			}
			return f.run(cmd, []string{base, head}, func(ctx context.Context, v *view, ids []string) (printer, error) {
				return v.affect(ctx, head, ids[0], ids[1])
			})
		}),
	}
	f.add(c)
	c.Flags().StringVar(&base, "base", "", "the branch or commit that --head left")
	c.Flags().StringVar(&head, "head", "HEAD", "the commit to end with")
	return c
}

func conflictsCommand(logger *slog.Logger) *cobra.Command {
	f := &flags{logger: logger}
	var base string
	var changes []string
	c := &cobra.Command{
		Use:   "conflicts",
		Short: "Say which changes conflict on a mainline, and why",
		Long: fmt.Sprintf(`Put each change on the mainline by itself, as a queue does, and say for every two of them whether they
conflict: both change a target, or one makes a target depend on what the other changes, or git does not
merge them to one tree in both orders. Independent changes may land in any order without having been built together.
Those that meet in hub targets of the queue alone are independent, and listed with the hubs: each is proven there on
the tree that lands.

A change is a commit; what it has and --base has not becomes landing commits as in the queue (squashed without one). At most %d changes. A change that cannot land
on the base (it does not merge, is there already, has target definitions that are not valid) is in "refused" and in no pair.

Exit codes: 0 printed, 3 it cannot be determined.`, maxChanges),
		Example: "  landfall conflicts --repo . --base main --change feature-a --change feature-b\n  landfall conflicts --repo . --base main --change a --change b --change c --json",
		Args:    flagsAlone("--change"),
		RunE: f.printed(func(cmd *cobra.Command) error {
			if len(changes) < 2 {
				return errors.New("give --change at least twice")
			}
			return f.run(cmd, []string{base}, func(ctx context.Context, v *view, ids []string) (printer, error) {
				return v.compare(ctx, ids[0], changes)
			})
		}),
	}
	f.add(c)
	c.Flags().StringVar(&base, "base", "main", "the commit of the mainline that the changes are put on")
	c.Flags().StringArrayVar(&f.hubs, "hub", nil, "a target in which two changes may meet without a conflict, * for any text, besides the queue's analysis.hubs; several times")
	c.Flags().StringArrayVar(&changes, "change", nil, "a change by its head commit; give it several times")
	return c
}
