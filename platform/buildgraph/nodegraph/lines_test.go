package nodegraph

import (
	"strings"
	"testing"
)

// TestAMistakeIsOnALineThatTheFileHas: the parser counts the end of a file, behind the last line's end, as one more line.
func TestAMistakeIsOnALineThatTheFileHas(t *testing.T) {
	const whole = "{\n  \"name\": \"shop\",\n  \"files\": [\n    1.5,\n    true\n  ]\n}"
	found := 0
	for end := range len(whole) {
		text := strings.TrimRight(whole[:end], "\n")
		for _, last := range []string{"", "\n", "\n\n", "\r\n"} {
			if m := parsePackageFile([]byte(text + last)); m.problem != "" {
				if found++; m.line < 1 || m.line > 1+strings.Count(text, "\n") {
					t.Errorf("line %d of %q: %v", m.line, text+last, m.problem)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no part of it is wrong")
	}
}
