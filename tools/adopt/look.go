package adopt

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/buildgraph/glob"
	"landfall.build/platform/configuration"
	"landfall.build/platform/gitrepo"
)

// overlay is a mirror whose trees have some more files: manifests that are not on the mainline yet.
type overlay struct {
	*gitrepo.Repo
	// contents by path.
	contents map[string]string
}

// Tree implements buildgraph.Repository.
func (o overlay) Tree(ctx context.Context, treeish string) ([]gitrepo.Entry, error) {
	entries, err := o.Repo.Tree(ctx, treeish)
	if err != nil || len(o.contents) == 0 {
		return entries, err
	}
	entries = slices.DeleteFunc(slices.Clone(entries), func(e gitrepo.Entry) bool { _, over := o.contents[e.Path]; return over })
	for file, text := range o.contents {
		entries = append(entries, gitrepo.Entry{Path: file, Mode: 0o100644, Object: objectOf(text)})
	}
	slices.SortFunc(entries, func(a, b gitrepo.Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries, nil
}

// Blob implements buildgraph.Repository.
func (o overlay) Blob(ctx context.Context, id string, limit int64) ([]byte, error) {
	for _, text := range o.contents {
		if objectOf(text) == id {
			return []byte(text), nil
		}
	}
	return o.Repo.Blob(ctx, id, limit)
}

// objectOf returns git's id of a content.
func objectOf(text string) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text)))
}

// treeView is what a queue finds in a tree.
type treeView struct {
	// Targets is their number.
	Targets int `json:"targets"`
	// Empty are the manifests' targets that no step verifies: neither they nor a target that depends on them has steps.
	Empty []string `json:"unverified_targets,omitempty"`
	// Uncovered are files of no target that the queue does not ignore.
	Uncovered []string `json:"uncovered,omitempty"`
	// Programs are what steps start, sorted, without programs of the checkout.
	Programs []string `json:"programs,omitempty"`
	// Unknown are the reasons why the targets are not known.
	Unknown []string `json:"unknown,omitempty"`
	// Invalid describes the definitions that are wrong.
	Invalid string `json:"invalid,omitempty"`
	// idle are the packages in the root of the repository that no step verifies.
	idle []string
}

// rootPackages are targets of packages in the root, which have all files that no other package has.
var rootPackages = []string{"node://.", "python://."}

// viewTree returns what a queue finds in a tree. whole are its steps for the whole repository.
func viewTree(ctx context.Context, loader *buildgraph.Loader, repo buildgraph.Repository, tree string, whole []configuration.Step) (treeView, error) {
	var s treeView
	programs := map[string]bool{}
	for _, step := range whole {
		programs[step.Run[0]] = true
	}
	graph, err := loader.Graph(ctx, repo, tree)
	if invalid, is := errors.AsType[*buildgraph.Invalid](err); is {
		if !invalid.Absent { // of each adapter that finds nothing it is said anyway
			s.Invalid = invalid.Message
		}
		return s, nil
	} else if err != nil {
		return s, err
	}
	if s.Unknown = graph.Unknown(); len(s.Unknown) == 0 {
		verified := map[string]bool{}
		var empty []string
		for t := range graph.Targets() {
			s.Targets++
			for _, c := range t.Commands {
				programs[c.Argv[0]] = true
				if len(c.Argv) == 3 && c.Argv[1] == "-c" { // of a line of the shell those that build; others may be its own functions
					for _, program := range programsOf(c.Argv[2]) {
						programs[program] = programs[program] || slices.Contains(buildTools, program)
					}
				}
			}
			if len(t.Commands) > 0 {
				markVerified(graph, t.Name, verified)
			} else if strings.HasPrefix(t.Name, "//") {
				empty = append(empty, t.Name)
			} else if slices.Contains(rootPackages, t.Name) {
				s.idle = append(s.idle, t.Name)
			}
		}
		manifests, err := manifestsOf(ctx, repo, tree)
		if err != nil {
			return s, err
		}
		for _, name := range empty {
			folder, _, _ := strings.Cut(strings.TrimPrefix(name, "//"), ":")
			if !verified[name] && manifests[path.Join(".", folder)] {
				s.Empty = append(s.Empty, name)
			}
		}
		for _, file := range graph.Uncovered() {
			if loader.PolicyOf(file) != configuration.UncoveredIgnore {
				s.Uncovered = append(s.Uncovered, file)
			}
		}
	}
	for program, started := range programs {
		if started && (!strings.Contains(program, "/") || strings.HasPrefix(program, "/")) {
			s.Programs = append(s.Programs, program)
		}
	}
	slices.Sort(s.Programs)
	return s, nil
}

// buildTools are the programs that lines of the shell start to build and test.
var buildTools = []string{"bazel", "bun", "cargo", "cmake", "ctest", "go", "gradle", "make", "mvn", "node", "npm", "pnpm", "poetry", "uv", "yarn"}

// manifestsOf returns the folders of a tree that have a manifest.
func manifestsOf(ctx context.Context, repo buildgraph.Repository, tree string) (map[string]bool, error) {
	entries, err := repo.Tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	manifests := map[string]bool{}
	for _, e := range entries {
		if path.Base(e.Path) == "landfall.yaml" {
			manifests[path.Dir(e.Path)] = true
		}
	}
	return manifests, nil
}

// markVerified marks a target and all that it depends on.
func markVerified(graph *targets.Graph, name string, verified map[string]bool) {
	if verified[name] {
		return
	}
	verified[name] = true
	for _, label := range graph.Dependencies(name) {
		if _, is := graph.Target(label); is {
			markVerified(graph, label, verified)
		}
	}
}

// pastConflicts is what the mainline's last commits would have conflicted with as changes.
type pastConflicts struct {
	// Commits is how many were compared with their parents, the newest first.
	Commits int `json:"commits"`
	// All is how many of them would have conflicted with everything.
	All int `json:"conflict_with_everything"`
	// Reasons are the most frequent ones, with how many commits had each.
	Reasons []reason `json:"reasons,omitempty"`
}

type reason struct {
	Text    string `json:"reason"`
	Commits int    `json:"commits"`
}

const (
	// pastCommits is how many commits of the mainline are looked at, pastTime how long at most.
	pastCommits = 200
	pastTime    = 20 * time.Second
	maxReasons  = 3
)

// pastConflictsOf compares commits, the oldest first, with their parents. When the time is up, it returns what it has found.
func pastConflictsOf(ctx context.Context, loader *buildgraph.Loader, repo buildgraph.Repository, commits []string) (pastConflicts, error) {
	var p pastConflicts
	bounded, cancel := context.WithTimeout(ctx, pastTime)
	defer cancel()
	count := map[string]int{}
	for i := len(commits) - 1; i > 0; i-- {
		affected, err := compareCommits(bounded, loader, repo, commits[i-1], commits[i])
		if err != nil && ctx.Err() == nil && bounded.Err() != nil {
			break
		} else if err != nil {
			return p, err
		}
		p.Commits++
		if affected.All {
			p.All++
			count[firstOf(strings.Join(affected.Reasons, "; "))]++
		}
	}
	for text, n := range count {
		p.Reasons = append(p.Reasons, reason{text, n})
	}
	slices.SortFunc(p.Reasons, func(a, b reason) int {
		return cmp.Or(cmp.Compare(b.Commits, a.Commits), strings.Compare(a.Text, b.Text))
	})
	p.Reasons = p.Reasons[:min(len(p.Reasons), maxReasons)]
	return p, nil
}

// compareCommits returns what the difference between two commits affects.
func compareCommits(ctx context.Context, loader *buildgraph.Loader, repo buildgraph.Repository, from, to string) (*buildgraph.Result, error) {
	base, err := repo.TreeOf(ctx, from)
	if err != nil {
		return nil, err
	}
	tree, err := repo.TreeOf(ctx, to)
	if err != nil {
		return nil, err
	}
	return buildgraph.Compare(ctx, loader, repo, base, []string{tree})
}

// firstOf returns the first line of a text, and how many lines follow.
func firstOf(text string) string {
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %s)", first, counted(strings.Count(rest, "\n")+1, "line"))
}

// ignoredBy returns the patterns of files for which nothing has to be built: those of documents that the repository has.
func ignoredBy(files []string) []string {
	patterns := []string{"**/*.md", configurationFile}
	for _, text := range buildgraph.DocumentPatterns {
		pattern, err := glob.Parse(text)
		if err == nil && !slices.Contains(patterns, text) && slices.ContainsFunc(files, pattern.MatchesFile) {
			patterns = append(patterns, text)
		}
	}
	return patterns
}

// byFolder returns files in a few words: the folders of the root with how many of the files they hold, single files by name.
func byFolder(files []string) string {
	count := map[string]int{}
	first := map[string]string{}
	var tops []string
	for _, file := range files {
		top, _, below := strings.Cut(file, "/")
		if below {
			top += "/"
		}
		if count[top]++; count[top] == 1 {
			first[top] = file
			tops = append(tops, top)
		}
	}
	var words []string
	for _, top := range tops {
		if count[top] == 1 {
			words = append(words, first[top])
		} else {
			words = append(words, fmt.Sprintf("%s (%d files)", top, count[top]))
		}
	}
	const most = 8
	if len(words) > most {
		words = append(words[:most-1], fmt.Sprintf("and %d more", len(words)-most+1))
	}
	return strings.Join(words, ", ")
}
