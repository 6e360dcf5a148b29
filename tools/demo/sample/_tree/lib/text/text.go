// Package text shortens, wraps and names texts for people.
package text

import (
	"strings"
	"unicode"
)

// Slug makes a name for an address: letters and digits, in lower case, with single dashes between.
func Slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	return strings.TrimRight(b.String(), "-")
}

// Shorten cuts a text to n runes, the last of which says that there was more.
func Shorten(s string, n int) string {
	runes := []rune(s)
	if len(runes) <= n || n < 1 {
		return s
	}
	return string(runes[:n-1]) + "…"
}

// Wrap breaks a text into lines of at most width runes, where words allow it.
func Wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
