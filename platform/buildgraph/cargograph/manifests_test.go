package cargograph

import (
	"strings"
	"testing"
)

// TestATestThatGoesThroughPackagesDependsOnAllManifests: they are in every closed workspace, so it would not fail for want of them.
func TestATestThatGoesThroughPackagesDependsOnAllManifests(t *testing.T) {
	for code, want := range map[string]bool{
		"#[test]\nfn editions() { for e in std::fs::read_dir(env!(\"CARGO_MANIFEST_DIR\").to_owned() + \"/\" + UP).unwrap() { read(e.unwrap().path().join(\"Cargo.toml\")) } }\n": true,
		"#[test]\nfn listed() { std::process::Command::new(env!(\"CARGO\")).arg(\"metadata\").output().unwrap(); }\n":                                                             true,
		"#[test]\nfn named() { Command::new(\"cargo\").args([\"tree\"]).output().unwrap(); }\n":                                                                                   true,
		"#[test]\nfn crates() { cargo_metadata::MetadataCommand::new().exec().unwrap(); }\n":                                                                                      true,
		"#[test]\nfn other() { Command::new(\"sh\").output().unwrap(); }\n":                                                                                                       false,
		"#[test]\nfn own() { read(\"Cargo.toml\") }\n":                                                                                                                            false,
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

// TestATestThatStartsAProgramInItsFolderDependsOnAllBelow: the program may go through whatever stands there.
func TestATestThatStartsAProgramInItsFolderDependsOnAllBelow(t *testing.T) {
	for code, want := range map[string]bool{
		"Command::new(\"grep\").args([\"-rn\", \"dbg!\", \".\"]).output()": true,
		"Command::new(\"git\").arg(\"grep\").output()":                     true,
		"Command::new(tool).args([\"--all\", \"./\"]).output()":            true,
		"Command::new(\"sh\").arg(\"run.sh\").output()":                    false,
		"split(\".\")": false,
	} {
		base := memoryTree{
			"Cargo.toml": "[package]\nname = \"top\"\nversion = \"0.1.0\"\n[workspace]\nmembers = [\"b\"]\n", "src/lib.rs": "", "tests/t.rs": "#[test]\nfn all() { " + code + "; }\n",
			"b/Cargo.toml": "[package]\nname = \"b\"\nversion = \"0.1.0\"\n", "b/src/lib.rs": "",
		}
		head := base.with(memoryTree{"b/src/lib.rs": "fn f() { dbg!(1); }\n"})
		if got := delta(t, Options{Commands: DefaultCommands()}, base, head); strings.Contains(got, "//. [test]") != want {
			t.Errorf("%s: affected: %s", code, got)
		}
	}
}
