package cargograph

import (
	"strings"
	"testing"
	"time"
)

// A file of any content is read in a time that its size bounds: nothing can end a scan from outside.
func TestNoFileTakesLongToRead(t *testing.T) {
	const size = 1 << 18
	fill := func(before, repeated, after string) string {
		return before + strings.Repeat(repeated, size/len(repeated)) + after
	}
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
		begin := time.Now()
		readSource([]byte(code))
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
	for name, text := range map[string]string{
		"a dotted key":           fill("a", ".a", "=1"),
		"a dotted table":         fill("[a", ".a", "]"),
		"arrays within an array": fill("a=", "[", ""),
		"tables within a table":  fill("a=", "{a=", ""),
		"closed arrays":          "a=" + strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
	} {
		begin := time.Now()
		parseTOML([]byte(text))
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}

	if l := parseLock([]byte(strings.Repeat("[[package]]\nname = \"a\"\ndependencies = [\"a\", \"a 9\"]\n", 10_000))); l.unknown == "" {
		t.Error("packages that all name each other are known")
	}
}
