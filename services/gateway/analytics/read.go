package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
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

// during is when what is counted happened. Each query takes @queue, @from and @until.
const during = "ended_at >= @from AND ended_at <= @until"

var (
	// again has, for each rejected revision, what its failed versions have done since: failed, passed, or "" for not all the same.
	again = `SELECT f.change AS change, f.revision AS revision, arraySlice(arraySort(groupUniqArray(f.target)), 1, 5) AS targets,
			multiIf(min(r.passed_at > f.at), 'passed', min(r.failed_at > f.at), 'failed', '') AS since
		FROM (SELECT change, revision, target, version, at FROM failed_versions FINAL WHERE queue = @queue AND at >= @from AND at <= @until AND outcome = 'rejected') AS f
		LEFT JOIN (SELECT version, maxIf(started_at, outcome = 'passed') AS passed_at, maxIf(started_at, outcome = 'failed') AS failed_at
			FROM runs WHERE queue = @queue AND finished_at <= @until GROUP BY version) AS r ON r.version = f.version
		GROUP BY change, revision`
	verdictsQuery = `SELECT toString(toStartOfWeek(assumeNotNull(ended_at), 1)) AS week, toInt64(countIf(outcome = 'landed')), toInt64(countIf(outcome = 'rejected')),
		toInt64(countIf(outcome = 'rejected' AND reason_class = 'merge_conflict')), toInt64(countIf(outcome = 'rejected' AND since = 'failed')),
		toInt64(countIf(outcome = 'rejected' AND since = 'passed')), toInt64(countIf(outcome = 'ejected'))
		FROM change_outcomes AS c LEFT JOIN (` + again + `) AS a ON a.change = c.change AND a.revision = c.revision
		WHERE queue = @queue AND isNotNull(ended_at) AND ` + during + ` AND outcome IN ('landed', 'rejected', 'ejected') GROUP BY week ORDER BY week`
	rejectedQuery = `SELECT c.change, c.revision, title, author, assumeNotNull(ended_at), reason_class, a.targets, since
		FROM change_outcomes AS c LEFT JOIN (` + again + `) AS a ON a.change = c.change AND a.revision = c.revision
		WHERE queue = @queue AND isNotNull(ended_at) AND ` + during + ` AND outcome = 'rejected' ORDER BY ended_at DESC, c.change LIMIT 20`
	waitsQuery = `SELECT toString(toStartOfWeek(landed_at, 1)) AS week, toInt64(count()), quantileExact(0.5)(total), quantileExact(0.95)(total), avg(total),
		avg(admission), avg(analysis), avg(worker), avg(building), avg(behind), avg(push)
		FROM time_to_land WHERE queue = @queue AND landed_at >= @from AND landed_at <= @until GROUP BY week ORDER BY week`
	buildsQuery = `SELECT toString(toStartOfWeek(c.ended, 1)) AS week, toInt64(count()) AS changes, toInt64(sum(b.builds)) AS builds, toInt64(sum(b.aborted)), round(builds / changes, 2)
		FROM (SELECT change, revision, assumeNotNull(ended_at) AS ended FROM change_outcomes
			WHERE queue = @queue AND isNotNull(ended_at) AND ` + during + ` AND outcome IN ('landed', 'rejected', 'ejected')) AS c
		LEFT JOIN (SELECT change, revision, count() AS builds, countIf(isNotNull(aborted_at) AND aborted_at <= @until) AS aborted
			FROM builds FINAL WHERE queue = @queue AND isNotNull(scheduled_at) AND scheduled_at <= @until GROUP BY change, revision) AS b
			ON b.change = c.change AND b.revision = c.revision
		GROUP BY week ORDER BY week`
	workQuery = `SELECT toString(toStartOfWeek(assumeNotNull(ended_at), 1)) AS week, toInt64(count()), sum(seconds) / 3600, avg(seconds) / 3600
		FROM cost_per_change WHERE queue = @queue AND isNotNull(ended_at) AND ` + during + ` GROUP BY week ORDER BY week`
	bypassesQuery = `SELECT toString(toStartOfWeek(assumeNotNull(ended_at), 1)) AS week, toInt64(count()) AS landed, toInt64(countIf(notEmpty(bypasses))) AS bypassing,
		round(bypassing / landed, 3)
		FROM change_outcomes WHERE queue = @queue AND outcome = 'landed' AND ` + during + ` GROUP BY week ORDER BY week`
	// As the view accuracy_by_week, of a part of the time.
	predictionsQuery = `SELECT toString(w) AS week, toInt64(sumIf(n, kind = 'success')) AS changes, ` + finite("round(sumIf(predictions, kind = 'success') / changes, 3)") + `,
		` + finite("round(sumIf(actuals, kind = 'success') / changes, 3)") + `, ` + finite("round(sumIf(squares, kind = 'success') / changes, 4)") + `,
		` + finite("round(sumIf(abs(predictions - actuals), kind = 'success') / changes, 4)") + `, toInt64(sumIf(n, kind = 'duration')) AS durations,
		` + finite("round(sumIf(actuals, kind = 'duration') / durations, 3)") + `, ` + finite("round(sumIf(errors, kind = 'duration') / durations, 3)") + `,
		` + finite("round(sumIf(within, kind = 'duration') / durations, 3)") + `
		FROM (SELECT toStartOfWeek(ended_at, 1) AS w, kind, if(kind = 'success', least(floor(predicted * 10), 9), 0) AS tenth, count() AS n, sum(predicted) AS predictions,
			sum(actual) AS actuals, sum(pow(predicted - actual, 2)) AS squares, sum(abs(predicted - actual)) AS errors, countIf(abs(predicted - actual) <= 1.6449 * std) AS within
			FROM prediction_outcomes WHERE queue = @queue AND ` + during + ` GROUP BY w, kind, tenth)
		GROUP BY w ORDER BY week`
	calibrationQuery = `SELECT least(floor(predicted * 10), 9) / 10 AS tenth, toInt64(count()), avg(predicted), avg(actual)
		FROM prediction_outcomes WHERE queue = @queue AND ` + during + ` AND kind = 'success' GROUP BY tenth ORDER BY tenth`
	rejectionsQuery = `SELECT target, toInt64(uniqExact(change, revision)) AS rejections, toInt64(uniqExact(change)) AS changes, max(at)
		FROM failed_versions FINAL WHERE queue = @queue AND at >= @from AND at <= @until AND outcome = 'rejected' GROUP BY target ORDER BY changes DESC, rejections DESC, target LIMIT 20`
	// As the view target_rates, of a part of the time. It has no beginning: a version may have failed long before it passed.
	flakyQuery = `WITH standing AS
		(
			SELECT r.target AS target, r.version AS version, r.outcome AS outcome, r.seconds AS seconds
			FROM (SELECT target, version, attempt, outcome, seconds FROM runs FINAL WHERE queue = @queue AND outcome IN ('passed', 'failed') AND finished_at <= @until) AS r
			LEFT JOIN (SELECT version, max(attempt) AS last FROM taken_back WHERE at <= @until GROUP BY version) AS t ON t.version = r.version
			WHERE r.attempt > t.last
		)
		SELECT a.target AS target, toInt64(a.versions) AS versions, round(f.flaked / a.versions, 3) AS flake_rate, round(f.failed / a.versions, 3), round(a.median, 2)
		FROM (SELECT target, uniqExact(version) AS versions, quantileExact(0.5)(seconds) AS median FROM standing GROUP BY target) AS a
		INNER JOIN
		(
			SELECT target, countIf(passes = 0) AS failed, countIf(passes > 0) AS flaked
			FROM
			(
				SELECT target, version, countIf(outcome = 'passed') AS passes
				FROM standing WHERE version IN (SELECT version FROM standing WHERE outcome = 'failed') GROUP BY target, version
			)
			GROUP BY target
		) AS f ON f.target = a.target
		WHERE flake_rate > 0 ORDER BY flake_rate DESC, versions DESC, target LIMIT 20`
)

// forever is later than what any clock writes.
var forever = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// read answers a question.
func (h *History) read(ctx context.Context, q Question) (Analytics, error) {
	now, until := h.now(), forever
	if !q.At.IsZero() {
		now, until = q.At, q.At
	}
	a := Analytics{Queue: q.Queue, Weeks: q.Weeks, At: q.At}
	if err := h.connection.QueryRow(ctx, "SELECT max(updated) FROM positions").Scan(&a.Written); err != nil {
		return a, err
	}
	if a.Written.Unix() == 0 { // the greatest of nothing
		a.Written = time.Time{}
	}
	list := reading{ctx: ctx, connection: h.connection, given: []any{
		clickhouse.Named("queue", q.Queue), clickhouse.DateNamed("from", since(now, q.Weeks), clickhouse.MicroSeconds), clickhouse.DateNamed("until", until.UTC(), clickhouse.MicroSeconds),
	}}
	a.Verdicts = rowsOf(&list, verdictsQuery, func(w *WeekOfVerdicts) []any {
		return []any{&w.Week, number{&w.Landed}, number{&w.Rejected}, number{&w.Conflicting}, number{&w.Confirmed}, number{&w.Contradicted}, number{&w.Ejected}}
	})
	a.Rejected = rowsOf(&list, rejectedQuery, func(r *RejectedChange) []any {
		return []any{&r.Change, &r.Revision, &r.Title, &r.Author, &r.At, &r.Class, &r.Targets, &r.Since}
	})
	a.Waits = rowsOf(&list, waitsQuery, func(w *WeekOfWaits) []any {
		return []any{&w.Week, number{&w.Landed}, &w.P50, &w.P95, &w.Mean, &w.Admission, &w.Analysis, &w.Worker, &w.Building, &w.Behind, &w.Push}
	})
	a.Builds = rowsOf(&list, buildsQuery, func(w *WeekOfBuilds) []any {
		return []any{&w.Week, number{&w.Changes}, number{&w.Builds}, number{&w.Aborted}, &w.PerChange}
	})
	a.Work = rowsOf(&list, workQuery, func(w *WeekOfWork) []any { return []any{&w.Week, number{&w.Changes}, &w.Hours, &w.PerChange} })
	a.Bypasses = rowsOf(&list, bypassesQuery, func(w *WeekOfBypasses) []any {
		return []any{&w.Week, number{&w.Landed}, number{&w.Bypassing}, &w.Rate}
	})
	a.Predictions = rowsOf(&list, predictionsQuery, func(w *WeekOfAccuracy) []any {
		return []any{&w.Week, number{&w.Changes}, &w.PredictedRate, &w.LandedRate, &w.Brier, &w.CalibrationError, number{&w.Durations}, &w.MeanSeconds, &w.MeanError, &w.Covered}
	})
	a.Calibration = rowsOf(&list, calibrationQuery, func(c *Calibration) []any {
		return []any{&c.From, number{&c.Changes}, &c.PredictedRate, &c.LandedRate}
	})
	a.Rejections = rowsOf(&list, rejectionsQuery, func(r *Rejecting) []any {
		return []any{&r.Target, number{&r.Rejections}, number{&r.Changes}, &r.LastAt}
	})
	a.Flaky = rowsOf(&list, flakyQuery, func(f *FlakyRate) []any {
		return []any{&f.Target, number{&f.Versions}, &f.FlakeRate, &f.FailureRate, &f.P50}
	})
	return a, list.err
}

// reading is some queries, one after the other, until one fails.
type reading struct {
	ctx        context.Context
	connection driver.Conn
	given      []any
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
func rowsOf[T any](r *reading, query string, into func(*T) []any) []T {
	list := []T{}
	if r.err != nil {
		return list
	}
	found, err := r.connection.Query(r.ctx, query, r.given...)
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
func None(q Question) Analytics {
	return Analytics{
		Queue: q.Queue, Weeks: q.Weeks, At: q.At,
		Missing: &NoHistory{
			Message: "No history is kept here that the gateway can ask.",
			Advice: "landfall up keeps one once the embedded ClickHouse is installed (make clickhouse) and it is started again; or name a ClickHouse of your own in clickhouse.dsn of the configuration, or to a gateway that runs alone by --clickhouse. " +
				"It is filled from the log, so nothing is lost until then.",
		},
		Verdicts: []WeekOfVerdicts{}, Rejected: []RejectedChange{}, Waits: []WeekOfWaits{}, Builds: []WeekOfBuilds{}, Work: []WeekOfWork{}, Bypasses: []WeekOfBypasses{}, Predictions: []WeekOfAccuracy{},
		Calibration: []Calibration{}, Rejections: []Rejecting{}, Flaky: []FlakyRate{},
	}
}
