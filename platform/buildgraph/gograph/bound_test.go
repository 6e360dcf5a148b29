package gograph

import (
	"strings"
	"testing"

	"landfall.build/events/processortest"
)

// A file of any content is read in a time that its size bounds, fifty times that of source code of this size at most: nothing can
// end a scan from outside.
func TestNoFileTakesLongToRead(t *testing.T) {
	const size = 1 << 20
	fill := func(before, repeated, after string) string {
		return before + strings.Repeat(repeated, size/len(repeated)) + after
	}
	read := func(code string) {
		parseGo([]byte(code), true)
		parseForeign([]byte(code))
	}
	source := fill("package a\nimport (\n", "\t\"a/b\" // a comment\n", ")\nvar c = 1\n")
	ordinary := processortest.Of(t, func() { read(source) })
	for name, code := range map[string]string{
		"lines of constraints":  fill("", "// +build a\n", "\npackage a\n"),
		"a long constraint":     fill("//go:build a", " && a", "\n\npackage a\n"),
		"constraints in parens": fill("//go:build ", "(", "\n\npackage a\n"),
		"negations":             fill("//go:build ", "!", "\n\npackage a\n"),
		"imports":               fill("package a\n", "import \"a\"\n", ""),
		"preambles":             fill("package a\nimport (\n", "// #include \"a\"\n\"C\"\n", ")"),
		"flags":                 fill("package a\n// #cgo LDFLAGS:", " -I a", "\nimport \"C\"\n"),
		"patterns":              fill("package a\nimport \"embed\"\n//go:embed", " a", "\n"),
		"a long sum":            fill("package a\nvar a = \"..\"", "+\"a\"", "\n"),
		"quoted patterns":       fill("package a\nimport \"embed\"\n//go:embed ", "\"a\"", "\n"),
	} {
		if took := processortest.Of(t, func() { read(code) }); took > 50*ordinary {
			t.Errorf("%s took %v, source code of this size %v", name, took, ordinary)
		}
	}
}
