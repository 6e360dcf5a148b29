package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// since is the Monday with which the oldest of some weeks begins. Weeks of the history begin on Mondays, in UTC.
func since(now time.Time, weeks int) time.Time {
	day := now.UTC().Truncate(24 * time.Hour)
	monday := day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	return monday.AddDate(0, 0, -7*(weeks-1))
}

// finite returns 0 for NaN and the infinities, which JSON lacks.
func finite(expression string) string { return "ifNotFinite(toFloat64(" + expression + "), 0)" }

const week = "toString(toDate(week))"

// Each query takes the queue and, but for flakyQuery, the first week; those about rejections take them for each of their parts.
var (
	// again has, for each rejected revision, what its failed versions have done since: failed, passed, or "" for not all the same.
	again = `SELECT f.change AS change, f.revision AS revision, arraySlice(arraySort(groupUniqArray(f.target)), 1, 5) AS targets,
			multiIf(min(r.passed_at > f.at), 'passed', min(r.failed_at > f.at), 'failed', '') AS since
		FROM (SELECT change, revision, target, version, at FROM failed_versions FINAL WHERE queue = ? AND at >= ? AND outcome = 'rejected') AS f
		LEFT JOIN (SELECT version, maxIf(started_at, outcome = 'passed') AS passed_at, maxIf(started_at, outcome = 'failed') AS failed_at
			FROM runs WHERE queue = ? GROUP BY version) AS r ON r.version = f.version
		GROUP BY change, revision`
	verdictsQuery = `SELECT toString(toStartOfWeek(assumeNotNull(ended_at), 1)) AS week, toInt64(countIf(outcome = 'landed')), toInt64(countIf(outcome = 'rejected')),
		toInt64(countIf(outcome = 'rejected' AND reason_class = 'merge_conflict')), toInt64(countIf(outcome = 'rejected' AND since = 'failed')),
		toInt64(countIf(outcome = 'rejected' AND since = 'passed')), toInt64(countIf(outcome = 'ejected'))
		FROM change_outcomes AS c LEFT JOIN (` + again + `) AS a ON a.change = c.change AND a.revision = c.revision
		WHERE queue = ? AND isNotNull(ended_at) AND ended_at >= ? AND outcome IN ('landed', 'rejected', 'ejected') GROUP BY week ORDER BY week`
	rejectedQuery = `SELECT c.change, c.revision, title, author, assumeNotNull(ended_at), reason_class, a.targets, since
		FROM change_outcomes AS c LEFT JOIN (` + again + `) AS a ON a.change = c.change AND a.revision = c.revision
		WHERE queue = ? AND isNotNull(ended_at) AND ended_at >= ? AND outcome = 'rejected' ORDER BY ended_at DESC, c.change LIMIT 20`
	waitsQuery = `SELECT toString(toStartOfWeek(landed_at, 1)) AS week, toInt64(count()), quantileExact(0.5)(total), quantileExact(0.95)(total), avg(total),
		avg(admission), avg(analysis), avg(worker), avg(building), avg(behind), avg(push)
		FROM time_to_land WHERE queue = ? AND landed_at >= ? GROUP BY week ORDER BY week`
	buildsQuery = `SELECT ` + week + `, toInt64(changes), toInt64(builds), toInt64(aborted), ` + finite("per_change") + `
		FROM builds_per_change WHERE queue = ? AND week >= toDate(?) ORDER BY week`
	workQuery = `SELECT toString(toStartOfWeek(assumeNotNull(ended_at), 1)) AS week, toInt64(count()), sum(seconds) / 3600, avg(seconds) / 3600
		FROM cost_per_change WHERE queue = ? AND isNotNull(ended_at) AND ended_at >= ? GROUP BY week ORDER BY week`
	bypassesQuery = `SELECT ` + week + `, toInt64(landed), toInt64(bypassing), ` + finite("rate") + `
		FROM bypass_rate WHERE queue = ? AND week >= toDate(?) ORDER BY week`
	predictionsQuery = `SELECT ` + week + `, toInt64(changes), ` + finite("predicted_rate") + `, ` + finite("landed_rate") + `, ` + finite("brier") + `, ` + finite("calibration_error") + `,
		toInt64(durations), ` + finite("mean_seconds") + `, ` + finite("mean_error") + `, ` + finite("covered") + `
		FROM accuracy_by_week WHERE queue = ? AND week >= toDate(?) ORDER BY week`
	calibrationQuery = `SELECT least(floor(predicted * 10), 9) / 10 AS tenth, toInt64(count()), avg(predicted), avg(actual)
		FROM prediction_outcomes WHERE queue = ? AND ended_at >= ? AND kind = 'success' GROUP BY tenth ORDER BY tenth`
	rejectionsQuery = `SELECT target, toInt64(uniqExact(change, revision)) AS rejections, toInt64(uniqExact(change)), max(at)
		FROM failed_versions FINAL WHERE queue = ? AND at >= ? AND outcome = 'rejected' GROUP BY target ORDER BY rejections DESC, target LIMIT 20`
	// The rates are of the whole history: a version may have failed long before it passed.
	flakyQuery = `SELECT target, toInt64(versions), toFloat64(flake_rate), toFloat64(failure_rate), toFloat64(p50_seconds)
		FROM target_rates WHERE queue = ? AND flake_rate > 0 ORDER BY flake_rate DESC, versions DESC, target LIMIT 20`
)

// read answers a question.
func (h *History) read(ctx context.Context, q question) (Analytics, error) {
	from := since(h.now(), q.weeks)
	a := Analytics{Queue: q.queue, Weeks: q.weeks}
	if err := h.connection.QueryRow(ctx, "SELECT max(updated) FROM positions").Scan(&a.Written); err != nil {
		return a, err
	}
	if a.Written.Unix() == 0 { // the greatest of nothing
		a.Written = time.Time{}
	}
	list := reading{ctx: ctx, connection: h.connection}
	a.Verdicts = rowsOf(&list, verdictsQuery, func(w *WeekOfVerdicts) []any {
		return []any{&w.Week, number{&w.Landed}, number{&w.Rejected}, number{&w.Conflicting}, number{&w.Confirmed}, number{&w.Contradicted}, number{&w.Ejected}}
	}, q.queue, from, q.queue, q.queue, from)
	a.Rejected = rowsOf(&list, rejectedQuery, func(r *RejectedChange) []any {
		return []any{&r.Change, &r.Revision, &r.Title, &r.Author, &r.At, &r.Class, &r.Targets, &r.Since}
	}, q.queue, from, q.queue, q.queue, from)
	a.Waits = rowsOf(&list, waitsQuery, func(w *WeekOfWaits) []any {
		return []any{&w.Week, number{&w.Landed}, &w.P50, &w.P95, &w.Mean, &w.Admission, &w.Analysis, &w.Worker, &w.Building, &w.Behind, &w.Push}
	}, q.queue, from)
	a.Builds = rowsOf(&list, buildsQuery, func(w *WeekOfBuilds) []any {
		return []any{&w.Week, number{&w.Changes}, number{&w.Builds}, number{&w.Aborted}, &w.PerChange}
	}, q.queue, from)
	a.Work = rowsOf(&list, workQuery, func(w *WeekOfWork) []any { return []any{&w.Week, number{&w.Changes}, &w.Hours, &w.PerChange} }, q.queue, from)
	a.Bypasses = rowsOf(&list, bypassesQuery, func(w *WeekOfBypasses) []any {
		return []any{&w.Week, number{&w.Landed}, number{&w.Bypassing}, &w.Rate}
	}, q.queue, from)
	a.Predictions = rowsOf(&list, predictionsQuery, func(w *WeekOfAccuracy) []any {
		return []any{&w.Week, number{&w.Changes}, &w.PredictedRate, &w.LandedRate, &w.Brier, &w.CalibrationError, number{&w.Durations}, &w.MeanSeconds, &w.MeanError, &w.Covered}
	}, q.queue, from)
	a.Calibration = rowsOf(&list, calibrationQuery, func(c *Calibration) []any {
		return []any{&c.From, number{&c.Changes}, &c.PredictedRate, &c.LandedRate}
	}, q.queue, from)
	a.Rejections = rowsOf(&list, rejectionsQuery, func(r *Rejecting) []any {
		return []any{&r.Target, number{&r.Rejections}, number{&r.Changes}, &r.LastAt}
	}, q.queue, from)
	a.Flaky = rowsOf(&list, flakyQuery, func(f *FlakyRate) []any {
		return []any{&f.Target, number{&f.Versions}, &f.FlakeRate, &f.FailureRate, &f.P50}
	}, q.queue)
	return a, list.err
}

// reading is some queries, one after the other, until one fails.
type reading struct {
	ctx        context.Context
	connection driver.Conn
	err        error
}

// number takes an Int64.
type number struct{ to *int }

// Scan implements sql.Scanner.
func (n number) Scan(value any) error {
	v, is := value.(int64)
	if !is {
		return fmt.Errorf("%T is no Int64", value)
	}
	*n.to = int(v)
	return nil
}

// rowsOf returns the rows of a query. It is empty, not nil: JSON has a list.
func rowsOf[T any](r *reading, query string, into func(*T) []any, given ...any) []T {
	list := []T{}
	if r.err != nil {
		return list
	}
	found, err := r.connection.Query(r.ctx, query, given...)
	if err != nil {
		r.err = err
		return list
	}
	defer found.Close()
	for found.Next() {
		var row T
		if r.err = found.Scan(into(&row)...); r.err != nil {
			return list
		}
		list = append(list, row)
	}
	r.err = found.Err()
	return list
}

// None is the answer where no history is kept.
func None(queue string, weeks int) Analytics {
	return Analytics{
		Queue: queue, Weeks: weeks,
		Missing: &NoHistory{
			Message: "No history is kept here that the gateway can ask.",
			Advice: "landfall up keeps one once the embedded ClickHouse is installed (make clickhouse) and it is started again; or name a ClickHouse of your own in clickhouse.dsn of the configuration, or to a gateway that runs alone by --clickhouse. " +
				"It is filled from the log, so nothing is lost until then.",
		},
		Verdicts: []WeekOfVerdicts{}, Rejected: []RejectedChange{}, Waits: []WeekOfWaits{}, Builds: []WeekOfBuilds{}, Work: []WeekOfWork{}, Bypasses: []WeekOfBypasses{}, Predictions: []WeekOfAccuracy{},
		Calibration: []Calibration{}, Rejections: []Rejecting{}, Flaky: []FlakyRate{},
	}
}
