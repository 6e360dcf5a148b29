package cargograph

import (
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

// affects checks what edits of a tree affect.
func affects(t *testing.T, tree memoryTree, cases map[string]struct {
	edit memoryTree
	want string
}) {
	t.Helper()
	for name, c := range cases {
		if got := delta(t, Options{}, tree, tree.with(c.edit)); got != sorted(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, sorted(c.want))
		}
	}
}

type cases = map[string]struct {
	edit memoryTree
	want string
}

// external returns a package of a lock file.
func external(name, version, checksum string, deps ...string) string {
	text := "[[package]]\nname = \"" + name + "\"\nversion = \"" + version + "\"\nsource = \"registry+x\"\nchecksum = \"" + checksum + "\"\n"
	if len(deps) > 0 {
		text += "dependencies = [\"" + strings.Join(deps, "\", \"") + "\"]\n"
	}
	return text
}

func inner(name string, deps ...string) string {
	text := "[[package]]\nname = \"" + name + "\"\nversion = \"0.0.0\"\n"
	if len(deps) > 0 {
		text += "dependencies = [\"" + strings.Join(deps, "\", \"") + "\"]\n"
	}
	return text
}

// features has a package whose tests need another, which needs an external package.
func features(resolver string) memoryTree {
	return memoryTree{
		"Cargo.toml":   "[workspace]\nmembers = [\"*\"]\nresolver = \"" + resolver + "\"\n",
		"Cargo.lock":   inner("a", "b", "dev") + inner("b", "log") + inner("user", "a") + external("dev", "1.0.0", "d1") + external("log", "1.0.0", "l1"),
		"a/Cargo.toml": "[package]\nname = \"a\"\n\n[dev-dependencies]\nb = { path = \"../b\" }\ndev = \"1\"\n", "a/src/lib.rs": "",
		"b/Cargo.toml": "[package]\nname = \"b\"\n\n[dependencies]\nlog = \"1\"\n", "b/src/lib.rs": "",
		"user/Cargo.toml": "[package]\nname = \"user\"\n\n[dependencies]\na = { path = \"../a\" }\n", "user/src/lib.rs": "",
	}
}

func TestTestsDecideAboutFeaturesWithTheFirstResolverOnly(t *testing.T) {
	const code = "cargo://a, cargo://a [test], cargo://user, cargo://user [test]"
	for resolver, c := range map[string][2]string{"1": {code, code}, "2": {"cargo://a [test]", "cargo://a [test]"}} {
		tree := features(resolver)
		lock := func(old, new string) memoryTree {
			return memoryTree{"Cargo.lock": strings.Replace(tree["Cargo.lock"], old, new, 1)}
		}
		affects(t, tree, cases{
			"resolver " + resolver + ": a package that tests need":       {lock("d1", "d2"), "cargo://. [workspace], " + c[0]},
			"resolver " + resolver + ": one that this one needs":         {lock("l1", "l2"), "cargo://. [workspace], cargo://b, cargo://b [test], " + c[1]},
			"resolver " + resolver + ": the code of what tests need":     {memoryTree{"b/src/lib.rs": "x"}, "cargo://a [test], cargo://b, cargo://b [test]"},
			"resolver " + resolver + ": a manifest of what tests need":   {memoryTree{"b/Cargo.toml": tree["b/Cargo.toml"] + "# x\n"}, "cargo://. [workspace], cargo://b, cargo://b [test], " + c[0]},
			"resolver " + resolver + ": a manifest of what nobody needs": {memoryTree{"user/Cargo.toml": tree["user/Cargo.toml"] + "# x\n"}, "cargo://. [workspace], cargo://user, cargo://user [test]"},
		})
	}
}

func TestTheResolverIsThatOfTheRoot(t *testing.T) {
	for root, separate := range map[string]bool{
		"[workspace]\nmembers = [\"a\"]\n":                                                                          false,
		"[workspace]\nmembers = [\"a\"]\nresolver = \"2\"\n":                                                        true,
		"[package]\nname = \"r\"\nedition = \"2018\"\n":                                                             false,
		"[package]\nname = \"r\"\nedition = \"2021\"\n":                                                             true,
		"[package]\nname = \"r\"\nedition = \"2024\"\nresolver = \"1\"\n":                                           false,
		"[package]\nname = \"r\"\nedition.workspace = true\n[workspace]\n[workspace.package]\nedition = \"2024\"\n": true,
		"[package]\nname = \"r\"\n":                                                                                 false,
	} {
		w := &workspace{crate: &crate{manifest: parseManifest([]byte(root))}}
		if got := w.separatesFeatures(); got != separate {
			t.Errorf("%s: %v", root, got)
		}
	}
}

func TestVendoredPackagesCountByTheirFolders(t *testing.T) {
	tree := memoryTree{
		"Cargo.toml":         "[workspace]\nmembers = [\"a\", \"b\"]\nresolver = \"2\"\n",
		"Cargo.lock":         inner("a", "log") + inner("b", "itoa") + external("itoa", "1.0.0", "i1") + external("log", "1.0.0", "l1", "itoa"),
		".cargo/config.toml": "[source.crates-io]\nreplace-with = \"v\"\n\n[source.v]\ndirectory = \"vendor\"\n",
		"a/Cargo.toml":       "[package]\nname = \"a\"\n\n[dependencies]\nlog = \"1\"\n", "a/src/lib.rs": "",
		"b/Cargo.toml": "[package]\nname = \"b\"\n\n[dependencies]\nitoa = \"1\"\n", "b/src/lib.rs": "",
		"vendor/log/Cargo.toml": "[package]\nname = \"log\"\n", "vendor/log/src/lib.rs": "",
		"vendor/itoa-1.0.0/Cargo.toml": "[package]\nname = \"itoa\"\n", "vendor/itoa-1.0.0/src/lib.rs": "",
	}
	const a, b = "cargo://a, cargo://a [test]", "cargo://b, cargo://b [test]"
	affects(t, tree, cases{
		"a file of one":               {memoryTree{"vendor/log/src/lib.rs": "x"}, a},
		"a file of one that both use": {memoryTree{"vendor/itoa-1.0.0/src/lib.rs": "x"}, a + ", " + b},
		"a new file":                  {memoryTree{"vendor/log/build.rs": "x"}, a},
		"a folder of no package":      {memoryTree{"vendor/other/Cargo.toml": "x"}, "cargo://. [workspace], " + a + ", " + b},
	})
}

func TestPatchesPutFoldersInThePlaceOfPackages(t *testing.T) {
	tree := memoryTree{
		"Cargo.toml":   "[workspace]\nmembers = [\"a\", \"b\"]\nresolver = \"2\"\n\n[patch.crates-io]\nlog = { path = \"vendor/log\" }\n",
		"Cargo.lock":   inner("a", "serde") + inner("b") + external("serde", "1.0.0", "s1", "log") + inner("log", "itoa") + external("itoa", "1.0.0", "i1"),
		"a/Cargo.toml": "[package]\nname = \"a\"\n\n[dependencies]\nserde = \"1\"\n", "a/src/lib.rs": "",
		"b/Cargo.toml": "[package]\nname = \"b\"\n", "b/src/lib.rs": "",
		"vendor/log/Cargo.toml": "[package]\nname = \"log\"\n\n[dependencies]\nitoa = \"1\"\n", "vendor/log/src/lib.rs": "",
	}
	const a, b = "cargo://a, cargo://a [test]", "cargo://b, cargo://b [test]"
	affects(t, tree, cases{
		"a file of the folder":       {memoryTree{"vendor/log/src/lib.rs": "x"}, a},
		"what the folder needs":      {memoryTree{"Cargo.lock": strings.Replace(tree["Cargo.lock"], "i1", "i2", 1)}, "cargo://. [workspace], " + a},
		"the manifest of the folder": {memoryTree{"vendor/log/Cargo.toml": tree["vendor/log/Cargo.toml"] + "# x\n"}, "cargo://. [workspace], " + a},
		"the patch":                  {memoryTree{"Cargo.toml": strings.Replace(tree["Cargo.toml"], "vendor/log", "vendor/other", 1)}, "cargo://. [workspace], " + a + ", " + b},
	})
}

func TestWithoutALockFileAllManifestsDecideAboutVersions(t *testing.T) {
	tree := features("2")
	delete(tree, "Cargo.lock")
	affects(t, tree, cases{
		"a manifest of a package without external ones": {memoryTree{"user/Cargo.toml": tree["user/Cargo.toml"] + "# x\n"},
			"cargo://. [workspace], cargo://a [test], cargo://b, cargo://b [test], cargo://user, cargo://user [test]"},
		"code": {memoryTree{"a/src/lib.rs": "x"}, "cargo://a, cargo://a [test], cargo://user, cargo://user [test]"},
	})
}

func TestSymbolicLinksAreFollowed(t *testing.T) {
	tree := memoryTree{
		"a/Cargo.toml": "[package]\nname = \"a\"\n", "a/src/lib.rs": "mod shared;\n", "a/src/shared.rs": "mode 120000 ../../shared/s.rs",
		"a/tests/data": "mode 120000 ../../data", "shared/s.rs": "const S: &str = include_str!(\"../../other/x.txt\");\n", "data/deep/d.txt": "1\n", "other/x.txt": "1\n",
	}
	affects(t, tree, cases{
		"the file":                      {memoryTree{"shared/s.rs": "x"}, "cargo://a, cargo://a [test]"},
		"a file that it includes":       {memoryTree{"other/x.txt": "2\n"}, "cargo://a, cargo://a [test]"},
		"a file in a folder":            {memoryTree{"data/deep/d.txt": "2\n"}, "cargo://a [test]"},
		"a new file in a folder":        {memoryTree{"data/new": "2\n"}, "cargo://a [test]"},
		"the link":                      {memoryTree{"a/tests/data": "mode 120000 ../../other"}, "cargo://a [test]"},
		"a link that leads to itself":   {memoryTree{"a/tests/data": "mode 120000 data"}, "cargo://a [test]"},
		"a link out of the repository":  {memoryTree{"a/tests/data": "mode 120000 /etc"}, "cargo://a [test]"},
		"a file that nothing leads to":  {memoryTree{"shared/t.rs": "x"}, ""},
		"a file beside an included one": {memoryTree{"other/y.txt": "2\n"}, ""},
	})
}

func TestOldLockFilesAreUnderstood(t *testing.T) {
	const source = "registry+https://github.com/rust-lang/crates.io-index"
	lock := parseLock([]byte(`[root]
name = "a"
version = "0.0.0"
dependencies = ["log 1.0.0 (` + source + `)", "g 1.0.0 (git+https://x/g?branch=b)"]

[[package]]
name = "log"
version = "1.0.0"
source = "` + source + `"

[[package]]
name = "g"
version = "1.0.0"
source = "git+https://x/g?branch=b#1234"

[metadata]
"checksum log 1.0.0 (` + source + `)" = "l1"
`))
	if len(lock.found) > 0 || len(lock.packages) != 3 || lock.packages[0].checksum != "l1" || len(lock.packages[2].deps) != 2 {
		t.Errorf("%+v", lock)
	}
}

func TestUndeclaredInputsAndTheEnvironmentCount(t *testing.T) {
	base := Options{}
	all := "cargo://bench [workspace], " + theBench + ", " + inside
	for name, c := range map[string]struct {
		options Options
		edit    memoryTree
		want    string
	}{
		"a file of all":     {Options{Inputs: []Input{{Files: []string{"README.md"}}}}, memoryTree{"README.md": "2\n"}, all},
		"a file of one":     {Options{Inputs: []Input{{Folders: []string{"tools"}, Files: []string{"docs2/*.md"}}}}, memoryTree{"docs2/new.md": "2\n"}, theTools},
		"a file beside it":  {Options{Inputs: []Input{{Folders: []string{"tools"}, Files: []string{"docs2/*.md"}}}}, memoryTree{"README.md": "2\n"}, ""},
		"nothing":           {base, memoryTree{"README.md": "2\n"}, ""},
		"an ignored folder": {Options{IgnoreFolders: []string{"bench"}}, memoryTree{"bench/src/lib.rs": "x"}, ""},
	} {
		if got := delta(t, c.options, sample, sample.with(c.edit)); got != sorted(c.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, sorted(c.want))
		}
	}
	for name, o := range map[string]Options{"a toolchain": {Toolchain: "1.95"}, "a variable": {Env: []string{"RUSTFLAGS=-g"}}} {
		if got := namesOf(targets.Delta(loadWith(t, base, sample), loadWith(t, o, sample))); got != sorted(all) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A test that leaves its package's folder by parent() depends on what it names, and where that is not known on the whole repository.
func TestWhatATestReadsByParentIsPartOfIt(t *testing.T) {
	const here = `env!("CARGO_MANIFEST_DIR")`
	for code, want := range map[string][2]bool{ // edits of data/x and of other/y
		`read(Path::new(` + here + `).parent().unwrap().join("data").join("x"))`:    {true, false},
		`read_dir(Path::new(` + here + `).parent().unwrap().join(name))`:            {true, true},
		`let at = PathBuf::from(` + here + `); read_dir(at.parent().unwrap())`:      {true, true},
		`let mut at = std::env::current_dir().unwrap(); at.pop(); at.push(name)`:    {true, true},
		`read_dir(std::env::current_dir().unwrap().join("..").join(name))`:          {true, true},
		`for at in Path::new(file!()).ancestors() { at.join(name) }`:                {true, true},
		`let at = std::env::var("CARGO_MANIFEST_DIR")?; Path::new(&at).ancestors()`: {true, true},
		`let out = PathBuf::from(name); create_dir_all(out.parent().unwrap())`:      {false, false},
	} {
		tree := memoryTree{
			"a/Cargo.toml": "[package]\nname = \"a\"\nversion = \"1.0.0\"\n", "a/src/lib.rs": "\n", "a/tests/t.rs": "#[test]\nfn t() { " + code + "; }\n",
			"data/x": "1\n", "other/y": "1\n",
		}
		for i, file := range []string{"data/x", "other/y"} {
			if got := strings.Contains(delta(t, Options{}, tree, tree.with(memoryTree{file: "2\n"})), "a [test]"); got != want[i] {
				t.Errorf("%s: an edit of %s affects it: %v, want %v", code, file, got, want[i])
			}
		}
	}
}

// A text can begin with a placeholder for the package's folder, and have others further on.
func TestWhatATextWithPlaceholdersNamesIsPartOfTheTest(t *testing.T) {
	const here = `env!("CARGO_MANIFEST_DIR")`
	files := []string{"Cargo.toml", "data/x.json", "crates/b/Cargo.toml", "crates/b/x.json", "crates/b/src/lib.rs", "crates/b/new/x.json"}
	for code, want := range map[string]string{
		`read(format!("{}/../../Cargo.toml", ` + here + `))`:         "Cargo.toml",
		`read(format!("{}/../../data/x.json", ` + here + `))`:        "data/x.json",
		`read(format!(r#"{}/../../data/x.json"#, ` + here + `))`:     "data/x.json",
		`read(format!("{dir}/../b/Cargo.toml"))`:                     "crates/b/Cargo.toml",
		`read(format!("{0:?}/../b/x.json", dir))`:                    "crates/b/x.json",
		`read(format!("{}/../../{}", ` + here + `, "a"))`:            strings.Join(files, ", "),
		`read(format!("{}/../{}/Cargo.toml", ` + here + `, n))`:      "Cargo.toml, crates/b/Cargo.toml",
		`read(format!("../{n}/Cargo.toml"))`:                         "Cargo.toml, crates/b/Cargo.toml",
		`read(format!(r"../{n}/Cargo.toml"))`:                        "Cargo.toml, crates/b/Cargo.toml",
		`read(format!("../{n}/x.json"))`:                             "crates/b/x.json, crates/b/new/x.json",
		`read(format!("../{n}.json"))`:                               "crates/b/x.json, crates/b/new/x.json",
		`read_dir(format!("{}/../../data", ` + here + `))`:           "data/x.json",
		`read_dir(format!("{}/..", ` + here + `))`:                   "crates/b/Cargo.toml, crates/b/x.json, crates/b/src/lib.rs, crates/b/new/x.json",
		`include_dir!("$CARGO_MANIFEST_DIR/..")`:                     "crates/b/Cargo.toml, crates/b/x.json, crates/b/src/lib.rs, crates/b/new/x.json",
		`read_dir(dir.join("{}/.."))`:                                "",
		`read(format!("../{n}/src"))`:                                "crates/b/src/lib.rs, crates/b/new/x.json",
		`read(format!("../{n}"))`:                                    "crates/b/Cargo.toml, crates/b/x.json, crates/b/src/lib.rs, crates/b/new/x.json",
		`read(format!("../{n}/../x.json"))`:                          "crates/b/Cargo.toml, crates/b/x.json, crates/b/src/lib.rs, crates/b/new/x.json",
		`read(format!("../../data/{n}.json"))`:                       "data/x.json",
		`read(format!("../b/{n}/x.txt"))`:                            "crates/b/Cargo.toml, crates/b/x.json, crates/b/src/lib.rs, crates/b/new/x.json",
		`glob("../*/src/*.rs")`:                                      "crates/b/src/lib.rs, crates/b/new/x.json",
		`include_dir!("$CARGO_MANIFEST_DIR/../../data")`:             "data/x.json",
		`include_dir!("${CARGO_MANIFEST_DIR}/../../data")`:           "data/x.json",
		`#[folder = "$CARGO_MANIFEST_DIR/../../data"] struct Assets`: "data/x.json",
		`read(concat!(` + here + `, "/../../data/x.json"))`:          "data/x.json",
		`read(format!("{}/data/x.json", ` + here + `))`:              "",
		`format!("{} of {}", a, b)`:                                  "",
		`format!("{{}}")`:                                            "",
		`read(format!("{a}{b}/x.json"))`:                             "",
	} {
		base := memoryTree{
			"Cargo.toml": "[workspace]\nmembers = [\"crates/*\"]\n", "data/x.json": "1\n", "crates/a/tests/t.rs": "#[test]\nfn t() { " + code + "; }\n",
			"crates/a/Cargo.toml": "[package]\nname = \"a\"\nversion = \"0.1.0\"\n", "crates/a/src/lib.rs": "",
			"crates/b/Cargo.toml": "[package]\nname = \"b\"\nversion = \"0.1.0\"\n", "crates/b/src/lib.rs": "", "crates/b/x.json": "1\n",
		}
		var got []string
		for _, file := range files {
			if strings.Contains(delta(t, Options{}, base, base.with(memoryTree{file: base[file] + "# 2\n"})), "crates/a [test]") {
				got = append(got, file)
			}
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s is affected by\n     %s\nwant %s", code, got, want)
		}
	}
}
