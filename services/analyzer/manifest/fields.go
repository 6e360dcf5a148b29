package manifest

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// fileReader reads the meaning of one file and notes what is wrong with it.
type fileReader struct {
	path     string
	folder   string // "" for the root
	problems problems
}

func (r *fileReader) problem(line int, format string, args ...any) {
	if len(r.problems) <= maxProblems {
		r.problems.add(r.path, line, format, args...)
	}
}

func lineOf(node ast.Node) int {
	if node == nil || node.GetToken() == nil {
		return 0
	}
	return node.GetToken().Position.Line
}

// field is one entry of a mapping.
type field struct {
	name  string
	line  int
	value ast.Node
}

// fields gives a mapping's entries; what names the mapping in messages.
func (r *fileReader) fields(node ast.Node, what string) []field {
	var values []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.problem(lineOf(node), "%s must be a mapping (key: value)", what)
		return nil
	}
	var fields []field
	seen := make(map[string]bool, len(values))
	for _, v := range values {
		name, ok := scalar(v.Key)
		line := lineOf(v.Key)
		switch {
		case !ok:
			r.problem(line, "a key of %s is not a plain word", what)
		case seen[name]:
			r.problem(line, "%q appears twice in %s; keep one", name, what)
		default:
			seen[name] = true
			fields = append(fields, field{name, line, v.Value})
		}
	}
	return fields
}

// unknown reports a field that does not exist; known is the list that does.
func (r *fileReader) unknown(f field, what string, known ...string) {
	r.problem(f.line, "unknown field %q in %s; known are %s", f.name, what, strings.Join(known, ", "))
}

// items gives a sequence's values.
func (r *fileReader) items(f field, what string) []ast.Node {
	sequence, ok := f.value.(*ast.SequenceNode)
	if !ok {
		r.problem(f.line, "%s of %s must be a list, such as [a, b]", f.name, what)
		return nil
	}
	return sequence.Values
}

// word is a scalar and where it stands.
type word struct {
	text string
	line int
}

// words gives a list of scalars.
func (r *fileReader) words(f field, what string) []word {
	var words []word
	for _, item := range r.items(f, what) {
		text, ok := scalar(item)
		if !ok {
			line := lineOf(item)
			if line == 0 {
				line = f.line
			}
			r.problem(line, "%s of %s holds something that is not a text; quote it", f.name, what)
			continue
		}
		words = append(words, word{text, lineOf(item)})
	}
	return words
}

// text gives a scalar field.
func (r *fileReader) text(f field, what string) string {
	text, ok := scalar(f.value)
	if !ok {
		r.problem(f.line, "%s of %s must be a text", f.name, what)
	}
	return text
}

// scalar gives a value as it is written: 1.10 and yes are texts here, never
// numbers or booleans. Null is not a text.
func scalar(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// sortedTexts drops places, order and repetitions.
func sortedTexts(words []word) []string {
	texts := make([]string, 0, len(words))
	for _, w := range words {
		texts = append(texts, w.text)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}
