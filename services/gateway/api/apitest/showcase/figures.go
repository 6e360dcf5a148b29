package main

import (
	"context"
	"time"

	"landfall.build/services/gateway/analytics"
)

// figures is a history in which the queue shop has eight weeks; the others have none.
type figures struct{}

// Ask implements api.Analyst.
func (figures) Ask(_ context.Context, q analytics.Question) (analytics.Analytics, error) {
	weeks := q.Weeks
	if q.Queue == "docs" {
		return analytics.Analytics{}, analytics.ErrNone
	}
	a := analytics.None(q)
	a.Missing, a.Written = nil, now.Add(-2*time.Second)
	if q.Queue != "shop" {
		return a, nil
	}
	waits := [][]float64{ // P50, P95, and the parts
		{610, 1900, 2, 14, 180, 300, 190, 5}, {560, 1760, 2, 14, 150, 290, 170, 5}, {590, 2100, 2, 15, 210, 310, 160, 5}, {480, 1500, 2, 13, 120, 270, 140, 5},
		{450, 1420, 2, 13, 96, 260, 130, 6}, {380, 1180, 2, 12, 70, 240, 110, 5}, {395, 1250, 2, 12, 84, 245, 118, 5}, {360, 1100, 2, 12, 62, 236, 104, 5},
	}
	for i, w := range waits[max(0, len(waits)-weeks):] {
		n := i + max(0, len(waits)-weeks)
		week := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).AddDate(0, 0, 7*(n-7)).Format(time.DateOnly)
		if !q.At.IsZero() && week > q.At.UTC().Format(time.DateOnly) {
			break
		}
		x := float64(n)
		mean := w[2] + w[3] + w[4] + w[5] + w[6] + w[7]
		landed, changes := 120+11*n, 141+12*n
		a.Waits = append(a.Waits, analytics.WeekOfWaits{Week: week, Landed: landed, P50: w[0], P95: w[1], Mean: mean, Admission: w[2], Analysis: w[3], Worker: w[4], Building: w[5], Behind: w[6], Push: w[7]})
		a.Builds = append(a.Builds, analytics.WeekOfBuilds{Week: week, Changes: changes, Builds: 2*changes + 60 - 6*n, Aborted: 70 - 5*n, PerChange: 2 + (60-6*x)/float64(changes)})
		a.Work = append(a.Work, analytics.WeekOfWork{Week: week, Changes: changes, Hours: float64(changes) * (0.42 - 0.021*x), PerChange: 0.42 - 0.021*x})
		a.Bypasses = append(a.Bypasses, analytics.WeekOfBypasses{Week: week, Landed: landed, Bypassing: 9 + 3*n, Rate: (9 + 3*x) / float64(landed)})
		a.Predictions = append(a.Predictions, analytics.WeekOfAccuracy{Week: week, Changes: changes, PredictedRate: 0.87, LandedRate: 0.86, Brier: 0.118 - 0.006*x, CalibrationError: 0.061 - 0.0045*x, Durations: changes - 20, MeanSeconds: 312 - 7*x, MeanError: 88 - 5*x, Covered: 0.84 + 0.007*x})
	}
	for i, rate := range []float64{0.04, 0.11, 0.29, 0.31, 0.4, 0.58, 0.61, 0.78, 0.83, 0.96} {
		a.Calibration = append(a.Calibration, analytics.Calibration{From: float64(i) / 10, Changes: 8 + i*i*9, PredictedRate: float64(i)/10 + 0.05, LandedRate: rate})
	}
	for i, target := range []string{"//checkout:checkout", "//tax:tax", "//search:search", "//catalog:catalog"} {
		r := analytics.Rejecting{Target: target, Rejections: 31 - 8*i, Changes: 24 - 6*i, LastAt: now.Add(-time.Duration(i*i+1) * 31 * time.Hour)}
		if q.At.IsZero() || !r.LastAt.After(q.At) {
			a.Rejections = append(a.Rejections, r)
		}
	}
	a.Flaky = []analytics.FlakyRate{
		{Target: "//e2e:checkout", Versions: 412, FlakeRate: 0.062, FailureRate: 0.021, P50: 214}, {Target: "//search:search", Versions: 1130, FlakeRate: 0.019, FailureRate: 0.011, P50: 42}, {Target: "//cart:cart", Versions: 988, FlakeRate: 0.004, FailureRate: 0.032, P50: 8.4},
	}
	return a, nil
}
