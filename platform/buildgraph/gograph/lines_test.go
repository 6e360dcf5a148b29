package gograph

import (
	"strconv"
	"strings"
	"testing"
)

// TestAMistakeIsOnALineThatTheFileHas: the parser counts the end of a file, behind the last line's end, as one more line.
func TestAMistakeIsOnALineThatTheFileHas(t *testing.T) {
	const whole = "module example.com/shop\n\ngo 1.24\n\nrequire (\n\texample.com/a v1.0.0\n)\n\nreplace example.com/a => `../a`\n"
	found := 0
	for end := range len(whole) {
		text := strings.TrimRight(whole[:end], "\n")
		for _, last := range []string{"", "\n", "\n\n", "\r\n"} {
			m := parseModuleFile([]byte(text + last))
			if m.problem == "" {
				continue
			}
			found++
			number, _, _ := strings.Cut(m.problem, ":")
			if line, err := strconv.Atoi(number); err != nil || line < 1 || line > 1+strings.Count(text, "\n") {
				t.Errorf("%q: %s", text+last, m.problem)
			}
		}
	}
	if found == 0 {
		t.Error("no part of it is wrong")
	}
}
