// Package nesting bounds how deep a TOML file is nested. Parsers call themselves for each bracket, and a stack that is full ends
// the process: nothing can recover from that. For a dotted key they take time by the square of its length.
package nesting

import (
	"bytes"
	"fmt"
)

// Bounds far above what people and tools write.
const (
	// MostBrackets is how deep brackets may be nested, MostParts how many parts a key may have.
	MostBrackets = 1000
	MostParts    = 50
)

// Check returns an error for a TOML file that is nested deeper than that.
func Check(content []byte) error {
	depth, parts := 0, 1
	for i := 0; i < len(content); i++ {
		switch c := content[i]; c {
		case '"', '\'':
			i += lengthOf(content[i:]) - 1
		case '#':
			if end := bytes.IndexByte(content[i:], '\n'); end >= 0 {
				i += end - 1
			} else {
				i = len(content)
			}
		case '[', '{':
			parts = 1
			if depth++; depth > MostBrackets {
				return fmt.Errorf("brackets are nested deeper than %d", MostBrackets)
			}
		case ']', '}':
			depth = max(0, depth-1)
		case '.':
			if parts++; parts > MostParts {
				return fmt.Errorf("a key has more than %d parts", MostParts)
			}
		case '=', ',', '\n':
			parts = 1
		}
	}
	return nil
}

// lengthOf returns how many bytes the string has that a text begins with, its quotes among them. One that is not closed ends with
// its line.
func lengthOf(text []byte) int {
	quote := text[:1]
	if triple := bytes.Repeat(quote, 3); bytes.HasPrefix(text, triple) {
		for i := 3; i < len(text); i++ {
			switch {
			case text[i] == '\\' && quote[0] == '"':
				i++
			case bytes.HasPrefix(text[i:], triple):
				return i + 3
			}
		}
		return len(text)
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote[0] == '"':
			i++
		case text[i] == quote[0]:
			return i + 1
		case text[i] == '\n':
			return i
		}
	}
	return len(text)
}
