package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"landfall.build/platform/sandbox"
)

// TestToolsBehindLinksAreReadable: an environment of Python's venv holds links to the interpreter, and ~/.local/bin links to
// programs kept elsewhere.
func TestToolsBehindLinksAreReadable(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	for _, file := range []string{"pythons/3.11/bin/python3", "pythons/3.11/lib/os.py", "src/secret", "src/tool", ".hidden/bin/x", ".hidden/lib/y",
		".npm-global/lib/node_modules/pnpm/bin/pnpm.cjs", ".npm-global/lib/node_modules/pnpm/dist/pnpm.cjs"} {
		if err := os.MkdirAll(filepath.Dir(at(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at(file), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{
		"venv/bin/python": "python3", "venv/bin/python3": at("pythons/3.11/bin/python3"), "venv/bin/gone": at("gone"),
		"bin/tool": at("src/tool"), "bin/x": at(".hidden/bin/x"), "bin/folder": at("src"),
		".npm-global/bin/pnpm": "../lib/node_modules/pnpm/bin/pnpm.cjs",
	} {
		if err := os.MkdirAll(filepath.Dir(at(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	got := sandbox.ToolPaths(at("venv/bin")+":"+at("bin")+":"+at(".npm-global/bin")+":relative", at("home"))
	slices.Sort(got)
	want := []string{at(".hidden/bin/x"), at(".npm-global/bin"), at(".npm-global/lib/node_modules"), at("bin"), at("pythons/3.11"), at("src/tool"), at("venv/bin")}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
