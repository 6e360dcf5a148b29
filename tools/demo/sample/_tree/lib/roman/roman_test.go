package roman

import "testing"

func TestEveryNumeralIsReadBack(t *testing.T) {
	for n := 1; n < 4000; n++ {
		if got, err := Parse(Format(n)); err != nil || got != n {
			t.Fatalf("%d is written %s and read as %d, %v", n, Format(n), got, err)
		}
	}
}

func TestOtherTextsAreNone(t *testing.T) {
	for _, text := range []string{"", "IIII", "IC", "MMMM", "X I"} {
		if n, err := Parse(text); err == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}
