package adopt

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"landfall.build/platform/buildgraph"
	"landfall.build/tools/client"
	"landfall.build/tools/progress"
)

// options are the flags.
type options struct {
	repository, branch, queue, config, data, command string
	adapters                                         []string
	workers                                          int
	yes, force, dryRun, check, asJSON                bool
}

// Lacking is the error of landfall init --check if something lacks, which it has printed.
type Lacking struct{}

func (Lacking) Error() string { return "something lacks" }

// ExitCode returns the exit code of the command.
func (Lacking) ExitCode() int { return 1 }

// Command returns `landfall init`.
func Command(logger *slog.Logger) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "init [REPOSITORY]",
		Short: "Look at a repository, and write the configuration of its queue",
		Long: `Look at a repository (a clone, a path, a URL; by default the clone here) and at this machine, say what is found, and write
landfall.config.yaml, and a landfall.yaml for each folder whose build system has no adapter. It asks in a terminal; elsewhere, or
with --yes, it takes flags and what fits. Nothing is overwritten without --force.

With --check it writes nothing and says what a configuration, its repository and this machine still lack.

Exit codes: 0, 1 something lacks (--check), or an error.`,
		Example: "  landfall init\n  landfall init ../shop --yes --workers 8\n  landfall init --check",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.SilenceUsage = true
			repo := "."
			if len(args) > 0 {
				repo = args[0]
			}
			r := run{options: o, out: client.Harmless(cmd.OutOrStdout()), logger: logger, during: tell(cmd.ErrOrStderr())}
			if !o.yes && !o.asJSON && canAnswer(cmd.InOrStdin()) {
				r.ask = &asker{bufio.NewReader(cmd.InOrStdin()), r.out}
			}
			err := r.run(cmd.Context(), repo)
			if _, said := errors.AsType[Lacking](err); err != nil && o.asJSON && !said {
				return client.PrintFailure(cmd.OutOrStdout(), err)
			}
			return err
		},
	}
	f := c.Flags()
	f.BoolVar(&o.check, "check", false, "write nothing; say what the configuration, the repository and this machine lack")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be written, and write nothing")
	f.BoolVar(&o.yes, "yes", false, "ask nothing")
	f.BoolVar(&o.force, "force", false, "overwrite files that are there")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON value, and ask nothing")
	f.StringVar(&o.repository, "repository", "", "what git fetches from and pushes to (default: the clone's remote origin)")
	f.StringVar(&o.branch, "branch", "", "the mainline (default: the remote's own)")
	f.StringVar(&o.queue, "queue", "", "the queue's name (default: the repository's); with --check the queue to look at (default: all)")
	f.IntVar(&o.workers, "workers", 0, "builds at the same time (default: what the machine has room for)")
	f.StringSliceVar(&o.adapters, "adapter", nil, "what finds the targets (default: what fits); several times")
	f.StringVar(&o.command, "command", "", "a line of the shell that verifies the whole repository (default: what fits)")
	f.StringVar(&o.config, "config", "", "the configuration file (default: "+configurationFile+" in the root of the clone)")
	f.StringVar(&o.data, "data", "", "the data directory (default: .landfall/NAME in your home folder)")
	return c
}

// canAnswer reports whether a person answers questions on an input: both sides are a terminal, or it is a test's input.
func canAnswer(in io.Reader) bool {
	stdin, isFile := in.(*os.File)
	return !isFile || term.IsTerminal(int(stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd()))
}

// run is one call of the command.
type run struct {
	options
	out    io.Writer
	ask    *asker
	logger *slog.Logger
	// during says what is being done until done is called.
	during func(what string) (done func())
}

// tell has a command say on standard error what it is doing, where that takes more than a second.
func tell(out io.Writer) func(what string) (done func()) {
	return func(what string) func() {
		p := progress.New(out)
		p.Begin(what, 0)
		return p.End
	}
}

// say prints a line for people.
func (r *run) say(format string, args ...any) {
	if !r.asJSON {
		fmt.Fprintf(r.out, format+"\n", args...)
	}
}

func (r *run) run(ctx context.Context, repo string) error {
	if r.workers < 0 {
		return fmt.Errorf("--workers is %d; give a number from 1 on", r.workers)
	}
	if r.check {
		return r.runCheck(ctx, repo)
	}
	p, err := r.begin(ctx, repo)
	if err != nil {
		return err
	}
	file := r.fileFor(p.Clone)
	if _, err := os.Stat(file); err == nil && !r.force && !r.dryRun {
		return fmt.Errorf("%s is there already: --check says what lacks, --force overwrites it", file)
	}
	mirror := mirrorIn(p.Data, p.Name)
	if r.dryRun {
		mirror = ""
	}
	done := r.during("fetching " + p.URL)
	s, err := openSource(ctx, p.place, mirror, r.logger)
	done()
	if err != nil {
		return err
	}
	defer func() { s.close() }()
	done = r.during("looking at the repository and this machine")
	err = p.survey(ctx, s, r.options)
	done()
	if err != nil {
		return err
	}
	if err := r.settle(ctx, p, s); err != nil {
		return err
	}
	return r.finish(ctx, p, s, file)
}

// begin finds out which repository it is, and asks.
func (r *run) begin(ctx context.Context, repo string) (*plan, error) {
	found, err := findPlace(ctx, repo, r.repository, r.branch)
	if err != nil {
		return nil, err
	}
	p := &plan{place: found}
	if r.repository == "" {
		if p.URL, err = r.ask.text("Repository that changes land in", p.URL); err != nil {
			return nil, err
		}
		p.Name = queueName(p.URL)
	}
	if r.branch == "" {
		if p.Branch, err = r.ask.text("Branch that they land on", p.Branch); err != nil {
			return nil, err
		}
	}
	if p.Queue = r.queue; p.Queue == "" {
		if p.Queue, err = r.ask.text("Name of the queue", p.Name); err != nil {
			return nil, err
		}
	}
	if p.Workers = r.workers; p.Workers == 0 {
		if p.Workers, err = r.ask.number("Builds at the same time", lookAround(ctx, nil, nil).workers()); err != nil {
			return nil, err
		}
	}
	if p.Data = r.data; p.Data == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("give --data, a folder for the queue's data: %w", err)
		}
		p.Data = dataFolder(home, p.Name, p.URL)
	}
	p.Data, err = filepath.Abs(p.Data)
	return p, err
}

// settle says what was found, asks about commands, and completes the plan.
func (r *run) settle(ctx context.Context, p *plan, s *source) error {
	r.sayFound(p, s)
	for i := range p.written {
		m := &p.written[i]
		if m.Command == "" {
			continue
		}
		var err error
		if m.Command, err = r.ask.text("Command that verifies "+inWords(m.Folder)+" ("+m.System+")", m.Command); err != nil {
			return err
		}
	}
	p.complete(ctx, s, r.options)
	return r.offer(p)
}

// offer asks whether scripts that no step runs become steps of the whole repository. Unasked they stay out: a script may write files,
// or be red on the mainline.
func (r *run) offer(p *plan) error {
	if r.ask == nil || len(p.whole) == 0 {
		return nil // without steps of the whole repository those of all targets verify it
	}
	var left []unrun
	for _, u := range p.unrun {
		yes, err := r.ask.yes(fmt.Sprintf("%s Run them where the whole repository is verified", u))
		switch {
		case err != nil:
			return err
		case yes:
			p.whole = append(p.whole, u.steps...)
		default:
			left = append(left, u)
		}
	}
	p.unrun = left
	return nil
}

// fileFor returns where the configuration is.
func (r *run) fileFor(clone string) string {
	return cmp.Or(r.config, filepath.Join(clone, configurationFile))
}

// writtenFile is a file that is to be made.
type writtenFile struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Written bool   `json:"written"`
}

// result is what landfall init --json prints.
type result struct {
	place
	machine
	Queue    string        `json:"queue"`
	Workers  int           `json:"workers"`
	Data     string        `json:"data"`
	Found    []part        `json:"found"`
	Adapters []string      `json:"adapters"`
	Seen     treeView      `json:"seen"`
	Past     pastConflicts `json:"past"`
	Lacks    []lack        `json:"lacks"`
	Notes    []string      `json:"notes"`
	Files    []writtenFile `json:"files"`
	Next     []string      `json:"next"`
}

// finish says what the queue will see, and writes the files.
func (r *run) finish(ctx context.Context, p *plan, s *source, file string) error {
	config, err := p.configuration()
	if err != nil {
		return err
	}
	texts := p.texts()
	loader := buildgraph.NewLoader(config.Queues[p.Queue], nil)
	defer loader.Close()
	done := r.during("reading the targets of " + p.Branch)
	seen, lacks, err := lacksOf(ctx, config, p.Queue, s, texts, loader)
	done()
	if err != nil {
		return err
	}
	if len(p.uses) > 1 { // It is affected by every change of another build system.
		p.hubs = seen.idle
	}
	commits, err := s.FirstParents(ctx, "", s.head, pastCommits+1)
	if err != nil {
		return err
	}
	done = r.during("looking which of the last commits would have conflicted with everything")
	past, err := pastConflictsOf(ctx, loader, overlay{s.Repo, texts}, commits)
	done()
	if err != nil {
		return err
	}
	files := []writtenFile{{Path: file, Content: p.text()}}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		files = append(files, writtenFile{Path: filepath.Join(p.Clone, filepath.FromSlash(name)), Content: texts[name]})
	}
	if err := r.write(p, files); err != nil {
		return err
	}
	next := p.next(ctx, file, lacks)
	for _, u := range p.unrun {
		p.env.notes = append(p.env.notes, u.String())
	}
	p.env.notes = append(p.env.notes, p.uninstalled...)
	if r.asJSON {
		adapters := []string{}
		for _, use := range p.uses {
			adapters = append(adapters, string(use.Adapter))
		}
		return r.print(result{p.place, p.machine, p.Queue, p.Workers, p.Data, orEmpty(p.parts), adapters, seen, past, orEmpty(lacks), orEmpty(p.env.notes), files, next})
	}
	r.sayFiles(p, files)
	r.saySeen(seen, lacks, past)
	for _, note := range p.env.notes {
		r.say("Note: %s", note)
	}
	r.say("\nNext, landfall up in a terminal of its own:")
	for _, line := range next {
		r.say("  %s", line)
	}
	return nil
}

// orEmpty returns a list that JSON shows as [] and not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// print prints one JSON value.
func (r *run) print(value any) error {
	encoder := json.NewEncoder(r.out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// write writes the files, all or none as far as it can be known before.
func (r *run) write(p *plan, files []writtenFile) error {
	folder, err := openFolder(p.Clone)
	if err != nil {
		return err
	}
	defer folder.close()
	var there []string
	for i, f := range files {
		if is, err := folder.has(f.Path); err != nil && !r.dryRun {
			return fmt.Errorf("nothing is written: %s: %w", f.Path, err)
		} else if is {
			there = append(there, f.Path)
		}
		files[i].Written = i == 0 || p.Clone != "" // a bare repository has no folders to write to
	}
	if r.dryRun {
		for i := range files {
			files[i].Written = false
		}
		return nil
	}
	if len(there) > 0 && !r.force {
		return fmt.Errorf("nothing is written: %s is there already, and --force overwrites it", strings.Join(there, ", "))
	}
	if ok, err := r.ask.yes("Write " + namesOf(files)); err != nil || !ok {
		return cmp.Or(err, errors.New("nothing is written"))
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if r.force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	for _, f := range files {
		if !f.Written {
			continue
		}
		out, err := folder.open(f.Path, mode)
		if err == nil {
			_, err = out.WriteString(f.Content)
			err = errors.Join(err, out.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namesOf returns the paths of the files to write, as people see them.
func namesOf(files []writtenFile) string {
	var names []string
	for _, f := range files {
		if f.Written {
			names = append(names, shown(f.Path))
		}
	}
	return strings.Join(names, ", ")
}

// shown returns a path as people type it in the working directory.
func shown(file string) string {
	here, err := os.Getwd()
	if err != nil {
		return file
	}
	if relative, below := relativeTo(here, file); below {
		return relative
	}
	return file
}

// relativeTo returns a path relative to a folder, and whether it is the folder or below it.
func relativeTo(folder, file string) (string, bool) {
	relative, err := filepath.Rel(folder, file)
	return relative, err == nil && filepath.IsLocal(relative)
}

// runCheck carries out landfall init --check.
func (r *run) runCheck(ctx context.Context, repo string) error {
	file, clone := r.config, ""
	p, err := findPlace(ctx, repo, r.repository, cmp.Or(r.branch, "main"))
	if err == nil {
		clone = p.Clone
	}
	if file == "" {
		if err != nil {
			return err
		}
		file = r.fileFor(clone)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no %s; landfall init writes it", file)
	}
	done := r.during("looking at what the queues of " + shown(file) + " see")
	c, err := check(ctx, file, r.queue, clone, r.logger)
	done()
	if err != nil {
		return err
	}
	if r.asJSON {
		if err := r.print(c); err != nil {
			return err
		}
	} else {
		r.sayChecked(c)
	}
	if !c.complete() {
		return Lacking{}
	}
	return nil
}
