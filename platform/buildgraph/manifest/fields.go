package manifest

import (
	"slices"
	"strings"
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

// field is one entry of a mapping.
type field struct {
	name  string
	line  int
	value *node
}

// fields returns a mapping's entries; what names the mapping in messages.
func (r *fileReader) fields(n *node, what string) []field {
	if n.kind != mapNode {
		r.problem(n.line, "%s must be a mapping (key: value), not %s", what, n.kind)
		return nil
	}
	fields := make([]field, 0, len(n.keys))
	seen := make(map[string]bool, len(n.keys))
	for i, key := range n.keys {
		if seen[key.text] {
			r.problem(key.line, "%s appears twice in %s; keep one", clip(key.text), what)
			continue
		}
		seen[key.text] = true
		fields = append(fields, field{key.text, key.line, n.items[i]})
	}
	return fields
}

// unknown reports a field that does not exist; known is the list that does.
func (r *fileReader) unknown(f field, what string, known ...string) {
	r.problem(f.line, "unknown field %s in %s; known are %s", clip(f.name), what, strings.Join(known, ", "))
}

// items returns a list's values.
func (r *fileReader) items(f field, what string) []*node {
	if f.value.kind != listNode {
		r.problem(f.line, "%s of %s must be a list, such as [a, b], not %s", f.name, what, f.value.kind)
		return nil
	}
	return f.value.items
}

// word is a text and where it stands.
type word struct {
	text string
	line int
}

// words returns a list of texts.
func (r *fileReader) words(f field, what string) []word {
	var words []word
	for _, item := range r.items(f, what) {
		if item.kind != textNode {
			r.problem(item.line, "%s of %s must hold texts, not %s; put a text in quotes", f.name, what, item.kind)
			continue
		}
		words = append(words, word{item.text, item.line})
	}
	return words
}

// text returns a text field.
func (r *fileReader) text(f field, what string) string {
	if f.value.kind != textNode {
		r.problem(f.line, "%s of %s must be a text, not %s", f.name, what, f.value.kind)
	}
	return f.value.text
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
