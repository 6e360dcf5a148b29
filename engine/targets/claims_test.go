package targets

import (
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

// pair is a random mainline with two random changes.
type pair struct {
	m, a, b         world
	rawM, rawA      rawGraph
	rawB            rawGraph
	gM, gA, gB      *Graph
	analysisA       Analysis
	analysisB       Analysis
	merged          world
	mergesTextually bool
}

func randomPair(r *rand.Rand) pair {
	p := pair{m: randomWorld(r)}
	p.a, p.b = p.m.edited(r), p.m.edited(r)
	p.rawM, p.rawA, p.rawB = p.m.raw(), p.a.raw(), p.b.raw()
	p.gM, p.gA, p.gB = p.rawM.graph(r), p.rawA.graph(r), p.rawB.graph(r)
	p.analysisA, p.analysisB = Delta(p.gM, p.gA), Delta(p.gM, p.gB)
	p.merged, p.mergesTextually = merge(p.m, p.a, p.b)
	return p
}

// rounds is how many pairs equation 6 is tried on; LANDFALL_TARGETS_PAIRS asks for another number.
var rounds = func() int {
	if n, err := strconv.Atoi(os.Getenv("LANDFALL_TARGETS_PAIRS")); err == nil {
		return n
	}
	return 20_000
}()

func TestM1EqualsTheWalkOfTheUnionGraph(t *testing.T) {
	r := seedtest.Random(t)
	conflicts := 0
	for range rounds / 4 {
		p := randomPair(r)
		got, why := m1(p.analysisA, p.analysisB)
		if want := unionWalk(p.rawM, p.rawA, p.rawB); got != want {
			t.Fatalf("M1 says %v (%+v), the walk %v\nM %+v\na %+v\nb %+v", got, why, want, p.m, p.a, p.b)
		}
		if got {
			conflicts++
		}
	}
	t.Logf("%d of %d pairs conflict", conflicts, rounds/4)
}

func TestM3WhatEquation6CallsConflictingIsNeverIndependent(t *testing.T) {
	r := seedtest.Random(t)
	var textual, real, cautious, independent int
	for range rounds {
		p := randomPair(r)
		if !p.mergesTextually {
			textual++
			continue
		}
		got, _ := m1(p.analysisA, p.analysisB)
		want := equation6(p.rawM, p.rawA, p.rawB, p.merged.raw())
		switch {
		case want && !got:
			t.Fatalf("equation 6 says conflict, M1 independent\nM %+v\na %+v\nb %+v\nδ(a) %+v\nδ(b) %+v", p.m, p.a, p.b, p.analysisA, p.analysisB)
		case want:
			real++
		case got:
			cautious++
		default:
			independent++
		}
	}
	t.Logf("%d conflict by equation 6, %d by M1 alone, %d independent, %d do not merge", real, cautious, independent, textual)
	if real < rounds/20 || independent < rounds/20 {
		t.Error("the random changes are too much alike for the test to mean anything")
	}
}

// TestM20WhatAThirdChangeMakesOfIndependentPairs counts what a test of pairs cannot see, and the land guard has to:
// two changes that are independent on the mainline and conflict once a third one is in, which then conflicts with one
// of them. Three of which no two conflict never do so together: what one affects reaches the first edge that another
// adds only where these two conflict.
func TestM20WhatAThirdChangeMakesOfIndependentPairs(t *testing.T) {
	r := seedtest.Random(t)
	pairs, conflicts, triples := 0, 0, 0
	for range rounds / 2 {
		p := randomPair(r)
		if !p.mergesTextually || !independent(p.analysisA, p.analysisB) {
			continue
		}
		c := p.m.edited(r)
		withA, mergesA := merge(p.m, p.a, c)
		withB, mergesB := merge(p.m, p.b, c)
		all, mergesAll := merge(p.m, p.merged, c)
		if !mergesA || !mergesB || !mergesAll {
			continue
		}
		rawC := c.raw()
		apart := independent(p.analysisA, p.analysisB, Delta(p.gM, rawC.graph(r)))
		pairs++
		if apart {
			triples++
		}
		if !equation6(rawC, withA.raw(), withB.raw(), all.raw()) {
			continue
		}
		conflicts++
		if apart {
			t.Fatalf("no two of them conflict, and together they do\nM %+v\na %+v\nb %+v\nc %+v", p.m, p.a, p.b, c)
		}
	}
	t.Logf("of %d independent pairs %d conflict once a third change is in; of %d triples that are independent two by two none does", pairs, conflicts, triples)
	if triples < rounds/400 || conflicts == 0 {
		t.Error("the random changes are too much alike for the figure to mean anything")
	}
}

func independent(list ...Analysis) bool {
	for i, a := range list {
		for _, b := range list[:i] {
			if conflict, _ := m1(a, b); conflict {
				return false
			}
		}
	}
	return true
}

func TestM3AnAnalysisStaysValidWhenAnIndependentChangeLands(t *testing.T) {
	r := seedtest.Random(t)
	checked := 0
	for range rounds / 10 {
		p := randomPair(r)
		if conflict, _ := m1(p.analysisA, p.analysisB); conflict || !p.mergesTextually {
			continue
		}
		checked++
		later := Delta(p.gB, p.merged.raw().graph(r))
		if !reflect.DeepEqual(later.Affected, p.analysisA.Affected) || !slices.Equal(later.Deleted, p.analysisA.Deleted) {
			t.Fatalf("δ(M,a) is %+v, δ(M⊕b, M⊕b⊕a) is %+v\nM %+v\na %+v\nb %+v", p.analysisA, later, p.m, p.a, p.b)
		}
	}
	t.Logf("%d independent pairs", checked)
}

func TestM2ACycleThatTakesEdgesOfBothIsAConflict(t *testing.T) {
	r := seedtest.Random(t)
	cycles := 0
	for range rounds / 10 {
		// Targets that depend on later ones only, and changes that may turn that
		// round.
		m := world{defs: map[string]definition{}}
		for i, name := range poolTargets {
			m.defs[name] = definition{deps: some(r, 1, func() string { return pick(r, append(poolTargets[i+1:], "none")) })}
		}
		a, b := m.clone(), m.clone()
		for _, w := range []world{a, b} {
			for range 1 + r.IntN(2) {
				name := pick(r, poolTargets)
				w.defs[name] = definition{deps: toggle(w.defs[name].deps, pick(r, poolTargets))}
			}
		}
		rawM, rawA, rawB := m.raw(), a.raw(), b.raw()
		// A change that turns an edge round makes a cycle with the mainline alone,
		// in which the other has no part.
		if !hasCycle(rawM, rawA, rawB) || hasCycle(rawM, rawA) || hasCycle(rawM, rawB) {
			continue
		}
		cycles++
		gM := rawM.graph(r)
		if conflict, _ := m1(Delta(gM, rawA.graph(r)), Delta(gM, rawB.graph(r))); !conflict {
			t.Fatalf("together they make a cycle\nM %+v\na %+v\nb %+v", m, a, b)
		}
	}
	t.Logf("%d pairs make a cycle only together", cycles)
	if cycles < 10 {
		t.Error("too few pairs made a cycle")
	}
}

func TestM4AChangeWithUnknownTargetsConflictsWithEverything(t *testing.T) {
	known := Whole("base", nil)
	unknown := Unknown("head", nil, "the manifest is broken")
	analysis := Delta(known, unknown)
	want, _ := Whole("head", nil).Target(Repository)
	if !analysis.All || len(analysis.Affected) != 1 || analysis.Affected[0].Name != Repository || analysis.Affected[0].Hash != want.Hash {
		t.Errorf("δ into an unknown tree is %+v, want all, with (repository, tree id)", analysis)
	}
	if !slices.Equal(analysis.Reasons, []string{"the manifest is broken"}) {
		t.Errorf("reasons %q", analysis.Reasons)
	}
	nothing := Analysis{}
	for _, pair := range [][2]Analysis{{analysis, nothing}, {nothing, analysis}, {analysis, analysis}} {
		if conflict, why := m1(pair[0], pair[1]); !conflict || !why.All {
			t.Errorf("conflict %v, why %+v", conflict, why)
		}
		names := NewNames(nil)
		if !names.Prepare(pair[0].Footprint()).Conflicts(names.Prepare(pair[1].Footprint())) {
			t.Error("the prepared sets are independent")
		}
	}
}

func TestM4ABrokenMainlineMakesEveryTargetOfTheRepairNew(t *testing.T) {
	r := seedtest.Random(t)
	head := randomWorld(r).raw()
	analysis := Delta(Unknown("base", nil, "broken"), head.graph(r))
	var names []string
	for _, v := range analysis.Affected {
		if v.Change != ChangeAdded {
			t.Errorf("%s is %s", v.Name, v.Change)
		}
		names = append(names, v.Name)
	}
	var want []string
	for label := range head {
		if isTargetName(label) {
			want = append(want, label)
		}
	}
	slices.Sort(want)
	if !analysis.All || !slices.Equal(names, want) {
		t.Errorf("all %v, affected %v, want %v", analysis.All, names, want)
	}
}

// This holds the fast pair test and the one with reasons
// against the definition of M1, written with maps.
func TestM1PreparedSetsAndReasonsAgreeWithTheDefinition(t *testing.T) {
	r := seedtest.Random(t)
	names := NewNames(nil)
	for range rounds / 10 {
		p := randomPair(r)
		a, b := p.analysisA, p.analysisB
		want := naiveConflict(a, b)
		got, why := m1(a, b)
		if fast := names.Prepare(a.Footprint()).Conflicts(names.Prepare(b.Footprint())); got != want || fast != want {
			t.Fatalf("definition %v, Conflict %v, prepared %v\n%+v\n%+v", want, got, fast, a, b)
		}
		reversed, whyReversed := m1(b, a)
		if reversed != got || !slices.Equal(whyReversed.Targets, why.Targets) || (whyReversed.Edge == "") != (why.Edge == "") {
			t.Fatalf("not symmetric: %+v, %+v", why, whyReversed)
		}
		if got != (len(why.Targets) > 0 || why.Edge != "") || (why.Edge == "") != (why.EdgeBy == 0) {
			t.Fatalf("conflict %v with reason %+v", got, why)
		}
	}
}

func naiveConflict(a, b Analysis) bool {
	changes := func(x Analysis, leaves bool) map[string]bool {
		set := make(map[string]bool)
		for _, v := range x.Affected {
			set[v.Name] = true
		}
		for _, name := range x.Deleted {
			set[name] = true
		}
		if leaves {
			for _, label := range x.Leaves {
				set[label] = true
			}
		}
		return set
	}
	meet := func(x, y map[string]bool) bool {
		for label := range x {
			if y[label] {
				return true
			}
		}
		return false
	}
	added := func(x Analysis) map[string]bool {
		set := make(map[string]bool)
		for _, label := range x.Added {
			set[label] = true
		}
		return set
	}
	return meet(changes(a, false), changes(b, false)) ||
		meet(added(a), changes(b, true)) || meet(added(b), changes(a, true))
}

func TestHashesAreEqualExactlyWhenAllThatIsReachedIs(t *testing.T) {
	r := seedtest.Random(t)
	for range rounds / 10 {
		p := randomPair(r)
		diff := differing(p.rawM, p.rawA)
		for label := range p.rawA {
			before, known := hashOf(p.gM, label)
			after, _ := hashOf(p.gA, label)
			if _, differs := diff[label]; differs != (!known || before != after) {
				t.Fatalf("%s differs: %v, hashes %v and %v\nM %+v\na %+v", label, differs, before, after, p.m, p.a)
			}
		}
	}
}

func TestDeltaIsTheDefinition(t *testing.T) {
	r := seedtest.Random(t)
	for range rounds / 10 {
		p := randomPair(r)
		var want Analysis
		for label, signature := range differing(p.rawM, p.rawA) {
			hash, _ := hashOf(p.gA, label)
			_, known := p.rawM[label]
			switch {
			case !isTargetName(label):
				want.Leaves = append(want.Leaves, label)
				if path, is := strings.CutPrefix(label, "file:"); is && !p.rawM.covers(path) && !p.rawA.covers(path) {
					want.Uncovered = append(want.Uncovered, path)
				}
			case signature == "":
				want.Deleted = append(want.Deleted, label)
			case known:
				want.Affected = append(want.Affected, TargetVersion{label, hash, ChangeModified})
			default:
				want.Affected = append(want.Affected, TargetVersion{label, hash, ChangeAdded})
			}
		}
		for label, n := range p.rawA {
			for _, dep := range n.deps {
				if !slices.Contains(p.rawM[label].deps, dep) {
					want.Added = append(want.Added, dep)
				}
			}
		}
		if want = Union(want); !reflect.DeepEqual(want, p.analysisA) {
			t.Fatalf("got %+v\nwant %+v", p.analysisA, want)
		}
	}
}

func TestUnionOfPrefixesHoldsEveryVersionThatSomePrefixMakes(t *testing.T) {
	r := seedtest.Random(t)
	for range rounds / 10 {
		m := randomWorld(r)
		gM := m.raw().graph(r)
		var prefixes []Analysis
		versions := map[string][]Hash{}
		for next := m; len(prefixes) < 3; {
			next = next.edited(r)
			p := Delta(gM, next.raw().graph(r))
			prefixes = append(prefixes, p)
			for _, v := range p.Affected {
				if !slices.Contains(versions[v.Name], v.Hash) {
					versions[v.Name] = append(versions[v.Name], v.Hash)
				}
			}
		}
		union := Union(prefixes...)
		got := map[string][]Hash{}
		for _, v := range union.Affected {
			got[v.Name] = append(got[v.Name], v.Hash)
		}
		if len(versions) > 0 && !reflect.DeepEqual(got, versions) {
			t.Fatalf("versions %v, want %v in the order of the commits", got, versions)
		}
		other := Delta(gM, m.edited(r).raw().graph(r))
		for _, p := range prefixes {
			if conflict, _ := m1(p, other); conflict {
				if whole, _ := m1(union, other); !whole {
					t.Fatal("a prefix conflicts, the change does not")
				}
			}
		}
	}
}
