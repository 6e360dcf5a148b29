package targets

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

func TestHubsAreNamesInWhichAStarIsAnyText(t *testing.T) {
	hubs := NewHubs([]string{"//e2e:all", "shop/app [test]", "*/integration", "//a*b*c"})
	for name, want := range map[string]bool{
		"//e2e:all": true, "//e2e:al": false, "//e2e:all2": false, "shop/app [test]": true, "shop/app t": false,
		"x/integration": true, "/integration": true, "x/integration2": false, "//abc": true, "//a/b/c": true, "//ab": false, "//acb": false,
		"": false, Repository: false,
	} {
		if got := hubs.Has(name); got != want {
			t.Errorf("%q is a hub: %v", name, got)
		}
	}
	if NewHubs(nil) != nil || NewHubs(nil).Has("//x") {
		t.Error("without names there are hubs")
	}
	if NewHubs([]string{"*"}).Has(Repository) || NewHubs([]string{Repository}).Has(Repository) {
		t.Error("the whole repository is a hub")
	}
}

func TestHubPatternsEqualARegularExpressionOnRandomNames(t *testing.T) {
	r := seedtest.Random(t)
	matches := 0
	text := func(alphabet string, most int) string {
		var b strings.Builder
		for range r.IntN(most + 1) {
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 100_000 {
		pattern, name := text("ab*", 6), text("ab", 8)
		words := strings.Split(pattern, "*")
		for i := range words {
			words[i] = regexp.QuoteMeta(words[i])
		}
		want := regexp.MustCompile("^(?:" + strings.Join(words, ".*") + ")$").MatchString(name)
		if got := NewHubs([]string{pattern}).Has(name); got != want {
			t.Fatalf("%q takes %q: %v", pattern, name, got)
		}
		if want {
			matches++
		}
	}
	t.Logf("%d of 100000 match", matches)
}

// TestHubsTakeAwayMeetingsAndNothingElse: between changes that meet in hubs alone there is no conflict, every other
// reason stays.
func TestHubsTakeAwayMeetingsAndNothingElse(t *testing.T) {
	r := seedtest.Random(t)
	left := 0
	for range rounds / 4 {
		p := randomPair(r)
		var names []string
		for _, name := range poolTargets {
			if r.IntN(2) == 0 {
				names = append(names, name)
			}
		}
		_, why := m1(p.analysisA, p.analysisB)
		got := p.analysisA.Footprint().Meets(p.analysisB.Footprint(), NewHubs(names))
		isHub := func(name string) bool { return slices.Contains(names, name) }
		all := slices.Sorted(slices.Values(slices.Concat(got.Targets, got.Hubs)))
		if !slices.Equal(all, why.Targets) || slices.ContainsFunc(got.Targets, isHub) || slices.ContainsFunc(got.Hubs, func(n string) bool { return !isHub(n) }) {
			t.Fatalf("with the hubs %q the changes meet in %q and %q, without in %q", names, got.Targets, got.Hubs, why.Targets)
		}
		if got.Edge != why.Edge || got.EdgeBy != why.EdgeBy || got.All != why.All {
			t.Fatalf("with hubs %+v, without %+v", got, why)
		}
		numbers := NewNames(NewHubs(names))
		if fast := numbers.Prepare(p.analysisA.Footprint()).Conflicts(numbers.Prepare(p.analysisB.Footprint())); fast != got.Conflict() {
			t.Fatalf("with the hubs %q the prepared sets say %v, the reasons are %+v", names, fast, got)
		}
		if why.Conflict() && !got.Conflict() {
			left++
		}
	}
	t.Logf("%d pairs meet in hubs alone", left)
	if left == 0 {
		t.Error("no pair met in hubs alone")
	}
}
