package cargograph

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph/gittree"
)

// readByCompiler returns the files of a checkout that rustc and build scripts name as what they have read in a build that
// left its results in a target folder.
func readByCompiler(t testing.TB, root, target string) []string {
	t.Helper()
	var files []string
	add := func(file string) {
		if rel, err := filepath.Rel(root, file); err == nil && filepath.IsAbs(file) && !strings.HasPrefix(rel, "../") && isFile(file) {
			files = append(files, filepath.ToSlash(rel))
		}
	}
	lists, _ := filepath.Glob(filepath.Join(target, "debug", "deps", "*.d"))
	scripts, _ := filepath.Glob(filepath.Join(target, "debug", "build", "*", "*.d"))
	for _, list := range append(lists, scripts...) {
		content, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(content)) {
			if _, after, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && !strings.HasPrefix(line, "#") {
				for _, file := range strings.Fields(after) {
					if !filepath.IsAbs(file) {
						file = filepath.Join(root, file)
					}
					add(file)
				}
			}
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// changed returns a tree in which one file is another.
func (d diskTree) changed(file string) diskTree {
	next := diskTree{entries: slices.Clone(d.entries), blobs: map[string][]byte{}}
	for object, content := range d.blobs {
		next.blobs[object] = content
	}
	for i, e := range next.entries {
		if e.Path == file {
			content := append(slices.Clone(d.blobs[e.Object]), "\n# // changed\n"...)
			if strings.HasSuffix(file, ".rs") {
				content = append(slices.Clone(d.blobs[e.Object]), "\n// changed\n"...)
			}
			next.entries[i].Object = objectOf(string(content))
			next.blobs[next.entries[i].Object] = content
		}
	}
	return next
}

// TestNoInputOfTheCompilerLeavesAVersionAlone builds packages, and changes each file of the repository that rustc says it has
// read: the version of the target that was built is another. So it is with each manifest, lock file, configuration and
// toolchain file.
func TestNoInputOfTheCompilerLeavesAVersionAlone(t *testing.T) {
	repositories := []string{"semver"}
	if os.Getenv("LANDFALL_TEST_SLOW") != "" {
		repositories = append(repositories, "bytes", "crossbeam", "itertools", "log", "memchr", "rayon", "regex", "thiserror")
	}
	for _, version := range versionsTried() {
		folders := fetch(t, version, repositories)
		for _, name := range repositories {
			root := t.TempDir()
			restore(t, root, histories[name][version], folders)
			writeFiles(t, root, map[string]string{".cargo/config.toml": "[build]\nincremental = false\n"})
			if _, err := cargo(root, "generate-lockfile", "--quiet"); err != nil {
				unavailable(t, err)
			}
			tree := readFolder(t, root)
			loader := newLoader(t, Options{})
			base := mustLoad(t, loader, tree)
			published := histories[name][version][""]
			spec := strings.Replace(published, " ", "@", 1)
			moved := func(file, target string) {
				d := targets.Delta(base, mustLoad(t, loader, tree.changed(file)))
				if !slices.Contains(d.Touched(), target) {
					t.Errorf("%s: a change of %s leaves %s alone", published, file, target)
				}
			}
			built := compile(t, root, "check", "--locked", "--package", spec)
			tested := compile(t, root, "check", "--locked", "--package", spec, "--lib", "--tests")
			for _, file := range built {
				moved(file, "cargo://.")
			}
			forTests := slices.DeleteFunc(tested, func(file string) bool { return slices.Contains(built, file) })
			for _, file := range forTests {
				moved(file, "cargo://. [test]")
			}
			for _, file := range []string{"Cargo.toml", "Cargo.lock", ".cargo/config.toml"} {
				moved(file, "cargo://. [workspace]")
			}
			for _, file := range []string{"Cargo.toml", ".cargo/config.toml"} {
				moved(file, "cargo://.")
			}
			if len(built) == 0 {
				t.Errorf("%s: the compiler has read nothing", published)
			}
			t.Logf("%s: %d files read for the package, %d more for its tests", published, len(built), len(forTests))
		}
	}
}

// compile builds in a target folder of its own and returns what was read.
func compile(t *testing.T, root string, args ...string) []string {
	t.Helper()
	target := t.TempDir()
	t.Setenv("CARGO_TARGET_DIR", target)
	if out, err := cargo(root, append(args, "--quiet")...); err != nil {
		t.Logf("not all of it is built: %v %s", firstLine(err.Error()), out)
	}
	return readByCompiler(t, root, target)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func mustLoad(t testing.TB, l *Loader, tree gittree.Tree) *targets.Graph {
	t.Helper()
	graph, err := l.Load(t.Context(), "", tree)
	if err != nil {
		t.Fatal(err)
	}
	return graph
}
