package course

import (
	"testing"

	"landfall.build/tools/simulate/policy"
	"landfall.build/tools/simulate/trace"
)

// TestTheTimesThatPeopleAreToldMostlyHold where workers are free: seeds are pinned, and the bounds leave room for what
// arrives later, of which no estimate knows.
func TestTheTimesThatPeopleAreToldMostlyHold(t *testing.T) {
	for _, predictor := range []string{"calibrated", "flat"} {
		var all Coverage
		for seed := uint64(1); seed <= 3; seed++ {
			p := small(seed)
			all.Add(run(t, p, "landfall", predictor, 300).Coverage)
		}
		if all.Told < 500 || all.Unknown > 0 {
			t.Errorf("%s: %d were told, %d unknown", predictor, all.Told, all.Unknown)
		}
		if s := all.Share50(); s < 0.3 || s > 0.75 {
			t.Errorf("%s: %.2f were decided within the interval of 50 %%", predictor, s)
		}
		if s := all.Share90(); s < 0.7 || s > 0.99 {
			t.Errorf("%s: %.2f were decided within the interval of 90 %%", predictor, s)
		}
		if all.Within90+all.Early+all.Late != all.Told {
			t.Errorf("%s: %+v does not add up", predictor, all)
		}
		t.Logf("%s: %+v", predictor, all)
	}
}

// TestTheTimesThatPeopleAreToldMostlyHoldOnAPool: there most builds wait for workers, and what is small comes before what is large.
func TestTheTimesThatPeopleAreToldMostlyHoldOnAPool(t *testing.T) {
	k, err := policy.Named("landfall")
	if err != nil {
		t.Fatal(err)
	}
	var all Coverage
	for seed := uint64(1); seed <= 4; seed++ {
		all.Add(onPool(t, repository(seed), k, trace.Disturbances{}, 12).Coverage)
	}
	if all.Told < 50 || all.Share50() < 0.4 || all.Share90() < 0.85 || all.Off > 600*float64(all.Told) {
		t.Errorf("%+v: %.2f and %.2f held", all, all.Share50(), all.Share90())
	}
	t.Logf("%+v: %.2f and %.2f held", all, all.Share50(), all.Share90())
}

// TestWhatMustBeOffIsCounted: the check says so when the estimates are wrong.
func TestWhatMustBeOffIsCounted(t *testing.T) {
	p := small(4)
	r := run(t, p, "landfall", "calibrated", 300)
	if r.Coverage.Off <= 0 || r.Coverage.Width90 <= 0 {
		t.Errorf("%+v", r.Coverage)
	}
	if other := run(t, p, "submitqueue-2019", "calibrated", 300).Coverage; other.Told != 0 {
		t.Errorf("a policy that gives no times was judged: %+v", other)
	}
}
