package clickhouse_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
)

// figures are rows of a view: the numbers of each, by its key.
type figures map[string][]float64

// folded is what the log says, put together with none of the historian's code and none of its SQL: in lists that are searched from
// the first to the last element. Times are microseconds since 1970.
type folded struct {
	changes     []*foldedChange
	builds      []*foldedBuild
	runs        []foldedRun
	refusals    []foldedRefusal
	rejections  []foldedRejection
	takenBack   []foldedProof
	predictions []foldedPrediction
	settings    []foldedSettings
}

type foldedChange struct {
	queue, change                                                             string
	revision                                                                  uint64
	received, admitted, analyzed, decided                                     int64
	landed, rejected, ejected, cancelled, rejectedForItself, revised, endedAt int64
	outcome                                                                   string
	conflicting                                                               bool
}

type foldedBuild struct {
	queue, build, change       string
	revision                   uint64
	finished                   int64
	known, aborted, isPrepared bool
	wants                      []string
}

type foldedRun struct {
	queue, version, target, build, worker string
	attempt                               uint32
	outcome                               eventsv1.StepOutcome
	started, finished                     int64
}

type foldedRefusal struct {
	queue, change, cause string
	at                   int64
}

type foldedRejection struct {
	queue, target, change, version string
	revision                       uint64
	at                             int64
}

type foldedProof struct {
	version string
	attempt uint32
	at      int64
}

type foldedPrediction struct {
	queue, change          string
	revision               uint64
	success, duration, std float64
}

type foldedSettings struct {
	queue, pool string
	workers     uint32
	at          int64
}

func earliest(a *int64, b int64) {
	if *a == 0 || b < *a {
		*a = b
	}
}

func versionOf(queue string, v *eventsv1.TargetVersion) string {
	return queue + " " + v.GetTarget() + " " + v.GetHash()
}

func (f *folded) change(queue string, r *eventsv1.ChangeRef) *foldedChange {
	for _, c := range f.changes {
		if c.queue == queue && c.change == r.GetChange() && c.revision == r.GetRevision() {
			return c
		}
	}
	c := &foldedChange{queue: queue, change: r.GetChange(), revision: r.GetRevision()}
	f.changes = append(f.changes, c)
	return c
}

func (f *folded) build(queue, id string) *foldedBuild {
	for _, b := range f.builds {
		if b.queue == queue && b.build == id {
			return b
		}
	}
	b := &foldedBuild{queue: queue, build: id}
	f.builds = append(f.builds, b)
	return b
}

// until is what had ended, run, failed and been taken back by a moment; everything, if that is zero.
func (f *folded) until(at time.Time) *folded {
	then, us := *f, at.UnixMicro()
	if at.IsZero() {
		return &then
	}
	then.changes = slices.DeleteFunc(slices.Clone(f.changes), func(c *foldedChange) bool { return c.endedAt > us })
	then.runs = slices.DeleteFunc(slices.Clone(f.runs), func(r foldedRun) bool { return r.finished > us })
	then.rejections = slices.DeleteFunc(slices.Clone(f.rejections), func(r foldedRejection) bool { return r.at > us })
	then.takenBack = slices.DeleteFunc(slices.Clone(f.takenBack), func(p foldedProof) bool { return p.at > us })
	return &then
}

// foldForAnalysts reads the whole log.
func foldForAnalysts(t testing.TB, log journal.Log) *folded {
	t.Helper()
	f := &folded{}
	for _, topic := range events.Topics() {
		for p := range log.Partitions() {
			end, err := log.End(t.Context(), topic.Name, p)
			if err != nil {
				t.Fatal(err)
			}
			if end == 0 {
				continue
			}
			cursor, err := log.Follow(t.Context(), topic.Name, p, 0)
			if err != nil {
				t.Fatal(err)
			}
			terms := journal.NewTerms(topic.Name)
			for last := int64(-1); last < end-1; {
				e, err := cursor.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				last = e.Offset
				if terms.Counts(e) {
					f.take(e)
				}
			}
			cursor.Close()
		}
	}
	f.settle()
	return f
}

func (f *folded) take(e journal.Entry) {
	q := e.Queue
	orTime := func(us int64) int64 {
		if us == 0 {
			return e.Time.UnixMicro()
		}
		return us
	}
	admit := func(a *eventsv1.Admission) {
		c := f.change(q, &eventsv1.ChangeRef{Change: a.Change, Revision: a.Revision})
		earliest(&c.admitted, e.Time.UnixMicro())
		if a.ReceivedUs != 0 {
			earliest(&c.received, a.ReceivedUs)
		}
	}
	switch m := e.Message.(type) {
	case *eventsv1.ChangeAdmitted:
		admit(m.Admission)
	case *eventsv1.ChangeRevised:
		admit(m.Admission)
	case *eventsv1.ChangeAnalyzed:
		earliest(&f.change(q, m.Change).analyzed, orTime(m.FinishedUs))
	case *eventsv1.ChangeCancelled:
		earliest(&f.change(q, &eventsv1.ChangeRef{Change: m.Change, Revision: m.Revision}).cancelled, orTime(m.StampUs))
	case *eventsv1.ChangeLanded:
		earliest(&f.change(q, m.Change).landed, orTime(m.StampUs))
	case *eventsv1.ChangeRejected:
		c := f.change(q, m.Change)
		// One that was rejected again, after a retry, has the greater class.
		c.conflicting = (c.rejected == 0 || c.conflicting) && m.Reason.GetClass() == eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT
		earliest(&c.rejected, orTime(m.StampUs))
		if class := m.Reason.GetClass(); class == eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED || class == eventsv1.ReasonClass_REASON_CLASS_INVALID {
			earliest(&c.rejectedForItself, orTime(m.StampUs))
		}
		for _, p := range m.Reason.GetFailed() {
			f.rejections = append(f.rejections, foldedRejection{q, p.Version.Target, m.Change.Change, versionOf(q, p.Version), m.Change.Revision, orTime(m.StampUs)})
		}
	case *eventsv1.ChangeEjected:
		earliest(&f.change(q, m.Change).ejected, orTime(m.StampUs))
	case *eventsv1.Refused:
		cause := "not_examined"
		switch {
		case m.Class == eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT:
			cause = "merge_conflict"
		case m.Class == eventsv1.ReasonClass_REASON_CLASS_INVALID:
			cause = "invalid"
		case m.Disproved:
			cause = "disproved"
		case len(m.Missing) > 0:
			cause = "unproven"
		}
		f.refusals = append(f.refusals, foldedRefusal{q, m.Change.Change, cause, orTime(m.StampUs)})
		for _, p := range m.BaseOutdated {
			f.takenBack = append(f.takenBack, foldedProof{versionOf(q, p.Version), p.Attempt, orTime(m.StampUs)})
		}
	case *eventsv1.ChangeRetried:
		for _, p := range m.Failed {
			f.takenBack = append(f.takenBack, foldedProof{versionOf(q, p.Version), p.Attempt, orTime(m.StampUs)})
		}
	case *eventsv1.BuildPrepared:
		b := f.build(q, m.Build)
		b.known, b.isPrepared, b.change, b.revision = true, true, m.Change.GetChange(), m.Change.GetRevision()
		for _, v := range m.Versions {
			if !v.Trivial && !v.Absent {
				b.wants = append(b.wants, versionOf(q, v))
			}
		}
	case *eventsv1.StepFinished:
		f.runs = append(f.runs, foldedRun{q, versionOf(q, &eventsv1.TargetVersion{Target: m.Target, Hash: m.Hash}), m.Target, m.Build, m.Worker,
			m.Attempt, m.Outcome, m.StartedUs, m.FinishedUs})
	case *eventsv1.Decision:
		for _, item := range m.Items {
			decided := item.GetLandDecided().GetChange()
			if decided == nil {
				decided = item.GetRejectDecided().GetChange()
			}
			if decided == nil {
				decided = item.GetEjectDecided().GetChange()
			}
			if decided != nil {
				c := f.change(q, decided)
				c.decided = max(c.decided, orTime(m.StampUs))
			}
			if s := item.GetBuildScheduled(); s != nil {
				b := f.build(q, s.Build)
				b.known, b.change, b.revision = true, s.Change.GetChange().GetChange(), s.Change.GetChange().GetRevision()
			}
			if a := item.GetBuildAborted(); a != nil {
				f.build(q, a.Build).aborted = true
			}
		}
	case *eventsv1.Profile:
		for _, p := range m.Predictions {
			f.predictions = append(f.predictions, foldedPrediction{queue: q, change: p.Change.Change, revision: p.Change.Revision, success: p.Success,
				duration: p.DurationMeanUs / 1e6, std: p.DurationStdUs / 1e6})
		}
	case *eventsv1.Speculation:
		if s := m.Delta.GetSettings(); s != nil {
			workers := s.PoolWorkers
			if s.Pool == "" {
				workers = s.Workers
			}
			f.settings = append(f.settings, foldedSettings{q, s.Pool, workers, orTime(m.StampUs)})
		}
		for _, b := range m.Delta.GetBuilds() {
			if b.State == eventsv1.BuildState_BUILD_STATE_FINISHED {
				earliest(&f.build(q, b.Build).finished, orTime(m.StampUs))
			}
		}
	}
}

// settle finds how each change ended, and forgets those that were not admitted.
func (f *folded) settle() {
	f.changes = slices.DeleteFunc(f.changes, func(c *foldedChange) bool { return c.admitted == 0 })
	for _, c := range f.changes {
		for _, next := range f.changes {
			if next.queue == c.queue && next.change == c.change && next.revision > c.revision {
				earliest(&c.revised, next.admitted)
			}
		}
		c.outcome = "pending"
		for _, end := range []struct {
			outcome string
			at      int64
		}{{"landed", c.landed}, {"rejected", c.rejected}, {"ejected", c.ejected}, {"cancelled", c.cancelled}, {"revised", c.revised}} {
			if end.at != 0 {
				c.outcome, c.endedAt = end.outcome, end.at
				break
			}
		}
	}
}

const hourUs = int64(3_600_000_000)

func hourOf(us int64) string { return time.UnixMicro(us / hourUs * hourUs).UTC().Format(time.DateTime) }

func weekOf(us int64) string {
	at := time.UnixMicro(us).UTC()
	return at.AddDate(0, 0, -(int(at.Weekday())+6)%7).Format(time.DateOnly)
}

func row(parts ...any) string { return strings.TrimSuffix(fmt.Sprintln(parts...), "\n") }

func (f figures) add(key string, at int, by float64, width int) {
	if f[key] == nil {
		f[key] = make([]float64, width)
	}
	f[key][at] += by
}

// depths: mean_depth, deepest, entered, left.
func (f *folded) depths() figures {
	newest := int64(0)
	for _, c := range f.changes {
		newest = max(newest, c.admitted, c.endedAt)
	}
	list := figures{}
	end := func(c *foldedChange) int64 {
		if c.endedAt == 0 {
			return newest
		}
		return max(c.admitted, c.endedAt)
	}
	for _, c := range f.changes {
		for hour := c.admitted / hourUs * hourUs; hour <= end(c); hour += hourUs {
			key := row(c.queue, hourOf(hour))
			list.add(key, 0, float64(min(end(c), hour+hourUs)-max(c.admitted, hour))/float64(hourUs), 4)
			if c.admitted >= hour {
				list.add(key, 2, 1, 4)
			}
			if c.endedAt != 0 && end(c) < hour+hourUs {
				list.add(key, 3, 1, 4)
			}
			// The queue is deepest when the hour begins, or when something came into it.
			already := 0.0
			for _, in := range f.changes {
				if in.queue == c.queue && in.admitted < hour && end(in) >= hour {
					already++
				}
			}
			list[key][1] = max(list[key][1], already)
			for _, came := range f.changes {
				deep := 0.0
				for _, in := range f.changes {
					if in.queue == c.queue && in.admitted <= came.admitted && end(in) > came.admitted {
						deep++
					}
				}
				if came.queue == c.queue && came.admitted >= hour && came.admitted < hour+hourUs {
					list[key][1] = max(list[key][1], deep)
				}
			}
		}
	}
	return list
}

// refused: refusals, changes.
func (f *folded) refused() figures {
	list, seen := figures{}, map[string]bool{}
	for _, r := range f.refusals {
		key := row(r.queue, weekOf(r.at), r.cause)
		list.add(key, 0, 1, 2)
		if !seen[key+r.change] {
			seen[key+r.change] = true
			list.add(key, 1, 1, 2)
		}
	}
	return list
}

// rejecting: rejections, changes.
func (f *folded) rejecting() figures {
	list, seen := figures{}, map[string]bool{}
	for _, r := range f.rejections {
		key := row(r.queue, r.target)
		for at, who := range []string{row("revision", key, r.change, r.revision), row("change", key, r.change)} {
			if !seen[who] {
				seen[who] = true
				list.add(key, at, 1, 2)
			}
		}
	}
	return list
}

// since is what all that failed of a rejected change has done since: failed, passed or "".
func (f *folded) since(c *foldedChange) string {
	failed, passed := false, false
	for i, all := 0, true; i < len(f.rejections); i++ {
		r := f.rejections[i]
		if r.queue != c.queue || r.change != c.change || r.revision != c.revision {
			continue
		}
		failedAgain, passedAgain := false, false
		for _, run := range f.runs {
			if run.version == r.version && run.started > r.at {
				failedAgain = failedAgain || run.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED
				passedAgain = passedAgain || run.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED
			}
		}
		if all {
			failed, passed, all = failedAgain, passedAgain, false
		}
		failed, passed = failed && failedAgain, passed && passedAgain
	}
	switch {
	case passed:
		return "passed"
	case failed:
		return "failed"
	}
	return ""
}

// verdicts: landed, rejected, conflicting, confirmed, contradicted, ejected.
func (f *folded) verdicts() figures {
	list := figures{}
	for _, c := range f.changes {
		of, is := map[string]int{"landed": 0, "rejected": 1, "ejected": 5}[c.outcome]
		if !is {
			continue
		}
		key := row(c.queue, weekOf(c.endedAt))
		list.add(key, of, 1, 6)
		if c.outcome != "rejected" {
			continue
		}
		if c.conflicting {
			list.add(key, 2, 1, 6)
		}
		switch f.since(c) {
		case "failed":
			list.add(key, 3, 1, 6)
		case "passed":
			list.add(key, 4, 1, 6)
		}
	}
	return list
}

// costs: steps, seconds.
func (f *folded) costs() figures {
	list := figures{}
	versions := map[string]float64{}
	for _, r := range f.runs {
		versions[r.version] += float64(r.finished-r.started) / 1e6
	}
	for version, seconds := range versions {
		var sharers []string
		for _, b := range f.builds {
			if who := row(b.queue, b.change, b.revision); slices.Contains(b.wants, version) && !slices.Contains(sharers, who) {
				sharers = append(sharers, who)
			}
		}
		for _, c := range f.changes {
			if who := row(c.queue, c.change, c.revision); slices.Contains(sharers, who) {
				list.add(who, 0, 1, 2)
				list.add(who, 1, seconds/float64(len(sharers)), 2)
			}
		}
	}
	return list
}

// utilisation: busy, workers, used, at_work.
func (f *folded) utilisation() figures {
	list, seen := figures{}, map[string]bool{}
	for _, r := range f.runs {
		for hour := r.started / hourUs * hourUs; hour < r.finished; hour += hourUs {
			var newest foldedSettings
			for _, s := range f.settings {
				if s.queue == r.queue && s.at < hour+hourUs && s.at >= newest.at {
					newest = s
				}
			}
			key := strings.TrimSpace(row(newest.pool, hourOf(hour)))
			list.add(key, 0, float64(min(r.finished, hour+hourUs)-max(r.started, hour))/float64(hourUs), 4)
			list[key][1] = max(list[key][1], float64(newest.workers))
			if !seen[key+r.worker] {
				seen[key+r.worker] = true
				list.add(key, 3, 1, 4)
			}
		}
	}
	for _, figure := range list {
		if figure[1] > 0 {
			figure[2] = figure[0] / figure[1]
		}
	}
	return list
}

// waits: landed, mean, admission, analysis, worker, building, behind, push.
func (f *folded) waits() figures {
	list := figures{}
	for _, c := range f.changes {
		if c.outcome != "landed" {
			continue
		}
		began, built := int64(0), int64(0)
		decided := c.decided
		if decided == 0 {
			decided = c.landed
		}
		for _, b := range f.builds {
			if b.queue != c.queue || b.change != c.change || b.revision != c.revision {
				continue
			}
			for _, r := range f.runs {
				if r.queue == b.queue && r.build == b.build {
					earliest(&began, r.started)
				}
			}
			if b.finished <= decided {
				built = max(built, b.finished)
			}
		}
		first := c.admitted
		if c.received != 0 {
			first = min(first, c.received)
		}
		at, end := first, max(first, c.landed)
		key := row(c.queue, weekOf(end))
		list.add(key, 0, 1, 8)
		list.add(key, 1, float64(end-first)/1e6, 8)
		for part, until := range []int64{c.admitted, c.analyzed, began, built, c.decided, end} {
			until = min(max(at, until), end)
			list.add(key, 2+part, float64(until-at)/1e6, 8)
			at = until
		}
	}
	for _, figure := range list {
		for i := range figure[1:] {
			figure[1+i] /= figure[0]
		}
	}
	return list
}

// accuracies: changes, predicted_rate, landed_rate, brier, calibration_error, durations, predicted_seconds, mean_seconds, mean_error, covered.
func (f *folded) accuracies() figures {
	list := figures{}
	type tenth struct{ predicted, actual float64 }
	tenths := map[string]*[10]tenth{}
	for _, c := range f.changes {
		var p *foldedPrediction
		for i := range f.predictions {
			if is := &f.predictions[i]; is.queue == c.queue && is.change == c.change && is.revision == c.revision {
				p = is
			}
		}
		if c.outcome == "pending" || p == nil {
			continue
		}
		key := row(c.queue, weekOf(c.endedAt))
		if tenths[key] == nil {
			tenths[key] = &[10]tenth{}
		}
		if c.outcome == "landed" || c.outcome == "rejected" && c.rejectedForItself != 0 {
			actual := map[bool]float64{true: 1}[c.outcome == "landed"]
			for at, by := range []float64{1, p.success, actual, (p.success - actual) * (p.success - actual)} {
				list.add(key, at, by, 10)
			}
			of := &tenths[key][min(9, int(p.success*10))]
			of.predicted += p.success
			of.actual += actual
		}
		if builds := f.secondsOfBuilds(c); len(builds) > 0 {
			actual := 0.0
			for _, seconds := range builds {
				actual += seconds / float64(len(builds))
			}
			off := math.Abs(p.duration - actual)
			for at, by := range []float64{1, p.duration, actual, off, map[bool]float64{true: 1}[off <= 1.6449*p.std]} {
				list.add(key, 5+at, by, 10)
			}
		}
	}
	for key, figure := range list {
		for _, of := range tenths[key] {
			figure[4] += math.Abs(of.predicted - of.actual)
		}
		for i := range 10 {
			if i != 0 && i != 5 {
				figure[i] /= figure[i/5*5]
			}
		}
	}
	return list
}

// secondsOfBuilds returns how long each build of a change took that was not aborted, and of which every step passed.
func (f *folded) secondsOfBuilds(c *foldedChange) (list []float64) {
	for _, b := range f.builds {
		if b.queue != c.queue || b.change != c.change || b.revision != c.revision || b.aborted {
			continue
		}
		first, last, passed := int64(0), int64(0), true
		for _, r := range f.runs {
			if r.queue == b.queue && r.build == b.build {
				earliest(&first, r.started)
				last = max(last, r.finished)
				passed = passed && r.outcome == eventsv1.StepOutcome_STEP_OUTCOME_PASSED
			}
		}
		if first != 0 && passed {
			list = append(list, float64(last-first)/1e6)
		}
	}
	return list
}

// rates: versions, attempts, failure_rate, flake_rate.
func (f *folded) rates() figures {
	list := figures{}
	shown := map[string]*[2]bool{}
	for _, r := range f.runs {
		failed := r.outcome == eventsv1.StepOutcome_STEP_OUTCOME_FAILED
		back := slices.ContainsFunc(f.takenBack, func(p foldedProof) bool { return p.version == r.version && r.attempt <= p.attempt })
		if back || !failed && r.outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
			continue
		}
		key := row(r.queue, r.target)
		list.add(key, 1, 1, 4)
		if shown[r.version] == nil {
			shown[r.version] = &[2]bool{}
			list.add(key, 0, 1, 4)
		}
		shown[r.version][map[bool]int{true: 1}[failed]] = true
	}
	for version, is := range shown {
		queue, rest, _ := strings.Cut(version, " ")
		target, _, _ := strings.Cut(rest, " ")
		if is[1] {
			list.add(row(queue, target), 2+map[bool]int{true: 1}[is[0]], 1, 4)
		}
	}
	for _, figure := range list {
		figure[2] /= figure[0]
		figure[3] /= figure[0]
	}
	return list
}
