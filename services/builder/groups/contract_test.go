package groups

import "testing"

func TestALineSaysWhatCameOutOfATarget(t *testing.T) {
	tally := NewTally([]string{"//a:b", "//a:c", "//a d:e", "//a:f", "//a:g"}, Trust{})
	w := ResultLines(tally)
	for _, text := range []string{"passed //a:b\npas", "sed //a d:e\r\n", "\npassed\nPASSED //a:f\npassed  //a:f\n", "failed //a:c\n", "passed //a:g"} {
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := shown(tally.Take()); got != "//a:c:failed" {
		t.Errorf("at once %q", got)
	}
	if got := shown(tally.End(true, 1)); got != "//a d:e:passed //a:b:passed //a:f:nothing //a:g:nothing" {
		t.Errorf("at the end %q", got)
	}
}
