package targets

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
)

// world is a small repository as an adapter would see it: files, target
// definitions with globs, macro files, external modules, an environment. Names
// come from small pools, so that edits meet, and dangling references, cycles and
// globs over folders that do not exist are frequent.
type world struct {
	files       map[string]string
	defs        map[string]definition
	externals   map[string]string
	environment string
	inputs      []string // files that the environment depends on
}

// definition is one target's. Lists are sets.
type definition struct {
	text                              string
	sources, globs, deps, macros, ext []string
}

// kind returns the kind of a target, by which some have no steps.
func (d definition) kind() string {
	switch {
	case strings.HasSuffix(d.text, "7"), strings.HasSuffix(d.text, "8"):
		return withoutSteps
	case strings.HasSuffix(d.text, "9"):
		return needsNoSteps
	}
	return "library"
}

// Kinds of targets without steps: of the second the repository says that it needs none.
const withoutSteps, needsNoSteps = "without steps", "needs no steps"

// rawNode and rawGraph are what an adapter gives to the engine, as plain maps.
type rawNode struct {
	kind    Kind
	name    string
	content string
	deps    []string // labels, sorted
	line    string   // all of it, for the twins
}

type rawGraph map[string]rawNode

func (r rawGraph) add(kind Kind, name, content string, deps ...string) {
	slices.Sort(deps)
	deps = slices.Compact(deps)
	label := Label(kind, name)
	r[label] = rawNode{kind, name, content, deps, fmt.Sprintf("%q %q %q\n", label, content, deps)}
}

// raw is the adapter for worlds.
func (w world) raw() rawGraph {
	r := make(rawGraph)
	names := make(map[string][]string)
	for _, file := range slices.Sorted(maps.Keys(w.files)) {
		r.add(KindFile, file, w.files[file])
		names[path.Dir(file)] = append(names[path.Dir(file)], path.Base(file))
	}
	for dir, list := range names {
		r.add(KindListing, dir, strings.Join(list, " "))
	}
	for name, version := range w.externals {
		r.add(KindExternal, name, version)
	}
	for name, d := range w.defs {
		deps := []string{"def:environment", Label(KindDefinition, name)}
		for _, file := range d.sources {
			deps = append(deps, Label(KindFile, file))
		}
		for _, dir := range d.globs {
			deps = append(deps, Label(KindListing, dir))
			for _, file := range names[dir] {
				deps = append(deps, Label(KindFile, dir+"/"+file))
			}
		}
		for _, dep := range d.deps {
			deps = append(deps, Label(KindTarget, dep))
		}
		for _, macro := range d.macros {
			deps = append(deps, Label(KindDefinition, "macro "+macro))
			r.add(KindDefinition, "macro "+macro, "", Label(KindFile, macro))
		}
		for _, ext := range d.ext {
			deps = append(deps, Label(KindExternal, ext))
		}
		r.add(KindTarget, name, d.kind(), deps...)
		r.add(KindDefinition, name, fmt.Sprintf("%q", d))
	}
	if len(w.defs) > 0 {
		var inputs []string
		for _, file := range w.inputs {
			inputs = append(inputs, Label(KindFile, file))
		}
		r.add(KindDefinition, "environment", w.environment, inputs...)
	}
	return r
}

// graph gives the raw graph to the engine, in a random order. The files given are those that the adapter interprets.
func (r rawGraph) graph(random *rand.Rand, interpreted ...string) *Graph {
	b := NewBuilder("world", "tree")
	labels := slices.Sorted(maps.Keys(r))
	random.Shuffle(len(labels), func(i, j int) { labels[i], labels[j] = labels[j], labels[i] })
	for _, label := range labels {
		n := r[label]
		switch n.kind {
		case KindTarget:
			var steps []Command
			if n.content != withoutSteps && n.content != needsNoSteps {
				steps = []Command{{Name: "check", Argv: []string{"true"}}}
			}
			if node := b.Target(n.name, n.content, steps); n.content == needsNoSteps {
				b.NeedsNoSteps(node)
			}
		case KindFile:
			b.File(n.name, 0o100644, n.content)
		case KindListing:
			b.Listing(n.name, strings.Fields(n.content))
		case KindDefinition:
			b.Definition(n.name, []byte(n.content))
		case KindExternal:
			b.External(n.name, []byte(n.content))
		}
		for _, dep := range n.deps {
			b.Edge(b.ids[label], b.reference(dep))
		}
	}
	for _, path := range interpreted {
		b.Interprets(path)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// reference is Ref by label.
func (b *Builder) reference(label string) Node {
	for kind, prefix := range prefixes {
		if name, ok := strings.CutPrefix(label, prefix); ok && prefix != "" {
			return b.Ref(Kind(kind), name)
		}
	}
	return b.Ref(KindTarget, label)
}

func (w world) clone() world {
	c := w
	c.files, c.defs, c.externals = maps.Clone(w.files), maps.Clone(w.defs), maps.Clone(w.externals)
	return c
}

var (
	poolDirs    = []string{"d0", "d1", "d2"}
	poolTargets = []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"}
	poolModules = []string{"m0", "m1"}
)

func pick(r *rand.Rand, pool []string) string { return pool[r.IntN(len(pool))] }

func pickFile(r *rand.Rand) string { return fmt.Sprintf("%s/f%d", pick(r, poolDirs), r.IntN(4)) }

// some gives up to n members, as a sorted set.
func some(r *rand.Rand, n int, member func() string) []string {
	var set []string
	for range r.IntN(n + 1) {
		set = append(set, member())
	}
	slices.Sort(set)
	return slices.Compact(set)
}

func randomDefinition(r *rand.Rand) definition {
	return definition{
		text:    fmt.Sprint(r.IntN(1000)),
		sources: some(r, 2, func() string { return pickFile(r) }),
		globs:   some(r, 1, func() string { return pick(r, poolDirs) }),
		deps:    some(r, 2, func() string { return pick(r, poolTargets) }),
		macros:  some(r, 1, func() string { return pickFile(r) }),
		ext:     some(r, 1, func() string { return pick(r, poolModules) }),
	}
}

func randomWorld(r *rand.Rand) world {
	w := world{files: map[string]string{}, defs: map[string]definition{}, externals: map[string]string{"m0": "1"}}
	for range 2 + r.IntN(8) {
		w.files[pickFile(r)] = fmt.Sprint(r.IntN(1000))
	}
	for range 1 + r.IntN(6) {
		w.defs[pick(r, poolTargets)] = randomDefinition(r)
	}
	w.inputs = some(r, 1, func() string { return pickFile(r) })
	return w
}

// toggle adds a member to a set or takes it out.
func toggle(set []string, member string) []string {
	if i, ok := slices.BinarySearch(set, member); ok {
		return slices.Delete(slices.Clone(set), i, i+1)
	} else {
		return slices.Insert(slices.Clone(set), i, member)
	}
}

// edited gives the world after one to three random edits.
func (w world) edited(r *rand.Rand) world {
	w = w.clone()
	for range 1 + r.IntN(3) {
		w.edit(r)
	}
	return w
}

func (w *world) edit(r *rand.Rand) {
	file, target := pickFile(r), pick(r, poolTargets)
	switch kind := r.IntN(20); {
	case kind < 5: // add a file or modify it
		w.files[file] = fmt.Sprint(r.IntN(1000))
	case kind < 7:
		delete(w.files, file)
	case kind < 9:
		w.defs[target] = randomDefinition(r)
	case kind < 11:
		delete(w.defs, target)
	case kind == 11 && r.IntN(4) == 0:
		w.environment = fmt.Sprint(r.IntN(1000))
	case kind == 12 && r.IntN(2) == 0:
		w.inputs = toggle(w.inputs, file)
	case kind == 13:
		w.externals[pick(r, poolModules)] = fmt.Sprint(r.IntN(1000))
	default:
		w.editDefinition(r, target, file)
	}
}

func (w *world) editDefinition(r *rand.Rand, target, file string) {
	d, ok := w.defs[target]
	if !ok {
		return
	}
	switch r.IntN(6) {
	case 0:
		d.text = fmt.Sprint(r.IntN(1000))
	case 1:
		d.sources = toggle(d.sources, file)
	case 2:
		d.globs = toggle(d.globs, pick(r, poolDirs))
	case 3:
		d.deps = toggle(d.deps, pick(r, poolTargets))
	case 4:
		d.macros = toggle(d.macros, file)
	case 5:
		d.ext = toggle(d.ext, pick(r, poolModules))
	}
	w.defs[target] = d
}

// merge applies both edits, as a textual merge would; false when it would fail.
func merge(m, a, b world) (world, bool) {
	ok := true
	merged := world{
		files:       mergeMaps(m.files, a.files, b.files, mergeText, &ok),
		defs:        mergeMaps(m.defs, a.defs, b.defs, mergeDefinition, &ok),
		externals:   mergeMaps(m.externals, a.externals, b.externals, mergeText, &ok),
		environment: mergeText(m.environment, a.environment, b.environment),
		inputs:      mergeSets(m.inputs, a.inputs, b.inputs),
	}
	return merged, ok
}

func mergeMaps[V any](m, a, b map[string]V, both func(m, a, b V) V, ok *bool) map[string]V {
	merged := make(map[string]V)
	keys := maps.Clone(m)
	maps.Copy(keys, a)
	maps.Copy(keys, b)
	for key := range keys {
		inM, inA, inB := lookup(m, key), lookup(a, key), lookup(b, key)
		var value *V
		switch {
		case same(inA, inM):
			value = inB
		case same(inB, inM), same(inA, inB):
			value = inA
		case inM != nil && inA != nil && inB != nil:
			v := both(*inM, *inA, *inB)
			value = &v
		default: // both added it, or one deleted what the other modified
			*ok = false
		}
		if value != nil {
			merged[key] = *value
		}
	}
	return merged
}

func lookup[V any](m map[string]V, key string) *V {
	if value, ok := m[key]; ok {
		return &value
	}
	return nil
}

func same[V any](x, y *V) bool {
	return x == nil && y == nil || x != nil && y != nil && fmt.Sprint(*x) == fmt.Sprint(*y)
}

// mergeText merges different lines of one file.
func mergeText(m, a, b string) string {
	switch {
	case a == m:
		return b
	case b == m || a == b:
		return a
	}
	return a + "+" + b
}

func mergeDefinition(m, a, b definition) definition {
	return definition{
		text: mergeText(m.text, a.text, b.text), sources: mergeSets(m.sources, a.sources, b.sources),
		globs: mergeSets(m.globs, a.globs, b.globs), deps: mergeSets(m.deps, a.deps, b.deps),
		macros: mergeSets(m.macros, a.macros, b.macros), ext: mergeSets(m.ext, a.ext, b.ext),
	}
}

func mergeSets(m, a, b []string) []string {
	merged := slices.Clone(a)
	for _, member := range b {
		if !slices.Contains(m, member) && !slices.Contains(a, member) {
			merged = append(merged, member)
		}
	}
	merged = slices.DeleteFunc(merged, func(member string) bool {
		return slices.Contains(m, member) && !slices.Contains(b, member)
	})
	slices.Sort(merged)
	return merged
}
