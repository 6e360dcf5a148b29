package cargograph

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// closedWorkspace has members a, which needs b, and c with a program, a test and an example, and an external package in a folder.
var closedWorkspace = memoryTree{
	"Cargo.toml":                        "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n",
	".cargo/config.toml":                "[source.crates-io]\nreplace-with = \"vendored\"\n\n[source.vendored]\ndirectory = \"vendor\"\n",
	"vendor/ext/Cargo.toml":             "[package]\nname = \"ext\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
	"vendor/ext/src/lib.rs":             "pub fn one() -> i32 { 1 }\n",
	"vendor/ext/.cargo-checksum.json":   `{"files":{},"package":"0000000000000000000000000000000000000000000000000000000000000000"}`,
	"vendor/other/Cargo.toml":           "[package]\nname = \"other\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
	"vendor/other/src/lib.rs":           "",
	"vendor/other/.cargo-checksum.json": `{"files":{},"package":"1111111111111111111111111111111111111111111111111111111111111111"}`,
	"crates/a/Cargo.toml":               "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nb = { path = \"../b\" }\next = \"1\"\n",
	"crates/a/src/lib.rs":               "#[test]\nfn two() { assert_eq!(b::two() + ext::one(), 3) }\n",
	"crates/b/Cargo.toml":               "[package]\nname = \"b\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
	"crates/b/src/lib.rs":               "pub fn two() -> i32 { 2 }\n",
	"crates/b/README.md":                "b\n",
	"crates/c/Cargo.toml":               "[package]\nname = \"c\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[[bin]]\nname = \"tool\"\n\n[[test]]\nname = \"whole\"\n\n[[example]]\nname = \"use\"\npath = \"demo/use.rs\"\n\n[dependencies]\nother = \"1\"\n",
	"crates/c/src/bin/tool.rs":          "fn main() {}\n",
	"crates/c/tests/whole.rs":           "#[test]\nfn whole() {}\n",
	"crates/c/demo/use.rs":              "fn main() {}\n",
}

// runClosed runs the commands of each target of a tree in a closed workspace of its own, and returns the outputs of those that fail.
func runClosed(t *testing.T, tree memoryTree) (ran int, failed map[string]string) {
	t.Helper()
	graph, failed := loadWith(t, Options{Closed: true, Commands: DefaultCommands()}, tree), map[string]string{}
	cache := t.TempDir()
	for target := range graph.Targets() {
		space := graph.Workspace(target.Name)
		if space == nil {
			continue
		}
		root, held := t.TempDir(), memoryTree{}
		for file, whole := range space.Files {
			if held[file] = ""; whole {
				held[file] = tree[file]
			}
		}
		writeFiles(t, root, held)
		for _, c := range target.Commands {
			cmd := exec.CommandContext(t.Context(), c.Argv[0], c.Argv[1:]...)
			cmd.Dir = filepath.Join(root, c.Dir)
			cmd.Env = append(os.Environ(), append(c.Env, "CARGO_TARGET_DIR="+cache, "CARGO_NET_OFFLINE=true")...)
			ran++
			if out, err := cmd.CombinedOutput(); err != nil {
				failed[target.Name] += string(out)
			}
		}
	}
	return ran, failed
}

func TestAClosedWorkspaceIsEnoughForCargoAndShowsWhatItRefuses(t *testing.T) {
	root := t.TempDir()
	writeFiles(t, root, closedWorkspace)
	if _, err := cargo(root, "generate-lockfile", "--quiet", "--offline"); err != nil {
		unavailable(t, err)
	}
	lock, err := os.ReadFile(filepath.Join(root, "Cargo.lock"))
	if err != nil {
		t.Fatal(err)
	}
	tree := closedWorkspace.with(memoryTree{"Cargo.lock": string(lock)})
	if ran, failed := runClosed(t, tree); ran == 0 || len(failed) > 0 {
		t.Errorf("%d commands ran; failed: %q", ran, failed)
	}
	// cargo takes the folder for a member, and refuses all packages.
	if _, failed := runClosed(t, tree.with(memoryTree{"crates/docs/guide.md": "guide\n"})); len(failed) == 0 {
		t.Error("no target fails where cargo refuses the workspace")
	}
	graph := loadWith(t, Options{Closed: true, Commands: DefaultCommands()}, tree)
	files := graph.Workspace("cargo://crates/b").Files
	if whole, named := files["crates/c/src/bin/tool.rs"]; whole || !named {
		t.Errorf("of another member's code b finds %v", slices.Sorted(maps.Keys(files)))
	}
}
