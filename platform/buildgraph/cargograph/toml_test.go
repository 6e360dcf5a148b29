package cargograph

import (
	"strings"
	"testing"
)

// A stack that is full would end the process.
func TestBracketsNestedByTheMillionAreAProblem(t *testing.T) {
	if d := parseTOML([]byte("a = " + strings.Repeat("[", 6_000_000) + strings.Repeat("]", 6_000_000))); len(d.found) != 1 {
		t.Errorf("%v", d.found)
	}
}
