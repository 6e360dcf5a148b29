package gograph

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// TestWhatGoComesToRefuseIsAnotherVersion has edits beside a package that turn it red. Each is checked with the go
// command: a target that keeps its version is never built again.
func TestWhatGoComesToRefuseIsAnotherVersion(t *testing.T) {
	module := memoryTree{
		"go.mod": "module m\n\ngo 1.24\n", "p/x.go": "package p\n\nimport _ \"embed\"\n\n//go:embed a/b/x.txt\nvar s string\n", "p/a/b/x.txt": "1\n",
	}
	some := module.with(memoryTree{"p/x.go": "package p\n\nimport _ \"embed\"\n\n//go:embed a/b/*.txt\nvar s string\n"})
	vendored := memoryTree{
		"go.mod": "module m\n\ngo 1.16\n\nrequire o.org/o v1.0.0\n", "p/x.go": "package p\n", "q/x.go": "package q\n\nimport _ \"o.org/o\"\n",
		"vendor/modules.txt":  "# o.org/o v1.0.0\n## explicit; go 1.24\no.org/o\n# o.org/deep v1.0.0\n## go 1.24\no.org/deep\n",
		"vendor/o.org/o/x.go": "package o\n\nimport _ \"o.org/deep\"\n", "vendor/o.org/deep/x.go": "package deep\n\nfunc f[T any]() {}\n",
	}
	replaced := memoryTree{
		"go.mod": "module m\n\ngo 1.24\n\nrequire o.org/o v1.0.0\n\nreplace o.org/o => ./o\n", "p/x.go": "package p\n", "o/go.mod": "module o.org/o\n", "o/x.go": "package o\n",
	}
	shared := memoryTree{
		"go.work": "go 1.24\n\nuse (\n\t.\n\t./o\n)\n", "go.mod": "module m\n\ngo 1.24\n", "p/x.go": "package p\n", "o/go.mod": "module o.org/o\n\ngo 1.24\n", "o/x.go": "package o\n",
	}
	marks := func(old, new string) memoryTree { return edited(t, vendored, "vendor/modules.txt", old, new) }
	for name, c := range map[string]struct {
		base, edit memoryTree
		folder     string
	}{
		"a module between a package and what it embeds":                {module, memoryTree{"p/a/go.mod": "module a\n"}, "p"},
		"a module around what a package embeds":                        {module, memoryTree{"p/a/b/go.mod": "module b\n"}, "p"},
		"a module between a package and its pattern":                   {some, memoryTree{"p/a/go.mod": "module a\n"}, "p"},
		"a vendor folder without modules.txt":                          {replaced, memoryTree{"vendor/README": "1\n"}, "p"},
		"a requirement that modules.txt does not know as one":          {vendored, marks("## explicit; go 1.24\n", "## go 1.24\n"), "p"},
		"a requirement that modules.txt alone knows":                   {vendored, marks("v1.0.0\n## go", "v1.0.0\n## explicit; go"), "p"},
		"a replacement that modules.txt alone knows":                   {vendored, marks("o.org/deep v1.0.0\n", "o.org/deep v1.0.0 => ./deep\n"), "p"},
		"a vendored module for a later Go":                             {vendored, marks("## go 1.24", "## go 1.99"), "p"},
		"a vendored module of an older Go, which go.mod does not name": {vendored, marks("deep v1.0.0\n## go 1.24", "deep v1.0.0\n## go 1.17"), "q"},
		"a module of a workspace for a later Go":                       {shared, memoryTree{"o/go.mod": "module o.org/o\n\ngo 1.25\n"}, "p"},
		"a vendor folder that becomes a workspace's":                   {vendored, marks("# o.org/o ", "## workspace\n# o.org/o "), "q"},
	} {
		head := c.base.with(c.edit)
		if before, after := builds(t, c.base, c.folder), builds(t, head, c.folder); before != "" || after == "" {
			t.Errorf("%s: go says of %s %q before and %q after, want good and bad", name, c.folder, before, after)
		}
		if affected := targets.Delta(load(t, c.base), load(t, head)).Touched(); !strings.Contains(strings.Join(affected, " ")+" ", "m/"+c.folder+" ") {
			t.Errorf("%s: m/%s keeps its version; affected are %q", name, c.folder, affected)
		}
	}
}

// builds returns why go does not build a package; empty if it does.
func builds(t *testing.T, tree memoryTree, folder string) string {
	t.Helper()
	root := t.TempDir()
	for file, content := range tree {
		if err := os.MkdirAll(filepath.Join(root, folderOf(file)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-o", os.DevNull, "./"+folder)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	return string(out)
}
