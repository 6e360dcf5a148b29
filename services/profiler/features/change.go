package features

import (
	"math"
	"strconv"
	"strings"

	eventsv1 "landfall.build/events/v1"
)

// Context is what the profiler knows of a change beside the history: the node of the graph, and its own predictions.
type Context struct {
	Node *eventsv1.Node
	// TargetsSeconds and LongestSeconds are what the change's targets took when they last ran, together and the longest
	// of them; NaN where none of them ever ran.
	TargetsSeconds, LongestSeconds float64
	// AheadSuccess are the predicted successes of the members of A(c), as far as there are any.
	AheadSuccess []float64
	// QueueLength is how many changes are pending, Workers the builds that may run at one time.
	QueueLength, Workers int
}

// asked is a change at the moment that it is asked about.
type asked struct {
	Context
	h *History
	c *change
	a *analysis // nil where the targets are not known
	// green and red count the versions of its classes that are settled; versions those on the mainline as it stands.
	green, red, proven, classes float64
}

var changeColumns = []column[*asked]{
	{Feature{"files_changed", Count, "files", "ChangeAnalyzed", "size"}, ofAnalysis(func(a *analysis) float64 { return sized(a, a.fact.FilesChanged) }), true},
	{Feature{"lines_added", Count, "lines", "ChangeAnalyzed", "size"}, ofAnalysis(func(a *analysis) float64 { return lined(a, a.fact.LinesAdded) }), true},
	{Feature{"lines_deleted", Count, "lines", "ChangeAnalyzed", "size"}, ofAnalysis(func(a *analysis) float64 { return lined(a, a.fact.LinesDeleted) }), true},
	{Feature{"churn_per_file", Count, "lines", "ChangeAnalyzed", "size"}, ofAnalysis(func(a *analysis) float64 {
		return lined(a, a.fact.LinesAdded+a.fact.LinesDeleted) / float64(a.fact.FilesChanged)
	}), true},
	{Feature{"files_added", Count, "files", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetFilesAdded), true},
	{Feature{"files_deleted", Count, "files", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetFilesDeleted), true},
	{Feature{"files_renamed", Count, "files", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetFilesRenamed), true},
	{Feature{"binary_files", Count, "files", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetBinaryFiles), true},
	{Feature{"largest_file_lines", Count, "lines", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetLargestFileLines), true},
	{Feature{"source_lines", Count, "lines", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetSourceLines), true},
	{Feature{"test_lines", Count, "lines", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetTestLines), true},
	{Feature{"doc_lines", Count, "lines", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetDocLines), true},
	{Feature{"configuration_lines", Count, "lines", "ChangeAnalyzed", "size"}, ofDifference((*eventsv1.Difference).GetConfigurationLines), true},
	{Feature{"landing_commits", Count, "commits", "ChangeAdmitted", "size"}, func(x *asked) float64 { return float64(len(x.c.admission.LandingCommits)) }, true},
	{Feature{"entries", Count, "entries", "ChangeAdmitted", "size"}, func(x *asked) float64 { return float64(len(x.c.admission.Entries)) }, true},

	{Feature{"folders", Count, "folders", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(len(k.folders)) }), true},
	{Feature{"folder_entropy", Number, "nats", "ChangeAnalyzed", "kind"}, ofFiles(entropy), true},
	{Feature{"source_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(k.source) }), true},
	{Feature{"test_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(k.tests) }), true},
	{Feature{"doc_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(k.docs) }), true},
	{Feature{"build_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(k.build) }), true},
	{Feature{"ci_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(k.ci) }), true},
	{Feature{"lock_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(k.lock) }), true},
	{Feature{"configuration_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(k.configuration) }), true},
	{Feature{"generated_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return float64(k.generated) }), true},
	{Feature{"docs_only", Truth, "", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return truth(k.docs == k.files) }), true},
	{Feature{"tests_only", Truth, "", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return truth(k.tests == k.files) }), true},
	{Feature{"root_build", Truth, "", "ChangeAnalyzed", "kind"}, ofFiles(func(k *kinds) float64 { return truth(k.root) }), true},
	{Feature{"dependency_bump", Truth, "", "ChangeAnalyzed", "kind"}, func(x *asked) float64 {
		return ofFiles(func(k *kinds) float64 { return truth(isBump(k, x.c.admission.Title)) })(x)
	}, true},
	{Feature{"revert", Truth, "", "ChangeAdmitted", "kind"}, func(x *asked) float64 { return ifSaid(x.c.admission.Title, truth(isRevert(x.c.admission.Title))) }, true},
	{Feature{"bot", Truth, "", "ChangeAdmitted", "kind"}, func(x *asked) float64 { return ifSaid(x.c.admission.Author, truth(isBot(x.c.admission.Author))) }, true},

	{Feature{"targets", Count, "targets", "ChangeAnalyzed", "targets"}, ofTargets(func(a *analysis) float64 { return float64(len(a.targets)) }), true},
	{Feature{"deleted_targets", Count, "targets", "ChangeAnalyzed", "targets"}, ofTargets(func(a *analysis) float64 { return float64(len(a.fact.Affected.GetDeleted())) }), true},
	{Feature{"added_edges", Count, "edges", "ChangeAnalyzed", "targets"}, ofTargets(func(a *analysis) float64 { return float64(len(a.fact.Affected.GetAddedEdges())) }), true},
	{Feature{"packages", Count, "packages", "ChangeAnalyzed", "targets"}, ofTargets(packages), true},
	{Feature{"whole_repository", Truth, "", "ChangeAnalyzed", "targets"}, ofAnalysis(func(a *analysis) float64 { return truth(a.fact.GetAffected().GetAll()) }), true},
	{Feature{"targets_seconds", Seconds, "s", "StepFinished", "targets"}, func(x *asked) float64 { return x.TargetsSeconds }, false},
	{Feature{"longest_seconds", Seconds, "s", "StepFinished", "targets"}, func(x *asked) float64 { return x.LongestSeconds }, false},
	{Feature{"proven_share", Share, "", "Node", Evidence}, func(x *asked) float64 { return x.proven / x.classes }, true},

	{Feature{"revision", Count, "revisions", "ChangeAdmitted", "revision"}, func(x *asked) float64 { return float64(x.c.admission.Revision) }, true},
	{Feature{"requires", Count, "changes", "ChangeAdmitted", "revision"}, func(x *asked) float64 { return float64(len(x.c.admission.Requires)) }, true},
	{Feature{"benefit", Number, "", "ChangeAdmitted", "revision"}, func(x *asked) float64 { return x.c.admission.Benefit }, true},
	{Feature{"title_length", Count, "bytes", "ChangeAdmitted", "revision"}, func(x *asked) float64 { return ifSaid(x.c.admission.Title, float64(len(x.c.admission.Title))) }, true},
	{Feature{"description_length", Count, "bytes", "ChangeAdmitted", "revision"}, func(x *asked) float64 {
		return ifSaid(x.c.admission.Description, float64(len(x.c.admission.Description)))
	}, true},
	{Feature{"test_plan", Truth, "", "ChangeAdmitted", "revision"}, planned("test_plan", "test plan"), true},
	{Feature{"revert_plan", Truth, "", "ChangeAdmitted", "revision"}, planned("revert_plan", "revert plan"), true},
	{Feature{"patch_sets", Count, "patch sets", "ChangeAdmitted", "revision"}, label("patch_sets"), true},
	{Feature{"approvals", Count, "approvals", "ChangeAdmitted", "revision"}, label("approvals"), true},
	{Feature{"comments", Count, "comments", "ChangeAdmitted", "revision"}, label("comments"), true},
	{Feature{"reviewers", Count, "people", "ChangeAdmitted", "revision"}, label("reviewers"), true},
	{Feature{"open_threads", Count, "threads", "ChangeAdmitted", "revision"}, label("open_threads"), true},
	{Feature{"review_seconds", Seconds, "s", "ChangeAdmitted", "revision"}, label("review_seconds"), true},
	{Feature{"mainline_moves", Count, "commits", "MainlineMoved", "revision"}, func(x *asked) float64 { return float64(x.h.mainlineMoves - x.c.moves) }, false},

	{Feature{"checks_passed", Count, "checks", "ChangeAdmitted", "checks"}, label("checks_passed"), true},
	{Feature{"checks_failed", Count, "checks", "ChangeAdmitted", "checks"}, label("checks_failed"), true},
	{Feature{"checks_retried", Count, "checks", "ChangeAdmitted", "checks"}, label("checks_retried"), true},
	{Feature{"checks_seconds", Seconds, "s", "ChangeAdmitted", "checks"}, label("checks_seconds"), true},

	{Feature{"author_changes", Count, "changes", "ChangeLanded", "author"}, ofAuthor(func(_ *History, p *person) float64 { return p.n }), false},
	{Feature{"author_changes_90d", Count, "changes", "ChangeAdmitted", "author"}, ofAuthor(func(h *History, p *person) float64 { return h.within(&p.stamps, quarter) }), false},
	{Feature{"author_failure_rate", Share, "", "ChangeRejected", "author"}, ofAuthor(func(h *History, p *person) float64 { return p.rate(h.overall()) }), false},
	{Feature{"author_failed_last_5", Share, "", "ChangeRejected", "author"}, ofAuthor(func(_ *History, p *person) float64 { return shareOf(p.last.last) }), false},
	{Feature{"author_tenure", Seconds, "s", "ChangeAdmitted", "author"}, ofAuthor(func(h *History, p *person) float64 { return seconds(h.now - p.first) }), false},
	{Feature{"author_owned_share", Share, "", "ChangeLanded", "author"}, owned, false},
	{Feature{"team_failure_rate", Share, "", "ChangeRejected", "author"}, func(x *asked) float64 {
		if p := x.h.teams.Look(x.c.admission.Team); p != nil {
			return p.rate(x.h.overall())
		}
		return unknown
	}, false},

	{Feature{"queue_last_failed", Truth, "", "ChangeRejected", "queue"}, func(x *asked) float64 { return shareOf(x.h.lastOutcomes.newest(1)) }, false},
	{Feature{"queue_failure_rate_5", Share, "", "ChangeRejected", "queue"}, func(x *asked) float64 { return shareOf(x.h.lastOutcomes.newest(5)) }, false},
	{Feature{"queue_failure_rate_50", Share, "", "ChangeRejected", "queue"}, func(x *asked) float64 { return shareOf(x.h.lastOutcomes.last) }, false},
	{Feature{"queue_failure_rate_hour", Share, "", "ChangeRejected", "queue"}, func(x *asked) float64 { return x.h.hours[hourOf(x.h.now)].rate(x.h.overall()) }, false},
	{Feature{"queue_since_failure", Count, "changes", "ChangeRejected", "queue"}, func(x *asked) float64 { return known(x.h.outcomes.n > 0, x.h.sinceFailure) }, false},
	{Feature{"build_seconds_last", Seconds, "s", "StepFinished", "queue"}, func(x *asked) float64 { return quantile(x.h.buildSeconds.newest(1), 0.5) }, false},
	{Feature{"build_seconds_median_5", Seconds, "s", "StepFinished", "queue"}, func(x *asked) float64 { return quantile(x.h.buildSeconds.newest(5), 0.5) }, false},
	{Feature{MedianSeconds, Seconds, "s", "StepFinished", "queue"}, func(x *asked) float64 { return quantile(x.h.buildSeconds.newest(20), 0.5) }, false},
	{Feature{"build_seconds_median_50", Seconds, "s", "StepFinished", "queue"}, func(x *asked) float64 { return quantile(x.h.buildSeconds.last, 0.5) }, false},
	{Feature{"build_seconds_iqr_50", Seconds, "s", "StepFinished", "queue"}, func(x *asked) float64 {
		return quantile(x.h.buildSeconds.last, 0.75) - quantile(x.h.buildSeconds.last, 0.25)
	}, false},
	{Feature{"flakes_7d", Count, "flakes", "StepFinished", "queue"}, func(x *asked) float64 { return x.h.within(&x.h.flakes, 7*day) }, false},

	{Feature{"file_failure_max", Share, "", "ChangeRejected", "history"}, func(x *asked) float64 { m, _, _ := x.fileRates(); return m }, false},
	{Feature{"file_failure_mean", Share, "", "ChangeRejected", "history"}, func(x *asked) float64 { _, m, _ := x.fileRates(); return m }, false},
	{Feature{"file_failure_sum", Number, "failures", "ChangeRejected", "history"}, func(x *asked) float64 { _, _, s := x.fileRates(); return s }, false},
	{Feature{"file_changes_90d", Count, "changes", "ChangeLanded", "history"}, recentChanges, false},
	{Feature{"file_age", Seconds, "s", "ChangeLanded", "history"}, youngest, false},
	{Feature{"target_failure_any", Share, "", "ChangeRejected", "history"}, func(x *asked) float64 { return x.noisyOr(func(t *target) *tally { return &t.tally }) }, false},
	{Feature{"step_failure_any", Share, "", "StepFinished", "history"}, func(x *asked) float64 { return x.noisyOr(func(t *target) *tally { return &t.steps }) }, false},
	{Feature{"target_flakes", Count, "flakes", "StepFinished", "history"}, flaky, false},

	{Feature{"builds_succeeded", Count, "builds", "StepFinished", Evidence}, func(x *asked) float64 { return x.c.succeeded }, true},
	{Feature{"builds_failed", Count, "builds", "StepFinished", Evidence}, func(x *asked) float64 { return x.c.failed }, true},
	{Feature{"builds_aborted", Count, "builds", "StepFinished", Evidence}, func(x *asked) float64 { return x.c.aborted }, true},
	{Feature{"builds_open", Count, "builds", "BuildPrepared", "speculation"}, func(x *asked) float64 { return x.c.open }, false},
	{Feature{"green_versions", Count, "versions", "Node", Evidence}, func(x *asked) float64 { return x.green }, true},
	{Feature{"red_versions", Count, "versions", "Node", Evidence}, func(x *asked) float64 { return x.red }, true},
	{Feature{"ahead", Count, "changes", "Node", "speculation"}, func(x *asked) float64 { return float64(len(x.Node.Ahead)) }, true},
	{Feature{"ahead_merge_conflicts", Count, "changes", "Node", "speculation"}, mergeConflicts, true},
	{Feature{"ahead_success_mean", Share, "", "Prediction", "speculation"}, func(x *asked) float64 { return mean(x.AheadSuccess) }, false},
	{Feature{"ahead_success_least", Share, "", "Prediction", "speculation"}, func(x *asked) float64 { return quantile(x.AheadSuccess, 0) }, false},
	{Feature{"refusals", Count, "refusals", "Refused", Evidence}, func(x *asked) float64 { return x.c.refusals }, true},
	{Feature{"queue_length", Count, "changes", "Node", "speculation"}, func(x *asked) float64 { return float64(x.QueueLength) }, false},
	{Feature{"waiting", Seconds, "s", "ChangeAdmitted", "speculation"}, func(x *asked) float64 {
		return known(x.c.admission.ReceivedUs > 0, seconds(x.h.now-x.c.admission.ReceivedUs))
	}, false},

	{Feature{"hour_sin", Number, "", "Speculation", "environment"}, func(x *asked) float64 { s, _ := math.Sincos(x.h.angle()); return s }, false},
	{Feature{"hour_cos", Number, "", "Speculation", "environment"}, func(x *asked) float64 { _, c := math.Sincos(x.h.angle()); return c }, false},
	{Feature{"weekday", Number, "days since Monday", "Speculation", "environment"}, func(x *asked) float64 { return float64((x.h.now/day + 3) % 7) }, false},
	{Feature{"since_last_build", Seconds, "s", "BuildPrepared", "environment"}, func(x *asked) float64 { return known(x.h.lastBuild > 0, seconds(x.h.now-x.h.lastBuild)) }, false},
	{Feature{"free_workers", Number, "builds", "Settings", "environment"}, func(x *asked) float64 { return float64(x.Workers - len(x.h.builds)) }, false},
}

// Evidence is the group of features that say what a change's builds have shown. The profiler counts that by its own formula
// (docs/decisions/0026-what-a-build-showed-counts-on-every-path.md), so a model of success leaves it out.
const Evidence = "evidence"

// MedianSeconds is the feature that durations are learned relative to: the rolling median of the last passed builds (M29).
const MedianSeconds = "build_seconds_median_20"

var changeSchema = schemaOf(changeColumns)

// Change is the vector of a pending change, in the order of OfChange. was is the vector that its last prediction was made
// from, nil if there is none: where nothing of the change itself differs from it, it is given again.
func (h *History) Change(x Context, was []float32) []float32 {
	c := h.at(x.Node.Change)
	if c == nil || !x.Node.Analyzed {
		return nil
	}
	q := &asked{Context: x, h: h, c: c}
	if c.analysis != nil && c.analysis.fact.Outcome == eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED {
		q.a = c.analysis
	}
	q.settled()
	out := make([]float32, len(changeColumns))
	moved := len(was) != len(out)
	for i, col := range changeColumns {
		if col.standing {
			out[i] = single(col.value(q))
			moved = moved || !same(out[i], was[i])
		}
	}
	if !moved {
		return was
	}
	for i, col := range changeColumns {
		if !col.standing {
			out[i] = single(col.value(q))
		}
	}
	return out
}

// settled counts what is known of the change's versions.
func (x *asked) settled() {
	for _, k := range x.Node.Classes {
		x.classes++
		for _, o := range k.Outcomes {
			switch o.State {
			case eventsv1.OutcomeState_OUTCOME_STATE_GREEN:
				x.green++
				if len(o.Members) == 0 {
					x.proven++
				}
			case eventsv1.OutcomeState_OUTCOME_STATE_RED:
				x.red++
			}
		}
	}
}

func ofAnalysis(of func(a *analysis) float64) func(*asked) float64 {
	return func(x *asked) float64 {
		if x.a == nil {
			return unknown
		}
		return of(x.a)
	}
}

// ofDifference is missing where the difference was not looked at.
func ofDifference(of func(*eventsv1.Difference) uint32) func(*asked) float64 {
	return ofAnalysis(func(a *analysis) float64 {
		if a.fact.Difference == nil {
			return unknown
		}
		return float64(of(a.fact.Difference))
	})
}

// ofTargets is missing where the targets could not be computed (M4).
func ofTargets(of func(a *analysis) float64) func(*asked) float64 {
	return ofAnalysis(func(a *analysis) float64 {
		if a.fact.GetAffected().GetAll() {
			return unknown
		}
		return of(a)
	})
}

// ofFiles is missing where the analysis names no files.
func ofFiles(of func(k *kinds) float64) func(*asked) float64 {
	return ofAnalysis(func(a *analysis) float64 {
		if a.kinds.files == 0 {
			return unknown
		}
		return of(&a.kinds)
	})
}

// sized is missing where the analysis has not looked at the difference.
func sized(a *analysis, n uint32) float64 { return known(a.fact.FilesChanged > 0, float64(n)) }

// lined is missing where the analysis has not counted lines: the difference may be too large to be looked at.
func lined(a *analysis, n uint32) float64 { return known(a.fact.Difference != nil, float64(n)) }

func known(is bool, x float64) float64 {
	if !is {
		return unknown
	}
	return x
}

func ifSaid(text string, x float64) float64 { return known(text != "", x) }

func seconds(us int64) float64 { return math.Max(0, float64(us)/1e6) }

// mostOfLabel bounds a number that somebody else wrote.
const mostOfLabel = 1e9

// label is a number that the code-review system wrote into a label of that name.
func label(name string) func(*asked) float64 {
	return func(x *asked) float64 {
		n, err := strconv.ParseFloat(strings.TrimSpace(x.c.admission.Labels[name]), 64)
		return known(err == nil && n >= 0 && n <= mostOfLabel, n)
	}
}

// planned is a truth by a label, else by what the description says.
func planned(name, words string) func(*asked) float64 {
	return func(x *asked) float64 {
		if is, err := strconv.ParseBool(strings.TrimSpace(x.c.admission.Labels[name])); err == nil {
			return truth(is)
		}
		return ifSaid(x.c.admission.Description, truth(strings.Contains(strings.ToLower(x.c.admission.Description), words)))
	}
}

func ofAuthor(of func(h *History, p *person) float64) func(*asked) float64 {
	return func(x *asked) float64 {
		if p := x.h.authors.Look(x.c.admission.Author); p != nil {
			return of(x.h, p)
		}
		return unknown
	}
}

// overall is the share of failures of the queue, ever.
func (h *History) overall() float64 {
	if h.outcomes.n == 0 {
		return 0
	}
	return h.outcomes.failed / h.outcomes.n
}

func shareOf(failed []bool) float64 {
	n := 0.0
	for _, f := range failed {
		n += truth(f)
	}
	return n / float64(len(failed)) // 0/0 is missing
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}

func (h *History) angle() float64 { return 2 * math.Pi * float64(h.now%day) / day }

// entropy of the files over their folders.
func entropy(k *kinds) float64 {
	counts := make([]float64, 0, len(k.folders))
	for _, n := range k.folders {
		counts = append(counts, float64(n))
	}
	// The order of a sum shows in its last bit, and that of a map is nobody's.
	return sumOf(counts, func(n float64) float64 { p := n / float64(k.files); return -p * math.Log(p) })
}

func packages(a *analysis) float64 {
	n, last := 0.0, "\x00"
	for _, t := range a.targets {
		if p := packageOf(t); p != last {
			n, last = n+1, p
		}
	}
	return n
}

func mergeConflicts(x *asked) float64 {
	n := 0.0
	for _, a := range x.Node.Ahead {
		n += truth(a.MergeConflict)
	}
	return n
}
