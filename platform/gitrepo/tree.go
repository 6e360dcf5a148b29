package gitrepo

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxEntries bounds a listing: a small repository can denote a tree of any size, since
	// the same subtree may occur in it any number of times.
	MaxEntries = 4 << 20
	// MaxPathBytes bounds the paths of a listing or a comparison together: a folder's name is in those of all files below it.
	MaxPathBytes = 512 << 20
	// MaxCompared bounds a comparison: the entries of all directories that differ.
	MaxCompared = 1 << 20
	// maxTreeEntries and maxTreeBytes bound the distinct trees that are read for a listing: no listing within the bounds above needs as
	// much, and in a pack each is a few bytes long that is nearly like another.
	maxTreeEntries = 2 * MaxEntries
	maxTreeBytes   = 640 << 20
	maxDepth       = 1000
	// maxPath is how long a path may be, in bytes, so that it still fits into what a system call takes below a
	// worker's folder.
	maxPath = 3800
)

// Kind is the kind of a tree's entry.
type Kind uint8

const (
	NoEntry Kind = iota // the zero Entry: nothing at this path
	File
	Executable
	Symlink
	Submodule // a commit of another repository; a checkout holds an empty directory
	directory
)

func (k Kind) String() string {
	switch k {
	case NoEntry:
		return "none"
	case File:
		return "file"
	case Executable:
		return "executable"
	case Symlink:
		return "symlink"
	case Submodule:
		return "submodule"
	case directory:
		return "directory"
	}
	return "kind " + strconv.Itoa(int(k))
}

// Entry is one file of a tree.
type Entry struct {
	Path   string // from the root of the tree; "/" between parts, any other byte but NUL
	Mode   uint32 // git's mode: 0100644, 0100755, 0120000, 0160000 (and old ones such as 0100664)
	Kind   Kind
	Object string // blob id; of a submodule the commit's id
}

// treeNode is a parsed tree object, shared and never changed.
type treeNode struct {
	entries []Entry // Path is the bare name
}

func (n *treeNode) cost() int {
	cost := 100
	for i := range n.entries {
		cost += 120 + len(n.entries[i].Path)
	}
	return cost
}

// parseTree reads a tree object and refuses what git itself never writes: names that a
// checkout must not follow, entries out of order, one name twice.
func parseTree(id string, body []byte) (*treeNode, error) {
	bad := func(format string, args ...any) (*treeNode, error) {
		return nil, fmt.Errorf("%w: tree %s: %s", ErrBadObject, id, fmt.Sprintf(format, args...))
	}
	node := &treeNode{}
	files := make(map[string]bool)
	previous := ""
	for len(body) > 0 {
		space := bytes.IndexByte(body, ' ')
		null := bytes.IndexByte(body, 0)
		if space < 5 || space > 6 || null < space || len(body) < null+1+20 {
			return bad("cut short")
		}
		mode, err := strconv.ParseUint(string(body[:space]), 8, 32)
		if err != nil {
			return bad("mode %q", body[:space])
		}
		entry := Entry{Path: string(body[space+1 : null]), Mode: uint32(mode), Object: hex.EncodeToString(body[null+1 : null+21])}
		body = body[null+21:]
		switch entry.Mode & 0o170000 {
		case 0o040000:
			entry.Kind = directory
		case 0o100000:
			entry.Kind = File
			if entry.Mode&0o100 != 0 {
				entry.Kind = Executable
			}
		case 0o120000:
			entry.Kind = Symlink
		case 0o160000:
			entry.Kind = Submodule
		default:
			return bad("mode %o of %q", entry.Mode, entry.Path)
		}
		if !isEntryName(entry.Path) {
			return bad("the name %q cannot be checked out", entry.Path)
		}
		key := entry.Path
		if entry.Kind == directory {
			key += "/"
		}
		if key <= previous {
			return bad("%q is out of order", entry.Path)
		}
		previous = key
		// A file "a" and a directory "a" need not be neighbours in git's order.
		if entry.Kind != directory {
			files[entry.Path] = true
		} else if files[entry.Path] {
			return bad("%q occurs twice", entry.Path)
		}
		node.entries = append(node.entries, entry)
	}
	return node, nil
}

// maxName is the longest file name that file systems take, in bytes.
const maxName = 255

func isEntryName(name string) bool {
	return name != "" && len(name) <= maxName && name != "." && name != ".." && !strings.Contains(name, "/") && !strings.EqualFold(name, ".git")
}

// TreeOf returns the id of the tree that a treeish denotes: the id of a commit, tree or
// annotated tag, or a name that Resolve takes.
func (r *Repo) TreeOf(ctx context.Context, treeish string) (string, error) {
	if treeish == emptyTree {
		return emptyTree, nil
	}
	if !IsID(treeish) {
		id, err := r.Resolve(ctx, treeish)
		if err != nil {
			return "", err
		}
		treeish = id
	}
	if tree, ok := r.treeIDs.get(treeish); ok {
		return tree, nil
	}
	got, err := r.readers.objects(ctx, []string{treeish + "^{tree}"}, 0)
	if err != nil {
		return "", err
	}
	if got[0].kind != "tree" {
		return "", fmt.Errorf("%w: %s has no tree in the mirror", ErrNoSuchCommit, treeish)
	}
	r.treeIDs.put(treeish, got[0].id, 1)
	return got[0].id, nil
}

// treeRoom is how much may still be read of trees.
type treeRoom struct{ entries, bytes int }

// take takes the room of a tree.
func (room *treeRoom) take(node *treeNode) error {
	room.entries -= len(node.entries)
	for i := range node.entries {
		room.bytes -= minTreeEntry + len(node.entries[i].Path)
	}
	if room.entries < 0 || room.bytes < 0 {
		return fmt.Errorf("all folders that are read together: %w", ErrTooLarge)
	}
	return nil
}

// minTreeEntry is how long an entry of a tree object is without its name: mode, blank, NUL and id.
const minTreeEntry = 28

// loadTrees reads tree objects, from the cache where it has them, missing ones many at a time. The error is ErrTooLarge if there is no
// room for all of them.
func (r *Repo) loadTrees(ctx context.Context, ids []string, into map[string]*treeNode, room *treeRoom) error {
	var missing []string
	for _, id := range ids {
		if _, ok := into[id]; ok {
			continue
		}
		if id == emptyTree {
			into[id] = &treeNode{}
			continue
		}
		if node, ok := r.trees.get(id); ok {
			if err := room.take(node); err != nil {
				return err
			}
			into[id] = node
			continue
		}
		into[id] = nil // asked for once
		missing = append(missing, id)
	}
	for batch := range slices.Chunk(missing, readerBatch) {
		if err := r.readTrees(ctx, batch, into, room); err != nil {
			return err
		}
	}
	return nil
}

// readTrees reads tree objects that the cache lacks.
func (r *Repo) readTrees(ctx context.Context, missing []string, into map[string]*treeNode, room *treeRoom) error {
	got, err := r.readers.objects(ctx, missing, room.bytes+1) // with one that is empty too
	if err != nil {
		return err
	}
	for i, id := range missing {
		switch got[i].kind {
		case "tree":
		case "":
			// A fetch brings whole trees, so this says something about the disk, and nothing about who refers to it.
			return fmt.Errorf("tree %s is missing from the mirror %s", id, r.dir)
		default:
			return fmt.Errorf("%w: %s is a %s, and a tree refers to it as one", ErrBadObject, id, got[i].kind)
		}
		node, err := parseTree(id, got[i].body)
		if err != nil {
			return err
		}
		got[i].body = nil
		if err := room.take(node); err != nil {
			return err
		}
		into[id] = node
		r.trees.put(id, node, node.cost())
	}
	return nil
}

// wholeTree reads a tree with everything below it, level by level.
func (r *Repo) wholeTree(ctx context.Context, root string) (map[string]*treeNode, error) {
	nodes := make(map[string]*treeNode)
	room := r.treeRoom
	level := []string{root}
	for depth := 0; len(level) > 0; depth++ {
		if depth > maxDepth {
			return nil, fmt.Errorf("tree %s is more than %d directories deep: %w", root, maxDepth, ErrTooLarge)
		}
		if err := r.loadTrees(ctx, level, nodes, &room); err != nil {
			return nil, err
		}
		var below []string
		seen := make(map[string]bool)
		for _, id := range level {
			for i := range nodes[id].entries {
				entry := &nodes[id].entries[i]
				if entry.Kind == directory && !seen[entry.Object] {
					seen[entry.Object] = true
					// A tree known from a higher level is expanded already, but for depth: ids
					// cannot form a cycle.
					if _, known := nodes[entry.Object]; !known {
						below = append(below, entry.Object)
					}
				}
			}
		}
		level = below
	}
	return nodes, nil
}

// Tree lists every file of a treeish (as in TreeOf), sorted by path bytes. ErrTooLarge
// above MaxEntries and MaxPathBytes.
func (r *Repo) Tree(ctx context.Context, treeish string) ([]Entry, error) {
	root, err := r.TreeOf(ctx, treeish)
	if err != nil {
		return nil, err
	}
	nodes, err := r.wholeTree(ctx, root)
	if err != nil {
		return nil, err
	}
	return listTree(nodes, root)
}

func listTree(nodes map[string]*treeNode, root string) ([]Entry, error) {
	known := make(map[string]extent, len(nodes))
	whole, err := extentOf(nodes, root, known, 0)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", root, err)
	}
	if whole.longest > maxPath {
		return nil, fmt.Errorf("%w: tree %s: a path has %d bytes, a checkout can hold at most %d", ErrBadObject, root, whole.longest, maxPath)
	}
	entries := make([]Entry, 0, whole.files)
	var walk func(id, prefix string)
	walk = func(id, prefix string) {
		for _, entry := range nodes[id].entries {
			entry.Path = prefix + entry.Path
			if entry.Kind != directory {
				entries = append(entries, entry)
			} else if known[entry.Object].files > 0 {
				walk(entry.Object, entry.Path+"/")
			}
		}
	}
	walk(root, "")
	return entries, nil
}

// extent is how many files a tree has, and how long their paths are.
type extent struct {
	files          int
	bytes, longest int // of paths
}

// extentOf adds up the files of a tree by those of its subtrees, each looked at once, so
// that a listing that is too long is refused before it is made.
func extentOf(nodes map[string]*treeNode, id string, known map[string]extent, depth int) (extent, error) {
	if e, ok := known[id]; ok {
		return e, nil
	}
	if depth > maxDepth {
		return extent{}, fmt.Errorf("more than %d directories deep: %w", maxDepth, ErrTooLarge)
	}
	var total extent
	for i := range nodes[id].entries {
		entry := &nodes[id].entries[i]
		one := extent{files: 1}
		name := len(entry.Path)
		if entry.Kind == directory {
			var err error
			if one, err = extentOf(nodes, entry.Object, known, depth+1); err != nil {
				return extent{}, err
			}
			name++
		}
		if one.files == 0 {
			continue
		}
		total.files += one.files
		total.bytes += one.bytes + one.files*name
		total.longest = max(total.longest, one.longest+name)
		if total.files > MaxEntries {
			return extent{}, fmt.Errorf("more than %d files: %w", MaxEntries, ErrTooLarge)
		}
		if total.bytes > MaxPathBytes {
			return extent{}, fmt.Errorf("paths of more than %d MiB together: %w", MaxPathBytes>>20, ErrTooLarge)
		}
	}
	known[id] = total
	return total, nil
}

// treeOf returns the tree of some files, sorted by path, as wholeTree does. The id of a folder is its path, that of the root is root.
func treeOf(entries []Entry, root string) map[string]*treeNode {
	nodes := map[string]*treeNode{root: {}}
	for _, e := range entries {
		folder := root
		rest := e.Path
		for {
			name, below, isFolder := strings.Cut(rest, "/")
			if !isFolder {
				break
			}
			id := folder + "/" + name
			if nodes[id] == nil {
				nodes[id] = &treeNode{}
				nodes[folder].entries = append(nodes[folder].entries, Entry{Path: name, Kind: directory, Object: id})
			}
			folder, rest = id, below
		}
		e.Path = rest
		nodes[folder].entries = append(nodes[folder].entries, e)
	}
	return nodes
}
