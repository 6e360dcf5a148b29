package graphview

import (
	"strings"
	"testing"
)

func TestOneIsNotMany(t *testing.T) {
	for want, m := range map[string]*Matrix{
		"1 pair conflicts, 1 is independent, 1 change is refused\n":    {Conflicts: make([]Pair, 1), Independent: [][]string{{"c", "d"}}, Refused: make([]Refusal, 1)},
		"2 pairs conflict, 0 are independent, 2 changes are refused\n": {Conflicts: make([]Pair, 2), Refused: make([]Refusal, 2)},
	} {
		var out strings.Builder
		if err := m.write(&out); err != nil || !strings.HasSuffix(out.String(), "\n"+want) {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	}
	l := &Listing{Rev: "abc", Targets: []ListedTarget{{Name: "//a", Deps: []string{"//b"}}}}
	var out strings.Builder
	if err := l.write(&out); err != nil || !strings.Contains(out.String(), "1 dep\n1 target at ") {
		t.Errorf("%q, %v", out.String(), err)
	}
}
