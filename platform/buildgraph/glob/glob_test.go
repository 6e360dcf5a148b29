package glob

import (
	"path"
	"strings"
	"testing"

	"landfall.build/events/seedtest"
)

func TestPatternsMatchFilesAndFolders(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		file, folder  bool
	}{
		{"a/b.go", "a/b.go", true, true},
		{"a/*.go", "a/b.go", true, true},
		{"a/*.go", "a/b/c.go", false, false},
		{"**", "a", true, true},
		{"**", "a/b/c", true, true},
		{"a/**", "a", false, true},
		{"a/**", "a/b/c", true, true},
		{"**/c", "c", true, true},
		{"**/c", "a/b/c", true, true},
		{"a/**/c", "a/c", true, true},
		{"a/**/b/**/c", "a/b/x/b/c", true, true},
		{"a/**/b/**/c", "a/x/c", false, false},
		{`a/\*`, "a/*", true, true},
		{`a/\*`, "a/b", false, false},
		{"[ab]?", "bx", true, true},
	} {
		p, err := Parse(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if file, folder := p.MatchesFile(c.path), p.MatchesFolder(c.path); file != c.file || folder != c.folder {
			t.Errorf("%s matches the file %s: %v, the folder: %v", c.pattern, c.path, file, folder)
		}
	}
	if p, _ := Parse("**"); !p.MatchesFolder("") {
		t.Error("** does not match the root")
	}
	if p, _ := Parse("a/**"); p.MatchesFolder("") {
		t.Error("a/** matches the root")
	}
}

func TestAQuotedPathMatchesItselfAlone(t *testing.T) {
	names := []string{"plain.txt", "[id].tsx", "a*b", "a?b", `a\b`, "axb", "[", "]", "i", "d/[id]/*"}
	for _, name := range names {
		p, err := Parse(Quote(name))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, other := range names {
			if p.MatchesFile(other) != (other == name) {
				t.Errorf("%s matches %s: %v", Quote(name), other, other != name)
			}
		}
	}
}

func TestWhatIsNoPatternIsRefused(t *testing.T) {
	for _, text := range []string{"", ".", "..", "../a", "/a", "a/", "a//b", "./a", "a/../b", "a/[", `a\`} {
		if p, err := Parse(text); err == nil {
			t.Errorf("%q is the pattern %v", text, p)
		}
	}
}

// TestMatchingIsAsItsDefinition compares with the definition of a pattern, which tries everything that each ** can be,
// and with a walk by States.
func TestMatchingIsAsItsDefinition(t *testing.T) {
	r := seedtest.Random(t)
	pick := func(from []string, n int) string {
		parts := make([]string, 1+r.IntN(n))
		for i := range parts {
			parts[i] = from[r.IntN(len(from))]
		}
		return strings.Join(parts, "/")
	}
	for range 20_000 {
		text := pick([]string{"a", "b", "ab", "*", "?", "[ab]", "a*", `\*`, "**", "**"}, 6)
		file := pick([]string{"a", "b", "ab", "*"}, 6)
		p, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		segments, names := strings.Split(text, "/"), strings.Split(file, "/")
		if got, want := p.MatchesFile(file), fits(segments, names, 1); got != want {
			t.Fatalf("%s matches the file %s: %v", text, file, got)
		}
		if got, want := p.MatchesFolder(file), fits(segments, names, 0); got != want {
			t.Fatalf("%s matches the folder %s: %v", text, file, got)
		}
		if got, want := walked(p, names), p.MatchesFile(file); got != want {
			t.Fatalf("a walk by %s finds %s: %v", text, file, got)
		}
	}
}

// fits reports whether segments match names, least being the names that ** at the end needs.
func fits(segments, names []string, least int) bool {
	if len(segments) == 0 {
		return len(names) == 0
	}
	if segments[0] == "**" {
		if len(segments) == 1 {
			return len(names) >= least
		}
		for i := range len(names) + 1 {
			if fits(segments[1:], names[i:], least) {
				return true
			}
		}
		return false
	}
	if len(names) == 0 {
		return false
	}
	ok, _ := path.Match(segments[0], names[0])
	return ok && fits(segments[1:], names[1:], least)
}

// walked reports whether a walk down to a file finds it.
func walked(p Pattern, names []string) bool {
	s := p.From(0)
	for _, folder := range names[:len(names)-1] {
		s = p.Enter(s, folder)
	}
	return p.Accepts(s, names[len(names)-1])
}
