package clickhouse_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"landfall.build/events/seedtest"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/analytics"
)

// TestTheGatewaysFiguresAreAFoldOfTheLog: what it answers by week and by target is what the log says, and the parts of the time to land add
// up to the whole.
func TestTheGatewaysFiguresAreAFoldOfTheLog(t *testing.T) {
	dsn := database(t)
	log := fillWithInventions(t, dsn, seedtest.Of(t))
	f, c := foldForAnalysts(t, log), connectTo(t, dsn)
	var newest time.Time
	var queues []string
	if err := c.QueryRow(t.Context(), "SELECT max(time) FROM events").Scan(&newest); err != nil {
		t.Fatal(err)
	}
	if err := c.QueryRow(t.Context(), "SELECT groupUniqArray(queue) FROM changes").Scan(&queues); err != nil || len(queues) < 2 {
		t.Fatal(queues, err)
	}
	h := analytics.New(func() string { return dsn }, func() time.Time { return newest })
	defer h.Close()
	waits, accuracies, rejecting, hours, bypasses, builds, verdicts := figures{}, figures{}, figures{}, figures{}, figures{}, figures{}, figures{}
	for _, queue := range queues {
		a, err := h.Ask(t.Context(), analytics.Question{Queue: queue, Weeks: 104})
		if err != nil {
			t.Fatal(err)
		}
		if a.Written.IsZero() || a.Missing != nil || len(a.Flaky) > analytics.MostTargets {
			t.Errorf("%s: %+v", queue, a)
		}
		for _, w := range a.Waits {
			waits[queue+" "+w.Week] = []float64{float64(w.Landed), w.Mean, w.Admission, w.Analysis, w.Worker, w.Building, w.Behind, w.Push}
			if sum := w.Admission + w.Analysis + w.Worker + w.Building + w.Behind + w.Push; math.Abs(sum-w.Mean) > 1e-6 || w.P50 > w.P95 {
				t.Errorf("%s, %s: the parts add up to %g, the mean is %g; half landed within %g, 95 of 100 within %g", queue, w.Week, sum, w.Mean, w.P50, w.P95)
			}
		}
		for _, w := range a.Verdicts {
			verdicts[queue+" "+w.Week] = []float64{float64(w.Landed), float64(w.Rejected), float64(w.Conflicting), float64(w.Confirmed), float64(w.Contradicted), float64(w.Ejected)}
		}
		for i, r := range a.Rejected {
			c := f.change(queue, &eventsv1.ChangeRef{Change: r.Change, Revision: r.Revision})
			if c.outcome != "rejected" || c.endedAt != r.At.UnixMicro() || r.Since != f.since(c) || i > 0 && r.At.After(a.Rejected[i-1].At) {
				t.Errorf("%s: the rejection %+v is %+v, and what failed has %q since", queue, r, c, f.since(c))
			}
		}
		for _, w := range a.Predictions {
			accuracies[queue+" "+w.Week] = []float64{float64(w.Changes), w.PredictedRate, w.LandedRate, w.Brier, w.CalibrationError, float64(w.Durations), w.MeanSeconds, w.MeanError, w.Covered}
		}
		for _, r := range a.Rejections {
			rejecting[queue+" "+r.Target] = []float64{float64(r.Rejections), float64(r.Changes)}
		}
		for _, w := range a.Work {
			hours[queue+" "+w.Week] = []float64{float64(w.Changes), w.Hours, w.PerChange}
		}
		for _, w := range a.Bypasses {
			bypasses[queue+" "+w.Week] = []float64{float64(w.Landed), float64(w.Bypassing), w.Rate}
		}
		for _, w := range a.Builds {
			builds[queue+" "+w.Week] = []float64{float64(w.Changes), float64(w.Builds), float64(w.Aborted), w.PerChange}
		}
		var predicted float64
		for _, w := range a.Predictions {
			predicted += float64(w.Changes)
		}
		for _, tenth := range a.Calibration {
			predicted -= float64(tenth.Changes)
			if d := tenth.PredictedRate - tenth.From; d < 0 || d > 0.1000001 {
				t.Errorf("%s: %g was predicted in the tenth from %g on", queue, tenth.PredictedRate, tenth.From)
			}
		}
		if predicted != 0 {
			t.Errorf("%s: %g more predictions by week than by what was predicted", queue, predicted)
		}
	}
	wanted := f.accuracies()
	for _, row := range wanted { // JSON has no NaN: a figure of nothing is 0
		for i, v := range row {
			if math.IsNaN(v) {
				row[i] = 0
			}
		}
	}
	sameFigures(t, "waits", "landed, mean, admission, analysis, worker, building, behind, push", f.waits(), waits)
	sameFigures(t, "predictions", "changes, predicted_rate, landed_rate, brier, calibration_error, durations, mean_seconds, mean_error, covered", without(wanted, 6), accuracies)
	sameFigures(t, "verdicts", "landed, rejected, conflicting, confirmed, contradicted, ejected", f.verdicts(), verdicts)
	sameFigures(t, "rejections", "rejections, changes", f.rejecting(), rejecting)
	sameFigures(t, "bypasses", "landed, bypassing, rate", rowsOf(t, c, "bypass_rate", "queue, week", "landed, bypassing, rate"), bypasses)
	sameFigures(t, "builds", "changes, builds, aborted, per_change", rowsOf(t, c, "builds_per_change", "queue, week", "changes, builds, aborted, per_change"), builds)
	const ended = "(SELECT *, toStartOfWeek(assumeNotNull(ended_at), 1) AS week FROM cost_per_change WHERE isNotNull(ended_at))"
	wantedHours := figures{}
	for key, row := range rowsOf(t, c, ended, "queue, week, change, revision", "seconds") {
		week := strings.Join(strings.Fields(key)[:2], " ")
		if wantedHours[week] == nil {
			wantedHours[week] = []float64{0, 0, 0}
		}
		w := wantedHours[week]
		w[0], w[1] = w[0]+1, w[1]+row[0]/3600
		w[2] = w[1] / w[0]
	}
	sameFigures(t, "work", "changes, hours, per_change", wantedHours, hours)
	for name, of := range map[string]figures{"verdicts": verdicts, "waits": waits, "predictions": accuracies, "rejections": rejecting, "work": hours, "builds": builds, "bypasses": bypasses} {
		if len(of) < 3 {
			t.Errorf("%s was compared in %d rows", name, len(of))
		}
	}
	// A short time has only its weeks, and another clock cannot make it longer.
	a, err := h.Ask(t.Context(), analytics.Question{Queue: queues[0], Weeks: 1})
	if err != nil || len(a.Waits) > 1 || len(a.Builds) > 1 || len(a.Work) > 1 || len(a.Predictions) > 1 {
		t.Errorf("one week is %+v, %v", a, err)
	}
}

// TestTheGatewaysFiguresOfThePastAreAFoldOfTheLogUpToThere, whatever happened afterwards.
func TestTheGatewaysFiguresOfThePastAreAFoldOfTheLogUpToThere(t *testing.T) {
	dsn := database(t)
	log := fillWithInventions(t, dsn, seedtest.Of(t))
	f, c := foldForAnalysts(t, log), connectTo(t, dsn)
	var oldest, newest time.Time
	var queues []string
	if err := c.QueryRow(t.Context(), "SELECT min(time), max(time), groupUniqArray(queue) FROM events").Scan(&oldest, &newest, &queues); err != nil {
		t.Fatal(err)
	}
	h := analytics.New(func() string { return dsn }, func() time.Time { return newest })
	defer h.Close()
	for _, at := range []time.Time{{}, oldest.Add(newest.Sub(oldest) / 2), oldest.Add(-time.Second)} {
		then := f.until(at)
		verdicts, rejecting, flaky, wanted := figures{}, figures{}, figures{}, figures{}
		for _, queue := range queues {
			a, err := h.Ask(t.Context(), analytics.Question{Queue: queue, Weeks: 104, At: at})
			if err != nil || !a.At.Equal(at) {
				t.Fatal(err, a.At)
			}
			for _, w := range a.Verdicts {
				verdicts[queue+" "+w.Week] = []float64{float64(w.Landed), float64(w.Rejected), float64(w.Conflicting), float64(w.Confirmed), float64(w.Contradicted), float64(w.Ejected)}
			}
			for _, r := range a.Rejections {
				rejecting[queue+" "+r.Target] = []float64{float64(r.Rejections), float64(r.Changes)}
			}
			for _, r := range a.Flaky {
				flaky[queue+" "+r.Target] = []float64{float64(r.Versions), r.FlakeRate, r.FailureRate}
			}
			ended, landed := 0, 0
			for _, w := range a.Verdicts {
				ended, landed = ended+w.Landed+w.Rejected+w.Ejected, landed+w.Landed
			}
			for _, w := range a.Builds {
				ended -= w.Changes
			}
			for _, w := range a.Bypasses {
				landed -= w.Landed
			}
			for _, w := range a.Waits {
				if !at.IsZero() && w.Week > at.Format(time.DateOnly) {
					t.Errorf("%s, %s: changes have landed in the week of %s", queue, at, w.Week)
				}
			}
			if ended != 0 || landed != 0 {
				t.Errorf("%s, %s: %d changes ended of which no builds are told, and %d landed of which no bypasses are", queue, at, ended, landed)
			}
		}
		for key, rate := range then.rates() {
			if rate[3] >= 0.0005 {
				wanted[key] = []float64{rate[0], rate[3], rate[2]}
			}
		}
		name := "at " + at.Format(time.DateTime)
		sameFigures(t, name+": verdicts", "landed, rejected, conflicting, confirmed, contradicted, ejected", then.verdicts(), verdicts)
		sameFigures(t, name+": rejections", "rejections, changes", then.rejecting(), rejecting)
		sameFigures(t, name+": flaky", "versions, flake_rate, failure_rate", wanted, flaky)
		if before := at.Before(oldest) && !at.IsZero(); before != (len(verdicts) == 0) || before != (len(flaky) == 0) {
			t.Errorf("%s: %d weeks were compared, and %d flaky targets", name, len(verdicts), len(flaky))
		}
	}
}

// without leaves a column out.
func without(of figures, column int) figures {
	out := figures{}
	for key, row := range of {
		out[key] = append(append([]float64{}, row[:column]...), row[column+1:]...)
	}
	return out
}
