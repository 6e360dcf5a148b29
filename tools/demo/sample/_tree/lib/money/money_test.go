package money

import "testing"

func TestStringAndParseAreInverse(t *testing.T) {
	for _, a := range []Amount{0, 5, 99, 100, 123456, -5, -100} {
		got, err := Parse(a.String())
		if err != nil || got != a {
			t.Errorf("Parse(%q) = %d, %v; want %d", a.String(), got, err, a)
		}
	}
}

func TestPartsAddUp(t *testing.T) {
	for a := Amount(-50); a < 50; a++ {
		for n := 1; n < 8; n++ {
			sum := Amount(0)
			for _, part := range a.Split(n) {
				sum += part
			}
			if sum != a {
				t.Errorf("the %d parts of %s add up to %s", n, a, sum)
			}
		}
	}
}

func TestShareRounds(t *testing.T) {
	if got := Amount(1050).Share(700); got != 74 {
		t.Errorf("7 %% of 10.50 is %s", got)
	}
}
