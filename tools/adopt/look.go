package adopt

import (
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

// sight is what a queue sees of a tree.
type sight struct {
	// Targets is how many there are, Empty the manifests' targets that no step verifies, also not through what depends on
	// them.
	Targets int      `json:"targets"`
	Empty   []string `json:"unverified_targets,omitempty"`
	// Uncovered are files of no target that the queue does not ignore.
	Uncovered []string `json:"uncovered,omitempty"`
	// Programs are those that steps start, sorted, but for those by a path in the checkout.
	Programs []string `json:"programs,omitempty"`
	// Unknown says why the targets are not known, Invalid which definitions are wrong.
	Unknown []string `json:"unknown,omitempty"`
	Invalid string   `json:"invalid,omitempty"`
}

// see returns what a queue sees of a tree.
func see(ctx context.Context, loader *buildgraph.Loader, repo buildgraph.Repository, tree string, whole []configuration.Step) (sight, error) {
	var s sight
	programs := map[string]bool{}
	for _, step := range whole {
		programs[step.Run[0]] = true
	}
	graph, err := loader.Graph(ctx, repo, tree)
	if invalid, is := errors.AsType[*buildgraph.Invalid](err); is {
		s.Invalid = invalid.Message
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
			}
			if len(t.Commands) > 0 {
				markVerified(graph, t.Name, verified)
			} else if strings.HasPrefix(t.Name, "//") {
				empty = append(empty, t.Name)
			}
		}
		entries, err := repo.Tree(ctx, tree)
		if err != nil {
			return s, err
		}
		manifests := map[string]bool{}
		for _, e := range entries {
			if path.Base(e.Path) == "landfall.yaml" {
				manifests[path.Dir(e.Path)] = true
			}
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
	for program := range programs {
		if !strings.Contains(program, "/") || strings.HasPrefix(program, "/") {
			s.Programs = append(s.Programs, program)
		}
	}
	slices.Sort(s.Programs)
	return s, nil
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

// past is what the mainline's last commits would have been as changes.
type past struct {
	// Commits were looked at, the newest first; All of them would have conflicted with everything.
	Commits int `json:"commits"`
	All     int `json:"conflict_with_everything"`
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

// lookBack says what the last commits would have been. What it has found when the time is up counts.
func lookBack(ctx context.Context, loader *buildgraph.Loader, repo buildgraph.Repository, commits []string) (past, error) {
	var p past
	soon, cancel := context.WithTimeout(ctx, pastTime)
	defer cancel()
	count := map[string]int{}
	for i := len(commits) - 1; i > 0; i-- {
		base, err := repo.TreeOf(soon, commits[i-1])
		if err != nil {
			return p, endedEarly(ctx, soon, err)
		}
		tree, err := repo.TreeOf(soon, commits[i])
		if err != nil {
			return p, endedEarly(ctx, soon, err)
		}
		result, err := buildgraph.Compare(soon, loader, repo, base, []string{tree})
		if err != nil {
			return p, endedEarly(ctx, soon, err)
		}
		p.Commits++
		if result.All {
			p.All++
			count[firstOf(strings.Join(result.Reasons, "; "))]++
		}
		p.Reasons = nil
		for text, n := range count {
			p.Reasons = append(p.Reasons, reason{text, n})
		}
		slices.SortFunc(p.Reasons, func(a, b reason) int {
			if a.Commits != b.Commits {
				return b.Commits - a.Commits
			}
			return strings.Compare(a.Text, b.Text)
		})
		p.Reasons = p.Reasons[:min(len(p.Reasons), maxReasons)]
	}
	return p, nil
}

// firstOf returns the first line of a text of several, and how many there are.
func firstOf(text string) string {
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %s)", first, counted(strings.Count(rest, "\n")+1, "line"))
}

// endedEarly returns no error if it is the time that was up.
func endedEarly(ctx, soon context.Context, err error) error {
	if ctx.Err() == nil && soon.Err() != nil {
		return nil
	}
	return err
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

// byFolder returns files in a few words: folders with how many are in them, the root's by name.
func byFolder(files []string) string {
	count := map[string]int{}
	for _, file := range files {
		top, _, below := strings.Cut(file, "/")
		if below {
			top += "/"
		}
		count[top]++
	}
	var words []string
	for _, file := range files {
		top, _, below := strings.Cut(file, "/")
		if below {
			top += "/"
		}
		n := count[top]
		if n == 0 {
			continue
		}
		delete(count, top)
		switch {
		case !below:
			words = append(words, top)
		case n == 1:
			words = append(words, file)
		default:
			words = append(words, fmt.Sprintf("%s (%d files)", top, n))
		}
	}
	const most = 8
	if len(words) > most {
		words = append(words[:most-1], fmt.Sprintf("and %d more", len(words)-most+1))
	}
	return strings.Join(words, ", ")
}
