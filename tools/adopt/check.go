package adopt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/tools/remote"
)

// Lack is something that a queue needs and does not have.
type Lack struct {
	// Code does not change between versions.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Advice is what to do.
	Advice string `json:"advice,omitempty"`
}

type lack = Lack

// unreachable says why services cannot reach a remote: their git has none of the user's helpers.
func unreachable(ctx context.Context, p place, err error) lack {
	l := lack{"remote_unreachable", fmt.Sprintf("git cannot read %s: %s.", p.URL, lastLine(err)), "Give the address that git fetches from and pushes to with --repository."}
	if _, failed := git(ctx, "", "ls-remote", "--quiet", "--", p.URL, "HEAD"); failed == nil {
		l.Message = fmt.Sprintf("Your git reads %s, and Landfall's does not: %s.", p.URL, lastLine(err))
		l.Advice = "Services run git without your credential helpers, agents and settings. Use an SSH key without a passphrase for the account that runs them, or an address that needs no password."
	}
	return l
}

// checkPush notes why landings could not be pushed.
func (s *source) checkPush(ctx context.Context, p place) {
	local, err := remote.Local(ctx, p.URL)
	if err == nil && local != "" {
		err = remote.CheckPush(ctx, local, p.Branch)
	}
	if err != nil {
		s.lacks = append(s.lacks, lack{"push_refused", "Nothing can land: " + lastLine(err) + ".", ""})
		return
	}
	if err := s.CheckPush(ctx, p.Branch, s.head); err != nil {
		s.lacks = append(s.lacks, lack{"push_refused", fmt.Sprintf("git cannot push to %s of %s: %s.", p.Branch, p.URL, lastLine(err)), "Give the account that runs Landfall the right to push to that branch."})
	}
}

// lastLine returns the last line of what went wrong, without a full stop.
func lastLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return strings.TrimRight(strings.TrimSpace(lines[len(lines)-1]), ".")
}

// lacksOf returns what a queue sees of the mainline, and what it lacks there and on this machine. contents are manifests
// that count although they are not on the mainline yet.
func lacksOf(ctx context.Context, config *configuration.Configuration, name string, s *source, contents map[string]string, loader *buildgraph.Loader) (treeView, []lack, error) {
	queue := config.Queues[name]
	lacks := slices.Clone(s.lacks)
	if queue.Shadow == configuration.On { // which only reads
		lacks = slices.DeleteFunc(lacks, func(l lack) bool { return l.Code == "push_refused" })
	}
	add := func(code, advice, format string, args ...any) {
		lacks = append(lacks, lack{code, fmt.Sprintf(format, args...), advice})
	}
	if folder := worktreeAround(config.Data); folder != "" {
		add("data_in_working_folder", "Set data to a folder outside of it.", "The data folder %s is in the working folder %s: tools that look for their files in all folders above would find the working folder's in each checkout.", config.Data, folder)
	}
	for _, open := range queue.Steps.OpenCaches() {
		add("cache_open", queue.Advice(open), "%s.", open.Risk())
	}
	view := overlay{s.Repo, contents}
	paths := slices.Clone(s.paths)
	for file := range contents {
		paths = append(paths, file)
	}
	found := buildgraph.Detect(paths, "")
	for _, use := range queue.Analysis.Uses() {
		known := slices.ContainsFunc(found, func(s buildgraph.Sighting) bool { return s.Adapter == use.Adapter })
		if !known && use.Adapter != configuration.AdapterAuto {
			add("adapter_without_targets", "Land the files that it reads, or leave the adapter out.", "The adapter %s finds nothing on %s.", use.Adapter, queue.Branch)
		}
	}
	for _, one := range found {
		if one.Adapter == configuration.AdapterManifest && len(queue.Analysis.Uses()) > 0 && !queue.Analysis.UsesAny(one.Adapter, configuration.AdapterAuto) {
			add("manifest_unread", "Add the adapter manifest to analysis.adapters.", "Nothing reads %s: the queue has no adapter manifest.", byFolder(one.Files))
		}
	}
	seen, err := viewTree(ctx, loader, view, s.tree, queue.Analysis.WholeRepositorySteps)
	if err != nil {
		return seen, lacks, err
	}
	whole := len(queue.Analysis.WholeRepositorySteps) > 0
	undefined := seen.Targets == 0 && !whole
	switch {
	case seen.Invalid != "":
		add("targets_invalid", "Correct them: until then every change conflicts with everything.", "The definitions of targets are wrong: %s", firstOf(seen.Invalid)+".")
	case len(seen.Unknown) > 0:
		add("targets_unknown", "Every change conflicts with everything until that is mended.", "The targets of %s are not known: %s.", queue.Branch, firstOf(strings.Join(seen.Unknown, "; ")))
	case seen.Targets == 1 && len(seen.Programs) == 0, undefined:
		add("nothing_proven", "Write a landfall.yaml, or name commands in analysis.whole_repository_steps.", "Nothing proves a change, so none will land but of files that analysis.uncovered ignores.")
	}
	folders := strings.Split(queue.Steps.Environment.Path, ":")
	r := reader{ctx, setOf(paths), s.read}
	for _, program := range programsNeeded(r, found, queue, seen) {
		if path.IsAbs(program) {
			if lookFor(filepath.Base(program), []string{filepath.Dir(program)}) == "" {
				add("tool_missing", "Install it on every machine that runs steps.", "Steps start %s, which is not there.", program)
			}
		} else if file := lookFor(program, folders); file == "" {
			add("tool_missing", "Install it, or name its folder in steps.environment.path.", "Steps need %s, which is in no folder of their PATH.", program)
		} else if why := brokenTool(ctx, program, file, queue); why != "" {
			add("tool_broken", "Mend it, or name the folder of another one in steps.environment.path.", "Steps need %s, and %s does not run: %s.", program, file, why)
		}
	}
	lacks = append(lacks, pytestLacks(r, partsOf(found, r.files), queue)...)
	made, attributes, err := s.unapplied(ctx)
	if err != nil {
		return seen, lacks, err
	}
	if len(made) > 0 {
		add("attributes_not_applied", "Store the files as steps need them, or have a step convert them.",
			"Checkouts hold the bytes of the repository and do not go by %s of %s, so steps may see other contents than a clone has.", strings.Join(attributes, ", "), byFolder(made))
	}
	if n := len(s.submodules); n > 0 {
		add("submodules_empty", "Commit the files that steps need, or have a step fetch them.", "Steps do not see what submodules hold: %s %s in each checkout.", byFolder(s.submodules), map[bool]string{true: "is an empty folder", false: "are empty folders"}[n == 1])
	}
	for _, name := range seen.Empty {
		add("target_without_command", "Give it steps, or make it a dependency of a target that has some.", "Nothing verifies %s.", name)
	}
	if n := len(seen.Uncovered); n > 0 && !undefined {
		where := "analysis.inputs if steps read them" // which manifests do not have
		if queue.Analysis.UsesAny(configuration.AdapterManifest) {
			where = "the sources of a target of a landfall.yaml"
		}
		add("files_uncovered", "Name them in "+where+", or in analysis.uncovered.ignore. landfall targets --uncovered lists them.",
			"No target covers %s: %s.", counted(n, "file"), byFolder(seen.Uncovered))
	}
	return seen, lacks, nil
}

// programsNeeded returns the programs that steps start, and those that these start in turn.
func programsNeeded(r reader, found []buildgraph.Sighting, queue configuration.Queue, seen treeView) []string {
	programs := slices.Concat(seen.Programs, toolsOf(r, partsOf(found, r.files), queue.Analysis.Uses()))
	slices.Sort(programs)
	return slices.Compact(programs)
}

// worktreeAround returns the working folder of a clone that a folder is in, "" if it is in none.
func worktreeAround(folder string) string {
	for {
		if _, err := os.Stat(filepath.Join(folder, ".git")); err == nil {
			return folder
		}
		above := filepath.Dir(folder)
		if above == folder {
			return ""
		}
		folder = above
	}
}

// checked is what landfall init --check finds.
type checked struct {
	Configuration string         `json:"configuration"`
	Queues        []checkedQueue `json:"queues"`
}

type checkedQueue struct {
	Queue string `json:"queue"`
	treeView
	Lacks []lack `json:"lacks"`
	// Notes are sentences about what is not done, and need not be.
	Notes []string `json:"notes"`
}

// complete reports whether nothing lacks.
func (c checked) complete() bool {
	return !slices.ContainsFunc(c.Queues, func(q checkedQueue) bool { return len(q.Lacks) > 0 })
}

// uncommitted returns the manifests of a working folder that a mainline's tree lacks, sorted. Those that git ignores are none.
func uncommitted(ctx context.Context, clone string, paths []string) ([]string, error) {
	out, err := git(ctx, clone, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "landfall.yaml", "**/landfall.yaml")
	if err != nil {
		return nil, err
	}
	there := setOf(paths)
	var list []string
	for _, file := range strings.Split(out, "\x00") {
		if _, err := os.Lstat(filepath.Join(clone, file)); file != "" && !there[file] && err == nil {
			list = append(list, file)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// check returns what the queues of a configuration lack. only names the one queue to check, "" for all. Of a queue whose
// repository the clone is of, notes name the manifests that are in the clone alone; clone may be "".
func check(ctx context.Context, file, only, clone string, logger *slog.Logger) (checked, error) {
	c := checked{Configuration: file}
	config, err := configuration.Load(file, configuration.Defaults{Workers: 1})
	if err != nil {
		return c, err
	}
	names := config.QueueNames()
	if only != "" {
		if _, err := config.Queue(only); err != nil {
			return c, fmt.Errorf("--queue: %w", err)
		}
		names = []string{only}
	}
	for _, name := range names {
		q := checkedQueue{Queue: name, Lacks: []lack{}, Notes: []string{}}
		queue := config.Queues[name]
		p := place{URL: config.RepositoryOf(queue).URL, Branch: queue.Branch, Name: queue.Repository}
		s, err := openSource(ctx, p, mirrorIn(config.Data, queue.Repository), logger)
		if unseen, is := errors.AsType[unseenError](err); is {
			q.Lacks = append(q.Lacks, unseen.lack)
			c.Queues = append(c.Queues, q)
			continue
		} else if err != nil {
			return c, err
		}
		loader := buildgraph.NewLoader(queue, nil)
		seen, lacks, err := lacksOf(ctx, config, name, s, nil, loader)
		loader.Close()
		if err == nil && queue.Analysis.UsesAny(configuration.AdapterManifest, configuration.AdapterAuto) && clone != "" && remote.Same(ctx, p.URL, clone) {
			var only []string
			if only, err = uncommitted(ctx, clone, s.paths); len(only) > 0 {
				q.Notes = append(q.Notes, fmt.Sprintf("The queue does not see %s: in your working folder, and not on %s. Commit it, and land it.", byFolder(only), p.Branch))
			}
		}
		r := reader{ctx, setOf(s.paths), s.read}
		parts, lines := partsOf(buildgraph.Detect(s.paths, ""), r.files), linesOf(r, queue.Analysis)
		var left []unrun
		if queue.Analysis.UsesAny(configuration.AdapterNode, configuration.AdapterAuto) {
			left = unrunScripts(r, parts, lines)
		}
		for _, u := range append(left, unrunGoals(r, parts, lines)...) {
			q.Notes = append(q.Notes, u.String())
		}
		q.Notes = append(q.Notes, uninstalled(r, parts, queue.Analysis.Uses(), lines)...)
		s.close()
		if err != nil {
			return c, err
		}
		q.treeView = seen
		q.Lacks = append(q.Lacks, lacks...)
		c.Queues = append(c.Queues, q)
	}
	return c, nil
}

// Lacks returns what each queue of a configuration lacks, by name: what landfall init --check prints.
func Lacks(ctx context.Context, file string, logger *slog.Logger) (map[string][]Lack, error) {
	c, err := check(ctx, file, "", "", logger)
	if err != nil {
		return nil, err
	}
	lacks := map[string][]Lack{}
	for _, q := range c.Queues {
		lacks[q.Queue] = q.Lacks
	}
	return lacks, nil
}

// counted returns a number with its noun, in the plural unless it is one.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
