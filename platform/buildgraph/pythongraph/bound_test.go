package pythongraph

import (
	"strings"
	"testing"
	"time"
)

// A file of any content is read in a time that its size bounds: nothing can end a scan from outside.
func TestNoFileTakesLongToRead(t *testing.T) {
	const size = 1 << 20
	fill := func(before, repeated, after string) string {
		return before + strings.Repeat(repeated, size/len(repeated)) + after
	}
	for name, code := range map[string]string{
		"a long name":                     fill("import a", ".a", ""),
		"dots":                            fill("import a", ".", ""),
		"a long name to import from":      fill("from a", ".a", " import b"),
		"dots to import from":             fill("from ", ".", " import b"),
		"words before an import":          fill("from ", "a ", " import b"),
		"many names from a long one":      "from " + strings.Repeat("a", size/2) + " import " + fill("b", ",b", ""),
		"many names from a possible one":  "from " + strings.Repeat("a", maxNameBytes) + " import " + fill("b", ",b", ""),
		"a long path":                     fill("p.parents[2]", "/'a'", ""),
		"functions that import":           fill("", "import_module ", ""),
		"texts in fields on one line":     fill("f'{", "'a' ", ""),
		"fields within each other":        fill("", "f'{", ""),
		"a long name that is not closed":  fill("(import a", ".a", ""),
		"calls with a long name":          fill("import_module('a", ".a", "')"),
		"long names in an unclosed paren": fill("(", "from a.b import c, d\n", ""),
	} {
		begin := time.Now()
		parseFacts([]byte(code))
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func TestALongNameIsNoModule(t *testing.T) {
	long := strings.Repeat("a", maxNameBytes)
	if got, want := spoken(parseFacts([]byte("import "+long+", "+long+"b, c\nfrom "+long+"b import c\nfrom d import "+long+"b"))), long+", c, d"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}
