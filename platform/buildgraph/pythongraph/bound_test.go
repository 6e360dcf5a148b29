package pythongraph

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"landfall.build/events/processortest"
)

// A file of any content is read in a time that its size bounds, fifty times that of source code of this size at most: nothing can
// end a scan from outside.
func TestNoFileTakesLongToRead(t *testing.T) {
	const size = 1 << 20
	fill := func(before, repeated, after string) string {
		return before + strings.Repeat(repeated, size/len(repeated)) + after
	}
	source := fill("", "from a.b import c, d  # a comment\n\n\ndef e(f):\n    return c(f, \"text\") + f'{d}'\n", "")
	ordinary := processortest.Of(t, func() { parseFacts([]byte(source)) })
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
		if took := processortest.Of(t, func() { parseFacts([]byte(code)) }); took > 50*ordinary {
			t.Errorf("%s took %v, source code of this size %v", name, took, ordinary)
		}
	}
}

func TestALongNameIsNoModule(t *testing.T) {
	long := strings.Repeat("a", maxNameBytes)
	if got, want := spoken(parseFacts([]byte("import "+long+", "+long+"b, c\nfrom "+long+"b import c\nfrom d import "+long+"b"))), long+", c, d"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

// The definitions of projects, too: two hundred times those of a project with an ordinary one of this size at most.
func TestNoDefinitionTakesLongToRead(t *testing.T) {
	many := func(line string) string {
		var b strings.Builder
		for b.Len() < maxFileBytes-200 {
			b.WriteString(strings.Replace(line, "N", strconv.Itoa(b.Len()), 1))
		}
		return b.String()
	}
	load := func(t *testing.T, tree memoryTree) (took time.Duration) {
		for n := range 300 {
			dir := "deep/" + strings.Repeat("a/", n%30) + string(rune('a'+n%26)) + "/"
			tree[dir+"test_a.py"], tree[dir+"b.py"] = "import c\n", "import d\n"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		return processortest.Of(t, func() {
			if _, err := newLoader(t, Options{}).Load(ctx, "", tree); err != nil {
				t.Error(err)
			}
		})
	}
	ordinary := load(t, memoryTree{"setup.cfg": many("# a comment\n") + "[options]\n"})
	for name, tree := range map[string]memoryTree{
		"a long value in a setup.cfg":       {"setup.cfg": "[options]\npackages=\n" + many(" x\n")},
		"many keys in a setup.cfg":          {"setup.cfg": "[options]\n" + many("xN=1\n")},
		"requirements within each other":    {"requirements.txt": many("-r requirements.txt\n")},
		"many patterns of names of tests":   {"pytest.ini": "[pytest]\npython_files =\n" + many(" x*yN*z*.py\n"), "setup.py": ""},
		"many folders of tests":             {"pytest.ini": "[pytest]\ntestpaths =\n" + many(" x*yN*/**/z\n"), "setup.py": ""},
		"many names of folders to pass by":  {"pytest.ini": "[pytest]\nnorecursedirs =\n" + many(" x*yN*\n"), "setup.py": ""},
		"many folders in which modules are": {"pytest.ini": "[pytest]\npythonpath =\n" + many(" ../xN\n"), "setup.py": ""},
	} {
		t.Run(name, func(t *testing.T) {
			if took := load(t, tree); took > 200*ordinary {
				t.Errorf("took %v, with a setup.cfg of this size %v", took, ordinary)
			}
		})
	}
}

// An operator takes no memory of its own: a file can hold millions of them.
func TestOperatorsTakeNoMemoryOfTheirOwn(t *testing.T) {
	code := []byte(strings.Repeat("(", 100_000) + strings.Repeat(")", 100_000))
	if n := testing.AllocsPerRun(1, func() { parseFacts(code) }); n > 1000 {
		t.Errorf("%v allocations", n)
	}
}
