package manifest

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

var updateExamples = flag.Bool("update-examples", false, "write what the converters give into examples/testdata")

// TestConvertersOfOtherToolsGiveManifests runs the documented converters on what the tools print, and loads what
// they write.
func TestConvertersOfOtherToolsGiveManifests(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 on this machine: the converters of Buck2, Pants, Nx and Gradle graphs are not tested")
	}
	for _, c := range []struct {
		tool, input string
		// edit is a file whose edit affects these targets.
		edit    string
		affects string
		all     string // a file whose edit affects all
	}{
		{"nx", "nx.json", "libs/ui/button.ts", "//apps/shop //apps/shop/e2e:shop-e2e //libs/ui:acme_ui", "package-lock.json"},
		{"pants", "pants.json", "helloworld/greet/greeting.py",
			"//helloworld/greet //helloworld/greet:greeting.py //helloworld/greet:test_greeting.py.tests //helloworld/greet:tests //helloworld:lib //helloworld:main.py.lib", "helloworld/BUILD"},
		{"buck2", "buck2.json", "shared/data[1].txt", "//lib:test", "third_party/BUCK"},
		{"gradle", "gradle.txt", "libs/list/src/List.java", "//app //libs/list //utilities", "gradle/libs.versions.toml"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			dir := t.TempDir()
			input, err := filepath.Abs(filepath.Join("examples/testdata", c.input))
			if err != nil {
				t.Fatal(err)
			}
			script, err := filepath.Abs(filepath.Join("examples", c.tool+".py"))
			if err != nil {
				t.Fatal(err)
			}
			convert := func(args ...string) (string, error) {
				cmd := exec.Command(python, append([]string{"-B", script}, append(args, input)...)...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			for _, path := range []string{c.edit, c.all} {
				writeExample(t, filepath.Join(dir, path), "1\n")
			}
			if out, err := convert(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			written := readExamples(t, dir)
			golden := filepath.Join("examples/testdata", c.tool+".golden")
			if *updateExamples {
				writeExample(t, golden, written)
			}
			if want, err := os.ReadFile(golden); err != nil || string(want) != written {
				t.Errorf("%v; it writes\n%s", err, written)
			}
			if out, err := convert("--check"); err != nil || out != "" {
				t.Errorf("what was just written is out of date: %v\n%s", err, out)
			}
			base := loadExample(t, dir, c.tool)
			writeExample(t, filepath.Join(dir, c.edit), "2\n")
			if got := strings.Join(targets.Delta(base, loadExample(t, dir, "edited")).Touched(), " "); got != c.affects {
				t.Errorf("an edit of %s affects\n%s, want\n%s", c.edit, got, c.affects)
			}
			writeExample(t, filepath.Join(dir, c.all), "2\n")
			every := 0
			for range base.Targets() {
				every++
			}
			if got := len(targets.Delta(base, loadExample(t, dir, "all")).Touched()); got != every {
				t.Errorf("an edit of %s affects %d of %d targets", c.all, got, every)
			}
			// With a target that holds manifests and graph together, every edit of a manifest is one of it.
			if out, err := convert("--verify=ci/check"); err != nil || out != "landfall.yaml\n" {
				t.Errorf("%v\n%s", err, out)
			}
			verified := loadExample(t, dir, "verified")
			deepest := examplePaths(t, dir)
			deepest = slices.DeleteFunc(deepest, func(path string) bool { return filepath.Base(path) != FileName })
			last := filepath.Join(dir, deepest[len(deepest)-1])
			text, err := os.ReadFile(last)
			if err != nil {
				t.Fatal(err)
			}
			writeExample(t, last, string(text)+"# by hand\n")
			if got := targets.Delta(verified, loadExample(t, dir, "by hand")).Touched(); !slices.Equal(got, []string{"//:manifest"}) {
				t.Errorf("an edit of a manifest by hand affects %q", got)
			}
			writeExample(t, last, string(text))
			// A generated file of a folder that has no targets any more goes; one of a person's is left alone.
			header, _, _ := strings.Cut(strings.SplitN(written, "\n", 3)[1], "\n")
			writeExample(t, filepath.Join(dir, "gone/landfall.yaml"), header+"\n")
			if out, err := convert("--check"); err == nil || !strings.Contains(out, "gone/landfall.yaml") {
				t.Errorf("%v\n%s", err, out)
			}
			if out, err := convert("--verify=ci/check"); err != nil || out != "gone/landfall.yaml\n" {
				t.Errorf("%v\n%s", err, out)
			}
			writeExample(t, filepath.Join(dir, "landfall.yaml"), "inputs: []\n")
			if out, err := convert(); err == nil || !strings.Contains(out, "not generated") {
				t.Errorf("a person's file is overwritten: %v\n%s", err, out)
			}
		})
	}
}

func writeExample(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// examplePaths returns the files below a folder.
func examplePaths(t *testing.T, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			relative, _ := filepath.Rel(dir, path)
			paths = append(paths, filepath.ToSlash(relative))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return paths
}

// readExamples returns all manifests below a folder as one text.
func readExamples(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, path := range examplePaths(t, dir) {
		if filepath.Base(path) == FileName {
			text, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString("=== " + path + "\n" + string(text))
		}
	}
	return b.String()
}

// loadExample loads a folder as the adapter loads a tree.
func loadExample(t *testing.T, dir, id string) *targets.Graph {
	t.Helper()
	tree := memoryTree{}
	for _, path := range examplePaths(t, dir) {
		text, err := os.ReadFile(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		tree[path] = string(text)
	}
	graph, err := NewLoader(Memory{}).Load(t.Context(), id, tree)
	if err != nil {
		t.Fatal(err)
	}
	return graph
}
