package adopt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
	"landfall.build/tools/remote"
)

// maxRead bounds what is read of one file of the tree.
const maxRead = 1 << 20

// source is a commit of a repository, to be looked at.
type source struct {
	*gitrepo.Repo
	head, tree string
	// paths are all files, sorted, and submodules those of them that are commits of other repositories.
	paths, submodules []string
	// lacks is what a queue needs of the remote and does not have.
	lacks []lack
	// close closes the mirror, and removes a temporary one.
	close func()
}

// openSource mirrors a repository into a folder, "" for a temporary one, and finds the mainline's head. Where the remote cannot be
// reached or lacks the branch, what a clone has checked out stands in for it.
func openSource(ctx context.Context, p place, folder string, logger *slog.Logger) (*source, error) {
	s, err := openMirror(ctx, p.URL, folder, logger)
	if err != nil {
		return nil, err
	}
	s.head, err = s.RemoteHead(ctx, p.Branch)
	if err == nil {
		err = s.Fetch(ctx, gitrepo.Wanted{Branches: []string{p.Branch}})
	}
	switch {
	case err == nil:
		s.checkPush(ctx, p)
	case errors.Is(err, gitrepo.ErrNoBranch):
		s.lacks = append(s.lacks, lack{"branch_missing", fmt.Sprintf("%s has no branch %s.", p.URL, p.Branch), "Push it, or name another with --branch."})
	case errors.Is(err, gitrepo.ErrUnreachable):
		s.lacks = append(s.lacks, unreachable(ctx, p, err))
	default:
		s.close()
		return nil, err
	}
	if err != nil {
		lacks := s.lacks
		s.close()
		if s, err = openHead(ctx, p, logger); err != nil {
			if missing := remote.CheckBranch(ctx, p.URL, p.Branch); missing != nil {
				return nil, unseenError{lacks[0], missing}
			}
			return nil, unseenError{lacks[0], fmt.Errorf("%s %s %w", lacks[0].Message, lacks[0].Advice, err)}
		}
		s.lacks = lacks
	}
	if s.tree, err = s.TreeOf(ctx, s.head); err != nil {
		s.close()
		return nil, err
	}
	entries, err := s.Tree(ctx, s.tree)
	if err != nil {
		s.close()
		return nil, err
	}
	for _, e := range entries {
		s.paths = append(s.paths, e.Path)
		if e.Kind == gitrepo.Submodule {
			s.submodules = append(s.submodules, e.Path)
		}
	}
	return s, nil
}

// unseenError is the error for a repository of which nothing can be seen.
type unseenError struct {
	lack lack
	err  error
}

func (e unseenError) Error() string { return e.err.Error() }

func openMirror(ctx context.Context, remote, folder string, logger *slog.Logger) (*source, error) {
	temporary := ""
	if folder == "" {
		var err error
		if temporary, err = os.MkdirTemp("", "landfall-init-"); err != nil {
			return nil, err
		}
		folder = filepath.Join(temporary, "mirror.git")
	} else if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return nil, err
	}
	repo, err := gitrepo.Open(ctx, gitrepo.Options{Remote: remote, Dir: folder, Log: logger})
	if err != nil {
		os.RemoveAll(temporary)
		return nil, err
	}
	return &source{Repo: repo, close: func() {
		repo.Close()
		if temporary != "" {
			os.RemoveAll(temporary)
		}
	}}, nil
}

// openHead looks at what a clone has checked out.
func openHead(ctx context.Context, p place, logger *slog.Logger) (*source, error) {
	if p.Clone == "" {
		return nil, errors.New("(there is no clone to look at instead)")
	}
	head, err := git(ctx, p.Clone, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("(the clone %s has no commit)", p.Clone)
	}
	s, err := openMirror(ctx, p.Clone, "", logger)
	if err != nil {
		return nil, err
	}
	s.head = head
	if err := s.Fetch(ctx, gitrepo.Wanted{Commits: []string{head}}); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// read returns a file of the tree, "" if it is not there or too large.
func (s *source) read(ctx context.Context, file string) string {
	entries, err := s.Tree(ctx, s.tree)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if e.Path == file && (e.Kind == gitrepo.File || e.Kind == gitrepo.Executable) {
			text, _ := s.Blob(ctx, e.Object, maxRead)
			return string(text)
		}
	}
	return ""
}

// setOf returns paths as a set.
func setOf(paths []string) map[string]bool {
	files := make(map[string]bool, len(paths))
	for _, file := range paths {
		files[file] = true
	}
	return files
}

// adaptersFor returns the adapters in use: those that were asked for, or those that fit.
func adaptersFor(asked []string, found []buildgraph.Sighting) ([]configuration.AdapterUse, error) {
	if len(asked) == 0 {
		return buildgraph.Fitting(found), nil
	}
	var uses []configuration.AdapterUse
	for _, name := range asked {
		adapter := configuration.Adapter(name)
		if !slices.Contains(configuration.Adapters(), adapter) || adapter == configuration.AdapterAuto {
			return nil, fmt.Errorf("--adapter %s: there is no such adapter; there are %v", name, configuration.Adapters())
		}
		if adapter == configuration.AdapterWholeRepository {
			if len(asked) > 1 {
				return nil, fmt.Errorf("--adapter %s: the repository is one target, so there can be no other adapter", name)
			}
			return nil, nil
		}
		uses = append(uses, configuration.AdapterUse{Adapter: adapter})
	}
	return uses, nil
}

// survey fills in a plan by what a tree and the machine hold.
func (p *plan) survey(ctx context.Context, s *source, o options) error {
	found := buildgraph.Detect(s.paths, s.read(ctx, "landfall.yaml"))
	r := reader{ctx, setOf(s.paths), s.read}
	p.parts = partsOf(found, r.files)
	var err error
	if p.uses, err = adaptersFor(o.adapters, found); err != nil {
		return err
	}
	p.ignore = ignoredBy(s.paths)
	p.fit(ctx, s, nil)
	// Manifests are for the files that the adapters leave uncovered.
	uncovered := s.paths
	if len(p.uses) > 0 {
		c, err := p.configuration()
		if err != nil {
			return err
		}
		queue := c.Queues[p.Queue]
		loader := buildgraph.NewLoader(queue, nil)
		defer loader.Close()
		seen, err := viewTree(ctx, loader, s.Repo, s.tree, nil)
		if err != nil {
			return err
		}
		uncovered, p.started = seen.Uncovered, seen.Programs
	}
	if o.command != "" {
		p.whole = []configuration.Step{wholeStep("verify", ".", o.command)}
		if len(p.uses) == 0 {
			return nil
		}
	}
	if !slices.Contains(o.adapters, string(configuration.AdapterWholeRepository)) {
		p.written = propose(r, uncovered, p.uses)
	}
	return nil
}

// complete adds to a plan what follows from the manifests that it writes: the adapter that reads them, the steps of the
// whole repository, and the environment of all steps.
func (p *plan) complete(ctx context.Context, s *source, o options) {
	var commands []string
	paths := slices.Clone(s.paths)
	for _, m := range p.written {
		paths = append(paths, m.File())
		if m.Command != "" {
			commands = append(commands, m.Command)
		}
	}
	// An example alone needs no adapter while there is no other: without one manifests are looked for.
	if (len(commands) > 0 || len(p.written) > 0 && len(p.uses) > 0) && !hasAdapter(p.uses, configuration.AdapterManifest) {
		use := configuration.AdapterUse{Adapter: configuration.AdapterManifest}
		if len(o.adapters) == 0 {
			// The use that fits leaves out the folders of fixtures.
			for _, fitting := range buildgraph.Fitting(buildgraph.Detect(paths, s.read(ctx, "landfall.yaml"))) {
				if fitting.Adapter == configuration.AdapterManifest {
					use = fitting
				}
			}
		}
		p.uses = append(p.uses, use)
	}
	r := reader{ctx, setOf(s.paths), s.read}
	if o.command == "" {
		p.whole = wholeSteps(r, p.parts, p.uses, p.written)
	}
	ran := linesOf(r, configuration.Analysis{WholeRepositorySteps: p.whole})
	for _, m := range p.written {
		ran = append(ran, m.Command)
	}
	if hasAdapter(p.uses, configuration.AdapterNode) {
		p.unrun = unrunScripts(r, p.parts, ran)
	}
	p.uninstalled = uninstalled(r, p.parts, p.uses, ran)
	if p.whole != nil {
		p.unrun = append(p.unrun, unrunGoals(r, p.parts, ran)...)
	}
	given := givenCaches(p.uses)
	leave := func(steps []configuration.Step) {
		for i, step := range steps {
			steps[i].Caches = slices.DeleteFunc(step.Caches, func(name string) bool { return slices.Contains(given, name) })
		}
	}
	leave(p.whole)
	for _, u := range p.unrun {
		leave(u.steps)
	}
	p.fit(ctx, s, append(commands, o.command))
}

// fit sets the plan's machine and environment to what its adapters and some commands need.
func (p *plan) fit(ctx context.Context, s *source, commands []string) {
	tools := toolsOf(reader{ctx, setOf(s.paths), s.read}, p.parts, p.uses)
	for _, command := range commands {
		tools = append(tools, programsOf(command)...)
	}
	slices.Sort(tools)
	p.machine = lookAround(ctx, slices.Compact(tools), p.started)
	p.env = environmentFor(ctx, p.machine)
	p.env.doWithoutGit(reader{ctx, setOf(s.paths), s.read})
	p.env.mavenWithoutCache(commands)
}

// programsOf returns the programs that a line of the shell starts, as far as they stand in it.
func programsOf(command string) []string {
	var programs []string
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune("&|;{}()\n", r) }) {
		words := strings.Fields(part)
		if len(words) == 0 || strings.ContainsAny(words[0], "/=$'\"") || slices.Contains([]string{"cd", "[", "test", "exit", "for", "do", "done", "if", "then", "fi", "find", "xargs", "export"}, words[0]) {
			continue
		}
		programs = append(programs, words[0])
		if words[0] == "npm" || words[0] == "pnpm" || words[0] == "yarn" {
			programs = append(programs, "node")
		}
	}
	return programs
}

// texts returns the manifests that are to be written, by path.
func (p *plan) texts() map[string]string {
	texts := map[string]string{}
	for _, m := range p.written {
		texts[m.File()] = m.text(p.Branch, len(p.uses) > 1)
	}
	return texts
}
