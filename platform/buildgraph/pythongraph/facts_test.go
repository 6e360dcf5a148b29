package pythongraph

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func spoken(f *facts) string {
	var words []string
	for _, i := range f.imports {
		word := strings.Repeat(".", i.level) + i.module
		if i.name != "" {
			word += " " + i.name
		}
		words = append(words, word)
	}
	for _, name := range f.names {
		words = append(words, "'"+name+"'")
	}
	words = append(append(words, f.reads...), f.climbs...)
	slices.Sort(words)
	if f.dynamic {
		words = append(words, "dynamic")
	}
	if f.launches {
		words = append(words, "launches")
	}
	return strings.Join(words, ", ")
}

func TestImportsAreFoundWhereverTheyStand(t *testing.T) {
	for code, want := range map[string]string{
		"import a.b as c, d": "a.b, d",
		"from a import (b, # c\n  d as e,\n)\nfrom . import x": "., . x, a, a b, a d",
		"from ..a.b import *":                              "..a.b, ..a.b *",
		"if x: import a; import b\nelse: from c import d":  "a, b, c, c d",
		"try:\n    import a\nexcept ImportError: a = None": "a",
		"def f():\n\tfrom .m import n":                     ".m, .m n",
		"import a\\\n.b":                                   "a.b",
		"from . \\\n  import a":                            "., . a",
		"from .\\\n.x import a":                            "..x, ..x a",
		"raise A from b\nimport c":                         "c",
		"yield from b\nimport c":                           "c",
		"'''\nimport a\n'''\n# import b\n\"import c\"":     "",
		"x = f\"{y['k']!r:>{w}} import a\"\nimport b":      "b",
		"x = f\"{d[\"k\"]}\"\nimport b":                    "b",
		"x = f'{{import a}} {x:'\nimport b":                "a, b",
		"x = f'{x:\"<10}'\nimport b":                       "b",
		"x = rb'\\'\nimport a":                             "a",
		"x = 'a\\\nimport b'\nimport c":                    "c",
		"x = 'unfinished\nimport b":                        "b",
		"import_module('a.b')":                             "'a.b', a.b",
		"import_module('.b', __package__)":                 ".b",
		"import_module('.b', 'a.c')":                       "'a.c', .b, dynamic",
		"import_module(name)":                              "dynamic",
		"import_module('a' + name)":                        "dynamic",
		"import_module(f'a.{name}')":                       "dynamic",
		"__import__('a')":                                  "a",
		"from importlib import import_module":              "importlib, importlib import_module",
		"from importlib import import_module as f":         "importlib, importlib import_module, dynamic",
		"load = importlib.import_module":                   "dynamic",
		"def import_module(x): pass":                       "",
		"mock.patch('a.b.c')":                              "'a.b.c'",
		"x = 'a.b:main', 'www.example.com', '1.2', 'a..b'": "'a.b', 'www.example.com'",
		"exec(compile(source, name, 'exec'))":              "dynamic",
		"cursor.exec(query)":                               "",
		"import subprocess":                                "subprocess, launches",
		"run([sys.executable, '-m', 'a'])":                 "dynamic",
		"import a\rimport b\r\nimport c":                   "a, b, c",
		"\ufeffimport a":                                   "a",
		"import é.ü":                                       "é.ü",
		"match x:\n  case {'a': 1}: import z":              "z",
		"type X = int; import y":                           "y",
		"lambda: (yield)\nx = 0xfrom\nimport a":            "a",
	} {
		if got := spoken(parseFacts([]byte(code))); got != want {
			t.Errorf("%q:\n got %s\nwant %s", code, got, want)
		}
	}
}

// A file that is made to take long takes as long as any of its size.
func TestNoFileTakesLong(t *testing.T) {
	for _, words := range []string{
		"import ", "import_module ", "from . ", "a.", "f'{", `f"""{`, "(", `"""`, "f'{x:{", "from a import b,", "'\\\n", "a ", "a, ",
		`"..", `, `"..", "a", `, "dirname(", "parent.", "parents[9]/", "__file__ ", "a=__file__\na=a.parent\n", "x(__file__,", `"../x ../y" `,
		`subprocess, "."`, `subprocess, ".. . git x" `, `subprocess, "git `,
	} {
		parseFacts([]byte(strings.Repeat(words, 2_000_000/len(words))))
	}
}

func FuzzFacts(f *testing.F) {
	for _, seed := range []string{"import a", "from .a import (b)", "f'{x:{y}}'", "f\"{f'{x}'}\"", "'''", "import_module('a'", "x = f'{'", "join(a, '..', 'b') + parents[2] / 'c'", "f'../{x}' + dirname(dirname(x))"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, code string) {
		first := parseFacts([]byte(code))
		if again := parseFacts([]byte(code)); !first.unread && !first.equal(again) {
			t.Fatalf("%q: %+v, %+v", code, first, again)
		}
		// A comment says nothing.
		if more := parseFacts([]byte("# comment\n" + code)); !strings.HasPrefix(code, "\ufeff") && !first.unread && !first.equal(more) {
			t.Fatalf("%q: %s, with a comment %s", code, spoken(first), fmt.Sprint(spoken(more)))
		}
	})
}
