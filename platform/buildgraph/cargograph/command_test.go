package cargograph

import (
	"path/filepath"
	"strings"
	"testing"
)

// plain is a workspace that needs no registry.
var plain = memoryTree{
	"Cargo.toml":                "[workspace]\nmembers = [\"crates/*\"]\nresolver = \"2\"\n",
	"crates/base/Cargo.toml":    "[package]\nname = \"base\"\nversion = \"0.2.0\"\nedition = \"2021\"\n",
	"crates/base/src/lib.rs":    "pub fn f() -> u8 { 1 }\n",
	"crates/base/tests/t.rs":    "#[test] fn t() { assert_eq!(base::f(), 1); }\n",
	"crates/app/Cargo.toml":     "[package]\nname = \"app\"\nedition = \"2021\"\n\n[dependencies]\nbase = { path = \"../base\" }\n",
	"crates/app/src/main.rs":    "fn main() { println!(\"{}\", base::f()); }\n",
	"nested/Cargo.toml":         "[package]\nname = \"nested\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[workspace]\n",
	"nested/src/lib.rs":         "#[test] fn t() {}\n",
	"crates/app/tests/wrong.rs": "#[test] fn t() { panic!(); }\n",
}

func TestTheDefaultCommandsVerifyWhatTheyAreFor(t *testing.T) {
	needCargo(t)
	root := t.TempDir()
	writeFiles(t, root, plain)
	if _, err := cargo(root, "generate-lockfile", "--offline"); err != nil {
		t.Fatal(err)
	}
	graph := loadWith(t, Options{Commands: DefaultCommands()}, readFolder(t, root))
	failing := map[string]bool{"cargo://crates/app [test]": true}
	ran := 0
	for target := range graph.Targets() {
		for _, c := range target.Commands {
			ran++
			if c.Argv[0] != "cargo" {
				t.Fatalf("%s runs %q", target.Name, c.Argv)
			}
			_, err := cargo(filepath.Join(root, c.Dir), c.Argv[1:]...)
			if (err != nil) != failing[target.Name] {
				t.Errorf("%s in %q: %v", target.Name, c.Dir, err)
			}
			if locked := strings.Contains(strings.Join(c.Argv, " "), "--locked"); locked != !strings.Contains(target.Name, "nested") {
				t.Errorf("%s: %q", target.Name, c.Argv)
			}
		}
	}
	if ran != 8 {
		t.Errorf("%d commands, want 8", ran)
	}
}

func TestTemplatesNameTheirPackage(t *testing.T) {
	graph := loadWith(t, Options{Commands: Commands{
		Package: []Template{{Name: "b", Argv: []string{"x", "{manifest}", "{dir}", "{name}", "{version}", "{workspace}", "{locked}"}, Timeout: 7}},
		Test:    []Template{{Name: "t", Argv: []string{"y"}, Dir: "{dir}"}},
	}}, sample)
	for name, want := range map[string]string{
		"cargo://crates/app":        "() x crates/app/Cargo.toml crates/app app 0.3.0 . --locked",
		"cargo://bench":             "(bench) x Cargo.toml bench bench 0.1.0 bench",
		"cargo://crates/app [test]": "(crates/app) y",
	} {
		target, ok := graph.Target(name)
		if !ok || len(target.Commands) != 1 {
			t.Errorf("%s: %+v", name, target)
			continue
		}
		c := target.Commands[0]
		if got := "(" + c.Dir + ") " + strings.Join(c.Argv, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
