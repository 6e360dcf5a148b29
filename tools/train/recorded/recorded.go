// Package recorded makes tables to train on from recorded builds of a CI server: for each build, what was known when it began, and how it
// ended. What was known is computed from the builds that had ended by then; nothing that ended later can change a row.
package recorded

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Build is one build of a change.
type Build struct {
	Project, Change, Branch string
	// Number is the change's count of builds as the server has it.
	Number int
	// Head is the commit that was built.
	Head    string
	Started time.Time
	Took    time.Duration
	// Result is SUCCESS, UNSTABLE (tests failed), FAILURE, or something that says nothing about the change.
	Result string
	// Size of the change, negative where it is not known.
	Files, Added, Deleted int
	// Tests of the build once it has ended, negative where they are not known: how many passed and failed, and the seconds
	// that all of them took together.
	TestsPassed, TestsFailed, TestSeconds float64
}

func (b Build) ended() time.Time { return b.Started.Add(b.Took) }

// Settled reports whether the build says something about its change.
func (b Build) Settled() bool {
	return b.Result == "SUCCESS" || b.Result == "UNSTABLE" || b.Result == "FAILURE"
}

// timed reports whether its duration is that of a whole build: one that fails to compile stops early.
func (b Build) timed() bool { return b.Result == "SUCCESS" || b.Result == "UNSTABLE" }

// Row is a build with what was known when it began, in the order of Columns. NaN is not known.
type Row struct {
	Build
	Known []float64
}

// Columns names what is known of a build when it begins.
func Columns() []string {
	return []string{
		"builds_of_change", "passed_of_change", "last_of_change_passed", "last_of_change_failed_early", "hours_since_last_of_change", "failed_in_row_of_change",
		"builds_of_commit", "passed_of_commit", "last_of_commit_passed", "number",
		"project_last_passed", "project_rate_5", "project_rate_20", "project_rate_50", "project_early_20", "project_failed_in_row", "project_hours_since_pass", "changes_rate_10",
		"branch_rate_20", "all_rate_50", "project_running", "all_running", "project_hours_since_build",
		"median_5", "median_20", "median_50", "spread_20", "last_of_change_seconds", "last_of_project_seconds", "typical_seconds",
		"rate_of_change", "running_of_change", "hours_since_first_of_change", "same_commit",
		"last_of_change_failures", "least_failures_of_change", "last_of_change_tests_ratio", "last_of_change_test_seconds_ratio",
		"last_of_change_seconds_ratio", "median_of_change_ratio", "longest_of_change_ratio",
		"median_3_ratio", "median_5_ratio", "median_50_ratio", "last_of_project_ratio", "tenth_20_ratio", "ninth_tenth_20_ratio",
		"branch_5_ratio", "branch_20_ratio", "parallel_10",
		"files", "added", "deleted", "churn_per_file", "hour_sin", "hour_cos", "weekday",
	}
}

// Rows returns each build, oldest first, with what was known when it began.
func Rows(builds []Build) []Row {
	order := slices.Clone(builds)
	slices.SortStableFunc(order, func(a, b Build) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Change, b.Change), cmp.Compare(a.Number, b.Number))
	})
	byEnd := slices.Clone(order)
	slices.SortStableFunc(byEnd, func(a, b Build) int { return a.ended().Compare(b.ended()) })
	h := newHistory()
	rows := make([]Row, 0, len(order))
	next := 0
	for _, b := range order {
		for next < len(byEnd) && byEnd[next].ended().Before(b.Started) {
			h.end(byEnd[next])
			next++
		}
		rows = append(rows, Row{b, h.known(b)})
		h.begin(b)
	}
	return rows
}

// kept is how many of the last builds of one thing are remembered.
const kept = 50

// statistics are of the builds of one thing: a project, a change, a commit, a branch, or everything.
type statistics struct {
	// ended are the last settled ones, oldest first; times the durations of the last whole ones, in seconds.
	ended []Build
	times []float64
	// tests of the last whole ones: how many passed, the seconds of all of them, and how many ran at a time.
	tests, testSeconds, parallel []float64
	// leastFailed is of all settled ones, negative where none is known.
	leastFailed float64
	// All of them.
	settled, passed int
	failedInRow     int
	lastPass        time.Time
	begun           int
	firstBegan      time.Time
	lastBegan       time.Time
	finished        int
}

func (p *statistics) end(b Build) {
	p.finished++
	if b.timed() {
		p.times = appendKept(p.times, b.Took.Seconds())
		p.tests = appendKept(p.tests, b.TestsPassed)
		p.testSeconds = appendKept(p.testSeconds, b.TestSeconds)
		p.parallel = appendKept(p.parallel, b.TestSeconds/max(1, b.Took.Seconds()))
	}
	if !b.Settled() {
		return
	}
	p.settled++
	if p.leastFailed < 0 || b.TestsFailed >= 0 && b.TestsFailed < p.leastFailed {
		p.leastFailed = b.TestsFailed
	}
	p.ended = appendKept(p.ended, b)
	if b.Result == "SUCCESS" {
		p.passed++
		p.failedInRow = 0
		p.lastPass = b.ended()
	} else {
		p.failedInRow++
	}
}

func appendKept[T any](list []T, x T) []T {
	if len(list) == kept {
		copy(list, list[1:])
		list = list[:kept-1]
	}
	return append(list, x)
}

// rate is the share of passes among the last n, drawn to one half by two more.
func (p *statistics) rate(n int) float64 {
	return p.share(n, func(b Build) bool { return b.Result == "SUCCESS" })
}

func (p *statistics) share(n int, is func(Build) bool) float64 {
	last := p.ended[max(0, len(p.ended)-n):]
	yes := 1.0
	for _, b := range last {
		if is(b) {
			yes++
		}
	}
	return yes / float64(len(last)+2)
}

// quantile of the last n durations, NaN without any.
func (p *statistics) quantile(n int, q float64) float64 { return quantile(p.times, n, q) }

// quantile of the last n of a list, NaN without any. What is negative is not known.
func quantile(list []float64, n int, q float64) float64 {
	last := slices.Sorted(slices.Values(list[max(0, len(list)-n):]))
	for len(last) > 0 && last[0] < 0 {
		last = last[1:]
	}
	if len(last) == 0 {
		return math.NaN()
	}
	at := q * float64(len(last)-1)
	low := int(at)
	high := min(low+1, len(last)-1)
	return last[low] + (at-float64(low))*(last[high]-last[low])
}

func (p *statistics) last() (Build, bool) {
	if len(p.ended) == 0 {
		return Build{}, false
	}
	return p.ended[len(p.ended)-1], true
}
