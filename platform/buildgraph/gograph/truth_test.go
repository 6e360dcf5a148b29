package gograph

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// listed is what go list says of a package.
type listed struct {
	Dir, ImportPath, ForTest string
	Standard                 bool
	Module                   *struct {
		Path, Version, GoVersion string
		Replace                  *struct{ Path, Version, Dir string }
	}
	Imports, TestImports, XTestImports                                                    []string
	ImportMap                                                                             map[string]string
	GoFiles, CgoFiles, CFiles, CXXFiles, HFiles, SFiles, EmbedFiles, IgnoredGoFiles       []string
	TestGoFiles, XTestGoFiles, TestEmbedFiles, XTestEmbedFiles, MFiles, FFiles, SysoFiles []string
}

// goList asks the go command about packages, with everything that they need.
// Nothing is fetched.
func goList(t testing.TB, dir string, patterns ...string) []listed {
	t.Helper()
	args := []string{"list", "-e", "-deps", "-test", "-json=Dir,ImportPath,ForTest,Standard,Module,Imports,TestImports,XTestImports,ImportMap," +
		"GoFiles,CgoFiles,CFiles,CXXFiles,HFiles,SFiles,MFiles,FFiles,SysoFiles,EmbedFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,TestEmbedFiles,XTestEmbedFiles"}
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOTOOLCHAIN=local")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v\n%s", dir, err, complaints.String())
	}
	var packages []listed
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// everyPackageOf returns the patterns of all packages of modules in folders.
func everyPackageOf(dirs ...string) []string {
	patterns := make([]string, len(dirs))
	for i, dir := range dirs {
		patterns[i] = "./" + dir + "/..."
	}
	return patterns
}

// truth compares a graph with go's view of the checkout of its tree.
type truth struct {
	testing.TB
	graph *targets.Graph
	root  string
	// suffix is that of the build list: see buildList.suffix.
	suffix       string
	byPath       map[string]listed
	edges, files int
	externals    int
	missing      []string
}

// inside returns a folder's path in the repository.
func (c *truth) inside(dir string) (string, bool) {
	rel, err := filepath.Rel(c.root, dir)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", false
	}
	if rel == "." {
		rel = ""
	}
	return rel, true
}

// compare checks every package that go list gives.
func (c *truth) compare(packages []listed) {
	c.byPath = map[string]listed{}
	for _, p := range packages {
		if p.ForTest == "" {
			c.byPath[p.ImportPath] = p
		}
	}
	for _, p := range packages {
		dir, ok := c.inside(p.Dir)
		if p.ForTest != "" || p.Standard || !ok || p.Dir == "" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		library := p.ImportPath
		view := "def:go package " + dir + c.suffix
		viewed := len(c.graph.Dependencies(view)) > 0
		if viewed {
			library = view
		}
		sources := slices.Concat(p.GoFiles, p.CgoFiles, p.CFiles, p.CXXFiles, p.HFiles, p.SFiles, p.MFiles, p.FFiles, p.SysoFiles, p.EmbedFiles)
		if len(sources) > 0 {
			c.sources(library, dir, sources)
			c.imports(library, p.Imports, p.ImportMap)
		}
		tests := slices.Concat(p.TestGoFiles, p.XTestGoFiles, p.TestEmbedFiles, p.XTestEmbedFiles)
		if _, ok := c.graph.Target(p.ImportPath + " [test]"); viewed || len(tests) == 0 {
			continue // Go list gives the tests of its arguments only.
		} else if ok {
			c.sources(p.ImportPath+" [test]", dir, tests)
			c.imports(p.ImportPath+" [test]", slices.Concat(p.TestImports, p.XTestImports), p.ImportMap)
		} else {
			c.missing = append(c.missing, p.ImportPath+" [test]")
		}
	}
}

func (c *truth) sources(from, dir string, names []string) {
	deps := c.graph.Dependencies(from)
	for _, name := range names {
		c.files++
		if !slices.Contains(deps, "file:"+below(dir, name)) {
			c.missing = append(c.missing, from+" → file:"+below(dir, name))
		}
	}
}

func (c *truth) imports(from string, imports []string, renamed map[string]string) {
	deps := c.graph.Dependencies(from)
	for _, imported := range imports {
		if to, ok := renamed[imported]; ok {
			imported = to
		}
		p, ok := c.byPath[imported]
		if !ok || p.Standard || imported == "C" {
			continue
		}
		dir, inside := c.inside(p.Dir)
		switch {
		case !inside || p.Dir == "":
			c.externals++
			if p.Module != nil && !slices.Contains(deps, "ext:"+p.Module.Path+c.suffix) {
				c.missing = append(c.missing, from+" → ext:"+p.Module.Path+c.suffix)
			}
		default:
			c.edges++
			view := "def:" + "go package " + dir + c.suffix
			if !slices.Contains(deps, imported) && !slices.Contains(deps, view) {
				c.missing = append(c.missing, from+" → "+imported)
			}
		}
	}
}

// report fails the test for each edge that the graph lacks.
func (c *truth) report() {
	c.Helper()
	for _, edge := range c.missing[:min(len(c.missing), 20)] {
		c.Errorf("missing: %s", edge)
	}
	if c.edges == 0 || c.files == 0 {
		c.Errorf("nothing was compared: %d edges, %d files", c.edges, c.files)
	}
	c.Logf("%d edges, %d files and %d external modules compared, %d missing", c.edges, c.files, c.externals, len(c.missing))
}
