package client

import (
	"io"
	"regexp"
	"strings"
	"unicode"
)

// Texts come from changes and from what steps print: nothing in them may control the reader's terminal.

// controlSequence is how programs colour a terminal, move its cursor, or rename its window.
var controlSequence = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?|[ -~])")

// Plain returns a text as one printable line.
func Plain(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\t' || c == '\n':
			return ' '
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, controlSequence.ReplaceAllString(text, ""))
}

// harmless returns an output with its lines, and nothing else that is not printable.
func harmless(output string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return -1
	}, controlSequence.ReplaceAllString(output, ""))
}

// Harmless returns a writer that passes on texts without what controls a terminal: names and files of a repository are in them.
func Harmless(w io.Writer) io.Writer { return harmlessWriter{w} }

type harmlessWriter struct{ to io.Writer }

func (h harmlessWriter) Write(text []byte) (int, error) {
	if _, err := io.WriteString(h.to, harmless(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}
