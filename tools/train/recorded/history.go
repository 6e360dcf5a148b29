package recorded

import (
	"math"
	"time"
)

// history has the statistics of the builds that have begun and ended.
type history struct {
	projects, changes, commits, branches map[string]*statistics
	all                                  *statistics
	// lastOfChanges are the changes of the last builds of a project, in the order in which these ended: what a project's
	// changes end as says more than the many builds of one change that fails again and again.
	lastOfChanges map[string][]string
}

func newHistory() *history {
	return &history{
		projects: map[string]*statistics{}, changes: map[string]*statistics{}, commits: map[string]*statistics{}, branches: map[string]*statistics{}, all: newStatistics(),
		lastOfChanges: map[string][]string{},
	}
}

func newStatistics() *statistics { return &statistics{leastFailed: -1} }

func of(m map[string]*statistics, key string) *statistics {
	if m[key] == nil {
		m[key] = newStatistics()
	}
	return m[key]
}

func changeKey(b Build) string { return b.Project + "\x00" + b.Change }

func (h *history) statisticsOf(b Build) []*statistics {
	return []*statistics{
		of(h.projects, b.Project), of(h.changes, changeKey(b)), of(h.commits, b.Project+"\x00"+b.Head), of(h.branches, b.Project+"\x00"+b.Branch), h.all,
	}
}

func (h *history) begin(b Build) {
	for _, p := range h.statisticsOf(b) {
		if p.begun++; p.begun == 1 {
			p.firstBegan = b.Started
		}
		p.lastBegan = b.Started
	}
}

func (h *history) end(b Build) {
	for _, p := range h.statisticsOf(b) {
		p.end(b)
	}
	if b.Settled() {
		h.lastOfChanges[b.Project] = appendKept(h.lastOfChanges[b.Project], changeKey(b))
	}
}

var nan = math.NaN()

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func hours(from, to time.Time) float64 {
	if from.IsZero() {
		return nan
	}
	return to.Sub(from).Hours()
}

// changesRate is the share of passes among the last ends of the last ten other changes of a project.
func (h *history) changesRate(b Build) float64 {
	seen := map[string]bool{changeKey(b): true}
	yes, n := 1.0, 2.0
	list := h.lastOfChanges[b.Project]
	for i := len(list) - 1; i >= 0 && n < 12; i-- {
		if seen[list[i]] {
			continue
		}
		seen[list[i]] = true
		if last, ok := h.changes[list[i]].last(); ok {
			yes += truth(last.Result == "SUCCESS")
			n++
		}
	}
	return yes / n
}

// known is what is known of a build that begins now, in the order of Columns.
func (h *history) known(b Build) []float64 {
	all := h.statisticsOf(b)
	project, change, commit, branch, every := all[0], all[1], all[2], all[3], all[4]
	passed, early, since, took := nan, nan, nan, nan
	if last, ok := change.last(); ok {
		passed, early = truth(last.Result == "SUCCESS"), truth(last.Result == "FAILURE")
		since, took = hours(last.ended(), b.Started), last.Took.Seconds()
	}
	commitPassed := nan
	if last, ok := commit.last(); ok {
		commitPassed = truth(last.Result == "SUCCESS")
	}
	projectPassed, projectTook := nan, nan
	if last, ok := project.last(); ok {
		projectPassed = truth(last.Result == "SUCCESS")
	}
	if n := len(project.times); n > 0 {
		projectTook = project.times[n-1]
	}
	// A mean in logarithms of what is fresh and what is steady: durations drift, and single builds lie.
	typical := math.Cbrt(projectTook * project.quantile(5, 0.5) * project.quantile(20, 0.5))
	spread := math.Log((project.quantile(20, 0.75) + 1) / (project.quantile(20, 0.25) + 1))
	hour := float64(b.Started.UTC().Hour()) + float64(b.Started.UTC().Minute())/60
	size := func(n int) float64 {
		if n < 0 {
			return nan
		}
		return float64(n)
	}
	out := []float64{
		float64(change.begun), float64(change.passed), passed, early, since, float64(change.failedInRow),
		float64(commit.begun), float64(commit.passed), commitPassed, float64(b.Number),
		projectPassed, project.rate(5), project.rate(20), project.rate(50), project.share(20, func(b Build) bool { return b.Result == "FAILURE" }),
		float64(project.failedInRow), hours(project.lastPass, b.Started), h.changesRate(b),
		branch.rate(20), every.rate(50), float64(project.begun - project.finished), float64(every.begun - every.finished), hours(project.lastBegan, b.Started),
		project.quantile(5, 0.5), project.quantile(20, 0.5), project.quantile(50, 0.5), spread, took, projectTook, typical,
	}
	out = append(out, h.compared(b, project, change, branch)...)
	return append(out,
		size(b.Files), size(b.Added), size(b.Deleted), (size(b.Added)+size(b.Deleted))/max(1, size(b.Files)),
		math.Sin(hour*math.Pi/12), math.Cos(hour*math.Pi/12), float64((b.Started.UTC().Weekday()+6)%7))
}

// compared is what is known of the change's own builds, and of others, compared with the project's median: what a tree learns
// of a ratio holds for every project, and after the next drift.
func (h *history) compared(b Build, project, change, branch *statistics) []float64 {
	known := func(x float64) float64 {
		if x < 0 {
			return nan
		}
		return x
	}
	failures, same, tests, testSeconds := nan, nan, nan, nan
	if last, ok := change.last(); ok {
		failures, same = known(last.TestsFailed), truth(last.Head == b.Head)
		tests = ratio(last.TestsPassed+1, quantile(project.tests, 20, 0.5)+1)
		testSeconds = ratio(last.TestSeconds+1, quantile(project.testSeconds, 20, 0.5)+1)
	}
	median := project.quantile(20, 0.5)
	over := func(seconds float64) float64 { return ratio(seconds, median) }
	return []float64{
		(0.3 + float64(change.passed)) / (1 + float64(change.settled)), float64(change.begun - change.finished), hours(change.firstBegan, b.Started), same,
		failures, known(change.leastFailed), tests, testSeconds,
		over(quantile(change.times, 1, 0.5)), over(change.quantile(kept, 0.5)), over(change.quantile(kept, 1)),
		over(project.quantile(3, 0.5)), over(project.quantile(5, 0.5)), over(project.quantile(50, 0.5)), over(quantile(project.times, 1, 0.5)),
		over(project.quantile(20, 0.1)), over(project.quantile(20, 0.9)),
		over(branch.quantile(5, 0.5)), over(branch.quantile(20, 0.5)), quantile(project.parallel, 10, 0.5),
	}
}

// ratio is the logarithm of how many times one is the other, NaN where either is not known.
func ratio(a, b float64) float64 {
	if !(a > 0 && b > 0) {
		return nan
	}
	return math.Log(a / b)
}
