package configuration

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

func (d decoder) unknownField(e entry, section reflect.Type, at *path) {
	names := fieldNames(section)
	place := at.child(e.name)
	message := "is not a known field"
	if deeper := fieldBelow(section, e.name, 3); deeper != "" && Closest(e.name, names) == "" {
		d.addLine(e.line, place, message, fmt.Sprintf("did you mean %s?", deeper))
		return
	}
	d.addLine(e.line, place, message, adviseName(e.name, names))
}

// adviseName suggests the name that was meant, or lists what there is.
func adviseName(wrong string, names []string) string {
	if meant := Closest(wrong, names); meant != "" {
		return fmt.Sprintf("did you mean %s?", meant)
	}
	const listed = 20
	if len(names) == 0 {
		return "none is known"
	}
	if len(names) > listed {
		return fmt.Sprintf("known are %s and %d more", strings.Join(names[:listed], ", "), len(names)-listed)
	}
	return "known are " + strings.Join(names, ", ")
}

// Closest returns the name that a slip of the keyboard could have made this of:
// the nearest within a third of its length, the first of equals; or "".
func Closest(wrong string, names []string) string {
	const longest = 64
	if len(wrong) > longest {
		return ""
	}
	normal := strings.ReplaceAll(strings.ToLower(wrong), "-", "_")
	best, bestDistance := "", 1<<30
	for _, name := range names {
		distance := editDistance(normal, strings.ReplaceAll(strings.ToLower(name), "-", "_"))
		if distance <= max(1, len(name)/3) && distance < bestDistance {
			best, bestDistance = name, distance
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours
// (optimal string alignment).
func editDistance(a, b string) int {
	before, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			replace := previous[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			current[j] = min(replace, previous[j]+1, current[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}

// fieldBelow finds a field of this name in a section below this one, and returns
// its path from here.
func fieldBelow(section reflect.Type, name string, depth int) string {
	if depth == 0 {
		return ""
	}
	for i := range section.NumField() {
		field := section.Field(i)
		if field.Type.Kind() != reflect.Struct {
			continue
		}
		here := field.Tag.Get("yaml")
		if slices.Contains(fieldNames(field.Type), name) {
			return here + "." + name
		}
		if deeper := fieldBelow(field.Type, name, depth-1); deeper != "" {
			return here + "." + deeper
		}
	}
	return ""
}

// fieldsByName maps the names in the file to indexes of fields.
func fieldsByName(section reflect.Type) map[string]int {
	fields := make(map[string]int, section.NumField())
	for i := range section.NumField() {
		if name := section.Field(i).Tag.Get("yaml"); name != "-" {
			fields[name] = i
		}
	}
	return fields
}

// fieldNames returns the names in the file, in the order of the struct.
func fieldNames(section reflect.Type) []string {
	var names []string
	for i := range section.NumField() {
		if name := section.Field(i).Tag.Get("yaml"); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// quoteWords writes a command line as the list of words that the file takes.
func quoteWords(text string) string {
	words := strings.Fields(text)
	const listed = 10
	if len(words) > listed {
		words = append(words[:listed:listed], "…")
	}
	for i, word := range words {
		words[i] = quote(word)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

func clip(text string) string {
	const limit = 40
	if len(text) > limit {
		return text[:limit] + "…"
	}
	return text
}
