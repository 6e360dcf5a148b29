package gograph

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
		begin := time.Now()
		parseGo([]byte(code), true)
		parseForeign([]byte(code))
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}
