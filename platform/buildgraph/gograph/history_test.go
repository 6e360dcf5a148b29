package gograph

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

// moduleFolders finds dependencies of this workspace in the module cache.
func moduleFolders(t testing.TB, paths ...string) map[string]string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-m", "-f", "{{.Path}} {{.Dir}}"}, paths...)...).Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if dir == "" {
			t.Fatalf("module %s is not in the module cache", path)
		}
		folders[path] = dir
	}
	return folders
}

// copyFolder copies a folder of the module cache so that it can be changed.
func copyFolder(t testing.TB, into, from string, want func(path string, d fs.DirEntry) bool) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && rel != "." && !want(rel, d):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(into, rel), 0o777)
		case !d.Type().IsRegular() || !want(rel, d):
			return nil
		}
		content, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(filepath.Join(into, rel), content, 0o666))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// codeOnly leaves out what go list never looks at.
func codeOnly(path string, d fs.DirEntry) bool {
	info, err := d.Info()
	return err == nil && (d.IsDir() || strings.HasSuffix(path, ".go") || info.Size() < 100<<10)
}

// modulesOf are dependencies of this workspace, by the folder they get in a
// repository made of them. None needs a module that is not among them for its
// packages, so go list has no need of the network.
var modulesOf = map[string]string{
	"compress": "github.com/klauspost/compress", "lz4": "github.com/pierrec/lz4/v4", "franz": "github.com/twmb/franz-go",
	"kmsg": "github.com/twmb/franz-go/pkg/kmsg", "kadm": "github.com/twmb/franz-go/pkg/kadm",
	"protobuf": "google.golang.org/protobuf", "mod": "golang.org/x/mod", "yaml": "github.com/goccy/go-yaml",
}

// fillWithModules puts modules into a repository, with go.mod files of our own.
func (r *repository) fillWithModules(dirs ...string) {
	r.Helper()
	var paths []string
	for _, dir := range dirs {
		paths = append(paths, modulesOf[dir])
	}
	folders := moduleFolders(r, paths...)
	for _, dir := range dirs {
		copyFolder(r, filepath.Join(r.dir, dir), folders[modulesOf[dir]], codeOnly)
		r.write(map[string]string{dir + "/go.mod": "module " + modulesOf[dir] + "\n\ngo 1.26.0\n", dir + "/go.sum": ""})
	}
}

// useAll makes a workspace of all modules.
func (r *repository) useAll(dirs ...string) {
	r.write(map[string]string{"go.work": "go 1.26.0\n\nuse ./" + strings.Join(dirs, "\nuse ./") + "\n"})
}

// rounds asks for more than what is enough to notice that something broke:
// LANDFALL_GOGRAPH_ROUNDS is the number of random edits, and has all modules
// of modulesOf compared.
func rounds(t *testing.T, few int, some []string) (int, []string) {
	text := os.Getenv("LANDFALL_GOGRAPH_ROUNDS")
	if text == "" {
		return few, some
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("LANDFALL_GOGRAPH_ROUNDS: %v", err)
	}
	return n, slices.Sorted(maps.Keys(modulesOf))
}

func TestEveryEdgeOfGoListIsInTheGraphOfAWorkspace(t *testing.T) {
	r := newFolder(t)
	_, dirs := rounds(t, 0, []string{"compress", "franz", "kmsg", "mod"})
	r.fillWithModules(dirs...)
	r.useAll(dirs...)
	graph := load(t, r.snapshot())
	c := &truth{TB: t, graph: graph, root: r.dir, suffix: " in go.work"}
	c.compare(goList(t, r.dir, everyPackageOf(dirs...)...))
	c.report()
	if len(graph.Unknown()) > 0 {
		t.Errorf("incomplete: %q", graph.Unknown())
	}
}

// replacing returns the go.mod of a module in the root that uses the others by
// replace directives.
func replacing(dirs ...string) string {
	text := "module example.com/root\n\ngo 1.26.0\n"
	for _, dir := range dirs {
		version := "v0.0.0"
		if strings.HasSuffix(modulesOf[dir], "/v4") {
			version = "v4.0.0"
		}
		text += fmt.Sprintf("\nrequire %[1]s %[2]s\n\nreplace %[1]s => ./%[3]s\n", modulesOf[dir], version, dir)
	}
	return text
}

const rootUses = `package root

import (
	_ "github.com/klauspost/compress/zstd"
	_ "github.com/twmb/franz-go/pkg/kadm"
	_ "github.com/twmb/franz-go/pkg/kgo"
)
`

func TestEveryEdgeOfGoListIsInTheGraphOfReplacedAndOfVendoredModules(t *testing.T) {
	r := newFolder(t)
	dirs := []string{"compress", "franz", "kadm", "kmsg", "lz4"}
	r.fillWithModules(dirs...)
	r.write(map[string]string{"go.mod": replacing(dirs...), "root.go": rootUses, "root_test.go": "package root\n\nimport _ \"github.com/klauspost/compress/s2\"\n"})
	check := func(graph *targets.Graph) {
		t.Helper()
		c := &truth{TB: t, graph: graph, root: r.dir}
		c.compare(goList(t, r.dir, "./..."))
		c.report()
	}
	replaced := load(t, r.snapshot())
	check(replaced)
	// kadm is built with the root's kgo, so the root must follow that.
	r.write(map[string]string{"franz/pkg/kgo/new.go": "package kgo\n"})
	names := namesOf(targets.Delta(replaced, load(t, r.snapshot())))
	for _, want := range []string{"example.com/root", "example.com/root [test]", "github.com/twmb/franz-go/pkg/kgo"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not affected by a new file of kgo: %v", want, names)
		}
	}
	cmd := exec.Command("go", "mod", "vendor")
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go mod vendor: %v\n%s", err, out)
	}
	for _, dir := range dirs {
		os.RemoveAll(filepath.Join(r.dir, dir))
	}
	vendored := load(t, r.snapshot())
	check(vendored)
	r.write(map[string]string{"vendor/github.com/klauspost/compress/huff0/huff0.go": "package huff0\n"})
	names = namesOf(targets.Delta(vendored, load(t, r.snapshot())))
	if !slices.Equal(names, []string{"example.com/root", "example.com/root [test]"}) {
		t.Errorf("an edit of a vendored package affects %v", names)
	}
}

func namesOf(d targets.Analysis) []string { return d.Touched() }

// TestEveryEdgeOfGoListIsInTheGraphOfThisWorkspace has external modules with
// versions.
func TestEveryEdgeOfGoListIsInTheGraphOfThisWorkspace(t *testing.T) {
	r := newRepository(t)
	for _, dir := range []string{"engine", "events", "learning", "platform", "services", "tools"} {
		copyFolder(t, filepath.Join(r.dir, dir), filepath.Join("../../..", dir), func(path string, d fs.DirEntry) bool {
			return !strings.HasPrefix(filepath.Base(path), ".") && !strings.HasPrefix(filepath.Base(path), "scratch")
		})
	}
	for _, name := range []string{"go.work", "go.work.sum"} {
		if content, err := os.ReadFile(filepath.Join("../../..", name)); err == nil {
			r.write(map[string]string{name: string(content)})
		}
	}
	c := &truth{TB: t, graph: load(t, r.commit()), root: r.dir, suffix: " in go.work"}
	c.compare(goList(t, r.dir, everyPackageOf("engine", "events", "learning", "platform", "services", "tools")...))
	c.report()
	if c.externals == 0 {
		t.Error("no external module was compared")
	}
}

// inputs returns what go list says that each package is made from, tests by
// themselves: the text of its files, and all that it depends on.
func inputs(t testing.TB, root string, packages []listed) map[string]string {
	own := map[string]string{}
	imports := map[string][]string{}
	text := func(p listed, lists ...[]string) string {
		var all []string
		for _, name := range slices.Concat(lists...) {
			content, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, name+" "+objectOf(string(content)))
		}
		module, _ := json.Marshal(p.Module)
		return fmt.Sprint(all, string(module), p.Imports, p.TestImports, p.XTestImports)
	}
	for _, p := range packages {
		if p.ForTest != "" || p.Standard || strings.HasSuffix(p.ImportPath, ".test") || !strings.HasPrefix(p.Dir, root) {
			continue
		}
		own[p.ImportPath] = text(listed{Dir: p.Dir, Module: p.Module, Imports: p.Imports}, p.GoFiles, p.CgoFiles, p.HFiles, p.SFiles, p.EmbedFiles)
		imports[p.ImportPath] = p.Imports
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			own[p.ImportPath+" [test]"] = text(listed{Dir: p.Dir, TestImports: p.TestImports, XTestImports: p.XTestImports},
				p.TestGoFiles, p.XTestGoFiles, p.TestEmbedFiles, p.XTestEmbedFiles)
			imports[p.ImportPath+" [test]"] = append(slices.Concat(p.TestImports, p.XTestImports), p.ImportPath)
		}
	}
	all := map[string]string{}
	for name := range own {
		reached := map[string]bool{name: true}
		for pending := []string{name}; len(pending) > 0; {
			next := pending[len(pending)-1]
			pending = pending[:len(pending)-1]
			for _, imported := range imports[next] {
				if _, ok := own[imported]; ok && !reached[imported] {
					reached[imported] = true
					pending = append(pending, imported)
				}
			}
		}
		sum := ""
		for _, dep := range slices.Sorted(maps.Keys(reached)) {
			sum += dep + own[dep] + "\n"
		}
		all[name] = objectOf(sum)
	}
	return all
}

// edit changes a repository at random and says how.
func (r *repository) edit(random *rand.Rand, dirs []string) string {
	var files, packages []string
	for _, file := range r.files() {
		if strings.HasSuffix(file, ".go") && !strings.Contains(file, "testdata") && !strings.Contains(file, "/_") && !strings.Contains(file, "internal") {
			files = append(files, file)
			packages = append(packages, folderOf(file))
		}
	}
	file := files[random.IntN(len(files))]
	dir := packages[random.IntN(len(packages))]
	content, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		r.Fatal(err)
	}
	fresh := fmt.Sprintf("edit%d", random.IntN(1_000_000))
	module := dirs[random.IntN(len(dirs))]
	switch random.IntN(8) {
	case 0:
		r.write(map[string]string{dir + "/" + fresh + "_test.go": "package " + fresh + "_test\n\nimport _ \"" + modulesOf[module] + "/" + fresh + "\"\n"})
		return "a new test in " + dir
	case 1:
		r.write(map[string]string{module + "/" + fresh + "/x.go": "package " + fresh + "\n\nimport _ \"embed\"\n\n//go:embed data\nvar x string\n", module + "/" + fresh + "/data": "1\n"})
		return "a new package in " + module
	case 2:
		os.Remove(filepath.Join(r.dir, file))
		return "without " + file
	case 3:
		r.write(map[string]string{module + "/go.mod": "module " + modulesOf[module] + "\n\ngo 1.25." + fmt.Sprint(random.IntN(9)) + "\n"})
		return "another go.mod of " + module
	case 4:
		r.write(map[string]string{folderOf(file) + "/" + fresh + "_windows.go": "package " + fresh + "\n"})
		return "a file for another platform beside " + file
	case 5:
		target := dirs[random.IntN(len(dirs))]
		r.write(map[string]string{file: string(content) + "\n", module + "/" + fresh + "/y.go": "package y\n\nimport _ \"" + modulesOf[target] + "\"\n"})
		return "an edit of " + file + " and an importer of " + target
	default:
		r.write(map[string]string{file: string(content) + "// " + fresh + "\n"})
		return "an edit of " + file
	}
}

func TestAffectedSetsHoldEveryPackageWhoseInputsInGoListChangedAndIncrementalEqualsFull(t *testing.T) {
	random := seedtest.Random(t)
	r := newFolder(t)
	edits, dirs := rounds(t, 3, []string{"franz", "kmsg", "lz4"})
	r.fillWithModules(dirs...)
	r.useAll(dirs...)
	list := func() map[string]string {
		return inputs(t, r.dir, goList(t, r.dir, everyPackageOf(dirs...)...))
	}
	loader := newLoader(t, Options{})
	graph := func() *targets.Graph {
		tree := r.snapshot()
		next, err := loader.Load(t.Context(), "", tree)
		if err != nil {
			t.Fatal(err)
		}
		if fresh := load(t, tree); !same(next, fresh) {
			t.Error("incremental and full differ")
		}
		return next
	}
	base, before := graph(), list()
	expected := 0
	for range edits {
		what := r.edit(random, dirs)
		head, after := graph(), list()
		affected := targets.Delta(base, head).Touched()
		for name, sum := range after {
			if sum == before[name] {
				continue
			}
			expected++
			if _, found := slices.BinarySearch(affected, name); !found {
				t.Errorf("%s: %s is not affected", what, name)
			}
		}
		base, before = head, after
	}
	if expected == 0 {
		t.Error("no edit changed anything that go list knows")
	}
	t.Logf("%d changes of packages and tests compared", expected)
}

// same reports whether two graphs agree in every node and edge.
func same(x, y *targets.Graph) bool {
	d := targets.Delta(x, y)
	xNodes, xEdges := x.Size()
	yNodes, yEdges := y.Size()
	return xNodes == yNodes && xEdges == yEdges && !d.All && len(d.Affected)+len(d.Deleted)+len(d.Leaves)+len(d.Added) == 0
}
