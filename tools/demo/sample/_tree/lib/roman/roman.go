// Package roman writes and reads the numerals of volumes.
package roman

import (
	"errors"
	"strings"
)

// ErrSyntax says that a text is no numeral.
var ErrSyntax = errors.New("not a roman numeral")

var digits = []struct {
	value int
	text  string
}{
	{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"},
	{50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},
}

// Format writes a number from 1 to 3999; others give the empty text.
func Format(n int) string {
	if n < 1 || n > 3999 {
		return ""
	}
	var b strings.Builder
	for _, d := range digits {
		for n >= d.value {
			b.WriteString(d.text)
			n -= d.value
		}
	}
	return b.String()
}

// Parse reads what Format writes.
func Parse(text string) (int, error) {
	n, rest := 0, text
	for _, d := range digits {
		for strings.HasPrefix(rest, d.text) {
			n += d.value
			rest = rest[len(d.text):]
		}
	}
	if n == 0 || Format(n) != text {
		return 0, ErrSyntax
	}
	return n, nil
}
