package manifest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/targets"
	"landfall.build/events/seedtest"
)

// model is a random repository: files and, by key, what the manifests say. A
// change is a set of keys with new values, so two changes of different keys
// merge as git would merge them.
type model map[string]string

// Keys: "file PATH", "def FOLDER NAME" (the YAML of a target), "set FIELD" (of
// the root's file).

var (
	modelFolders  = []string{"", "a", "a/b", "c"}
	modelFiles    = []string{"x.go", "y.go", "x_test.go", "data/in", "data/deep/in"}
	modelNames    = []string{"a", "b", "lib", "test"}
	modelPatterns = []string{"*.go", "**", "*_test.go", "x.go", "data/**", "data", "*/in", "../x.go", "**/in", "landfall.yaml", "data/*", "**/landfall.yaml", "*/*.go", "a/**"}
)

// modelOutputs lie in each other and where files may be.
var modelOutputs = []string{"out", "out/a", "b/out", "data/in", "y.go", "data/deep/out", "b", "out/a/b/c", "data/in/x"}

func pickOne(r *rand.Rand, pool []string) string { return pool[r.IntN(len(pool))] }

func modelTarget(r *rand.Rand, folder, name string) string {
	list := func(n int, member func() string) string {
		var members []string
		for range r.IntN(n + 1) {
			members = append(members, "'"+member()+"'")
		}
		return "[" + strings.Join(members, ", ") + "]"
	}
	patterns := func() string { return pickOne(r, modelPatterns) }
	if folder == "" {
		patterns = func() string { return strings.TrimPrefix(pickOne(r, modelPatterns), "../") }
	}
	label := func() string {
		if r.IntN(2) == 0 {
			return ":" + pickOne(r, modelNames)
		}
		return "//" + pickOne(r, modelFolders) + ":" + pickOne(r, modelNames)
	}
	return fmt.Sprintf("{name: %s, kind: k%d, sources: %s, exclude: %s, deps: %s, steps: [{name: s, run: [x, '%d'], outputs: %s}]}",
		name, r.IntN(2), list(2, patterns), list(1, patterns), list(1, label), r.IntN(3), list(1, func() string { return pickOne(r, modelOutputs) }))
}

// change returns random keys with random values; "" takes the key away.
func (m model) change(r *rand.Rand, edits int) model {
	c := model{}
	for range edits {
		folder := pickOne(r, modelFolders)
		switch kind := r.IntN(16); {
		case kind < 7:
			c["file "+join(folder, pickOne(r, modelFiles))] = fmt.Sprint(r.IntN(4))
		case kind < 9:
			c["file "+join(folder, pickOne(r, modelFiles))] = ""
		case kind < 13:
			name := pickOne(r, modelNames)
			c["def "+folder+" "+name] = modelTarget(r, folder, name)
		case kind == 13:
			c["def "+folder+" "+pickOne(r, modelNames)] = ""
		case kind == 14:
			c["set inputs"] = fmt.Sprintf("[%s]", pickOne(r, []string{"x.go", "a/x.go", "'**/in'", "c/data/**", ""}))
		default:
			c["set environment"] = fmt.Sprintf("{A: %d}", r.IntN(3))
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

func (m model) tree() memoryTree {
	tree := memoryTree{}
	root := ""
	// One target that stays: a repository without any is an error of its own.
	lists := map[string]string{"c": "  - {name: always}\n"}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		kind, rest, _ := strings.Cut(key, " ")
		switch kind {
		case "file":
			tree[rest] = m[key]
		case "def":
			folder, _, _ := strings.Cut(rest, " ")
			lists[folder] += "  - " + m[key] + "\n"
		case "set":
			root += rest + ": " + m[key] + "\n"
		}
	}
	if root != "" {
		tree[FileName] = root
	}
	for folder, list := range lists {
		tree[join(folder, FileName)] += "targets:\n" + list
	}
	return tree
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	return seedtest.Random(t)
}

// validModel returns a model whose manifests are right.
func validModel(t *testing.T, r *rand.Rand) (model, *targets.Graph) {
	t.Helper()
	for {
		m := model{}.with(model{}.change(r, 25))
		if graph, err := Load(t.Context(), m.tree()); err == nil {
			return m, graph
		}
	}
}

func TestM3ManifestsGiveEveryNodeThatTheConflictTestNeeds(t *testing.T) {
	r := seeded(t)
	var independent, cautious, real, broken int
	for range 1500 {
		m, base := validModel(t, r)
		for range 4 {
			a, b := m.change(r, 1+r.IntN(3)), m.change(r, 1+r.IntN(3))
			overlap := slices.ContainsFunc(slices.Collect(maps.Keys(a)), func(key string) bool { _, ok := b[key]; return ok })
			headA, errA := Load(t.Context(), m.with(a).tree())
			headB, errB := Load(t.Context(), m.with(b).tree())
			if overlap || errA != nil || errB != nil {
				continue
			}
			analysisA, analysisB := targets.Delta(base, headA), targets.Delta(base, headB)
			got := analysisA.Footprint().Meets(analysisB.Footprint(), nil).Conflict()
			merged, err := Load(t.Context(), m.with(a, b).tree())
			want := err != nil || equation6(analysisA, analysisB, base, merged)
			switch {
			case want && !got:
				t.Fatalf("called independent: %v\nM %q\na %q\nb %q\nmerged %v\n%+v\n%+v", err, m, a, b, err, analysisA, analysisB)
			case err != nil:
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
	if real < 100 || independent < 100 {
		t.Error("the random changes are too much alike for the test to mean anything")
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

func TestIncrementalEqualsFull(t *testing.T) {
	r := seeded(t)
	for range 40 {
		// Small memories, so that things are forgotten on the way too.
		loader := NewLoader(Memory{Files: int64(1 + r.IntN(20_000)), Graphs: int64(1 + r.IntN(200_000))})
		m, _ := validModel(t, r)
		previous := []model{m}
		for range 50 {
			next := previous[r.IntN(len(previous))].with(m.change(r, 1+r.IntN(3)))
			previous = append(previous, next)
			tree := next.tree()
			full, errFull := Load(t.Context(), tree)
			incremental, err := loader.Load(t.Context(), tree.id(), tree)
			if fmt.Sprint(err) != fmt.Sprint(errFull) {
				t.Fatalf("full: %v\nincremental: %v", errFull, err)
			}
			if err == nil {
				checkSameGraph(t, full, incremental)
			}
		}
	}
}

func checkSameGraph(t *testing.T, x, y *targets.Graph) {
	t.Helper()
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
	r := seeded(t)
	for range 50 {
		m, graph := validModel(t, r)
		// A map gives its entries in another order each time.
		checkSameGraph(t, graph, mustLoad(t, m.tree()))
	}
}
