// Package history makes a trace of a queue's past, from its log or from the history in ClickHouse: when each change arrived, which it
// conflicted with, how long its builds took, and whether it landed.
package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	recorded "landfall.build/tools/history"
)

// shortest is the duration of a change's build, in seconds, if none had to run because another change had proven its
// versions.
const shortest = 1.0

// maxChanges bounds a history; a longer one is simulated in pieces.
const maxChanges = 1_000_000

// History is the fold of one queue's landfall.speculations.
type History struct {
	revisions map[revision]*decided
	order     []*decided
	builds    map[string]revision
	// Settings are the queue's last ones, nil if the log has none.
	Settings *eventsv1.QueueSettings
	// targets are the runs of each target.
	targets map[string]*runs
	// names has each name of a target once.
	names map[string]string
}

type revision struct {
	change string
	number uint64
}

// decided is a revision, and what became of it.
type decided struct {
	revision
	arrival int64
	// meets are those ahead of it in conflict when it was first analysed.
	meets    []revision
	analyzed bool
	// steps are the runs of each target for builds of it, affected the targets that it affects.
	steps    map[string]*runs
	affected []string
	// ended is set once it landed or was rejected.
	ended, landed bool
	// failed is the target that failed, culprit the change that a rejection names, "" if it failed by itself.
	failed, culprit string
}

// runs are finished runs of a target; their mean stands for the duration of a build.
type runs struct {
	total int64
	n     int
}

// New returns the history of a queue of which nothing was read.
func New() *History {
	return &History{revisions: map[revision]*decided{}, builds: map[string]revision{}, targets: map[string]*runs{}, names: map[string]string{}}
}

// Read reads what a log holds of a queue now.
func Read(ctx context.Context, log journal.Log, queue string) (*History, error) {
	partition := events.PartitionOf(queue, log.Partitions())
	end, err := log.End(ctx, events.TopicSpeculations, partition)
	if err != nil {
		return nil, err
	}
	return readFrom(ctx, log, queue, partition, 0, end, func(*History, int64, int64) error { return nil })
}

// ErrTooManyTargets is returned for changes that affect more targets, all together, than are kept.
var ErrTooManyTargets = errors.New("the changes affect too many targets together")

const (
	// mostTargets bounds the targets that are kept of the newest changes, those of each counted.
	mostTargets = 2_000_000
	// forgetEvery is after how many records those of older changes are forgotten.
	forgetEvery = 500
)

// ReadNewest is Read of the newest records of the queue's partition, so many at most, and of so many changes: of older ones it keeps no
// targets. It calls each after every record, with how many were read and of how many; an error of each ends it.
func ReadNewest(ctx context.Context, log journal.Log, queue string, records int64, changes int, each func(read, of int64) error) (*History, error) {
	partition := events.PartitionOf(queue, log.Partitions())
	end, err := log.End(ctx, events.TopicSpeculations, partition)
	if err != nil {
		return nil, err
	}
	return readFrom(ctx, log, queue, partition, max(0, end-records), end, func(h *History, read, of int64) error {
		if read%forgetEvery == 0 || read == of {
			if err := h.forget(changes); err != nil {
				return err
			}
		}
		return each(read, of)
	})
}

// forget forgets the targets of all but so many of the newest changes that ended.
func (h *History) forget(keep int) error {
	targets := 0
	for _, d := range slices.Backward(h.order) {
		switch {
		case len(d.affected) == 0:
		case !d.ended:
			targets += len(d.affected)
		case keep > 0:
			keep--
			targets += len(d.affected)
		default:
			d.affected, d.meets, d.steps = nil, nil, map[string]*runs{}
		}
	}
	if targets > mostTargets {
		return ErrTooManyTargets
	}
	return nil
}

func readFrom(ctx context.Context, log journal.Log, queue string, partition int32, from, end int64, each func(h *History, read, of int64) error) (*History, error) {
	r, err := reading.To(ctx, log, events.TopicSpeculations, partition, end, reading.Options{From: from})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h, terms, known := New(), journal.NewTerms(events.TopicSpeculations), false
	for {
		e, err := r.Take(ctx)
		if err != nil {
			return nil, err
		}
		switch {
		case e == nil && !known && from == 0:
			return nil, fmt.Errorf("the log has nothing of a queue %q", queue)
		case e == nil && !known:
			return nil, fmt.Errorf("the newest %d records of its partition have nothing of a queue %q", end-from, queue)
		case e == nil:
			return h, nil
		}
		// A claim before the first record that is read is known by the records under it: the newest one is in force.
		if e.Source == events.ServiceEnumerator && e.Term < from && e.Term > terms.Last(e.Source) {
			terms.Restore(e.Source, e.Term)
		}
		if s, is := e.Message.(*eventsv1.Speculation); terms.Counts(*e) && e.Queue == queue && is {
			known = true
			h.Fold(s)
		}
		if err := each(h, e.Offset+1-from, end-from); err != nil {
			return nil, err
		}
		if err := h.bounded(queue); err != nil {
			return nil, err
		}
	}
}

// ReadClickHouse reads what a history in ClickHouse holds of a queue now: the same records, for as long as it keeps them.
func ReadClickHouse(ctx context.Context, dsn, queue string) (*History, error) {
	h, known := New(), false
	err := recorded.Payloads(ctx, dsn, events.TopicSpeculations, string((*eventsv1.Speculation)(nil).ProtoReflect().Descriptor().Name()), queue, func(payload string) error {
		var s eventsv1.Speculation
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(payload), &s); err != nil {
			return fmt.Errorf("a record of %s in the history: %w", queue, err)
		}
		known = true
		h.Fold(&s)
		return h.bounded(queue)
	})
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, fmt.Errorf("the history has nothing of a queue %q", queue)
	}
	return h, nil
}

// bounded returns an error if there is more than is taken.
func (h *History) bounded(queue string) error {
	if len(h.order) > maxChanges {
		return fmt.Errorf("the history of %s has more than %d changes", queue, maxChanges)
	}
	return nil
}

// Fold takes one record that counts.
func (h *History) Fold(s *eventsv1.Speculation) {
	for _, f := range s.Facts {
		switch x := f.Fact.(type) {
		case *eventsv1.Fact_Settings:
			h.Settings = x.Settings
		case *eventsv1.Fact_ChangeAdmitted:
			h.arrive(x.ChangeAdmitted.GetAdmission(), s.StampUs)
		case *eventsv1.Fact_ChangeRevised:
			h.arrive(x.ChangeRevised.GetAdmission(), s.StampUs)
		case *eventsv1.Fact_ChangeAnalyzed:
			h.analyzed(x.ChangeAnalyzed)
		case *eventsv1.Fact_BuildPrepared:
			h.builds[x.BuildPrepared.Build] = revisionOf(x.BuildPrepared.Change)
		case *eventsv1.Fact_StepFinished:
			h.ran(x.StepFinished)
		case *eventsv1.Fact_ChangeLanded:
			h.end(x.ChangeLanded.Change, true, nil)
		case *eventsv1.Fact_ChangeRejected:
			h.end(x.ChangeRejected.Change, false, x.ChangeRejected.GetReason())
		}
	}
	for _, n := range s.Delta.GetNodes() {
		h.met(n)
	}
}

func revisionOf(r *eventsv1.ChangeRef) revision { return revision{r.GetChange(), r.GetRevision()} }

func (h *History) arrive(a *eventsv1.Admission, stamp int64) {
	r := revision{a.GetChange(), a.GetRevision()}
	if h.revisions[r] != nil {
		return
	}
	d := &decided{revision: r, arrival: stamp, steps: map[string]*runs{}}
	h.revisions[r] = d
	h.order = append(h.order, d)
}

func (h *History) met(n *eventsv1.Node) {
	d := h.revisions[revisionOf(n.Change)]
	if d == nil || d.analyzed || !n.Analyzed {
		return
	}
	d.analyzed = true
	for _, a := range n.Ahead {
		if a.Conflicts {
			d.meets = append(d.meets, revisionOf(a.Change))
		}
	}
}

// ran counts a run that ended by itself; one that was aborted, or could not run, has no duration.
func (h *History) ran(f *eventsv1.StepFinished) {
	if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED && f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_FAILED {
		return
	}
	d := h.revisions[h.builds[f.Build]]
	if d == nil {
		return
	}
	count(d.steps, f)
	count(h.targets, f)
}

func count(of map[string]*runs, f *eventsv1.StepFinished) {
	r := of[f.Target]
	if r == nil {
		r = &runs{}
		of[f.Target] = r
	}
	r.total, r.n = r.total+max(0, f.FinishedUs-f.StartedUs), r.n+1
}

// analyzed keeps the targets of the last analysis that a command verifies.
func (h *History) analyzed(a *eventsv1.ChangeAnalyzed) {
	d := h.revisions[revisionOf(a.Change)]
	if d == nil || a.Affected == nil {
		return
	}
	d.affected = nil
	seen := map[string]bool{}
	for _, t := range a.Affected.Targets {
		if !t.Trivial && t.Hash != "" && !seen[t.Target] {
			name, known := h.names[t.Target]
			if !known {
				name = t.Target
				h.names[name] = name
			}
			seen[name] = true
			d.affected = append(d.affected, name)
		}
	}
}

func (h *History) end(ref *eventsv1.ChangeRef, landed bool, reason *eventsv1.Reason) {
	if d := h.revisions[revisionOf(ref)]; d != nil && !d.ended {
		d.ended, d.landed, d.culprit = true, landed, reason.GetOther()
		if failed := reason.GetFailed(); len(failed) > 0 {
			d.failed = failed[0].GetVersion().GetTarget()
		}
	}
}

// Keep keeps the newest changes for which something was built and that landed or were rejected, so many at most. It returns how many
// these are, and when the first and the last one arrived.
func (h *History) Keep(most int) (n int, first, last time.Time) {
	var kept []*decided
	for _, d := range slices.Backward(h.order) {
		if len(kept) < most && d.ended && len(h.steps(d)) > 0 {
			kept = append(kept, d)
		}
	}
	slices.Reverse(kept)
	h.order = kept
	if len(kept) > 0 {
		first, last = time.UnixMicro(kept[0].arrival), time.UnixMicro(kept[len(kept)-1].arrival)
	}
	return len(kept), first, last
}

// Left counts what of a history is not part of the trace.
type Left struct {
	// Undecided are the revisions that are pending, or were cancelled, replaced or ejected.
	Undecided int
	// Stepless are those of a trace in steps for which nothing had to be built.
	Stepless int
}

// change is a line of a trace, as trace.File reads it.
type change struct {
	ID       string   `json:"id"`
	Arrival  float64  `json:"arrival_s"`
	Duration float64  `json:"duration_s"`
	Green    bool     `json:"green"`
	Meets    []string `json:"meets,omitempty"`
	Breaks   []string `json:"breaks,omitempty"`
	// Steps has seconds by target, Fails the one that failed.
	Steps map[string]float64 `json:"steps,omitempty"`
	Fails string             `json:"fails,omitempty"`
}

// Write writes the changes that landed or were rejected as a trace. A change that was rejected for another
// one that it meets breaks with that; any other rejection is its own failure.
func (h *History) Write(w io.Writer) (Left, error) { return h.write(w, false) }

// WriteInSteps writes the targets of each change too, for workers that run steps.
func (h *History) WriteInSteps(w io.Writer) (Left, error) { return h.write(w, true) }

func (h *History) write(w io.Writer, inSteps bool) (Left, error) {
	var left Left
	encoder := json.NewEncoder(w)
	written := map[revision]bool{}
	byChange := map[string]revision{}
	first, last := int64(-1), int64(0)
	for _, d := range h.order {
		if !d.ended {
			left.Undecided++
			continue
		}
		if first < 0 {
			first = d.arrival
		}
		last = max(last, d.arrival-first)
		c := change{ID: d.id(), Arrival: float64(last) / 1e6, Duration: d.duration(), Green: d.landed}
		if inSteps {
			if c.Steps = h.steps(d); len(c.Steps) == 0 {
				left.Stepless++
				continue
			}
			if _, has := c.Steps[d.failed]; has {
				c.Fails = d.failed
			}
		}
		for _, k := range d.meets {
			if written[k] {
				c.Meets = append(c.Meets, h.revisions[k].id())
			}
		}
		if k, known := byChange[d.culprit]; known && slices.Contains(d.meets, k) && h.revisions[k].landed && (!inSteps || share(c.Steps, h.steps(h.revisions[k]))) {
			c.Green, c.Breaks = true, []string{h.revisions[k].id()}
		}
		if err := encoder.Encode(c); err != nil {
			return left, err
		}
		written[d.revision], byChange[d.change] = true, d.revision
	}
	if len(written) == 0 {
		return left, fmt.Errorf("no change of the queue has landed or been rejected (%d are pending, or left otherwise)", left.Undecided)
	}
	return left, nil
}

// share reports whether two changes have a target in common.
func share(a, b map[string]float64) bool {
	for t := range a {
		if _, has := b[t]; has {
			return true
		}
	}
	return false
}

// steps has how long a step of each target of a change takes: what its own runs took, what others of the target did where another change
// proved it, and what a target takes if it never ran.
func (h *History) steps(d *decided) map[string]float64 {
	steps := map[string]float64{}
	for t, r := range d.steps {
		steps[t] = r.mean()
	}
	for _, t := range d.affected {
		if _, has := steps[t]; has {
			continue
		}
		if r := h.targets[t]; r != nil {
			steps[t] = r.mean()
			continue
		}
		steps[t] = shortest
	}
	return steps
}

// mean is in seconds.
func (r *runs) mean() float64 { return max(float64(r.total/int64(r.n))/1e6, briefest) }

// briefest is what a step takes at least.
const briefest = 0.001

// id names the first revision as its change is named.
func (d *decided) id() string {
	if d.number <= 1 {
		return d.change
	}
	return fmt.Sprintf("%s revision %d", d.change, d.number)
}

// duration is the sum of what its targets took, in seconds: a build of all of them on one worker.
func (d *decided) duration() float64 {
	var sum int64 // exact, so that the order of the targets does not matter
	for _, r := range d.steps {
		sum += r.total / int64(r.n)
	}
	return max(float64(sum)/1e6, shortest)
}
