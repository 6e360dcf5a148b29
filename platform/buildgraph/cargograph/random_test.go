package cargograph

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

// model is a repository by independent parts: git merges edits of two parts, also where both are in one file. A part is a file
// ("file a/b"), an entry of a manifest ("entry DIR TABLE KEY") or a package of the lock file ("lock DIR NAME VERSION"); an
// empty text takes it away.
type model map[string]string

var (
	modelFolders = []string{"", "a", "b", "a/in", "ws", "ws/x", "vendor/v", "lib"}
	modelFiles   = []string{"src/lib.rs", "src/m.rs", "tests/t.rs", "build.rs", "data/d.txt", "x.txt", "src/deep/y.rs"}
	modelNames   = map[string]string{"": "root", "a": "a", "b": "b", "a/in": "in", "ws": "ws", "ws/x": "x", "vendor/v": "v", "lib": "lib"}
	modelTexts   = []string{"", "", "// 1", "// 2", `include_str!("../../b/data/d.txt")`, `include_str!("../x.txt")`, `fn f() { open("../a/data"); }`,
		`#[path = "../../lib/src/lib.rs"] mod lib;`, `mod m;`, `concat!(env!("CARGO_MANIFEST_DIR"), "/..");`, `x!("tests/t.rs")`,
		`include!("../../lib/in/src/lib.rs");`, `open("in/x.txt")`, `println!("cargo:rerun-if-changed=../ws");`,
		`open(format!("{}/../b/data/d.txt", at))`, `open(format!("../{at}/x.txt"))`, `x!("../{at}/Cargo.toml")`}
	outside = []string{"serde", "log", "itoa"}
)

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// relativeFolder returns the way from one folder to another.
func relativeFolder(from, to string) string {
	if from == to {
		return "."
	}
	return relative(from, to)
}

func (m model) change(r *rand.Rand, edits int) model {
	c := model{}
	for range edits {
		dir := pick(r, modelFolders)
		entry := func(table, key, value string) {
			if r.IntN(4) == 0 {
				value = ""
			}
			c["entry "+dir+" "+table+" "+key] = value
		}
		switch r.IntN(18) {
		case 0, 1, 2, 3, 4:
			text := ""
			if r.IntN(5) > 0 {
				text = pick(r, modelTexts) + fmt.Sprintf("\n// %d\n", r.IntN(3))
			}
			c["file "+below(dir, pick(r, modelFiles))] = text
		case 5, 6:
			entry("package", "name", strconv.Quote(modelNames[dir]))
		case 7, 8:
			to := pick(r, modelFolders)
			entry(pick(r, []string{"dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"}), modelNames[to],
				fmt.Sprintf("{ path = %q }", relativeFolder(dir, to)))
		case 9:
			entry(pick(r, []string{"dependencies", "dev-dependencies"}), pick(r, outside), pick(r, []string{`"1"`, `"2"`, "{ workspace = true }"}))
		case 10:
			entry("workspace.dependencies", pick(r, outside), pick(r, []string{`"1"`, `"2"`}))
			entry("workspace.dependencies", "b", fmt.Sprintf("{ path = %q }", relativeFolder(dir, "b")))
		case 11:
			entry("workspace", "members", pick(r, []string{`["*"]`, `["a", "b"]`, `["a/*", "lib"]`, `["x", "vendor/v"]`, `["**"]`}))
		case 12:
			entry("workspace", "exclude", pick(r, []string{`["a"]`, `["lib", "b"]`, `["ws"]`}))
		case 13:
			entry(pick(r, []string{"workspace", "package"}), "resolver", pick(r, []string{`"1"`, `"2"`}))
		case 14:
			entry("profile.release", "lto", pick(r, []string{"true", "false"}))
			entry("patch.crates-io", pick(r, outside), fmt.Sprintf("{ path = %q }", relativeFolder(dir, pick(r, modelFolders))))
		case 15:
			entry("package", pick(r, []string{"version", "edition"}), "{ workspace = true }")
			entry("workspace.package", pick(r, []string{"version", "edition"}), pick(r, []string{`"2018"`, `"2021"`}))
		case 16:
			name := pick(r, append([]string{"a", "b", "lib"}, outside...))
			if r.IntN(4) == 0 {
				c["lock "+dir+" "+name] = ""
			} else {
				c["lock "+dir+" "+name] = fmt.Sprintf("version = %q\ndependencies = [%q]\n", pick(r, []string{"0.0.0", "1.0.0"}), pick(r, outside))
				if slices.Contains(outside, name) {
					c["lock "+dir+" "+name] += fmt.Sprintf("source = \"registry\"\nchecksum = \"%d\"\n", r.IntN(3))
				}
			}
		default:
			files := map[string][]string{
				below(dir, ".cargo/config.toml"):  {"", "[build]\njobs = 1\n", "[target.x]\nrunner = \"b/x.txt\"\n", "[source.v]\ndirectory = \"vendor\"\n"},
				below(dir, "rust-toolchain.toml"): {"", "1\n"}, below(dir, "clippy.toml"): {"", "1\n"},
				below(dir, "link"): {"", "mode 120000 ../b/data", "mode 120000 src"},
			}
			path := pick(r, slices.Sorted(maps.Keys(files)))
			c["file "+path] = pick(r, files[path])
		}
	}
	return c
}

func (m model) with(changes ...model) model {
	changed := maps.Clone(m)
	for _, c := range changes {
		for key, value := range c {
			if value == "" {
				delete(changed, key)
			} else {
				changed[key] = value
			}
		}
	}
	return changed
}

// tree writes the parts in the order of their keys.
func (m model) tree() memoryTree {
	tree := memoryTree{}
	table := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		kind, rest, _ := strings.Cut(key, " ")
		dir, inFile, _ := strings.Cut(rest, " ")
		switch kind {
		case "file":
			tree[rest] = m[key]
		case "entry":
			at := strings.LastIndexByte(inFile, ' ')
			file := below(dir, manifestName)
			if name := inFile[:at]; table[file] != name {
				table[file] = name
				tree[file] += "[" + name + "]\n"
			}
			tree[file] += inFile[at+1:] + " = " + m[key] + "\n"
		case "lock":
			file := below(dir, "Cargo.lock")
			tree[file] += fmt.Sprintf("[[package]]\nname = %q\n%s", inFile, m[key])
		}
	}
	return tree
}

// loadModel loads a model; broken is set for a tree that no cargo command works in or that has no package.
func loadModel(t testing.TB, m model) (graph *targets.Graph, broken bool) {
	t.Helper()
	graph, err := newLoader(t, Options{}).Load(t.Context(), "", m.tree())
	if _, invalid := errors.AsType[*Invalid](err); invalid || errors.Is(err, ErrNoPackage) {
		return nil, true
	}
	if err != nil {
		t.Fatal(err)
	}
	return graph, false
}

func validModel(t testing.TB, r *rand.Rand) (model, *targets.Graph) {
	for {
		m := model{}.change(r, 5+r.IntN(60))
		for _, dir := range modelFolders {
			if r.IntN(2) == 0 {
				m["entry "+dir+" package name"] = strconv.Quote(modelNames[dir])
			}
		}
		if graph, broken := loadModel(t, m); !broken && len(graph.Unknown()) == 0 {
			return m, graph
		}
	}
}

// equation6 reports whether δ(M,a) ∪ δ(M,b) ≠ δ(M,a⊕b).
func equation6(a, b targets.Analysis, base, merged *targets.Graph) bool {
	versions := func(analyses ...targets.Analysis) map[string]bool {
		set := make(map[string]bool)
		for _, x := range analyses {
			for _, v := range x.Affected {
				set[v.Name+" "+v.Hash.String()] = true
			}
			for _, name := range x.Deleted {
				set[name+" deleted"] = true
			}
		}
		return set
	}
	return !maps.Equal(versions(a, b), versions(targets.Delta(base, merged)))
}

// merges reports whether git could merge two trees: no file is added by both, or deleted by one and altered by the other.
func merges(base, a, b memoryTree) bool {
	for _, paths := range []memoryTree{base, a, b} {
		for path := range paths {
			before, was := base[path]
			inA, isA := a[path]
			inB, isB := b[path]
			alteredA, alteredB := isA != was || inA != before, isB != was || inB != before
			if alteredA && alteredB && !(was && isA && isB) {
				return false
			}
		}
	}
	return true
}

func TestM3IndependentChangesMakeTogetherWhatTheyMakeAlone(t *testing.T) {
	r := seedtest.Random(t)
	rounds := 300
	if text := os.Getenv("LANDFALL_CARGOGRAPH_PAIRS"); text != "" {
		rounds, _ = strconv.Atoi(text)
	}
	var independent, cautious, real, broken int
	for range rounds {
		m, base := validModel(t, r)
		for range 6 {
			a, b := m.change(r, 1+r.IntN(3)), m.change(r, 1+r.IntN(3))
			overlap := slices.ContainsFunc(slices.Collect(maps.Keys(a)), func(key string) bool { _, ok := b[key]; return ok })
			headA, brokenA := loadModel(t, m.with(a))
			headB, brokenB := loadModel(t, m.with(b))
			if overlap || brokenA || brokenB || !merges(m.tree(), m.with(a).tree(), m.with(b).tree()) {
				continue
			}
			analysisA, analysisB := targets.Delta(base, headA), targets.Delta(base, headB)
			got := analysisA.Footprint().Meets(analysisB.Footprint(), nil).Conflict()
			merged, brokenMerge := loadModel(t, m.with(a, b))
			want := brokenMerge || len(merged.Unknown()) > 0 || equation6(analysisA, analysisB, base, merged)
			switch {
			case want && !got:
				t.Fatalf("called independent (broken together: %v):\nM %s\na %q\nb %q\na: %s\nb: %s\nboth: %s", brokenMerge, show(m), a, b,
					namesOf(analysisA), namesOf(analysisB), differences(base, merged))
			case brokenMerge:
				broken++
			case want:
				real++
			case got:
				cautious++
			default:
				independent++
			}
		}
	}
	t.Logf("%d conflict by equation 6, %d break the manifests together, %d conflict by M1 alone, %d independent", real, broken, cautious, independent)
	if real < rounds/20 || independent < rounds/20 {
		t.Error("the random changes are too much alike for the test to mean anything")
	}
}

func differences(base, merged *targets.Graph) string {
	if merged == nil {
		return "broken"
	}
	return namesOf(targets.Delta(base, merged)) + fmt.Sprint(merged.Unknown())
}

func show(m model) string {
	var text strings.Builder
	tree := m.tree()
	for _, path := range slices.Sorted(maps.Keys(tree)) {
		fmt.Fprintf(&text, "--- %s\n%s\n", path, tree[path])
	}
	return text.String()
}

func TestARememberedLoadEqualsAFreshOne(t *testing.T) {
	r := seedtest.Random(t)
	for range 30 {
		// Small memories, so that things are forgotten on the way too.
		loader, err := NewLoader(Options{}, Memory{Files: int64(1 + r.IntN(40_000)), Graphs: int64(1 + r.IntN(200_000))})
		if err != nil {
			t.Fatal(err)
		}
		m, _ := validModel(t, r)
		previous := []model{m}
		for range 30 {
			next := pick(r, previous).with(m.change(r, 1+r.IntN(3)))
			previous = append(previous, next)
			tree := next.tree()
			full, errFull := newLoader(t, Options{}).Load(t.Context(), "", tree)
			again, err := loader.Load(t.Context(), tree.id(), tree)
			if fmt.Sprint(err) != fmt.Sprint(errFull) {
				t.Fatalf("full: %v\nremembered: %v", errFull, err)
			}
			if err == nil {
				checkSameGraph(t, full, again)
			}
		}
	}
}

func checkSameGraph(t *testing.T, x, y *targets.Graph) {
	t.Helper()
	if len(x.Unknown())+len(y.Unknown()) > 0 {
		if !slices.Equal(x.Unknown(), y.Unknown()) {
			t.Fatalf("%v is %v", x.Unknown(), y.Unknown())
		}
		return
	}
	a, b := targets.Delta(x, y), targets.Delta(y, x)
	if len(a.Touched())+len(a.Leaves)+len(a.Added)+len(b.Touched())+len(b.Leaves)+len(b.Added) > 0 {
		t.Fatalf("graphs differ: %+v, %+v", a, b)
	}
	for target := range x.Targets() {
		if other, ok := y.Target(target.Name); !ok || fmt.Sprint(other) != fmt.Sprint(target) {
			t.Fatalf("%+v is %+v", target, other)
		}
	}
}

func TestTheOrderOfEntriesDoesNotMatter(t *testing.T) {
	r := seedtest.Random(t)
	for range 100 {
		m, graph := validModel(t, r)
		// A map gives its entries in another order each time.
		again, _ := loadModel(t, m)
		checkSameGraph(t, graph, again)
	}
}
