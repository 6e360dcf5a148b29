package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxConflictPaths    = 1000
	maxConflictMessages = 100
	// maxConflictLines is how many files are searched for the marks of a conflict.
	maxConflictLines = 5
	// renameLimit bounds the rename detection of a merge (pairs of files compared: its
	// square). It is stated so that every git version draws the same line.
	renameLimit = 7000
	// mostMemory bounds what git takes to merge or to compare, and to fetch, read and check out what changes bring, in bytes: sixty times as
	// much as a file is long, if its lines are short.
	mostMemory = 2 << 30
	// mostMergeWork is the processor time that git may take for one merge. A file of a few lines that one side has made one of millions can
	// cost it any; without a bound each merge with that side would take localLimit, again and again.
	mostMergeWork = 30 * time.Second
)

// Conflict is why two sides cannot be merged.
type Conflict struct {
	Paths    []string // in conflict, sorted as git gives them; at most 1,000
	Lines    []int    // of the first of Paths: where git marks the first conflict in what it makes of the file, 0 if it marks none
	Messages []string // git's own, one line or more each; at most 100
}

func (c *Conflict) String() string {
	if len(c.Messages) > 0 {
		return strings.Join(c.Messages, "\n")
	}
	return fmt.Sprintf("conflict in %q", c.Paths)
}

type mergeKey struct{ base, ours, theirs string }

type mergeOutcome struct {
	tree     string
	conflict *Conflict
	made     time.Time
}

// MergeTrees applies the difference base → theirs to ours: a three-way merge of three
// trees, given by their ids, with exactly this base. It returns the merged tree's id, or
// the conflict. Renamed files are followed, renamed directories are not (git would move
// files that nobody moved). Attributes in the trees, such as merge=union, have no effect:
// the same three ids give the same result everywhere. A tree that git cannot merge at all is a conflict without paths.
//
// The Conflict is shared: do not change it.
func (r *Repo) MergeTrees(ctx context.Context, base, ours, theirs string) (string, *Conflict, error) {
	for _, id := range []string{base, ours, theirs} {
		if err := checkID("tree", id); err != nil {
			return "", nil, err
		}
	}
	switch {
	case ours == base || ours == theirs:
		return theirs, nil, nil
	case theirs == base:
		return ours, nil, nil
	}
	key := mergeKey{base, ours, theirs}
	// A tree that was made longer ago may have been pruned since.
	if known, ok := r.merges.get(key); ok && (known.conflict != nil || r.clock().Sub(known.made) < useEvery) {
		return known.tree, known.conflict, nil
	}
	outcome := mergeOutcome{made: r.clock()}
	err := r.using(ctx, func() (names []string, err error) {
		outcome.tree, outcome.conflict, err = r.mergeThreeWay(ctx, key)
		return []string{outcome.tree}, err
	})
	if err != nil {
		return "", nil, fmt.Errorf("merge %s → %s onto %s: %w", base, theirs, ours, err)
	}
	cost := 1
	if outcome.conflict != nil {
		cost += (len(outcome.conflict.Paths) + len(outcome.conflict.Messages)) / 4
	}
	r.merges.put(key, outcome, cost)
	return outcome.tree, outcome.conflict, nil
}

// mergeThreeWay makes for git a history of three commits of which base is the only common
// ancestor, as its --merge-base option came later than the oldest git we take.
func (r *Repo) mergeThreeWay(ctx context.Context, key mergeKey) (string, *Conflict, error) {
	synthetic := func(tree string, parents ...string) (string, error) {
		nobody := Identity{Name: "Landfall", Email: "merge@localhost", Date: "0 +0000"}
		return r.writeCommit(ctx, CommitSpec{Tree: tree, Parents: parents, Author: nobody, Committer: nobody, Message: "merge input\n"})
	}
	base, err := synthetic(key.base)
	if err != nil {
		return "", nil, err
	}
	ours, err := synthetic(key.ours, base)
	if err != nil {
		return "", nil, err
	}
	theirs, err := synthetic(key.theirs, base)
	if err != nil {
		return "", nil, err
	}
	limit := strconv.Itoa(renameLimit)
	out, err := r.run(ctx, invocation{args: []string{
		"-c", "merge.directoryRenames=false", "-c", "merge.renames=true", "-c", "diff.renames=true",
		"-c", "merge.renameLimit=" + limit, "-c", "diff.renameLimit=" + limit,
		"-c", "merge.conflictStyle=merge", "-c", "merge.renormalize=false", "-c", "diff.algorithm=histogram",
		"merge-tree", "--write-tree", "-z", "--name-only", "--messages", ours, theirs,
	}, memory: r.gitMemory, work: r.mergeWork})
	if failure, is := errors.AsType[*CommandError](err); is && failure.overWork {
		return "", &Conflict{Messages: []string{fmt.Sprintf("git takes more than %v of processor time to merge the files that both sides change", r.mergeWork)}}, nil
	}
	if failure, is := errors.AsType[*CommandError](err); is && failure.overMemory && failure.Code != 1 {
		return "", &Conflict{Messages: []string{fmt.Sprintf("git takes more than %d MiB of memory to merge the files that both sides change", r.gitMemory>>20)}}, nil
	}
	if err != nil && exitCode(err) != 1 {
		if why := r.unmergeable(ctx, key); why != nil {
			return "", &Conflict{Messages: []string{why.Error()}}, nil
		}
		return "", nil, err
	}
	tree, rest, _ := bytes.Cut(out, []byte{0})
	if !IsID(string(tree)) {
		if err == nil {
			err = fmt.Errorf("%w: output of merge-tree %q", ErrBadObject, clip(string(out)))
		}
		return "", nil, err
	}
	if err == nil {
		return string(tree), nil, nil
	}
	conflict, err := parseConflict(rest)
	if err != nil {
		return "", nil, err
	}
	for i, message := range conflict.Messages {
		conflict.Messages[i] = strings.NewReplacer(ours, "the mainline", theirs, "the change").Replace(message)
	}
	conflict.Lines = r.conflictLines(ctx, string(tree), ours, conflict.Paths[:min(len(conflict.Paths), maxConflictLines)])
	// git moves a file aside that a folder takes the place of, or whose mode is another on each side, to its path with ~ and the commit.
	for i, name := range conflict.Paths {
		for _, commit := range []string{ours, theirs} {
			name, _, _ = strings.Cut(name, "~"+commit)
		}
		conflict.Paths[i] = name
	}
	if ctx.Err() != nil {
		return "", nil, context.Cause(ctx) // Without its lines the conflict would be remembered for those who ask next.
	}
	return "", conflict, nil
}

// conflictLines returns where the first mark of a conflict with a commit is in some files of a tree that git merge-tree made.
// Lines are for people: not finding them is no error.
func (r *Repo) conflictLines(ctx context.Context, tree, ours string, paths []string) []int {
	if len(paths) == 0 {
		return nil
	}
	out, err := r.run(ctx, invocation{args: slices.Concat([]string{
		"--literal-pathspecs", "grep", "-z", "--text", "--no-color", "--line-number", "--max-count=1", "--full-name", "-e", "^<<<<<<< " + ours, tree, "--"}, paths)})
	if err != nil {
		return nil
	}
	lines := make([]int, len(paths))
	for text := range strings.Lines(string(out)) {
		fields := strings.SplitN(strings.TrimPrefix(text, tree+":"), "\x00", 3)
		if i := slices.Index(paths, fields[0]); i >= 0 && len(fields) == 3 {
			lines[i], _ = strconv.Atoi(fields[1])
		}
	}
	return lines
}

// unmergeable returns what is wrong with the trees of a merge, if git breaks off at them: git push lets trees through that git
// merge-tree does not take. It is nil if they are sound, and the failure has another cause.
func (r *Repo) unmergeable(ctx context.Context, key mergeKey) error {
	for _, tree := range []string{key.theirs, key.base, key.ours} {
		if _, err := r.Tree(ctx, tree); errors.Is(err, ErrBadObject) || errors.Is(err, ErrTooLarge) {
			return err
		}
	}
	return nil
}

// parseConflict reads what merge-tree -z prints after the tree: the paths, an empty
// field, then for each message the number of its paths, these, its kind and its text.
func parseConflict(out []byte) (*Conflict, error) {
	fields := strings.Split(string(out), "\x00")
	conflict := &Conflict{}
	for len(fields) > 0 && fields[0] != "" {
		if len(conflict.Paths) < maxConflictPaths {
			conflict.Paths = append(conflict.Paths, fields[0])
		}
		fields = fields[1:]
	}
	for fields = fields[min(1, len(fields)):]; len(fields) > 1; {
		paths, err := strconv.Atoi(fields[0])
		if err != nil || paths < 0 || paths > len(fields)-3 {
			return nil, fmt.Errorf("%w: conflict messages of merge-tree", ErrBadObject)
		}
		kind, text := fields[paths+1], strings.TrimSpace(fields[paths+2])
		if strings.HasPrefix(kind, "CONFLICT") && len(conflict.Messages) < maxConflictMessages {
			conflict.Messages = append(conflict.Messages, text)
		}
		fields = fields[paths+3:]
	}
	return conflict, nil
}
