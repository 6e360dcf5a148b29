package cargograph

import (
	"strings"
	"testing"

	"landfall.build/events/processortest"
)

// A file of any content is read in a time that its size bounds, some hundred times that of an ordinary file of this size at most: nothing can
// end a scan from outside.
func TestNoFileTakesLongToRead(t *testing.T) {
	const size = 1 << 18
	fill := func(before, repeated, after string) string {
		return before + strings.Repeat(repeated, size/len(repeated)) + after
	}
	source := fill("", "pub fn a(b: u32) -> u32 { b + 1 } // a comment\nmod c;\n", "")
	ordinary := processortest.Of(t, func() { readSource([]byte(source)) })
	for name, code := range map[string]string{
		"modules within each other":     strings.Repeat("mod a{", size/12) + fill("", "mod b;", ""),
		"modules in one of a long name": "mod " + strings.Repeat("a", size) + "{" + fill("", "mod b;", ""),
		"paths of modules":              strings.Repeat("mod a{", size/12) + fill("", `path="b"`, ""),
		"comments within each other":    fill("", "/*", ""),
		"a comment of texts":            fill("//", `"..`, ""),
		"dots":                          fill("", `"..",`, ""),
		"marks":                         fill("", `r#`, ""),
		"raw texts without an end":      fill("", `r##"`, ""),
		"characters":                    fill("", `'\`, ""),
	} {
		if took := processortest.Of(t, func() { readSource([]byte(code)) }); took > 300*ordinary {
			t.Errorf("%s took %v, source code of this size %v", name, took, ordinary)
		}
	}
	manifest := fill("", "[a.b]\nc = \"d\" # a comment\ne = [1, 2]\n", "")
	ordinary = processortest.Of(t, func() { parseTOML([]byte(manifest)) })
	for name, text := range map[string]string{
		"a dotted key":           fill("a", ".a", "=1"),
		"a dotted table":         fill("[a", ".a", "]"),
		"arrays within an array": fill("a=", "[", ""),
		"tables within a table":  fill("a=", "{a=", ""),
		"closed arrays":          "a=" + strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
	} {
		if took := processortest.Of(t, func() { parseTOML([]byte(text)) }); took > 300*ordinary {
			t.Errorf("%s took %v, a manifest of this size %v", name, took, ordinary)
		}
	}

	if l := parseLock([]byte(strings.Repeat("[[package]]\nname = \"a\"\ndependencies = [\"a\", \"a 9\"]\n", 10_000))); l.unknown == "" {
		t.Error("packages that all name each other are known")
	}
}
