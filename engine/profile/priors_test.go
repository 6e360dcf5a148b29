package profile

import (
	"fmt"
	"math"
	"testing"

	"landfall.build/engine/graph"
	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
)

// TestM32APriorGivesWayAsEvidenceComesIn: the twins count the prior as so many changes and builds of their own.
func TestM32APriorGivesWayAsEvidenceComesIn(t *testing.T) {
	random := seedtest.Random(t)
	if got := betaMean(0.9, 0, 0); got != 0.9 {
		t.Errorf("nothing has ended: %v", got)
	}
	for range 200 {
		passed, failed := random.IntN(50), random.IntN(50)
		// A prior of 0.8 is eight changes that passed, and two that failed.
		if got, want := betaMean(0.8, passed, failed), float64(8+passed)/float64(10+passed+failed); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%d passed and %d failed: %v, want %v", passed, failed, got, want)
		}
	}

	if mean, std, moved := pooled(60, 30, nil); mean != 60 || std != 30 || moved {
		t.Errorf("nothing was built: %v ± %v", mean, std)
	}
	if _, _, moved := pooled(0, 0, []float64{3}); moved {
		t.Error("what is not stated is moved")
	}
	square := math.Log1p(0.25)
	mu, sigma := math.Log(60)-square/2, math.Sqrt(square)
	for range 100 {
		// Five builds of the prior's mean and spread, written out: two a deviation above, two below by as much, one between.
		d := sigma * math.Sqrt(5.0/4)
		logs := []float64{mu + d, mu + d, mu - d, mu - d, mu}
		var seconds []float64
		for range 1 + random.IntN(50) {
			x := math.Log(20) + 0.4*random.NormFloat64()
			logs, seconds = append(logs, x), append(seconds, math.Exp(x))
		}
		n := float64(len(logs))
		m, v := 0.0, 0.0
		for _, x := range logs {
			m += x / n
		}
		for _, x := range logs {
			v += (x - m) * (x - m) / n
		}
		wantMean := math.Exp(m + v/2)
		wantStd := wantMean * math.Sqrt(math.Expm1(v))
		mean, std, moved := pooled(60, 30, seconds)
		if !moved || math.Abs(mean/wantMean-1) > 1e-9 || math.Abs(std/wantStd-1) > 1e-9 {
			t.Fatalf("%d builds: %v ± %v, written out %v ± %v", len(seconds), mean, std, wantMean, wantStd)
		}
	}
	if mean, std, _ := pooled(60, 30, make([]float64, 50)); !(mean > 0 && mean < 1) || !(std > 0) || math.IsInf(std, 0) {
		t.Errorf("builds of no time at all: %v ± %v", mean, std)
	}
}

// TestM32WhatNeverRanTakesWhatStepsTake, beside what has run: it shares nothing of the stated prior, which may be minutes.
func TestM32WhatNeverRanTakesWhatStepsTake(t *testing.T) {
	random := seedtest.Random(t)
	node := func(targets ...string) *graph.Node {
		k := &eventsv1.Class{}
		for _, name := range targets {
			k.Targets = append(k.Targets, &eventsv1.TargetVersion{Target: name})
		}
		return &graph.Node{Node: &eventsv1.Node{Change: &eventsv1.ChangeRef{Change: "c", Revision: 1}}, Classes: []graph.Class{{Class: k}}}
	}
	p := New()
	p.Apply(&eventsv1.Speculation{Delta: &eventsv1.GraphDelta{Settings: &eventsv1.QueueSettings{PriorDurationMeanUs: 600e6, PriorDurationStdUs: 600e6}}})
	predict := func(targets ...string) *eventsv1.Prediction { return p.trained.Predict(node(targets...)) }
	if got := predict("//a"); got.DurationSource != SourcePrior || got.DurationMeanUs != 600e6 || got.DurationStdUs != 600e6 {
		t.Errorf("before any step: %v", got)
	}
	run := func(target string, seconds float64) {
		p.Apply(&eventsv1.Speculation{Delta: &eventsv1.GraphDelta{Durations: []*eventsv1.StepDuration{{Target: target, DurationUs: int64(math.Round(seconds * 1e6))}}}})
	}
	run("//a", 4)
	if got := predict("//a", "//new"); got.DurationSource != sourceTargets || got.DurationMeanUs != 8e6 {
		t.Errorf("after one step of 4 s: %v", got)
	}
	if got := predict("//new"); got.DurationSource != SourcePrior {
		t.Errorf("of what never ran alone: %v", got)
	}
	// The twin has all durations at hand.
	all := []float64{4}
	for i := range 60 {
		x := float64(1_000_000+random.IntN(10_000_000)) / 1e6
		all = append(all, x)
		run(fmt.Sprint("//t", i), x)
	}
	n, mean, variance := float64(len(all)), 0.0, 0.0
	for _, x := range all {
		mean += x / n
	}
	for _, x := range all {
		variance += (x - mean) * (x - mean) / n
	}
	got := predict("//a", "//new", "//newer")
	wantMean := 4 + 2*mean
	wantStd := math.Sqrt(0.01*16 + 2*(variance+mean*mean/n))
	if got.DurationSource != sourceTargets || math.Abs(got.DurationMeanUs/1e6/wantMean-1) > 1e-9 || math.Abs(got.DurationStdUs/1e6/wantStd-1) > 1e-9 {
		t.Errorf("%v, want %v ± %v", got, wantMean, wantStd)
	}
}
