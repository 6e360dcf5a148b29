package features

import (
	"math"
	"strconv"
	"strings"

	eventsv1 "landfall.build/events/v1"
)

// Context is what the features of a change need beside the history.
type Context struct {
	Node *eventsv1.Node
	// TargetsSeconds is how long the change's targets take one after the other, LongestSeconds how long the slowest takes; NaN if
	// none of them ever ran.
	TargetsSeconds, LongestSeconds float64
	// AheadSuccess has the predicted success of each member of A(c) that has a prediction.
	AheadSuccess []float64
	// QueueLength is how many changes are pending, Workers how many builds may run at a time.
	QueueLength, Workers int
}

// changeQuery is what the features of one change are computed from.
type changeQuery struct {
	Context
	h *History
	c *change
	a *analysis // nil without a successful analysis
	// green and red count the target versions that are known, proven the classes that are green on the mainline alone.
	green, red, proven, classes float64
}

var changeColumns = []column[*changeQuery]{
	{Feature{"files_changed", Count, "files", "ChangeAnalyzed", "size"}, ofAnalysis(func(a *analysis) float64 { return ifCountedFiles(a, a.filesChanged) }), true},
	{Feature{"lines_added", Count, "lines", "ChangeAnalyzed", "size"}, ofAnalysis(func(a *analysis) float64 { return ifCountedLines(a, a.linesAdded) }), true},
	{Feature{"lines_deleted", Count, "lines", "ChangeAnalyzed", "size"}, ofAnalysis(func(a *analysis) float64 { return ifCountedLines(a, a.linesDeleted) }), true},
	{Feature{"churn_per_file", Count, "lines", "ChangeAnalyzed", "size"}, ofAnalysis(func(a *analysis) float64 {
		return ifCountedLines(a, a.linesAdded+a.linesDeleted) / float64(a.filesChanged)
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
	{Feature{"landing_commits", Count, "commits", "ChangeAdmitted", "size"}, func(x *changeQuery) float64 { return float64(len(x.c.admission.LandingCommits)) }, true},
	{Feature{"entries", Count, "entries", "ChangeAdmitted", "size"}, func(x *changeQuery) float64 { return float64(len(x.c.admission.Entries)) }, true},

	{Feature{"folders", Count, "folders", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(len(k.folders)) }), true},
	{Feature{"folder_entropy", Number, "nats", "ChangeAnalyzed", "kind"}, ofFiles(entropy), true},
	{Feature{"source_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(k.source) }), true},
	{Feature{"test_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(k.tests) }), true},
	{Feature{"doc_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(k.docs) }), true},
	{Feature{"build_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(k.build) }), true},
	{Feature{"ci_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(k.ci) }), true},
	{Feature{"lock_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(k.lock) }), true},
	{Feature{"configuration_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(k.configuration) }), true},
	{Feature{"generated_files", Count, "files", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return float64(k.generated) }), true},
	{Feature{"docs_only", Truth, "", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return indicator(k.docs == k.files) }), true},
	{Feature{"tests_only", Truth, "", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return indicator(k.tests == k.files) }), true},
	{Feature{"root_build", Truth, "", "ChangeAnalyzed", "kind"}, ofFiles(func(k *fileKinds) float64 { return indicator(k.root) }), true},
	{Feature{"dependency_bump", Truth, "", "ChangeAnalyzed", "kind"}, func(x *changeQuery) float64 {
		return ofFiles(func(k *fileKinds) float64 { return indicator(isBump(k, x.c.admission.Title)) })(x)
	}, true},
	{Feature{"revert", Truth, "", "ChangeAdmitted", "kind"}, func(x *changeQuery) float64 {
		return ifStated(x.c.admission.Title, indicator(isRevert(x.c.admission.Title)))
	}, true},
	{Feature{"bot", Truth, "", "ChangeAdmitted", "kind"}, func(x *changeQuery) float64 {
		return ifStated(x.c.admission.Author, indicator(isBot(x.c.admission.Author)))
	}, true},

	{Feature{"targets", Count, "targets", "ChangeAnalyzed", "targets"}, ofTargets(func(a *analysis) float64 { return float64(len(a.targets)) }), true},
	{Feature{"deleted_targets", Count, "targets", "ChangeAnalyzed", "targets"}, ofTargets(func(a *analysis) float64 { return float64(a.deletedTargets) }), true},
	{Feature{"added_edges", Count, "edges", "ChangeAnalyzed", "targets"}, ofTargets(func(a *analysis) float64 { return float64(a.addedEdges) }), true},
	{Feature{"packages", Count, "packages", "ChangeAnalyzed", "targets"}, ofTargets(packages), true},
	{Feature{"whole_repository", Truth, "", "ChangeAnalyzed", "targets"}, ofAnalysis(func(a *analysis) float64 { return indicator(a.wholeRepository) }), true},
	{Feature{"targets_seconds", Seconds, "s", "StepFinished", "targets"}, func(x *changeQuery) float64 { return x.TargetsSeconds }, false},
	{Feature{"longest_seconds", Seconds, "s", "StepFinished", "targets"}, func(x *changeQuery) float64 { return x.LongestSeconds }, false},
	{Feature{"proven_share", Share, "", "Node", Evidence}, func(x *changeQuery) float64 { return x.proven / x.classes }, true},

	{Feature{"revision", Count, "revisions", "ChangeAdmitted", "revision"}, func(x *changeQuery) float64 { return float64(x.c.admission.Revision) }, true},
	{Feature{"requires", Count, "changes", "ChangeAdmitted", "revision"}, func(x *changeQuery) float64 { return float64(len(x.c.admission.Requires)) }, true},
	{Feature{"benefit", Number, "", "ChangeAdmitted", "revision"}, func(x *changeQuery) float64 { return x.c.admission.Benefit }, true},
	{Feature{"title_length", Count, "bytes", "ChangeAdmitted", "revision"}, func(x *changeQuery) float64 { return ifStated(x.c.admission.Title, float64(len(x.c.admission.Title))) }, true},
	{Feature{"description_length", Count, "bytes", "ChangeAdmitted", "revision"}, func(x *changeQuery) float64 {
		return ifStated(x.c.admission.Description, float64(len(x.c.admission.Description)))
	}, true},
	{Feature{"test_plan", Truth, "", "ChangeAdmitted", "revision"}, planOf("test_plan", "test plan"), true},
	{Feature{"revert_plan", Truth, "", "ChangeAdmitted", "revision"}, planOf("revert_plan", "revert plan"), true},
	{Feature{"patch_sets", Count, "patch sets", "ChangeAdmitted", "revision"}, label("patch_sets"), true},
	{Feature{"approvals", Count, "approvals", "ChangeAdmitted", "revision"}, label("approvals"), true},
	{Feature{"comments", Count, "comments", "ChangeAdmitted", "revision"}, label("comments"), true},
	{Feature{"reviewers", Count, "people", "ChangeAdmitted", "revision"}, label("reviewers"), true},
	{Feature{"open_threads", Count, "threads", "ChangeAdmitted", "revision"}, label("open_threads"), true},
	{Feature{"review_seconds", Seconds, "s", "ChangeAdmitted", "revision"}, label("review_seconds"), true},
	{Feature{"mainline_moves", Count, "commits", "MainlineMoved", "revision"}, func(x *changeQuery) float64 { return float64(x.h.queue.mainlineMoves - x.c.mainlineMoves) }, false},

	{Feature{"checks_passed", Count, "checks", "ChangeAdmitted", "checks"}, label("checks_passed"), true},
	{Feature{"checks_failed", Count, "checks", "ChangeAdmitted", "checks"}, label("checks_failed"), true},
	{Feature{"checks_retried", Count, "checks", "ChangeAdmitted", "checks"}, label("checks_retried"), true},
	{Feature{"checks_seconds", Seconds, "s", "ChangeAdmitted", "checks"}, label("checks_seconds"), true},

	{Feature{"author_changes", Count, "changes", "ChangeLanded", "author"}, ofAuthor(func(_ *History, p *person) float64 { return p.n }), false},
	{Feature{"author_changes_90d", Count, "changes", "ChangeAdmitted", "author"}, ofAuthor(func(h *History, p *person) float64 { return h.countWithin(&p.admissions, quarter) }), false},
	{Feature{"author_failure_rate", Share, "", "ChangeRejected", "author"}, ofAuthor(func(h *History, p *person) float64 { return p.rate(h.overall()) }), false},
	{Feature{"author_failed_last_5", Share, "", "ChangeRejected", "author"}, ofAuthor(func(_ *History, p *person) float64 { return shareOf(p.lastOutcomes.values) }), false},
	{Feature{"author_tenure", Seconds, "s", "ChangeAdmitted", "author"}, ofAuthor(func(h *History, p *person) float64 { return seconds(h.now - p.first) }), false},
	{Feature{"author_owned_share", Share, "", "ChangeLanded", "author"}, ownedShare, false},
	{Feature{"team_failure_rate", Share, "", "ChangeRejected", "author"}, func(x *changeQuery) float64 {
		if p := x.h.teams.Peek(x.c.admission.Team); p != nil {
			return p.rate(x.h.overall())
		}
		return missing
	}, false},

	{Feature{"queue_last_failed", Truth, "", "ChangeRejected", "queue"}, func(x *changeQuery) float64 { return shareOf(x.h.queue.lastOutcomes.newest(1)) }, false},
	{Feature{"queue_failure_rate_5", Share, "", "ChangeRejected", "queue"}, func(x *changeQuery) float64 { return shareOf(x.h.queue.lastOutcomes.newest(5)) }, false},
	{Feature{"queue_failure_rate_50", Share, "", "ChangeRejected", "queue"}, func(x *changeQuery) float64 { return shareOf(x.h.queue.lastOutcomes.values) }, false},
	{Feature{"queue_failure_rate_hour", Share, "", "ChangeRejected", "queue"}, func(x *changeQuery) float64 { return x.h.queue.hours[hourOf(x.h.now)].rate(x.h.overall()) }, false},
	{Feature{"queue_since_failure", Count, "changes", "ChangeRejected", "queue"}, func(x *changeQuery) float64 { return knownIf(x.h.queue.outcomes.n > 0, x.h.queue.sinceFailure) }, false},
	{Feature{"build_seconds_last", Seconds, "s", "StepFinished", "queue"}, func(x *changeQuery) float64 { return quantile(x.h.queue.buildSeconds.newest(1), 0.5) }, false},
	{Feature{"build_seconds_median_5", Seconds, "s", "StepFinished", "queue"}, func(x *changeQuery) float64 { return quantile(x.h.queue.buildSeconds.newest(5), 0.5) }, false},
	{Feature{MedianSeconds, Seconds, "s", "StepFinished", "queue"}, func(x *changeQuery) float64 { return quantile(x.h.queue.buildSeconds.newest(20), 0.5) }, false},
	{Feature{"build_seconds_median_50", Seconds, "s", "StepFinished", "queue"}, func(x *changeQuery) float64 { return quantile(x.h.queue.buildSeconds.values, 0.5) }, false},
	{Feature{"build_seconds_iqr_50", Seconds, "s", "StepFinished", "queue"}, func(x *changeQuery) float64 {
		return quantile(x.h.queue.buildSeconds.values, 0.75) - quantile(x.h.queue.buildSeconds.values, 0.25)
	}, false},
	{Feature{"flakes_7d", Count, "flakes", "StepFinished", "queue"}, func(x *changeQuery) float64 { return x.h.countWithin(&x.h.queue.flakes, 7*day) }, false},

	{Feature{"file_failure_max", Share, "", "ChangeRejected", "history"}, func(x *changeQuery) float64 { m, _, _ := x.fileRates(); return m }, false},
	{Feature{"file_failure_mean", Share, "", "ChangeRejected", "history"}, func(x *changeQuery) float64 { _, m, _ := x.fileRates(); return m }, false},
	{Feature{"file_failure_sum", Number, "failures", "ChangeRejected", "history"}, func(x *changeQuery) float64 { _, _, s := x.fileRates(); return s }, false},
	{Feature{"file_changes_90d", Count, "changes", "ChangeLanded", "history"}, fileChanges, false},
	{Feature{"file_age", Seconds, "s", "ChangeLanded", "history"}, fileAge, false},
	{Feature{"target_failure_any", Share, "", "ChangeRejected", "history"}, func(x *changeQuery) float64 { return x.noisyOr(func(t *target) *tally { return &t.tally }) }, false},
	{Feature{"step_failure_any", Share, "", "StepFinished", "history"}, func(x *changeQuery) float64 { return x.noisyOr(func(t *target) *tally { return &t.runs }) }, false},
	{Feature{"target_flakes", Count, "flakes", "StepFinished", "history"}, targetFlakes, false},

	{Feature{"builds_succeeded", Count, "builds", "StepFinished", Evidence}, func(x *changeQuery) float64 { return x.c.builds.succeeded }, true},
	{Feature{"builds_failed", Count, "builds", "StepFinished", Evidence}, func(x *changeQuery) float64 { return x.c.builds.failed }, true},
	{Feature{"builds_aborted", Count, "builds", "StepFinished", Evidence}, func(x *changeQuery) float64 { return x.c.builds.aborted }, true},
	{Feature{"builds_open", Count, "builds", "BuildPrepared", "speculation"}, func(x *changeQuery) float64 { return x.c.builds.open }, false},
	{Feature{"green_versions", Count, "versions", "Node", Evidence}, func(x *changeQuery) float64 { return x.green }, true},
	{Feature{"red_versions", Count, "versions", "Node", Evidence}, func(x *changeQuery) float64 { return x.red }, true},
	{Feature{"ahead", Count, "changes", "Node", "speculation"}, func(x *changeQuery) float64 { return float64(len(x.Node.Ahead)) }, true},
	{Feature{"ahead_merge_conflicts", Count, "changes", "Node", "speculation"}, mergeConflicts, true},
	{Feature{"ahead_success_mean", Share, "", "Prediction", "speculation"}, func(x *changeQuery) float64 { return mean(x.AheadSuccess) }, false},
	{Feature{"ahead_success_least", Share, "", "Prediction", "speculation"}, func(x *changeQuery) float64 { return quantile(x.AheadSuccess, 0) }, false},
	{Feature{"refusals", Count, "refusals", "Refused", Evidence}, func(x *changeQuery) float64 { return x.c.refusals }, true},
	{Feature{"queue_length", Count, "changes", "Node", "speculation"}, func(x *changeQuery) float64 { return float64(x.QueueLength) }, false},
	{Feature{"waiting", Seconds, "s", "ChangeAdmitted", "speculation"}, func(x *changeQuery) float64 {
		return knownIf(x.c.admission.ReceivedUs > 0, seconds(x.h.now-x.c.admission.ReceivedUs))
	}, false},

	{Feature{"hour_sin", Number, "", "Speculation", "environment"}, func(x *changeQuery) float64 { s, _ := math.Sincos(x.h.angle()); return s }, false},
	{Feature{"hour_cos", Number, "", "Speculation", "environment"}, func(x *changeQuery) float64 { _, c := math.Sincos(x.h.angle()); return c }, false},
	{Feature{"weekday", Number, "days since Monday", "Speculation", "environment"}, func(x *changeQuery) float64 { return float64((x.h.now/day + 3) % 7) }, false},
	{Feature{"since_last_build", Seconds, "s", "BuildPrepared", "environment"}, func(x *changeQuery) float64 {
		return knownIf(x.h.queue.lastBuild > 0, seconds(x.h.now-x.h.queue.lastBuild))
	}, false},
	{Feature{"free_workers", Number, "builds", "Settings", "environment"}, func(x *changeQuery) float64 { return float64(x.Workers - len(x.h.builds)) }, false},
}

// Evidence is the group of features of what a change's builds have shown. A model of success leaves it out: the profiler updates
// the model's prediction with that evidence itself (docs/decisions/0026-build-results-move-predictions-on-every-path.md).
const Evidence = "evidence"

// MedianSeconds is the feature that durations are learned relative to: the median of the last 20 builds that passed (M29).
const MedianSeconds = "build_seconds_median_20"

var changeSchema = schemaOf(changeColumns)

// ChangeVector returns the vector of a pending change, in the order of OfChange; nil for one that is not analysed. last is the vector
// of its last prediction, nil if there is none. It is returned again if no intrinsic feature differs from it.
func (h *History) ChangeVector(x Context, last []float32) []float32 {
	c := h.at(x.Node.Change)
	if c == nil || !x.Node.Analyzed {
		return nil
	}
	q := &changeQuery{Context: x, h: h, c: c}
	if c.analysis != nil && c.analysis.analyzed {
		q.a = c.analysis
	}
	q.countVersions()
	out := make([]float32, len(changeColumns))
	differs := len(last) != len(out)
	for i, col := range changeColumns {
		if col.intrinsic {
			out[i] = toFloat32(col.value(q))
			differs = differs || !same(out[i], last[i])
		}
	}
	if !differs {
		return last
	}
	for i, col := range changeColumns {
		if !col.intrinsic {
			out[i] = toFloat32(col.value(q))
		}
	}
	return out
}

// countVersions counts the target versions of the change whose outcome is known.
func (x *changeQuery) countVersions() {
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

// ofAnalysis is missing without a successful analysis.
func ofAnalysis(of func(a *analysis) float64) func(*changeQuery) float64 {
	return func(x *changeQuery) float64 {
		if x.a == nil {
			return missing
		}
		return of(x.a)
	}
}

// ofDifference is missing where the analysis has not read the difference.
func ofDifference(of func(*eventsv1.Difference) uint32) func(*changeQuery) float64 {
	return ofAnalysis(func(a *analysis) float64 {
		if a.difference == nil {
			return missing
		}
		return float64(of(a.difference))
	})
}

// ofTargets is missing where the targets could not be computed (M4).
func ofTargets(of func(a *analysis) float64) func(*changeQuery) float64 {
	return ofAnalysis(func(a *analysis) float64 {
		if a.wholeRepository {
			return missing
		}
		return of(a)
	})
}

// ofFiles is missing where the analysis names no files.
func ofFiles(of func(k *fileKinds) float64) func(*changeQuery) float64 {
	return ofAnalysis(func(a *analysis) float64 {
		if a.kinds.files == 0 {
			return missing
		}
		return of(&a.kinds)
	})
}

// ifCountedFiles is missing where the analysis has not counted files.
func ifCountedFiles(a *analysis, n uint32) float64 { return knownIf(a.filesChanged > 0, float64(n)) }

// ifCountedLines is missing where the analysis has not counted lines: the difference may be too large to read.
func ifCountedLines(a *analysis, n uint32) float64 { return knownIf(a.difference != nil, float64(n)) }

// knownIf is missing unless it is known.
func knownIf(is bool, x float64) float64 {
	if !is {
		return missing
	}
	return x
}

// ifStated is missing where a text of the admission is empty.
func ifStated(text string, x float64) float64 { return knownIf(text != "", x) }

func seconds(us int64) float64 { return math.Max(0, float64(us)/1e6) }

// maxLabel bounds the number in a label, which other systems write.
const maxLabel = 1e9

// label is the number in a label that the code-review system sets.
func label(name string) func(*changeQuery) float64 {
	return func(x *changeQuery) float64 {
		n, err := strconv.ParseFloat(strings.TrimSpace(x.c.admission.Labels[name]), 64)
		return knownIf(err == nil && n >= 0 && n <= maxLabel, n)
	}
}

// planOf is the boolean in a label, else whether the description mentions some words.
func planOf(name, words string) func(*changeQuery) float64 {
	return func(x *changeQuery) float64 {
		if is, err := strconv.ParseBool(strings.TrimSpace(x.c.admission.Labels[name])); err == nil {
			return indicator(is)
		}
		return ifStated(x.c.admission.Description, indicator(strings.Contains(strings.ToLower(x.c.admission.Description), words)))
	}
}

// ofAuthor is missing for an author of whom nothing is known.
func ofAuthor(of func(h *History, p *person) float64) func(*changeQuery) float64 {
	return func(x *changeQuery) float64 {
		if p := x.h.authors.Peek(x.c.admission.Author); p != nil {
			return of(x.h, p)
		}
		return missing
	}
}

// overall returns the share of failures among all outcomes of the queue.
func (h *History) overall() float64 {
	if h.queue.outcomes.n == 0 {
		return 0
	}
	return h.queue.outcomes.failed / h.queue.outcomes.n
}

func shareOf(failed []bool) float64 {
	n := 0.0
	for _, f := range failed {
		n += indicator(f)
	}
	return n / float64(len(failed)) // 0/0 is NaN, missing
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, x := range values {
		sum += x
	}
	return sum / float64(len(values))
}

func (h *History) angle() float64 { return 2 * math.Pi * float64(h.now%day) / day }

// entropy is that of the distribution of the files over their folders.
func entropy(k *fileKinds) float64 {
	counts := make([]float64, 0, len(k.folders))
	for _, n := range k.folders {
		counts = append(counts, float64(n))
	}
	// A sum of floating-point numbers depends on their order, and the order of a map is random.
	return sortedSum(counts, func(n float64) float64 { p := n / float64(k.files); return -p * math.Log(p) })
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

func mergeConflicts(x *changeQuery) float64 {
	n := 0.0
	for _, a := range x.Node.Ahead {
		n += indicator(a.MergeConflict)
	}
	return n
}
