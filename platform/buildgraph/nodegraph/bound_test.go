package nodegraph

import (
	"strings"
	"testing"

	"landfall.build/events/processortest"
)

// A file of any content is read in a time that its size bounds, some hundred times that of source code of this size at most: nothing can
// end a scan from outside.
func TestNoFileTakesLongToRead(t *testing.T) {
	const size = 1 << 20
	fill := func(before, repeated, after string) string {
		return before + strings.Repeat(repeated, size/len(repeated)) + after
	}
	ordinary := processortest.Of(t, func() {
		scan([]byte(fill("", "import { a } from './a.js'; // a comment\nexport function b(c) { return a(c, \"text\") + `${c}`; }\n", "")), script)
	})
	for name, code := range map[string]string{
		"paths in parts":           fill("", `".",`, ""),
		"paths in apart parts":     fill("", `".",`+strings.Repeat(" ", 500), ""),
		"quotes":                   fill("", `"`, ""),
		"templates":                fill("", "`${", ""),
		"texts after comments":     fill("", "/*"+strings.Repeat(`*/"a`, 200)+"*/", ""),
		"texts after white space":  fill("", " ", "/*"+strings.Repeat(`*/"a`, 200)),
		"paths":                    fill("", "../", ""),
		"quoted paths":             fill("", `"../`, ""),
		"names of folders above":   fill("readdir\n", "a=\"..\";a\n", ""),
		"one line of such":         fill("readdir", "a=\"..\";", ""),
		"a name with many uses":    fill("readdir\na = '..'\n", "join(a,   'x') ", ""),
		"computed parts":           fill("", "join('..', a, ", ""),
		"computed parts by a name": fill("a = '..'\n", "join(a, b) ", ""),
		"parts within brackets":    fill("", "'..', (", ""),
		"templates of folders":     fill("", "`../${a}/", ""),
		"sums":                     fill("", "'../' + ", ""),
		"comments before a name":   fill("readdir\na = '..'\n", "(/*"+strings.Repeat("*/a, 'x'", 100)+"*/", ""),
		"package managers":         fill("spawn", "'npm", "") + fill("", "; npm x", ""),
		"paths with computed ends": fill("", "../${", ""),
	} {
		if took := processortest.Of(t, func() { scan([]byte(code), script) }); took > 300*ordinary {
			t.Errorf("%s took %v, source code of this size %v", name, took, ordinary)
		}
	}
}

// What is not examined into any more can mean all that it could have.
func TestAFileThatIsTooMuchWorkCanNameMore(t *testing.T) {
	s := scanner{text: []byte(`join("..", "x"); y = "z"`), imports: map[string]bool{}, paths: map[string]bool{}, names: map[string]bool{}, left: -1}
	s.quoted(5)
	s.quoted(strings.Index(string(s.text), `"z"`))
	if !s.paths["../*"] && !s.imports["../*"] || !s.names["z"] {
		t.Errorf("found %v, %v and %v", s.imports, s.paths, s.names)
	}
}
