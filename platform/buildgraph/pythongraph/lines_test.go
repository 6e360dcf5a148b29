package pythongraph

import (
	"strings"
	"testing"
)

// TestAMistakeIsOnALineThatTheFileHas: the parser counts the end of a file, behind the last line's end, as one more line.
func TestAMistakeIsOnALineThatTheFileHas(t *testing.T) {
	const whole = "[project]\nname = \"shop\"\nversion = \"1\"\ndependencies = [\n  \"six\",\n]\ndescription = \"\"\"\na\n\"\"\"\n"
	found := 0
	for end := range len(whole) {
		text := strings.TrimRight(whole[:end], "\n")
		for _, last := range []string{"", "\n", "\n\n", "\r\n"} {
			if _, line, err := parseTable([]byte(text + last)); err != nil {
				if found++; line < 1 || line > 1+strings.Count(text, "\n") {
					t.Errorf("line %d of %q: %v", line, text+last, err)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no part of it is wrong")
	}
	for text, want := range map[string]int{
		"[a]\nb = \"x": 2, "[a]\nb = \"x\nc = 1\n": 2, "[a]\n[b\nc = 1\n": 2, "a = 1\nb = 1\na = 2\nc = 3\n": 3, "a = 1\nb\nc = 1\n": 2, "a =\nb = 1\n": 1,
		"a = [\n  1,\n  2\nb = 1\n": 4, "a = 1\nb = 2026-13-01\nc = 1\n": 2, "a = 1\nb = \"\"\"\nx\n\\q\n\"\"\"\n": 4, "a = { b = 1\n": 1,
	} {
		if _, line, _ := parseTable([]byte(text)); line != want {
			t.Errorf("line %d of %q, want %d", line, text, want)
		}
	}
}
