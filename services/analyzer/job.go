package analyzer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/agenda"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/gitrepo"
)

const (
	// maxAttempts bounds how often an analysis is tried that fails for another reason than an
	// unreachable repository.
	maxAttempts  = 3
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 15 * time.Second
	// maxFactBytes bounds one record; a change that affects more conflicts with everything.
	maxFactBytes = 16 << 20
)

type jobState int

const (
	running jobState = iota + 1
	// waiting to be tried again.
	waiting
	// appending: the fact is on its way.
	appending
	// written: the fact is in the log, and will be read.
	written
)

// job is one task under way; there is at most one for each change and each push.
type job struct {
	key, queue string
	task       agenda.Task
	state      jobState
	cancel     context.CancelFunc

	first     time.Time
	attempts  int
	notBefore time.Time
	fact      proto.Message // once found
	offset    int64
}

// result is what a job's goroutine ends with: a fact, a record written, or an error.
type result struct {
	job    *job
	fact   proto.Message
	offset int64
	err    error
}

// subjectOf returns the change or push that a task is about, or that it is the survey, as a key.
func subjectOf(t agenda.Task) string {
	if t.IsSurvey() {
		return "survey"
	}
	if t.Push != nil {
		return "push " + strconv.FormatInt(t.Push.Offset, 10)
	}
	return fmt.Sprintf("change %d %s", t.Change.Revision(), t.Change.ID())
}

// startJob makes the analysis. If it was made before and only could not be written, it is written.
func (p *partition) startJob(ctx context.Context, j *job, peers []peer) {
	j.attempts++
	if j.fact != nil {
		p.write(ctx, j)
		return
	}
	ctx, j.cancel = context.WithCancel(ctx)
	j.state = running
	task, q := j.task, p.Analyzer.queues[j.queue]
	p.jobs.Go(func() {
		r := result{job: j}
		select {
		case p.slots <- struct{}{}:
			began := time.Now()
			r.fact, r.err = p.analyze(ctx, q, task, peers)
			p.metrics.analyzed(ctx, j.queue, began, r.err)
			<-p.slots
		case <-ctx.Done():
			r.err = ctx.Err()
		}
		p.report(r)
	})
}

// report sends a result to the owner of the partition, also that of a job that was cancelled.
func (p *partition) report(r result) {
	select {
	case p.results <- r:
	case <-p.stopped:
	}
}

// finish goes on with a job whose goroutine has ended.
func (p *partition) finish(ctx context.Context, r result) {
	j, w := r.job, p.queues[r.job.queue]
	w.changed = true
	log := p.Logger.With("queue", j.queue, "subject", j.key)
	if j.state == appending {
		if r.err == nil {
			j.state, j.offset = written, r.offset
			return
		}
		log.Warn("the analysis could not be written; it will be written again", "error", r.err)
		j.retryLater()
		return
	}
	j.cancel()
	if !w.agenda.Answers(j.task) {
		delete(w.jobs, j.key)
		return
	}
	if r.err != nil {
		if !p.isFinal(j, r.err) {
			log.Warn("the analysis failed; it will be tried again", "attempt", j.attempts, "error", r.err)
			j.retryLater()
			return
		}
		if p, is := errors.AsType[*buildgraph.Panic](r.err); is {
			log = log.With("stack", string(p.Stack))
		}
		if j.task.IsSurvey() {
			log.Warn("the targets of the mainline could not be listed; each is proven once something needs it", "attempt", j.attempts, "error", r.err)
		} else {
			log.Error("the analysis failed; its change conflicts with everything", "attempt", j.attempts, "error", r.err)
		}
		r.fact = unknown(j.task, j.first, r.err)
	}
	if f, is := r.fact.(*eventsv1.ChangeAnalyzed); is {
		p.bound(w, j, f)
	}
	j.fact = r.fact
	p.write(ctx, j)
}

// bound has a change conflict with everything, and name nothing, if the pending changes would affect more together than services are to keep. One
// that affects few is let through: it is not the reason.
func (p *partition) bound(w *queueWork, j *job, f *eventsv1.ChangeAnalyzed) {
	own := namesOf(f)
	if own <= p.MostNames>>12 {
		return
	}
	others, found := 0, map[string]bool{j.task.Change.ID(): true}
	for _, o := range w.jobs {
		if fact, is := o.fact.(*eventsv1.ChangeAnalyzed); is && o != j {
			others += namesOf(fact)
			found[fact.Change.Change] = true
		}
	}
	others += w.agenda.Names(found)
	if others+own <= p.MostNames {
		return
	}
	f.Affected = everything(fmt.Sprintf("it affects %d targets and files, and the changes ahead and beside it %d: more than the %d that are kept for a queue. It is analysed again as these land; or take some out of the queue (landfall cancel)",
		own, others, p.MostNames))
	f.Message = f.Affected.Reasons[0]
}

// namesOf returns how many targets and files a fact names.
func namesOf(f *eventsv1.ChangeAnalyzed) int {
	a := f.GetAffected()
	return len(a.GetTargets()) + len(a.GetDeleted()) + len(a.GetLeaves()) + len(a.GetAddedEdges())
}

// retryLater has a job tried again, later each time.
func (j *job) retryLater() {
	backoff := maxBackoff
	if j.attempts < 8 {
		backoff = min(maxBackoff, firstBackoff<<j.attempts)
	}
	j.state, j.notBefore = waiting, time.Now().Add(backoff)
}

// isFinal reports whether a failed job is not tried again. A repository that cannot be reached is waited for longer:
// without it the queue can do nothing else either.
func (p *partition) isFinal(j *job, err error) bool {
	if errors.Is(err, buildgraph.ErrContained) {
		return true
	}
	if errors.Is(err, gitrepo.ErrUnreachable) || errors.Is(err, errNoMirror) {
		return time.Since(j.first) >= p.Patience
	}
	return j.attempts >= maxAttempts
}

// write appends a job's fact.
func (p *partition) write(ctx context.Context, j *job) {
	j.state = appending
	e := events.Envelope{
		ID: p.idOf(j), Source: events.ServiceAnalyzer, Instance: p.Instance, Queue: j.queue,
		Time: time.Now(), Term: -1, Message: j.fact,
	}
	if j.task.Change != nil {
		e.Subject = j.task.Change.ID()
		e.Trace = p.state.Traces(j.queue)[e.Subject]
	}
	p.jobs.Go(func() {
		r := result{job: j}
		offsets, err := p.Log.Append(ctx, events.TopicChanges, p.number, e)
		if r.err = err; err == nil {
			r.offset = offsets[0]
		}
		p.report(r)
	})
}

// idOf returns an id that is the same in every instance. A mainline can come back to a commit, so the move that made it the
// head is part of what is identified.
func (p *partition) idOf(j *job) string {
	if push := j.task.Push; push != nil {
		return events.DeriveID(p.Log.ID(), "MainlineAnalyzed", j.queue, push.From, push.To, strconv.FormatInt(push.Offset, 10))
	}
	if j.task.IsSurvey() {
		return events.DeriveID(p.Log.ID(), "MainlineSurveyed", j.queue, j.task.Base, strconv.FormatUint(j.task.Sequence, 10), j.task.Reading)
	}
	c := j.task.Change
	return events.DeriveID(p.Log.ID(), "ChangeAnalyzed", j.queue, c.ID(), strconv.FormatUint(c.Revision(), 10), j.task.Base,
		strconv.FormatUint(j.task.Sequence, 10))
}

// unknown returns the fact for what cannot be analysed (M4).
func unknown(t agenda.Task, started time.Time, err error) proto.Message {
	affected := everything("the targets could not be computed: " + clip(err.Error(), maxReason))
	if t.IsSurvey() {
		return &eventsv1.MainlineSurveyed{Commit: t.Base, Message: affected.Reasons[0], Reading: t.Reading, Again: !t.First}
	}
	if t.Push != nil {
		return &eventsv1.MainlineAnalyzed{From: t.Push.From, To: t.Push.To, Affected: affected, Message: affected.Reasons[0]}
	}
	return &eventsv1.ChangeAnalyzed{
		Change: t.Change.Ref(), Base: t.Base, Outcome: eventsv1.AnalysisOutcome_ANALYSIS_OUTCOME_ANALYZED,
		Affected: affected, Message: affected.Reasons[0],
		StartedUs: started.UnixMicro(), FinishedUs: time.Now().UnixMicro(),
	}
}
