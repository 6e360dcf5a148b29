package manifest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"landfall.build/events/seedtest"
)

// outline writes a value so that two parsers' readings can be compared.
func outline(n *node) string {
	var b strings.Builder
	switch n.kind {
	case nullNode:
		return "null"
	case textNode:
		return fmt.Sprintf("%q", n.text)
	case listNode:
		for _, item := range n.items {
			fmt.Fprintf(&b, "%s, ", outline(item))
		}
		return "[" + b.String() + "]"
	default:
		for i, key := range n.keys {
			fmt.Fprintf(&b, "%s: %s, ", outline(key), outline(n.items[i]))
		}
		return "{" + b.String() + "}"
	}
}

// fullOutline is outline of what a full YAML parser reads.
func fullOutline(n ast.Node) string {
	var b strings.Builder
	switch n := n.(type) {
	case nil, *ast.NullNode:
		return "null"
	case *ast.StringNode:
		return fmt.Sprintf("%q", n.Value)
	case *ast.SequenceNode:
		for _, item := range n.Values {
			fmt.Fprintf(&b, "%s, ", fullOutline(item))
		}
		return "[" + b.String() + "]"
	case *ast.MappingNode:
		for _, pair := range n.Values {
			fmt.Fprintf(&b, "%q: %s, ", fullKey(pair.Key), fullOutline(pair.Value))
		}
		return "{" + b.String() + "}"
	}
	return fmt.Sprintf("%q", n.GetToken().Value)
}

func fullKey(key ast.MapKeyNode) string {
	if s, ok := key.(*ast.StringNode); ok {
		return s.Value
	}
	return key.GetToken().Value
}

// checkAgainstFullParser fails if the source is accepted here and read
// differently by the full parser.
func checkAgainstFullParser(t *testing.T, source string) (accepted bool) {
	t.Helper()
	ours, err := parseDocument(source)
	if err != nil {
		return false
	}
	file, err := parser.ParseBytes([]byte(source), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		t.Errorf("accepted here, refused by the full parser: %v\n%s", err, source)
		return true
	}
	theirs := "null"
	if len(file.Docs) > 0 && file.Docs[0].Body != nil {
		theirs = fullOutline(file.Docs[0].Body)
	}
	if outline(ours) != theirs {
		t.Errorf("read as %s\nby the full parser as %s\nsource %q\n%s", outline(ours), theirs, source, source)
	}
	return true
}

// writer writes random documents in the accepted part of YAML, and sometimes
// not quite in it.
type writer struct {
	*rand.Rand
	strings.Builder
}

var sampleTexts = []string{
	"a", "lib", "*.go", "**/x", "1.10", "yes", "true", "0x1f", "-mod=mod", "//lib:test", ":lib", "a b", "it's", `"q"`, "'s'", `'it''s'`,
	`"\t\"\\ \u00e9 \x41"`, "a#b", "a # comment", "x:y", "é", "--flag", "-", "?x", "a:", "[a]", "~", "null", "", "{}", "[]", "1e3", ".5", "-1",
	"2001-01-01", "&a", "!t", "a]", "a,b", "=", "<<", ">", "|", "%", "@", "a'b", `a"b`, "\\", "$x", "(x)", "a\tb", "1_000", "0o17", "+1", ".inf", "0b1",
}

func (w *writer) pick() string { return sampleTexts[w.IntN(len(sampleTexts))] }

// flow writes a value within a line. Within braces it leaves out colons that
// belong to a text: the full parser takes [x:y] there for [{x: y}], against YAML
// 1.2 (section 7.3.3).
func (w *writer) flow(depth int, inBraces bool) {
	switch kind := w.IntN(4); {
	case kind == 0 && depth > 0:
		w.WriteByte('[')
		for range w.IntN(4) {
			w.flow(depth-1, inBraces)
			w.WriteString([]string{",", ", ", " ,", ",\n  "}[w.IntN(4)])
		}
		w.WriteByte(']')
	case kind == 1 && depth > 0:
		w.WriteByte('{')
		for range w.IntN(3) {
			w.WriteString(w.pick())
			w.WriteString(": ")
			w.flow(depth-1, true)
			w.WriteString(", ")
		}
		w.WriteByte('}')
	default:
		text := w.pick()
		for inBraces && strings.Contains(text, ":") {
			text = w.pick()
		}
		w.WriteString(text)
	}
}

func (w *writer) block(indent, depth int) {
	pad := strings.Repeat(" ", indent)
	kind := w.IntN(2)
	for i := range 1 + w.IntN(3) {
		if i > 0 {
			w.WriteString(pad)
		}
		if kind == 0 {
			w.WriteString("-")
		} else {
			fmt.Fprintf(w, "k%d%s:", i, []string{"", " x", "/y", "-", "#"}[w.IntN(5)])
		}
		switch next := w.IntN(5); {
		case next == 0:
			w.WriteString([]string{"\n", " # none\n", " \n"}[w.IntN(3)])
		case next == 1 && depth > 0 && kind == 0:
			w.WriteString(" ")
			w.block(indent+2, depth-1)
		case next <= 2 && depth > 0:
			deeper := indent + 1 + w.IntN(3)
			w.WriteString([]string{"\n", " # below\n\n"}[w.IntN(2)] + strings.Repeat(" ", deeper))
			w.block(deeper, depth-1)
		default:
			w.WriteString(" ")
			w.flow(2, false)
			w.WriteString([]string{"\n", " # end\n", "\r\n"}[w.IntN(3)])
		}
	}
}

func TestWhatIsAcceptedMeansTheSameToAFullParser(t *testing.T) {
	random := seedtest.Random(t)
	accepted := 0
	for range 20_000 {
		w := &writer{Rand: random}
		w.block(0, 3)
		if checkAgainstFullParser(t, w.String()) {
			accepted++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of 20000 accepted", accepted)
	if accepted < 2000 {
		t.Error("too few documents were accepted for the comparison to mean anything")
	}
}

func TestSyntaxThatIsNotSupportedIsNamed(t *testing.T) {
	for source, want := range map[string]string{
		"a: &x 1":                  "anchors",
		"a: *x":                    "anchors",
		"a: !!str 1":               "tags",
		"a: |\n  x":                "block texts",
		"a: >-\n  x":               "block texts",
		"? a\n: b":                 "cannot begin with ?",
		"a: [?b]":                  "cannot begin with ?",
		"<<: {a: b}":               "merge keys",
		"a: b\n---\nc: d":          "one document",
		"%YAML 1.2\n---\na: b":     "directives",
		"a: b\n  c":                "on one line",
		"a: \"b\n  c\"":            "does not end on its line",
		"a:\n\t- b":                "tab",
		"a: b: c":                  "must be in quotes",
		"a: [b, c":                 "not closed",
		"a: [b c: d]":              "key: value",
		"a: {b}":                   "has no value",
		"a: \"\\q\"":               "unknown escape",
		"a: [b] c":                 "after a value",
		"a: @b":                    "cannot begin with @",
		"a: 1\n b: 2":              "indented more",
		"  a: 1\nb: 2":             "check the indentation",
		"a\xff: 1":                 "UTF-8",
		"a: \x01":                  "character",
		strings.Repeat("[", 1000):  "nested",
		strings.Repeat("- ", 1000): "nested",
	} {
		_, err := parseDocument(source)
		var bad *syntaxError
		if !errors.As(err, &bad) || !strings.Contains(bad.message, want) {
			t.Errorf("%.40q: got %v, want one that says %q", source, err, want)
		}
	}
}
