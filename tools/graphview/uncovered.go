package graphview

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"landfall.build/events"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
)

// Uncovered is what `landfall targets --uncovered --json` prints.
type Uncovered struct {
	Rev  string `json:"rev"`
	Tree string `json:"tree"`
	// Files are those that no target covers.
	Files []UncoveredFile `json:"files"`
	// Folders counts them by the first folder of their path.
	Folders []UncoveredFolder `json:"folders"`
	// FilesTotal is how many files the tree has.
	FilesTotal int `json:"files_total"`
}

// UncoveredFile is a file that no target covers.
type UncoveredFile struct {
	Path string `json:"path"`
	// Policy is what a change to it means: whole_repository, warn or ignore.
	Policy string `json:"policy"`
}

// UncoveredFolder sums up a folder.
type UncoveredFolder struct {
	// Folder is "." for files in the root.
	Folder string `json:"folder"`
	// Files are those that no target covers, Ignored those of them that the policy ignores.
	Files   int `json:"files"`
	Ignored int `json:"ignored"`
}

// listUncovered lists the files of a commit that no target covers.
func (v *view) listUncovered(ctx context.Context, name, rev string) (*Uncovered, error) {
	tree, err := v.TreeOf(ctx, rev)
	if err != nil {
		return nil, err
	}
	graph, err := v.graph(ctx, name, tree)
	if err != nil {
		return nil, err
	}
	entries, err := v.Tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	u := &Uncovered{Rev: rev, Tree: tree, Files: []UncoveredFile{}, Folders: []UncoveredFolder{}, FilesTotal: len(entries)}
	at := map[string]int{}
	for _, path := range graph.Uncovered() {
		policy := v.loader.PolicyOf(path)
		u.Files = append(u.Files, UncoveredFile{path, string(policy)})
		folder, _, below := strings.Cut(path, "/")
		if !below {
			folder = "."
		}
		i, known := at[folder]
		if !known {
			i = len(u.Folders)
			at[folder] = i
			u.Folders = append(u.Folders, UncoveredFolder{Folder: folder})
		}
		u.Folders[i].Files++
		if policy == configuration.UncoveredIgnore {
			u.Folders[i].Ignored++
		}
	}
	slices.SortFunc(u.Folders, func(x, y UncoveredFolder) int { return cmp.Compare(x.Folder, y.Folder) })
	return u, nil
}

// meanings are what a change to an uncovered file means, by its policy.
var meanings = map[string]string{
	string(configuration.UncoveredWholeRepository): "a change to one affects everything",
	string(configuration.UncoveredWarn):            "nothing is built for them, with a warning",
	string(configuration.UncoveredIgnore):          "nothing is built for them",
}

func (u *Uncovered) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	count := map[string]int{}
	for _, f := range u.Files {
		count[f.Policy]++
		fmt.Fprintf(w, "%s\t%s\n", f.Policy, indented(f.Path))
	}
	if len(u.Folders) > 1 {
		fmt.Fprint(w, "\nfiles\tignored\tfolder\n")
		for _, f := range u.Folders {
			fmt.Fprintf(w, "%d\t%d\t%s\n", f.Files, f.Ignored, indented(f.Folder))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "no target covers %d of %d files at %s\n", len(u.Files), u.FilesTotal, events.ShortID(u.Rev))
	for _, policy := range []configuration.UncoveredPolicy{configuration.UncoveredWholeRepository, configuration.UncoveredWarn, configuration.UncoveredIgnore} {
		if n := count[string(policy)]; n > 0 {
			fmt.Fprintf(out, "%s (analysis.uncovered): %d; %s\n", policy, n, meanings[string(policy)])
		}
	}
	return nil
}

// uncoveredOf lists the files of a difference that no target covers on either side.
func uncoveredOf(of buildgraph.Uncovered) []UncoveredFile {
	files := []UncoveredFile{}
	for _, path := range of.Files {
		files = append(files, UncoveredFile{path, string(of.Policy)})
	}
	for _, path := range of.Ignored {
		files = append(files, UncoveredFile{path, string(configuration.UncoveredIgnore)})
	}
	slices.SortFunc(files, func(x, y UncoveredFile) int { return cmp.Compare(x.Path, y.Path) })
	return files
}

// writeUncovered says which files of a difference have nothing built for them.
func writeUncovered(w io.Writer, files []UncoveredFile) {
	var paths []string
	for _, f := range files {
		if f.Policy != string(configuration.UncoveredWholeRepository) {
			paths = append(paths, indented(f.Path))
		}
	}
	if len(paths) > 0 {
		fmt.Fprintf(w, "no target covers %s; nothing is built for that (analysis.uncovered)\n", list(paths))
	}
}
