package buildgraph

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/codeowners"
	"landfall.build/platform/buildgraph/manifest"
	"landfall.build/platform/gitrepo"
)

// Owners is who owns the targets of a repository by one tree, which is the mainline's: a change does not choose who is told
// about it. It may be used from several goroutines.
type Owners struct {
	manifests *manifest.Owners // nil if the queue reads no manifests
	file      *codeowners.File // nil if there is none

	mu    sync.Mutex
	known map[string][]string // by path
}

// mostKnown bounds how many files' owners are remembered.
const mostKnown = 200_000

// Owners reads who owns what in a tree: the manifests, if the queue has their adapter, and the CODEOWNERS file.
func (l *Loader) Owners(ctx context.Context, repo Repository, tree string) (*Owners, error) {
	l.mu.Lock()
	last := l.owners
	l.mu.Unlock()
	if last.tree == tree {
		return last.owners, nil
	}
	o := &Owners{known: map[string][]string{}}
	for _, a := range l.adapters {
		if a.owners == nil {
			continue
		}
		var err error
		if o.manifests, err = a.owners(ctx, repo, tree); err != nil {
			return nil, err
		}
	}
	var err error
	if o.file, err = readCodeowners(ctx, repo, tree); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.owners = ownersOfTree{tree, o}
	l.mu.Unlock()
	return o, nil
}

// ownersOfTree are those that were read last: the mainline moves on.
type ownersOfTree struct {
	tree   string
	owners *Owners
}

// readCodeowners reads the CODEOWNERS file of a tree, nil if it has none that can be read.
func readCodeowners(ctx context.Context, repo Repository, tree string) (*codeowners.File, error) {
	entries, err := repo.Tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	for _, name := range codeowners.Paths {
		at := slices.IndexFunc(entries, func(e gitrepo.Entry) bool { return e.Path == name })
		if at < 0 || entries[at].Kind != gitrepo.File && entries[at].Kind != gitrepo.Executable {
			continue
		}
		content, err := repo.Blob(ctx, entries[at].Object, codeowners.MaxBytes)
		if errors.Is(err, gitrepo.ErrTooLarge) {
			return nil, nil
		}
		return codeowners.Parse(content), err
	}
	return nil, nil
}

// Of returns the owners of a target of a graph: those that a manifest names, else those that the CODEOWNERS file gives most of
// its files. The graph may be of another tree than the owners.
func (o *Owners) Of(graph *targets.Graph, target string) []string {
	if o.manifests == nil && o.file == nil {
		return nil
	}
	folder, files := ownFiles(graph, target)
	if o.manifests != nil {
		if owners, said := o.manifests.Of(target, folder); said {
			return owners
		}
	}
	counts, best, most := map[string]int{}, []string(nil), 0
	for _, file := range files {
		owners := o.ofFile(file)
		if len(owners) == 0 {
			continue
		}
		key := strings.Join(owners, " ")
		if counts[key]++; counts[key] > most {
			best, most = owners, counts[key]
		}
	}
	return best
}

func (o *Owners) ofFile(file string) []string {
	if o.file == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	owners, known := o.known[file]
	if !known {
		owners = o.file.Owners(file)
		if len(o.known) < mostKnown {
			o.known[file] = owners
		}
	}
	return owners
}

// Bounds on what is looked at of one target.
const (
	mostNodes = 2000
	mostFiles = 100
)

// ownFiles returns the folder of a target and the files by which its owners are found: what it depends on within its folder,
// directly, or else by way of definitions; else what it depends on elsewhere; else what its folder has.
func ownFiles(graph *targets.Graph, target string) (folder string, files []string) {
	direct := graph.Files(target, false, mostNodes)
	folder, named := folderOf(target)
	if !named {
		if len(direct) == 0 {
			return "", nil
		}
		return commonFolder(direct), direct[:min(len(direct), mostFiles)]
	}
	within := func(paths []string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return folder != "" && !strings.HasPrefix(p, folder+"/") })
	}
	files = within(direct)
	if len(files) == 0 {
		files = within(graph.Files(target, true, mostNodes))
	}
	if len(files) == 0 {
		files = direct
	}
	if len(files) == 0 && target != targets.Repository {
		files = graph.FilesIn(folder, mostFiles)
	}
	return folder, files[:min(len(files), mostFiles)]
}

// Folder returns the folder of a target, relative to the root and with slashes, "" for the root itself: that of its name, or the
// deepest that has all files on which it depends directly.
func Folder(graph *targets.Graph, target string) string {
	if folder, named := folderOf(target); named {
		return folder
	}
	files := graph.Files(target, false, mostNodes)
	if len(files) == 0 {
		return ""
	}
	return commonFolder(files)
}

// folderOf returns the folder that the name of a target has, as "//folder:name" and "cargo://folder [test]" do, "" being the
// root; false if it has none, as Go's do not.
func folderOf(target string) (folder string, named bool) {
	scheme, rest, named := strings.Cut(target, "//")
	if !named || strings.ContainsAny(scheme, "@/") {
		return "", false
	}
	if end := strings.IndexAny(rest, ": "); end >= 0 {
		rest = rest[:end]
	}
	return strings.Trim(rest, "/"), true
}

// commonFolder returns the deepest folder that has all of some files.
func commonFolder(files []string) string {
	folder := path.Dir(files[0])
	for _, f := range files {
		for folder != "." && !strings.HasPrefix(f, folder+"/") {
			folder = path.Dir(folder)
		}
	}
	return strings.TrimPrefix(folder, ".")
}
