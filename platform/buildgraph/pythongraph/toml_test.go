package pythongraph

import (
	"strings"
	"testing"
)

// A stack that is full would end the process.
func TestBracketsNestedByTheMillionAreAnError(t *testing.T) {
	for name, text := range map[string]string{
		"arrays":       "a = " + strings.Repeat("[", 6_000_000) + strings.Repeat("]", 6_000_000),
		"tables":       "a = " + strings.Repeat("{a=", 3_000_000) + "1" + strings.Repeat("}", 3_000_000),
		"open":         "a = " + strings.Repeat("[", 6_000_000),
		"keys":         strings.Repeat("a.", 200_000) + "a = 1",
		"table's name": "[" + strings.Repeat("a.", 200_000) + "a]",
	} {
		if _, _, err := parseTable([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
