package trace

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxPackages bounds a target graph.
const maxPackages = 100_000

// ImportGraph is the target graph of a Go module, from its sources: a library for each directory, and a test
// where it has test files. Nothing depends on a test.
type ImportGraph struct {
	// Targets counts them.
	Targets int
	// at are the targets of each directory, relative to the module; dependants those that depend on each.
	at         map[string][]int
	dependants [][]int
}

// Imports reads the imports of a module's sources in a folder. Files of all build tags count.
func Imports(folder string) (*ImportGraph, error) {
	mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return nil, fmt.Errorf("%s holds no Go module: %w", folder, err)
	}
	module := modulePath(string(mod))
	if module == "" {
		return nil, fmt.Errorf("%s: go.mod names no module", folder)
	}
	needs := map[string][2][]string{} // directory → imports of its library and of its test
	err = filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != folder && (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_") || d.Name() == "vendor" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return nil // a file that no build takes, like a template; its imports do not count
		}
		relative, err := filepath.Rel(folder, filepath.Dir(name))
		if err != nil {
			return err
		}
		kind := 0
		if strings.HasSuffix(name, "_test.go") {
			kind = 1
		}
		of := needs[filepath.ToSlash(relative)]
		if of[kind] == nil {
			of[kind] = []string{}
		}
		for _, i := range file.Imports {
			if p, err := strconv.Unquote(i.Path.Value); err == nil && (p == module || strings.HasPrefix(p, module+"/")) {
				of[kind] = append(of[kind], path.Clean(strings.TrimPrefix(strings.TrimPrefix(p, module), "/")))
			}
		}
		if needs[filepath.ToSlash(relative)] = of; len(needs) > maxPackages {
			return fmt.Errorf("more than %d packages", maxPackages)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(needs) == 0 {
		return nil, errors.New(folder + " holds no Go files")
	}
	return newImportGraph(needs), nil
}

func modulePath(mod string) string {
	for line := range strings.Lines(mod) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "module" {
			return strings.Trim(f[1], `"`)
		}
	}
	return ""
}

func newImportGraph(needs map[string][2][]string) *ImportGraph {
	g := &ImportGraph{at: map[string][]int{}}
	var folders []string
	for d := range needs {
		folders = append(folders, d)
	}
	slices.Sort(folders)
	library := map[string]int{}
	for _, d := range folders {
		library[d] = g.add(d)
	}
	for _, d := range folders {
		g.depend(library, library[d], needs[d][0])
		if needs[d][1] != nil {
			g.depend(library, g.add(d), append(slices.Clone(needs[d][1]), d))
		}
	}
	return g
}

func (g *ImportGraph) add(folder string) int {
	g.Targets++
	g.at[folder] = append(g.at[folder], g.Targets-1)
	g.dependants = append(g.dependants, nil)
	return g.Targets - 1
}

func (g *ImportGraph) depend(library map[string]int, target int, on []string) {
	slices.Sort(on)
	for _, d := range slices.Compact(on) {
		if l, known := library[d]; known && l != target {
			g.dependants[l] = append(g.dependants[l], target)
		}
	}
}

// Affected are the targets of those directories, and all that depend on them.
func (g *ImportGraph) Affected(folders []string) (targets bitset) {
	targets = make(bitset, (g.Targets+63)/64)
	var open []int
	for _, d := range folders {
		open = append(open, g.at[d]...)
	}
	for len(open) > 0 {
		t := open[len(open)-1]
		open = open[:len(open)-1]
		if !targets.has(t) {
			targets.add(t)
			open = append(open, g.dependants[t]...)
		}
	}
	return targets
}

// bitset is a set of targets of one graph.
type bitset []uint64

func (b bitset) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
func (b bitset) add(i int)      { b[i/64] |= 1 << (i % 64) }

func (b bitset) meets(o bitset) bool {
	for i := range b {
		if b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}
