package bazelgraph

import (
	"slices"
	"strings"
	"testing"
)

func textsOf(source string) []string {
	var list []string
	for _, t := range tokens(source) {
		if t.kind == tokenText {
			list = append(list, t.text)
		}
	}
	return list
}

func TestTextsOfAStarlarkFile(t *testing.T) {
	for source, want := range map[string][]string{
		`load("//a:b.bzl", "x", y = 'z')`:      {"//a:b.bzl", "x", "z"},
		`# load("//a:b.bzl")` + "\n" + `"a"`:   {"a"},
		`"a # b" # "c"`:                        {"a # b"},
		`"""a "quoted" ''' b""" 'c'`:           {`a "quoted" ''' b`, "c"},
		`r"a\nb" b'c' "d\"e" 'f\'g'`:           {`a\nb`, "c", `d"e`, "f'g"},
		`"\x2f\057\u002fa:b\U0000002ebzl"`:     {"///a:b.bzl"},
		"\"open\n\"next\"":                     {"open", "next"},
		"\"a\\\nb\"":                           {"ab"},
		`def f(x: int = 1) -> str: return "é"`: {"é"},
		`"""never closed`:                      {"never closed"},
		`x"a"`:                                 {"a"},
		`"\q" "\`:                              {`\q`, `\`},
	} {
		if got := textsOf(source); !slices.Equal(got, want) {
			t.Errorf("%q has the texts %q, want %q", source, got, want)
		}
	}
}

func TestPackageCalls(t *testing.T) {
	same := [][2]string{
		{`package(features = ["a"])`, "package( features=['a'] ) # why\nfoo(package = 1)"},
		{"foo()", "bar('package()')"},
	}
	for _, pair := range same {
		a, plainA := packageCalls(tokens(pair[0]))
		b, plainB := packageCalls(tokens(pair[1]))
		if a != b || !plainA || !plainB {
			t.Errorf("%q and %q: %q, %q, %v, %v", pair[0], pair[1], a, b, plainA, plainB)
		}
	}
	a, _ := packageCalls(tokens(`package(default_visibility = ["//a"])`))
	if b, _ := packageCalls(tokens(`package(default_visibility = ["//b"])`)); a == b {
		t.Error("two visibilities are one")
	}
	for _, source := range []string{`package(features = X)`, `package(**x)`, `p = package`, `package(features = ["a"`, `package(features = f("a"))`, `[package(testonly = t) for t in [1]]`} {
		if _, plain := packageCalls(tokens(source)); plain {
			t.Errorf("%q rests on nothing but itself", source)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, source := range sample {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		list := tokens(source)
		packageCalls(list)
		length := 0
		for _, token := range list {
			if token.kind != tokenText {
				length += len(token.text)
			}
		}
		if length > len(source) {
			t.Fatalf("%d bytes of signs and words in %d", length, len(source))
		}
		// A literal that is added on a line of its own is always found.
		if !strings.Contains(source, `"""`) && !strings.Contains(source, `'''`) {
			if texts := textsOf(source + "\n\n\"//x:y.bzl\""); len(texts) == 0 || texts[len(texts)-1] != "//x:y.bzl" {
				if !strings.HasSuffix(source, "\\") {
					t.Fatalf("%q: %q", source, texts)
				}
			}
		}
	})
}

func TestLabels(t *testing.T) {
	for text, want := range map[string]label{
		"//p:n": {"", "p", "n"}, "//p/q": {"", "p/q", "q"}, "//:n": {"", "", "n"}, "@//p:n": {"", "p", "n"}, "@@//p:n": {"", "p", "n"},
		"@r//p:n": {"@r", "p", "n"}, "@@r~1//:n": {"@@r~1", "", "n"}, "@@r+//p": {"@@r+", "p", "p"}, "//p:a/b c@1": {"", "p", "a/b c@1"}, "//p:": {},
		"p:n": {}, ":n": {}, "//": {}, "///p:n": {}, "//p/:n": {}, "//../p:n": {}, "x//p:n": {}, "https://p:n": {}, "": {}, "@r:x": {}, "//p:\n": {},
	} {
		if got, ok := parseLabel(text); got != want || ok != (want != label{}) {
			t.Errorf("%q is %+v, %v, want %+v", text, got, ok, want)
		}
	}
}

func FuzzLabel(f *testing.F) {
	for _, seed := range []string{"//p:n", "@r//p", "@@//:x", "//p/...", "//p:a/../b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, ok := parseLabel(text)
		if !ok {
			return
		}
		if again, ok := parseLabel(l.String()); !ok || again != l {
			t.Fatalf("%q is %+v, which is written %q and read %+v", text, l, l.String(), again)
		}
	})
}
