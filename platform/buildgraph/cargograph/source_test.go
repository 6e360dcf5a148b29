package cargograph

import (
	"fmt"
	"testing"
)

func TestTextsOfRustAreFoundWhereTheyStand(t *testing.T) {
	for source, want := range map[string]string{
		`const A: &str = include_str!("../a.txt");`:    "built ../a.txt",
		`const A: &str = include_str!(r#"../a.txt"#);`: "built ../a.txt",
		`const A: &[u8] = include_bytes!(b"../a\
			.bin");`: "built ../a.bin",
		`fn f() { open("../a.txt"); }`:                                          "run ../a.txt",
		`fn f<'a>(x: &'a str, c: char) { if c == '"' || c == '\'' { g("x") } }`: "run x",
		`// include_str!("a.txt")
		/* "b" /* "c" */ "d" */ f("e")`: "run e",
		`/// let x = open("../doc.txt");`:                                                                      "run ../doc.txt",
		`include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../gen", "/x.rs"));`:                                   "built /../gen, built /x.rs, manifestDir",
		`include!(concat!(env!("CARGO_MANIFEST_DIR"), "/..", "/x.rs"));`:                                       "built ../x.rs, built /x.rs, manifestDir",
		`Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join("..").join("x")`:                                "run ../../x, run x, manifestDir",
		`Path::new(env!("CARGO_MANIFEST_DIR")).join("..");`:                                                    "runUp .., manifestDir",
		`Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("x")`:                                    "run ../x, run x, manifestDir",
		`PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).parent().unwrap().parent().unwrap().join("x")`: "run ../../x, run x, manifestDir",
		`let up = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();`:                                    "runUp .., manifestDir",
		`let here = env!("CARGO_MANIFEST_DIR"); let up = Path::new(here).parent();`:                            "manifestDir, above",
		`let here = env::current_dir()?; let mut at = here.clone(); at.pop(); at.read_dir()`:                   "manifestDir, above",
		`read_dir(env::current_dir()?.join("..").join(name))`:                                                  "runUp .., manifestDir",
		`for up in Path::new(file!()).ancestors() {}`:                                                          "above",
		`let out = PathBuf::from(x); create_dir_all(out.parent());`:                                            "",
		`include_str!(concat!(env!("ROOT"), "data/x"))`:                                                        "built data/x, otherDir",
		`include!(concat!(env!("OUT_DIR"), "/x.rs"));`:                                                         "built /x.rs",
		`#[path = "../x.rs"] mod x;`:                                                                           "built ../x.rs, module x, path ../x.rs",
		`mod a { pub mod b { #[path = "c.rs"] mod d; } mod e; } mod r#f;`:                                      "built c.rs, module a/b/d, module a/e, module f, path a/b/c.rs",
		`assert_eq!(include_str!("../a"), format!("../b"));`:                                                   "built ../a, run ../b",
		`println!("cargo:rerun-if-changed=../x");`:                                                             "run cargo:rerun-if-changed=../x",
		`lazy! { static X: &str = read("../x"); }`:                                                             "built ../x",
		`let x = r"unterminated`:                                                                               "run unterminated",
		`let x = "\`:                                                                                           `run \`,
	} {
		f := readSource([]byte(source))
		got := ""
		add := func(kind string, texts []string) {
			for _, text := range texts {
				got += fmt.Sprintf(", %s %s", kind, text)
			}
		}
		add("built", f.built)
		add("run", f.run)
		add("builtUp", f.builtUp)
		add("runUp", f.runUp)
		add("module", f.modules)
		add("path", f.paths)
		if f.manifestDir {
			got += ", manifestDir"
		}
		if f.above {
			got += ", above"
		}
		if f.otherDir {
			got += ", otherDir"
		}
		if got != "" {
			got = got[2:]
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", source, got, want)
		}
	}
}

func FuzzRustSourcesAreReadToTheirEnd(f *testing.F) {
	f.Add([]byte(`mod a { include_str!("x") } 'a' "\u{1}" r##"x"##`))
	f.Fuzz(func(t *testing.T, content []byte) {
		facts := readSource(content)
		for _, text := range facts.built {
			if len(text) > maxText {
				t.Errorf("a text of %d bytes", len(text))
			}
		}
	})
}

func FuzzDefinitionsAreReadOrRefused(f *testing.F) {
	for _, text := range sample {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		parseLock(content)
		parseConfig(content)
		m := parseManifest(content)
		if len(m.found) == 0 && m.pkg == nil && m.workspace == nil {
			t.Error("a manifest of nothing is accepted")
		}
		tree := memoryTree{"Cargo.toml": string(content), "Cargo.lock": string(content), "src/lib.rs": string(content)}
		graph, err := newLoader(t, Options{}).Load(t.Context(), "", tree)
		if err == nil {
			checkSameGraph(t, graph, load(t, tree))
		}
	})
}
