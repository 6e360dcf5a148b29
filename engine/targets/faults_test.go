package targets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// One test for each bug that other analyzers had and that an engine can have.

func TestAPartialGraphIsNotAnEmptyDelta(t *testing.T) {
	b := NewBuilder("", "head")
	b.Target("lib", "library", nil)
	b.Incomplete("the query stopped in the middle")
	head, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, analysis := range []Analysis{Delta(head, head), Delta(Whole("base", nil), head)} {
		if !analysis.All || len(analysis.Affected) != 1 || analysis.Affected[0].Name != Repository {
			t.Errorf("got %+v, want all, with the repository as the one target", analysis)
		}
	}
	if analysis := Delta(head, Whole("head", nil)); !analysis.All || len(analysis.Affected) != 1 {
		t.Errorf("from a partial base: %+v, want all", analysis)
	}
}

func TestADeletionIsADifference(t *testing.T) {
	base := world{
		files: map[string]string{"d0/f0": "x"},
		defs:  map[string]definition{"t0": {}, "t1": {deps: []string{"t0"}}, "t2": {sources: []string{"d0/f0"}}},
	}
	head := base.clone()
	delete(head.defs, "t0")
	delete(head.files, "d0/f0")
	r := rand.New(rand.NewPCG(1, 1))
	analysis := Delta(base.raw().graph(r), head.raw().graph(r))
	if !slices.Equal(analysis.Deleted, []string{"t0"}) {
		t.Errorf("deleted %v", analysis.Deleted)
	}
	if touched := analysis.Touched(); !slices.Equal(touched, []string{"t0", "t1", "t2"}) {
		t.Errorf("touched %v, want the dependants of what is gone as well", touched)
	}
	if want := []string{"def:t0", "dir:d0", "file:d0/f0"}; !slices.Equal(analysis.Leaves, want) {
		t.Errorf("leaves %v, want %v", analysis.Leaves, want)
	}
}

func TestTheOrderOfVisitingACycleDoesNotChangeItsHash(t *testing.T) {
	r := seedtest.Random(t)
	for range 200 {
		w := world{defs: map[string]definition{}}
		for _, name := range poolTargets {
			w.defs[name] = definition{deps: some(r, 3, func() string { return pick(r, poolTargets) })}
		}
		first := w.raw().graph(r)
		for range 10 {
			again := w.raw().graph(r) // nodes and edges in another order
			if analysis := Delta(first, again); len(analysis.Touched())+len(analysis.Leaves)+len(analysis.Added) > 0 {
				t.Fatalf("the same graph differs: %+v\n%+v", analysis, w)
			}
		}
		// A name that sorts otherwise makes the visit begin elsewhere in the cycle.
		renamed := w.clone()
		renamed.defs["0 first"] = definition{deps: []string{pick(r, poolTargets)}}
		if touched := Delta(first, renamed.raw().graph(r)).Touched(); !slices.Equal(touched, []string{"0 first"}) {
			t.Fatalf("another way into the cycle touches %v", touched)
		}
	}
}

func TestEveryMemberOfACycleChangesWithEachOther(t *testing.T) {
	w := world{defs: map[string]definition{"t0": {deps: []string{"t1"}}, "t1": {deps: []string{"t2"}}, "t2": {deps: []string{"t0"}}}}
	changed := w.clone()
	changed.defs["t1"] = definition{text: "other", deps: []string{"t2"}}
	r := rand.New(rand.NewPCG(1, 1))
	if touched := Delta(w.raw().graph(r), changed.raw().graph(r)).Touched(); !slices.Equal(touched, []string{"t0", "t1", "t2"}) {
		t.Errorf("touched %v", touched)
	}
}

func TestAGlobEditAndANewFileConflict(t *testing.T) {
	base := world{
		files: map[string]string{"d0/f0": "x"},
		defs:  map[string]definition{"t0": {sources: []string{"d0/f0"}}},
	}
	for name, dir := range map[string]string{"in a folder that exists": "d0", "in a new folder": "d9"} {
		glob, file := base.clone(), base.clone()
		glob.defs["t0"] = definition{globs: []string{dir}}
		file.files[dir+"/new"] = "y"
		checkConflict(t, name, base, glob, file)
	}
}

func TestAMacroEditAndANewCallerConflict(t *testing.T) {
	base := world{
		files: map[string]string{"d0/macro": "x"},
		defs:  map[string]definition{"t0": {macros: []string{"d0/macro"}}, "t1": {}},
	}
	edit, caller := base.clone(), base.clone()
	edit.files["d0/macro"] = "y"
	caller.defs["t1"] = definition{macros: []string{"d0/macro"}}
	checkConflict(t, "", base, edit, caller)

	// Nobody uses the macro yet.
	base.defs = map[string]definition{"t1": {}}
	edit, caller = base.clone(), base.clone()
	edit.files["d0/macro"] = "y"
	caller.defs["t1"] = definition{macros: []string{"d0/macro"}}
	checkConflict(t, "unused so far", base, edit, caller)
}

func TestALockFileEditAndANewUserConflict(t *testing.T) {
	base := world{
		externals: map[string]string{"m0": "v1"},
		defs:      map[string]definition{"t0": {}, "t1": {}},
	}
	upgrade, use := base.clone(), base.clone()
	upgrade.externals["m0"] = "v2"
	use.defs["t0"] = definition{ext: []string{"m0"}}
	checkConflict(t, "", base, upgrade, use)
}

func TestANewDependencyOnADeletedTargetConflicts(t *testing.T) {
	base := world{defs: map[string]definition{"t0": {}, "t1": {}}}
	remove, use := base.clone(), base.clone()
	delete(remove.defs, "t0")
	use.defs["t1"] = definition{deps: []string{"t0"}}
	checkConflict(t, "", base, remove, use)
}

func TestTwoChangesOfAFileThatNoTargetHasDoNotConflict(t *testing.T) {
	base := world{files: map[string]string{"d0/f0": "x"}, defs: map[string]definition{"t0": {}}}
	a, b := base.clone(), base.clone()
	a.files["d0/f0"], b.files["d0/f0"] = "a", "b"
	r := rand.New(rand.NewPCG(1, 1))
	m := base.raw().graph(r)
	if conflict, why := m1(Delta(m, a.raw().graph(r)), Delta(m, b.raw().graph(r))); conflict {
		t.Errorf("conflict: %+v", why)
	}
}

func checkConflict(t *testing.T, name string, base, a, b world) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	m := base.raw().graph(r)
	analysisA, analysisB := Delta(m, a.raw().graph(r)), Delta(m, b.raw().graph(r))
	if conflict, _ := m1(analysisA, analysisB); !conflict {
		t.Errorf("%s: independent\n%+v\n%+v", name, analysisA, analysisB)
	}
}

func TestUnsortedAnalysesFromElsewhereStillConflict(t *testing.T) {
	a := Analysis{Affected: []TargetVersion{{Name: "z"}, {Name: "b"}}, Deleted: []string{"q", "c"}}
	for _, b := range []Analysis{
		{Affected: []TargetVersion{{Name: "y"}, {Name: "b"}}}, {Added: []string{"x", "c"}}, {Deleted: []string{"q", "a"}},
	} {
		names := NewNames(nil)
		conflict, _ := m1(a, b)
		if !conflict || !names.Prepare(a.Footprint()).Conflicts(names.Prepare(b.Footprint())) {
			t.Errorf("%+v and %+v are independent", a, b)
		}
	}
}

func TestWhateverACommandIsMadeOfIsInTheHash(t *testing.T) {
	hash := func(scheme, kind string, commands ...Command) Hash {
		b := NewBuilder(scheme, "tree")
		b.Target("lib", kind, commands)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		target, _ := g.Target("lib")
		return target.Hash
	}
	seen := map[Hash]string{}
	for i, h := range []Hash{
		hash("", "library"), hash("v2", "library"), hash("", "test"),
		hash("", "library", Command{Name: "a", Argv: []string{"x"}}),
		hash("", "library", Command{Name: "b", Argv: []string{"x"}}),
		hash("", "library", Command{Name: "a", Argv: []string{"x", ""}}),
		hash("", "library", Command{Name: "a", Argv: []string{"x"}, Dir: "d"}),
		hash("", "library", Command{Name: "a", Argv: []string{"x"}, Timeout: 1}),
		hash("", "library", Command{Name: "a", Argv: []string{"x"}, Env: []string{"A=b"}}),
		hash("", "library", Command{Name: "a", Argv: []string{"x", "A=b"}}),
		hash("", "library", Command{Name: "a", Argv: []string{"x"}}, Command{Name: "b", Argv: []string{"x"}}),
	} {
		if other, ok := seen[h]; ok {
			t.Errorf("case %d has the hash of case %s", i, other)
		}
		seen[h] = fmt.Sprint(i)
	}
}

func TestAnAdaptersMistakesAreRefused(t *testing.T) {
	for want, build := range map[string]func(*Builder){
		"defined twice":       func(b *Builder) { b.File("a", 1, "x"); b.File("a", 1, "x") },
		"is not defined":      func(b *Builder) { b.Edge(b.Ref(KindTarget, "a"), b.File("b", 1, "x")) },
		"no such node":        func(b *Builder) { b.Edge(b.Target("a", "", nil), 7) },
		"begins like":         func(b *Builder) { b.Target("file:a", "", nil) },
		"is empty or begins ": func(b *Builder) { b.Target("", "", nil) },
	} {
		b := NewBuilder("", "tree")
		build(b)
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestDifferentNamesHaveDifferentPlainLabels(t *testing.T) {
	names := []string{"a", `"a"`, "a\n", `"a\n"`, "a\xff", `a\xff`, `"a\xff"`, "é", "a b", "a\u2028b", "", "file:a", "a\x7f", "\u0085"}
	seen := map[string]string{}
	for _, kind := range []Kind{KindTarget, KindFile, KindListing, KindDefinition, KindExternal} {
		for _, name := range names {
			if kind == KindTarget && !isTargetName(name) {
				continue
			}
			label := Label(kind, name)
			if other, ok := seen[label]; ok {
				t.Errorf("%q is the label of %s %q and of %s", label, kind, name, other)
			}
			if strings.ContainsAny(label, "\n\u2028\u0085") || strings.ToValidUTF8(label, "") != label {
				t.Errorf("label %q is not plain", label)
			}
			seen[label] = fmt.Sprintf("%s %q", kind, name)
		}
	}
}

func TestALongChainDoesNotExhaustTheStack(t *testing.T) {
	b := NewBuilder("", "tree")
	const length = 300_000
	previous := b.Target("t", "", nil)
	for i := range length {
		next := b.Target(fmt.Sprintf("t%d", i), "", nil)
		b.Edge(previous, next)
		previous = next
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if nodes, edges := g.Size(); nodes != length+1 || edges != length {
		t.Errorf("%d nodes, %d edges", nodes, edges)
	}
}
