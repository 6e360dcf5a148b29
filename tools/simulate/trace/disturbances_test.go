package trace

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestWhatGoesWrongIsAsOftenAsSaid(t *testing.T) {
	d := Disturbances{Seed: 4, Flakes: 0.2, Losses: 0.5, Cancelled: 0.3}
	const n = 20_000
	cost := int64(2 * time.Hour / time.Microsecond)
	var flaky, lost, cancelled int
	var extra float64
	for i := range n {
		c, version := &Change{Number: i, Duration: cost}, "v"+strconv.Itoa(i%7)
		if d.Flaky(c, version, 1) {
			flaky++
		}
		if d.Flaky(c, version, 2) {
			t.Fatal("a second attempt flakes: something would be rejected for it")
		}
		takes := d.Takes(c, version, 1, cost)
		if takes < cost || takes > cost*(maxLosses+1)+maxLosses*Lapse.Microseconds() {
			t.Fatalf("it takes %d", takes)
		}
		if takes > cost {
			lost++
		}
		extra += float64(takes - cost)
	}
	p := PinnedPaper()
	p.Changes = n
	for _, c := range all(t, d.Cancelling(p.Start())) {
		if c.Cancelled == 0 {
			continue
		}
		cancelled++
		if c.Cancelled < c.Arrival || c.Cancelled >= c.Arrival+c.Duration {
			t.Fatalf("%v is cancelled outside of the time in which nobody can have decided it", c)
		}
	}
	// A worker is lost within two hours with 1 − e^−1.
	for _, x := range []struct {
		what       string
		is, should float64
	}{{"flakes", float64(flaky) / n, 0.2}, {"losses", float64(lost) / n, 1 - math.Exp(-1)}, {"cancellations", float64(cancelled) / n, 0.3}} {
		if math.Abs(x.is-x.should) > 0.015 {
			t.Errorf("%s: %v, should be %v", x.what, x.is, x.should)
		}
	}
	if extra == 0 {
		t.Error("nothing takes longer")
	}
}

// The losses are played one after the other, from the times at which they are drawn to come.
func TestALostRunBeginsAnew(t *testing.T) {
	d := Disturbances{Seed: 9, Losses: 2}
	for i := range 2000 {
		c, cost := &Change{Number: i}, int64(1e9+i*7e6)
		clock, left := 0.0, maxLosses
		for {
			after := math.Inf(1)
			if left > 0 {
				after = -math.Log(1-Draw(d.Seed, streamLoss+maxLosses-left, i, nameOf("t@h")+3)) / d.Losses * 3.6e9
			}
			if after >= float64(cost) {
				clock += float64(cost)
				break
			}
			left--
			clock += after + float64(Lapse/time.Microsecond)
		}
		if got := d.Takes(c, "t@h", 3, cost); math.Abs(float64(got)-clock) > maxLosses+1 {
			t.Fatalf("change %d: %d µs, played %f", i, got, clock)
		}
	}
}

func TestWithoutDisturbancesNothingIsDisturbed(t *testing.T) {
	var d Disturbances
	p := PinnedPaper()
	p.Changes = 50
	for _, c := range all(t, d.Cancelling(p.Start())) {
		if c.Cancelled != 0 || d.Flaky(c, "v", 1) || d.Takes(c, "v", 1, 77) != 77 || d.Retries() != 0 {
			t.Fatalf("%v", c)
		}
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
}

func TestImpossibleDisturbancesAreRefusedAsAWhole(t *testing.T) {
	err := Disturbances{Flakes: 1.5, Losses: -1, Cancelled: math.NaN()}.Validate()
	for _, part := range []string{"flakes of 1.5", "worker loss of -1", "cancellations of NaN"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}

func TestACancelledChangeDoesNotLand(t *testing.T) {
	var truth Truth
	if truth.Take(&Change{Number: 0, Green: true, Cancelled: 5}) || !truth.Take(&Change{Number: 1, Green: true, Breaks: []int{0}}) {
		t.Error("a cancelled change lands, or stands in the way of one that breaks with it")
	}
}
