package cargograph

import (
	"strings"
	"testing"
)

// sample is a repository of one workspace, and a package that it leaves out.
var sample = memoryTree{
	"Cargo.toml": `[workspace]
members = ["crates/*", "tools"]
exclude = ["bench"]
resolver = "2"

[workspace.package]
version = "0.3.0"
edition = "2021"

[workspace.dependencies]
serde = { version = "1.0", features = ["derive"] }
base = { path = "crates/base" }
log = "0.4"

[workspace.lints.rust]
unsafe_code = "forbid"

[profile.release]
lto = true
`,
	"Cargo.lock": `version = 4

[[package]]
name = "app"
version = "0.3.0"
dependencies = ["base", "log", "serde", "tempfile"]

[[package]]
name = "base"
version = "0.3.0"
dependencies = ["itoa"]

[[package]]
name = "fastrand"
version = "2.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "f1"

[[package]]
name = "free"
version = "0.1.0"

[[package]]
name = "itoa"
version = "1.0.1"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "i1"

[[package]]
name = "log"
version = "0.4.1"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "l1"

[[package]]
name = "serde"
version = "1.0.5"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "s1"
dependencies = ["itoa"]

[[package]]
name = "tempfile"
version = "3.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "t1"
dependencies = ["fastrand"]

[[package]]
name = "tools"
version = "0.1.0"
dependencies = ["base"]
`,
	"README.md": "readme\n",
	"crates/app/Cargo.toml": `[package]
name = "app"
version.workspace = true
edition.workspace = true

[dependencies]
base.workspace = true
serde.workspace = true

[target.'cfg(unix)'.dependencies]
log.workspace = true

[dev-dependencies]
tempfile = "3"

[lints]
workspace = true
`,
	"crates/app/src/main.rs":          "fn main() { println!(\"{}\", include_str!(\"../../../data/a.txt\")); }\n",
	"crates/app/tests/run.rs":         "#[path = \"../../../shared/mod.rs\"] mod shared;\n#[test] fn t() { std::fs::read(\"../../data/run.txt\").unwrap(); }\n",
	"crates/app/tests/fixtures/in":    "1\n",
	"crates/base/Cargo.toml":          "[package]\nname = \"base\"\nversion.workspace = true\n\n[dependencies]\nitoa = \"1\"\n",
	"crates/base/src/lib.rs":          "pub fn f() {}\n",
	"crates/base/src/one/two.txt":     "1\n",
	"crates/base/benches/b.rs":        "fn main() {}\n",
	"crates/free/Cargo.toml":          "[package]\nname = \"free\"\nversion = \"0.1.0\"\n",
	"crates/free/src/lib.rs":          "",
	"crates/free/examples/x/main.rs":  "fn main() {}\n",
	"tools/Cargo.toml":                "[package]\nname = \"tools\"\nversion = \"0.1.0\"\n\n[dependencies]\nbase = { path = \"../crates/base\" }\n",
	"tools/build.rs":                  "fn main() { println!(\"cargo:rerun-if-changed=../proto/a.proto\"); }\n",
	"tools/src/lib.rs":                "const P: &str = concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/..\", \"/docs\");\n",
	"tools/tests/t.rs":                "#[test] fn t() {}\n",
	"bench/Cargo.toml":                "[package]\nname = \"bench\"\nversion = \"0.1.0\"\n\n[dependencies]\nbase = { path = \"../crates/base\" }\nlog = \"0.4\"\n",
	"bench/src/lib.rs":                "",
	"stray/Cargo.toml":                "[package]\nname = \"stray\"\nversion = \"0.1.0\"\n",
	"stray/src/lib.rs":                "",
	"data/a.txt":                      "1\n",
	"data/run.txt":                    "1\n",
	"docs/d.md":                       "1\n",
	"proto/a.proto":                   "1\n",
	"shared/mod.rs":                   "mod deep;\n",
	"shared/deep.rs":                  "const S: &str = include_str!(\"../data/deep.txt\");\n",
	"shared/other.rs":                 "",
	"data/deep.txt":                   "1\n",
	"vendor/unused/Cargo.toml":        "not TOML at all\n",
	"crates/base/tests/fixtures/x.rs": "1\n",
}

const (
	theApp   = "cargo://crates/app, cargo://crates/app [test]"
	theBase  = "cargo://crates/base, cargo://crates/base [test]"
	theFree  = "cargo://crates/free, cargo://crates/free [test]"
	theTools = "cargo://tools, cargo://tools [test]"
	theBench = "cargo://bench, cargo://bench [test]"
	overBase = theBench + ", " + theApp + ", " + theBase + ", " + theTools
	inside   = "cargo://. [workspace], " + theApp + ", " + theBase + ", " + theFree + ", " + theTools
)

// edited replaces a text within a file of the sample.
func edited(t *testing.T, file, old, new string) memoryTree {
	t.Helper()
	if !strings.Contains(sample[file], old) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	return memoryTree{file: strings.Replace(sample[file], old, new, 1)}
}

func TestAVersionChangesExactlyWithWhatItCovers(t *testing.T) {
	root := func(old, new string) memoryTree { return edited(t, "Cargo.toml", old, new) }
	lock := func(old, new string) memoryTree { return edited(t, "Cargo.lock", old, new) }
	for name, c := range map[string]struct {
		edit memoryTree
		want string
	}{
		"a source":                              {memoryTree{"crates/base/src/lib.rs": "pub fn g() {}\n"}, overBase},
		"a source's mode":                       {memoryTree{"crates/app/src/main.rs": "mode 100755 " + sample["crates/app/src/main.rs"]}, theApp},
		"a new source":                          {memoryTree{"crates/base/src/new.rs": "x"}, overBase},
		"a file beside the sources":             {memoryTree{"crates/base/src/one/two.txt": "2\n"}, overBase},
		"a test":                                {memoryTree{"crates/app/tests/run.rs": "x"}, "cargo://crates/app [test]"},
		"a new test":                            {memoryTree{"crates/base/tests/new.rs": "x"}, "cargo://crates/base [test]"},
		"data of a test":                        {memoryTree{"crates/app/tests/fixtures/in": "2\n"}, "cargo://crates/app [test]"},
		"a benchmark":                           {memoryTree{"crates/base/benches/b.rs": "x"}, "cargo://crates/base [test]"},
		"a test beside a build script":          {memoryTree{"tools/tests/t.rs": "x"}, theTools},
		"a file that include_str names":         {memoryTree{"data/a.txt": "2\n"}, theApp},
		"a file that a test opens":              {memoryTree{"data/run.txt": "2\n"}, "cargo://crates/app [test]"},
		"a file of a test by #[path]":           {memoryTree{"shared/mod.rs": "x"}, "cargo://crates/app [test]"},
		"a module of that":                      {memoryTree{"shared/deep.rs": "x"}, "cargo://crates/app [test]"},
		"a file that the module includes":       {memoryTree{"data/deep.txt": "2\n"}, "cargo://crates/app [test]"},
		"a file beside it":                      {memoryTree{"shared/other.rs": "x"}, ""},
		"what a build script watches":           {memoryTree{"proto/a.proto": "2\n"}, theTools},
		"a path made of parts":                  {memoryTree{"docs/d.md": "2\n"}, "cargo://tools [test]"},
		"a new file in a folder so named":       {memoryTree{"docs/deep/new.md": "2\n"}, "cargo://tools [test]"},
		"a file that nothing has":               {memoryTree{"README.md": "2\n"}, ""},
		"a package in no workspace's members":   {memoryTree{"stray/src/lib.rs": "x"}, ""},
		"a vendored package that nothing takes": {memoryTree{"vendor/unused/x.rs": "x"}, ""},
		"a comment in the root":                 {root("[workspace]", "# comment\n[workspace]"), "cargo://. [workspace]"},
		"a profile":                             {root("lto = true", "lto = false"), inside},
		"the resolver":                          {root(`resolver = "2"`, `resolver = "3"`), inside},
		"a lint":                                {root("forbid", "deny"), "cargo://. [workspace], " + theApp},
		"an inherited dependency":               {root(`["derive"]`, `["rc"]`), "cargo://. [workspace], " + theApp},
		"an inherited path":                     {root(`path = "crates/base" }`, `path = "crates/base", default-features = false }`), "cargo://. [workspace], " + theApp},
		"an inherited dependency nobody has":    {root(`log = "0.4"`, "log = \"0.4\"\nnew = \"1\""), "cargo://. [workspace]"},
		"a manifest":                            {memoryTree{"crates/free/Cargo.toml": sample["crates/free/Cargo.toml"] + "# x\n"}, "cargo://. [workspace], " + theFree},
		"a checksum":                            {lock(`"l1"`, `"l2"`), "cargo://. [workspace], " + theApp},
		"a version that only tests need":        {lock("checksum = \"f1\"", "checksum = \"f2\""), "cargo://. [workspace], cargo://crates/app [test]"},
		"a version that all reach":              {lock(`"i1"`, `"i2"`), "cargo://. [workspace], " + theApp + ", " + theBase + ", " + theTools},
		"a package that nothing needs":          {lock("[[package]]\nname = \"free\"", "[[package]]\nname = \"aaa\"\nversion = \"1.0.0\"\nsource = \"x\"\n\n[[package]]\nname = \"free\""), inside},
		"a package that the lock file lacks":    {edited(t, "crates/free/Cargo.toml", "version", "[dependencies]\nnew = \"1\"\n[package.metadata]\nversion"), inside},
		"another lock file":                     {memoryTree{"bench/Cargo.lock": "version = 4\n[[package]]\nname = \"base\"\nversion = \"0.3.0\"\n"}, "cargo://bench [workspace], " + theBench},
		"a toolchain":                           {memoryTree{"rust-toolchain.toml": "[toolchain]\nchannel = \"1.90\"\n"}, "cargo://bench [workspace], " + theBench + ", " + inside},
		"a configuration of one folder":         {memoryTree{"bench/.cargo/config.toml": "[build]\nrustflags = [\"-g\"]\n"}, "cargo://bench [workspace], " + theBench},
		"a new member":                          {memoryTree{"crates/new/Cargo.toml": "[package]\nname = \"new\"\n"}, inside + ", cargo://crates/new, cargo://crates/new [test]"},
		"a member that is none":                 {memoryTree{"crates/hollow/x": "1\n"}, inside},
		"a workspace around a package":          {memoryTree{"crates/free/Cargo.toml": sample["crates/free/Cargo.toml"] + "[workspace]\n"}, "cargo://crates/free [workspace], " + inside},
		"a package within one":                  {memoryTree{"crates/free/src/in/Cargo.toml": "[package]\nname = \"in\"\n"}, "cargo://. [workspace], " + theFree},
		"a file of a stray package in the root": {memoryTree{"stray/new.rs": "x"}, ""},
	} {
		if got := delta(t, Options{}, sample, sample.with(c.edit)); got != sorted(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, sorted(c.want))
		}
	}
}
