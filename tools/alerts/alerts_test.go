package alerts_test

import "testing"

// TestEachAlertFiresInItsFault, made in real services whose metrics are scraped; what rules and dashboards select is served then.
func TestEachAlertFiresInItsFault(t *testing.T) {
	happened := 0
	t.Run("when", func(t *testing.T) {
		for _, f := range faults {
			t.Run(f.name, func(t *testing.T) {
				happened++
				f.happen(t)
			})
		}
	})
	if happened < len(faults) {
		return // some were left out by -run
	}
	for _, r := range readRules(t) {
		if _, is := raised.Load(r.Alert); !is {
			t.Errorf("no fault raises %s", r.Alert)
		}
	}
	everythingSelectedIsServed(t)
}
