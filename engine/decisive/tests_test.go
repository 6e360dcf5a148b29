package decisive_test

import (
	"strings"
	"testing"

	"landfall.build/engine/decisive"
)

func TestTheTestsThatSummariesCountAreSummed(t *testing.T) {
	for output, want := range map[string]struct {
		tests    int
		untested bool
	}{
		"============================ no tests ran in 0.00s =============================":                       {0, true},
		"\x1b[33m============ \x1b[33mno tests ran\x1b[0m\x1b[33m in 0.01s\x1b[0m\x1b[33m ============\x1b[0m\r": {0, true},
		"no tests ran in 0.00s": {0, true},
		"============= 12 passed, 1 skipped, 2 xfailed, 1 xpassed, 3 warnings in 61.20s (0:01:01) =============": {15, false},
		"2 passed in 0.01s":                                      {2, false},
		"3 skipped in 0.02s":                                     {0, true},
		"===== 1 deselected in 0.00s =====":                      {0, true},
		"1 passed, 4 subtests passed in 0.12s":                   {1, false},
		"Ran 3 tests in 0.000s\n\nOK":                            {3, false},
		"Ran 1 test in 1.204s\n\nOK":                             {1, false},
		"Ran 0 tests in 0.000s\n\nNO TESTS RAN":                  {0, true},
		"1 passed in 0.10s\nno tests ran in 0.00s\n":             {1, true},
		"4 tests collected in 0.01s":                             {0, false},
		"no tests collected in 0.01s":                            {0, false},
		"ok  \texample.com/shop\t0.004s":                         {0, false},
		"all passed in 3 days":                                   {0, false},
		"99999999999999999999 passed in 0.10s":                   {0, false},
		"4000000000 passed in 1.00s\n4000000000 passed in 1.00s": {decisive.MostTests, false},
		strings.Repeat("=", 1<<20) + " 1 passed in 1.00s":        {0, false},
	} {
		if tests, untested := decisive.Tests([]byte(output)); tests != want.tests || untested != want.untested {
			t.Errorf("%.80q: %d tests, untested %v", output, tests, untested)
		}
	}
}
