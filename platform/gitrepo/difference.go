package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"
)

// Changed is a path at which two trees differ. A side without the file has the zero
// Entry. A file that gives way to a directory, or the reverse, is one Changed for each
// path.
type Changed struct {
	Path     string
	Old, New Entry
}

// DiffTrees lists the paths at which treeish b differs from treeish a, sorted by path
// bytes. Renames are a removal and an addition. It reads only subtrees that differ;
// ErrTooLarge above MaxCompared entries, or MaxPathBytes.
func (r *Repo) DiffTrees(ctx context.Context, a, b string) ([]Changed, error) {
	rootA, err := r.TreeOf(ctx, a)
	if err != nil {
		return nil, err
	}
	rootB, err := r.TreeOf(ctx, b)
	if err != nil {
		return nil, err
	}
	type pair struct{ prefix, old, new string }
	var changes []Changed
	visited, bytes, room := 0, 0, r.treeRoom
	level := []pair{{"", rootA, rootB}}
	for depth := 0; len(level) > 0; depth++ {
		var ids []string
		for _, at := range level {
			ids = append(ids, at.old, at.new)
		}
		nodes := make(map[string]*treeNode)
		room.entries = min(room.entries, MaxCompared-visited)
		if err := r.loadTrees(ctx, ids, nodes, &room); err != nil {
			return nil, fmt.Errorf("difference of %s and %s: %w", rootA, rootB, err)
		}
		var below []pair
		for _, at := range level {
			old, now := nodes[at.old].entries, nodes[at.new].entries
			if visited += len(old) + len(now); visited > MaxCompared || depth > maxDepth {
				return nil, fmt.Errorf("difference of %s and %s: %w", rootA, rootB, ErrTooLarge)
			}
			eachDifference(old, now, func(was, is Entry) {
				if bytes += len(at.prefix) + len(nameOf(was, is)); bytes > r.pathBytes {
					return
				}
				change := Changed{Path: at.prefix + nameOf(was, is)}
				sub := pair{old: emptyTree, new: emptyTree}
				if was.Kind == directory {
					sub.old = was.Object
				} else if was.Kind != NoEntry {
					change.Old, change.Old.Path = was, change.Path
				}
				if is.Kind == directory {
					sub.new = is.Object
				} else if is.Kind != NoEntry {
					change.New, change.New.Path = is, change.Path
				}
				if change.Old.Kind != NoEntry || change.New.Kind != NoEntry {
					changes = append(changes, change)
				}
				if sub.old != sub.new {
					sub.prefix = change.Path + "/"
					below = append(below, sub)
				}
			})
			if bytes > r.pathBytes {
				return nil, fmt.Errorf("difference of %s and %s: %w", rootA, rootB, ErrTooLarge)
			}
		}
		level = below
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Path < changes[j].Path })
	return changes, nil
}

// patchLimit bounds the time of a Patch.
const patchLimit = 15 * time.Second

// largestText is the size above which a file is no text in a Patch: git takes many times as much memory to compare it.
const largestText = "16m"

// Patch returns the difference of two trees as git shows it, in at most maxBytes; cut reports whether there is more. Renamed files are
// followed. Of files that are no text only the names are in it. It may take 15 seconds, and gives way to other processes.
func (r *Repo) Patch(ctx context.Context, a, b string, maxBytes int) (text []byte, cut bool, err error) {
	for _, id := range []string{a, b} {
		if err := checkID("tree", id); err != nil {
			return nil, false, err
		}
	}
	text, err = r.run(ctx, invocation{
		args:     []string{"-c", "core.bigFileThreshold=" + largestText, "diff-tree", "-r", "-p", "-M", "-l400", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/", a, b, "--"},
		maxBytes: maxBytes, limit: patchLimit, nice: true, memory: mostMemory,
	})
	if errors.Is(err, ErrTooLarge) {
		return text, true, nil
	}
	return text, false, err
}

// Holds reports whether a treeish is, at the path of each change, as the change leaves that path. It reads only the
// directories that lead there.
func (r *Repo) Holds(ctx context.Context, treeish string, changes []Changed) (bool, error) {
	root, err := r.TreeOf(ctx, treeish)
	if err != nil {
		return false, err
	}
	type wanted struct {
		rest string
		is   Entry
	}
	room := r.treeRoom
	level := map[string][]wanted{root: nil}
	for _, c := range changes {
		level[root] = append(level[root], wanted{c.Path, c.New})
	}
	for len(level) > 0 {
		nodes := make(map[string]*treeNode)
		if err := r.loadTrees(ctx, slices.Sorted(maps.Keys(level)), nodes, &room); err != nil {
			return false, err
		}
		below := map[string][]wanted{}
		for id, wants := range level {
			named := make(map[string]Entry, len(nodes[id].entries))
			for _, e := range nodes[id].entries {
				named[e.Path] = e
			}
			for _, w := range wants {
				name, rest, deeper := strings.Cut(w.rest, "/")
				e := named[name]
				switch isFile := e.Kind != NoEntry && e.Kind != directory; {
				case deeper && e.Kind == directory:
					below[e.Object] = append(below[e.Object], wanted{rest, w.is})
				case deeper && w.is.Kind != NoEntry, !deeper && isFile != (w.is.Kind != NoEntry):
					return false, nil
				case !deeper && isFile && (e.Mode != w.is.Mode || e.Object != w.is.Object):
					return false, nil
				}
			}
		}
		level = below
	}
	return true, nil
}

func nameOf(was, is Entry) string {
	if was.Kind != NoEntry {
		return was.Path
	}
	return is.Path
}

// eachDifference walks two directories in git's order, in which a directory sorts as if
// its name ended in "/"; a name that is a file on one side and a directory on the other
// is therefore two differences.
func eachDifference(old, now []Entry, visit func(was, is Entry)) {
	for len(old) > 0 || len(now) > 0 {
		order := 0
		switch {
		case len(old) == 0:
			order = 1
		case len(now) == 0:
			order = -1
		default:
			order = strings.Compare(sortKey(&old[0]), sortKey(&now[0]))
		}
		switch {
		case order < 0:
			visit(old[0], Entry{})
			old = old[1:]
		case order > 0:
			visit(Entry{}, now[0])
			now = now[1:]
		default:
			if old[0].Mode != now[0].Mode || old[0].Object != now[0].Object {
				visit(old[0], now[0])
			}
			old, now = old[1:], now[1:]
		}
	}
}

func sortKey(entry *Entry) string {
	if entry.Kind == directory {
		return entry.Path + "/"
	}
	return entry.Path
}
