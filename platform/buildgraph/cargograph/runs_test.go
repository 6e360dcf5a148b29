package cargograph

import "testing"

// beneath is a root package with members below it, one of which is run by tests.
var beneath = memoryTree{
	"Cargo.toml": "[package]\nname = \"root\"\nedition = \"2021\"\n\n[workspace]\nmembers = [\"crates/*\"]\n",
	"Cargo.lock": inner("root") + inner("w", "lib") + inner("lib") + inner("z"),
	"src/lib.rs": "", "tests/it.rs": "",
	"crates/w/Cargo.toml": "[package]\nname = \"w\"\n\n[[bin]]\nname = \"worker\"\npath = \"src/main.rs\"\n\n[dependencies]\nlib = { path = \"../lib\" }\n", "crates/w/src/main.rs": "", "crates/w/src/bin/second/main.rs": "",
	"crates/lib/Cargo.toml": "[package]\nname = \"lib\"\n", "crates/lib/src/lib.rs": "",
	"crates/z/Cargo.toml": "[package]\nname = \"z\"\n", "crates/z/src/lib.rs": "", "crates/z/tests/it.rs": "",
}

func TestATestDependsOnWhatItRunsAndReadsOfOtherMembers(t *testing.T) {
	const w, lib = "crates/w/src/main.rs", "crates/lib/src/lib.rs"
	const wItself, z, root = "cargo://crates/w, cargo://crates/w [test]", "cargo://crates/z [test]", "cargo://. [test]"
	const libItself = "cargo://crates/lib, cargo://crates/lib [test], " + wItself
	for name, c := range map[string]struct {
		file, code string
		edits      map[string]string
	}{
		"a package":             {"crates/z/tests/it.rs", `Command::new("cargo").args(["run", "-p", "w"])`, map[string]string{w: wItself + ", " + z, lib: libItself + ", " + z}},
		"a package by =":        {"crates/z/tests/it.rs", `Command::new("cargo").arg("--package=w")`, map[string]string{w: wItself + ", " + z}},
		"a version of it":       {"crates/z/tests/it.rs", `Command::new("cargo").args(["run", "--package", "w@0.0.0"])`, map[string]string{w: wItself + ", " + z}},
		"a package in a shell":  {"crates/z/tests/it.rs", `sh("set -e\ncargo run -q -p w -- x")`, map[string]string{w: wItself + ", " + z}},
		"a program":             {"crates/z/tests/it.rs", `Command::new("cargo").args(["run", "--bin", "worker"])`, map[string]string{w: wItself + ", " + z}},
		"a program by its file": {"crates/z/tests/it.rs", `Command::new("cargo").args(["run", "--bin", "second"])`, map[string]string{w: wItself + ", " + z}},
		"all packages":          {"crates/z/tests/it.rs", `Command::new("cargo").args(["build", "--workspace"])`, map[string]string{w: wItself + ", " + z, lib: libItself + ", " + z}},
		"another package":       {"crates/z/tests/it.rs", `Command::new("cargo").args(["run", "-p", "other"])`, map[string]string{w: wItself}},
		"a name alone":          {"crates/z/tests/it.rs", `f("w")`, map[string]string{w: wItself}},
		"a build script":        {"crates/z/build.rs", `fn main() { Command::new("cargo").args(["run", "-p", "w"]) }`, map[string]string{w: wItself + ", cargo://crates/z, " + z}},

		"the package's folder":       {"tests/it.rs", `for e in WalkDir::new(env!("CARGO_MANIFEST_DIR")) {}`, map[string]string{w: wItself + ", " + root}},
		"the folder in a variable":   {"tests/it.rs", `let dir = std::env::var("CARGO_MANIFEST_DIR").expect("a folder"); read(dir)`, map[string]string{w: wItself + ", " + root}},
		"a name behind the folder":   {"tests/it.rs", `Path::new(env!("CARGO_MANIFEST_DIR")).join(name)`, map[string]string{w: wItself + ", " + root}},
		"a text behind the folder":   {"tests/it.rs", `Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)`, map[string]string{w: wItself}},
		"a member behind the folder": {"tests/it.rs", `Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/w").join(name)`, map[string]string{w: wItself + ", " + root, lib: libItself}},
		"a pattern":                  {"tests/it.rs", `glob(concat!(env!("CARGO_MANIFEST_DIR"), "/**/*.rs"))`, map[string]string{w: wItself + ", " + root}},
		"the working folder":         {"tests/it.rs", `fs::read_dir(".")`, map[string]string{w: wItself + ", " + root}},
		"a pattern of it":            {"tests/it.rs", `glob("**/*.rs")`, map[string]string{w: wItself + ", " + root}},
		"where it is":                {"tests/it.rs", `WalkDir::new(std::env::current_dir().unwrap())`, map[string]string{w: wItself + ", " + root}},
		"a dot":                      {"tests/it.rs", `name.split(".")`, map[string]string{w: wItself}},
		"a folder without members":   {"crates/z/tests/it.rs", `fs::read_dir(".")`, map[string]string{w: wItself}},
		"a build script that walks":  {"build.rs", `fn main() { fs::read_dir(".") }`, map[string]string{w: wItself + ", cargo://., " + root}},
	} {
		tree := beneath.with(memoryTree{c.file: c.code})
		for file, want := range c.edits {
			if got := delta(t, Options{}, tree, tree.with(memoryTree{file: "x"})); got != sorted(want) {
				t.Errorf("%s: %s\n got %s\nwant %s", name, file, got, sorted(want))
			}
		}
	}
}

func TestRelativePathsOfConfiguredVariablesAreFilesOfAllTargets(t *testing.T) {
	tree := beneath.with(memoryTree{
		".cargo/config.toml": "[env]\nDATA_DIR = { value = \"data\", relative = true }\nOTHER = { value = \"other\" }\n", "data/v.txt": "1\n", "other/v.txt": "1\n",
	})
	all := "cargo://. [workspace]"
	for _, dir := range []string{".", "crates/lib", "crates/w", "crates/z"} {
		all += ", cargo://" + dir + ", cargo://" + dir + " [test]"
	}
	const root = "cargo://., cargo://. [test]"
	affects(t, tree, cases{
		"a file":                       {memoryTree{"data/v.txt": "2\n"}, all},
		"a new file":                   {memoryTree{"data/new.txt": "2\n"}, all},
		"a file of no relative folder": {memoryTree{"other/v.txt": "2\n"}, root},
	})
}
