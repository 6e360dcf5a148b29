package cargograph

import (
	"strings"
	"testing"
)

// TestATestThatGoesThroughPackagesDependsOnAllManifests: they are in every closed workspace, so it would not fail for want of them.
func TestATestThatGoesThroughPackagesDependsOnAllManifests(t *testing.T) {
	for code, want := range map[string]bool{
		"#[test]\nfn editions() { for e in std::fs::read_dir(env!(\"CARGO_MANIFEST_DIR\").to_owned() + \"/\" + UP).unwrap() { read(e.unwrap().path().join(\"Cargo.toml\")) } }\n": true,
		"#[test]\nfn own() { read(\"Cargo.toml\") }\n": false,
	} {
		base := memoryTree{
			"Cargo.toml": "[workspace]\nmembers = [\"a\", \"b\"]\n", "a/Cargo.toml": "[package]\nname = \"a\"\nversion = \"0.1.0\"\n", "a/src/lib.rs": "", "a/tests/t.rs": code,
			"b/Cargo.toml": "[package]\nname = \"b\"\nversion = \"0.1.0\"\nedition = \"2018\"\n", "b/src/lib.rs": "",
		}
		head := base.with(memoryTree{"b/Cargo.toml": strings.Replace(base["b/Cargo.toml"], "2018", "2021", 1)})
		if got := delta(t, Options{Commands: DefaultCommands()}, base, head); strings.Contains(got, "a [test]") != want {
			t.Errorf("%s: affected: %s", code, got)
		}
	}
}
