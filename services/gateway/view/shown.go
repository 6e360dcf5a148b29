package view

import (
	"cmp"
	"strings"
	"time"
)

// The states that people see. All from StateLanded on are final for the revision.
const (
	StateWaiting   = "waiting"
	StateTesting   = "testing"
	StatePassed    = "passed"
	StateLanded    = "landed"
	StateDropped   = "dropped" // it landed, and a force-push took it off the mainline
	StateRejected  = "rejected"
	StateEjected   = "ejected"
	StateCancelled = "cancelled"
)

// Final reports whether a change in that state has left the queue.
func Final(state string) bool {
	switch state {
	case StateLanded, StateDropped, StateRejected, StateEjected, StateCancelled:
		return true
	}
	return false
}

// DefaultHold is the name of a hold that was put on without one.
const DefaultHold = "manual"

// Summary is a change in one line.
type Summary struct {
	Queue    string `json:"queue"`
	Change   string `json:"change"`
	Revision uint64 `json:"revision"`
	State    string `json:"state"`
	// Position is the place in the queue, from 1; 0 once it is out of it.
	Position int    `json:"position,omitempty"`
	Title    string `json:"title,omitempty"`
	Author   string `json:"author,omitempty"`
	Team     string `json:"team,omitempty"`
	// Why is one sentence: what it waits for, or how it ended. In a list of the queue it is the change's own reason where the queue
	// as a whole waits too.
	Why string `json:"why"`
	// Names are the changes that Why names, if they are kept.
	Names []string `json:"names,omitempty"`
	Held  bool     `json:"held,omitempty"`
	// Blocked: it waits for the mainline itself, in whose targets it fails (M23a). A retry verifies them again.
	Blocked bool `json:"blocked,omitempty"`
	// Urgent: somebody moved it, or one that requires it, to the front.
	Urgent bool `json:"urgent,omitempty"`
	// RunningBuilds is how many builds it has at this moment. The steps are those of the one that Why is about: the first one with a
	// running step, else the first one. While none runs, they wait for workers.
	RunningBuilds int       `json:"running_builds"`
	StepsDone     int       `json:"steps_done"`
	StepsRunning  int       `json:"steps_running,omitempty"`
	StepsTotal    int       `json:"steps_total"`
	AdmittedAt    time.Time `json:"admitted_at"`
	FinishedAt    time.Time `json:"finished_at,omitzero"`
	// ETA is set while the change is in the queue.
	ETA *ETA `json:"eta,omitempty"`
	// Commits are its commits on the mainline, oldest first.
	Commits []string `json:"commits,omitempty"`
	// Bypassed are the pending changes ahead of it, in conflict with it, past which it landed.
	Bypassed []string `json:"bypassed,omitempty"`
	// Dropped is given where it landed, and the mainline does not contain it any more.
	Dropped *Dropped `json:"dropped,omitempty"`
	// Failure is given where a step of it failed. In lists it is of changes that have left the queue.
	Failure *Fault `json:"failure,omitempty"`
	// Flaky are the targets of it that passed only after they had failed, with nothing changed. In lists they are not given.
	Flaky []FlakyTarget `json:"flaky,omitempty"`
}

// Dropped is when a force-push took a change off the mainline, and the head that it set.
type Dropped struct {
	At   time.Time `json:"at"`
	Head string    `json:"head"`
}

// Change is everything about one change.
type Change struct {
	Summary
	Description string            `json:"description,omitempty"`
	URI         string            `json:"uri,omitempty"`
	Benefit     float64           `json:"benefit"`
	Labels      map[string]string `json:"labels,omitempty"`
	Entries     []Pinned          `json:"entries"`
	Mainline    string            `json:"mainline"`
	Requires    []Related         `json:"requires,omitempty"`
	Holds       []Hold            `json:"holds,omitempty"`
	Analysis    *Analysis         `json:"analysis,omitempty"`
	// Reasons begins with that of Summary.Why.
	Reasons      []Reason   `json:"reasons"`
	Ahead        []Ahead    `json:"ahead,omitempty"`
	Builds       []Build    `json:"builds,omitempty"`
	Landing      *Landing   `json:"landing,omitempty"`
	Rejection    *Rejection `json:"rejection,omitempty"`
	LastRefusal  *Refusal   `json:"last_refusal,omitempty"`
	Timeline     []Event    `json:"timeline"`
	OmittedEvent int        `json:"omitted_events,omitempty"`
	// Revisions are the newest 16, oldest first; the last one is that of Summary.
	Revisions []Revision `json:"revisions"`
}

// Explanation is why a change is where it is.
type Explanation struct {
	Summary
	// Reasons begins with that of Summary.Why.
	Reasons     []Reason   `json:"reasons"`
	Requires    []Related  `json:"requires,omitempty"`
	Ahead       []Ahead    `json:"ahead,omitempty"`
	Builds      []Build    `json:"builds,omitempty"`
	Landing     *Landing   `json:"landing,omitempty"`
	Rejection   *Rejection `json:"rejection,omitempty"`
	LastRefusal *Refusal   `json:"last_refusal,omitempty"`
	Timeline    []Event    `json:"timeline"`
	// WaitingStep is set while a step of it waits for a worker.
	WaitingStep *WaitingStep `json:"waiting_step,omitempty"`
	// Full is set if it was asked for.
	Full *Full `json:"full,omitempty"`
}

// Codes of reasons.
const (
	ReasonLanded      = "landed"
	ReasonDropped     = "dropped"
	ReasonRejected    = "rejected"
	ReasonEjected     = "ejected"
	ReasonCancelled   = "cancelled"
	ReasonLanding     = "landing"
	ReasonPaused      = "paused"
	ReasonHeld        = "held"
	ReasonRequires    = "requires"
	ReasonMainline    = "mainline"
	ReasonAnalysis    = "analysis"
	ReasonMainlineRed = "mainline_red"
	ReasonBuilding    = "building"
	ReasonNoWorker    = "no_worker"
	ReasonQuota       = "quota"
	ReasonAhead       = "ahead"
	ReasonDeciding    = "deciding"
	ReasonUnreachable = "mainline_unreachable"
	ReasonCannotLand  = "cannot_land"
	ReasonPushRefused = "push_refused"
	// ReasonServiceMissing: a service that the queue needs is not at work.
	ReasonServiceMissing = "service_missing"
	// ReasonPausedByRemote: the remote refuses every push.
	ReasonPausedByRemote = "paused_by_remote"
)

// Reason is one thing that a change waits for, or how it ended.
type Reason struct {
	Code     string   `json:"code"`
	Sentence string   `json:"sentence"`
	Changes  []string `json:"changes,omitempty"`
	Targets  []string `json:"targets,omitempty"`
	Who      string   `json:"who,omitempty"`
	// brief is what lists say, where the sentence is longer than that.
	brief string
}

// Pinned is an entry of a change: where it was named, and what was pinned.
type Pinned struct {
	Ref    string `json:"ref,omitempty"`
	Commit string `json:"commit"`
}

// Related is another change with its state.
type Related struct {
	Change string `json:"change"`
	State  string `json:"state"`
}

// Hold keeps a change from landing.
type Hold struct {
	Name string `json:"name"`
	Who  string `json:"who"`
	Why  string `json:"why"`
}

// Analysis is which targets a change affects, shortened.
type Analysis struct {
	Base         string   `json:"base"`
	Outcome      string   `json:"outcome"`
	Targets      []string `json:"targets,omitempty"`
	TargetsTotal int      `json:"targets_total"`
	// TargetsWithoutSteps is how many of them no step verifies.
	TargetsWithoutSteps int        `json:"targets_without_steps,omitempty"`
	Everything          bool       `json:"everything,omitempty"`
	Uncovered           *Uncovered `json:"uncovered,omitempty"`
	Message             string     `json:"message,omitempty"`
	ConflictingPaths    []string   `json:"conflicting_paths,omitempty"`
	FilesChanged        uint32     `json:"files_changed"`
	LinesAdded          uint32     `json:"lines_added"`
	LinesDeleted        uint32     `json:"lines_deleted"`
	// needs are what it makes targets depend on, and does not alter itself, shortened.
	needs []string
	does  alterations
}

// alterations are what a change does besides, shortened.
type alterations struct {
	// created are targets that its base lacks, files those that it adds, alters or removes.
	created, files []string
	// removed are targets that it removes, of so many.
	removed      []string
	removedTotal int
}

// Uncovered is the files of a change that no target covers, before or after it, shortened.
type Uncovered struct {
	// Files are those that the queue does not ignore. What it does about them is Policy: whole_repository, where the change
	// affects everything, or warn, where nothing is built for them.
	Files      []string `json:"files,omitempty"`
	FilesTotal int      `json:"files_total,omitempty"`
	Policy     string   `json:"policy,omitempty"`
	// Ignored are those that it ignores: nothing is built for them.
	Ignored      []string `json:"ignored,omitempty"`
	IgnoredTotal int      `json:"ignored_total,omitempty"`
}

// Ahead is a pending change ahead of this one that it conflicts with, or requires.
type Ahead struct {
	Change   string `json:"change"`
	Title    string `json:"title,omitempty"`
	Revision uint64 `json:"revision"`
	State    string `json:"state"`
	// StepsRunning is that of its own summary.
	StepsRunning int  `json:"steps_running,omitempty"`
	Held         bool `json:"held,omitempty"`
	// Targets in which they conflict, at most 8.
	Targets       []string `json:"targets,omitempty"`
	MergeConflict bool     `json:"merge_conflict,omitempty"`
	Required      bool     `json:"required,omitempty"`
}

// States of builds.
const (
	BuildPreparing = "preparing"
	BuildRunning   = "running"
	BuildPassed    = "passed"
	BuildFailed    = "failed"
	BuildAborted   = "aborted"
	// BuildUnusable could not be prepared: it does not merge, defines no targets, or an infrastructure failed.
	BuildUnusable = "unusable"
	// BuildFinished has nothing outstanding, and no verdict of its own.
	BuildFinished = "finished"
)

// Build is one build (c, S).
type Build struct {
	Build string `json:"build"`
	State string `json:"state"`
	Base  string `json:"base"`
	// Assumed are the changes ahead that it takes as landed, in queue order.
	Assumed   []string `json:"assumed"`
	Why       string   `json:"why,omitempty"`
	Message   string   `json:"message,omitempty"`
	Needed    float64  `json:"needed"`
	StepsDone int      `json:"steps_done"`
	// StepsRunning is how many run now. While none does, what is left waits for workers.
	StepsRunning int       `json:"steps_running,omitempty"`
	StepsTotal   int       `json:"steps_total"`
	ScheduledAt  time.Time `json:"scheduled_at"`
	EndedAt      time.Time `json:"ended_at,omitzero"`
	Steps        []Step    `json:"steps,omitempty"`
	// Earlier are the runs of its steps, while it lived, that are not those in Steps.
	Earlier []Step `json:"earlier_runs,omitempty"`
}

// States of steps, besides the outcomes below.
const (
	StepOutstanding = "outstanding"
	StepRunning     = "running"
	StepTrivial     = "trivial"
	StepPassed      = "passed"
	StepFailed      = "failed"
	StepTimedOut    = "timed_out"
	StepAborted     = "aborted"
	StepCouldNotRun = "could_not_run"
)

// Step is a target version that a build wants proven, or the attempt that settled it.
type Step struct {
	Target  string `json:"target"`
	Hash    string `json:"hash,omitempty"`
	Commit  uint32 `json:"commit,omitempty"`
	State   string `json:"state"`
	Attempt uint32 `json:"attempt,omitempty"`
	// Build is the one in whose tree it ran; another change's for a shared step.
	Build         string `json:"build,omitempty"`
	FailedCommand string `json:"failed_command,omitempty"`
	Message       string `json:"message,omitempty"`
	// Lines are the decisive ones of its output, if it did not pass.
	Lines      []string `json:"lines,omitempty"`
	Worker     string   `json:"worker,omitempty"`
	DurationMS int64    `json:"duration_ms,omitempty"`
	// StartedAt is given while it runs.
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	// Log is its name in the log store.
	Log string `json:"log,omitempty"`
	// Quarantined: it did not pass, and need not.
	Quarantined bool `json:"quarantined,omitempty"`
	// Flaky: it passed only after it had failed, with nothing changed.
	Flaky bool `json:"flaky,omitempty"`
	// Owners are those of the target; they are given if it did not pass or is flaky.
	Owners []string `json:"owners,omitempty"`
	// OutputTail is given with rejections alone.
	OutputTail string `json:"output_tail,omitempty"`
}

// Cause returns which command of the target did not pass, and why.
func (s Step) Cause() string {
	text := s.Target
	if s.FailedCommand != "" {
		text += ", step " + s.FailedCommand
	}
	if why := s.why(); why != "" {
		text += ": " + why
	}
	return text
}

// why returns the first decisive line of the output; of a Go test that ran out of time, the test that it hung in. Before it comes why the run has no result, if it failed in nothing.
func (s Step) why() string {
	line := strings.Join(s.Lines[:min(1, len(s.Lines))], "")
	if s.State == StepTimedOut && strings.HasPrefix(line, "=== RUN ") {
		line = s.Lines[len(s.Lines)-1] // nothing went wrong before: it hung in what it began last
	}
	if s.State == StepFailed && line != "" {
		return line
	}
	if s.Message != "" && line != "" {
		return strings.TrimRight(s.Message, ".") + ": " + line
	}
	return cmp.Or(line, s.Message)
}

// Landing is what a change became on the mainline.
type Landing struct {
	Base    string   `json:"base"`
	Commits []string `json:"commits"`
	Tree    string   `json:"tree"`
	// Proof names, for each target version of the landed tree that the change made, the step that
	// verified it.
	Proof    []Step   `json:"proof"`
	Bypassed []string `json:"bypassed,omitempty"`
	// Quarantined are the targets that it changed and that need not have passed; in Proof those that did not say so.
	Quarantined []string  `json:"quarantined,omitempty"`
	At          time.Time `json:"at"`
}

// Rejection is why a change was rejected or ejected.
type Rejection struct {
	// Class is step_failed, merge_conflict, invalid, requirement, timed_out, infrastructure or push_refused.
	Class   string `json:"class"`
	Message string `json:"message"`
	// Conflicting is the change that it conflicts with or that it required, if one is to blame.
	Conflicting string `json:"conflicting,omitempty"`
	// Failed are the steps that it was rejected or ejected for, and that of Summary.Failure, which comes first.
	Failed []Step    `json:"failed,omitempty"`
	Base   string    `json:"base,omitempty"`
	At     time.Time `json:"at"`
}

// DropOutput takes the output of steps out. r may be nil.
func (r *Rejection) DropOutput() {
	if r == nil {
		return
	}
	for i := range r.Failed {
		r.Failed[i].OutputTail = ""
	}
}

// Refusal is the last check before landing that refused a decision about a change (M21), or a push that the remote refused.
type Refusal struct {
	Base    string `json:"base"`
	Message string `json:"message"`
	// Missing names the first targets that are not proven on the tree that the change makes of Base.
	Missing []string `json:"missing,omitempty"`
	// Pushes is how many pushes the remote refused one after the other, 0 for a check. Message is the remote's own sentence then.
	Pushes int       `json:"refused_pushes,omitempty"`
	At     time.Time `json:"at"`
}

// Event is one line of a change's timeline.
type Event struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	Text string    `json:"text"`
	// By is who had that done, by what proof, with which role and program; "" of what no proof was asked for, or of what a service did by
	// itself.
	By string `json:"by,omitempty"`
	// Earlier is set for an event of an earlier revision, by shownTimeline.
	Earlier bool `json:"earlier,omitempty" snapshot:"-"`
	seq     uint64
}

// Pool is the workers that run a queue's steps, and what the queue has for them.
type Pool struct {
	Name    string `json:"name"`
	Workers int    `json:"workers"`
	// Running is how many steps of the queue run, Open how many of its running builds are neither done nor running; a step that
	// several builds want counts for each.
	Running int `json:"running_steps"`
	// Busy is how many workers run these: one may verify several at once.
	Busy int `json:"busy_workers"`
	Open int `json:"open_steps"`
}

// Overview is a queue.
type Overview struct {
	Queue      string `json:"queue"`
	Repository string `json:"repository,omitempty"`
	Branch     string `json:"branch,omitempty"`
	Strategy   string `json:"strategy,omitempty"`
	Head       string `json:"head"`
	Sequence   uint64 `json:"sequence"`
	// Shadow: others land, and the queue decides what it would have done. It pushes nothing.
	Shadow bool   `json:"shadow,omitempty"`
	Paused *Pause `json:"paused,omitempty"`
	// LastPause is the last one that is over.
	LastPause *PauseOver `json:"last_pause,omitempty"`
	// EarlierPauses are those before LastPause, newest first, as far as they are kept.
	EarlierPauses []PauseOver `json:"earlier_pauses,omitempty"`
	// PausedByRemote is given while the remote refuses every push.
	PausedByRemote *RemotePause `json:"paused_by_remote,omitempty"`
	Pending        int          `json:"pending"`
	Waiting        int          `json:"waiting"`
	Testing        int          `json:"testing"`
	Passed         int          `json:"passed"`
	Workers        int          `json:"workers"`
	Running        int          `json:"running_builds"`
	// Pool is absent for queues whose builds hold slots, as those of older logs do: they may have Workers builds.
	Pool        *Pool    `json:"pool,omitempty"`
	MainlineRed []string `json:"mainline_red,omitempty"`
	// RedSince is given if a direct push, or one of several, made some of MainlineRed red.
	RedSince *RedSince `json:"mainline_red_since,omitempty"`
	// RedBeforeQueue are those of MainlineRed that are known to have been red before the queue.
	RedBeforeQueue []string `json:"red_before_queue,omitempty"`
	// MainlineFailures lists the last failed run of each of the first 8 targets of MainlineRed, as far as runs are kept, and behind them
	// the last run of each target that has no result there and keeps one of NeedRetry waiting.
	MainlineFailures []Step `json:"mainline_failures,omitempty"`
	// NeedRetry are the first changes that wait until somebody has them retried: they fail where the mainline could not be verified.
	NeedRetry []string `json:"need_retry,omitempty"`
	// Unproven counts the targets that the mainline had before the queue, and that nothing has proven since. They are proven while
	// workers are idle, or when something needs them.
	Unproven int `json:"mainline_unproven,omitempty"`
	// Quarantined are the first of QuarantinedTotal names that are quarantined.
	Quarantined      []string `json:"quarantined,omitempty"`
	QuarantinedTotal int      `json:"quarantined_total,omitempty"`
	// UnseenQuarantines are the first quarantines that name no target which the queue has seen.
	UnseenQuarantines []string `json:"unseen_quarantines,omitempty"`
	// ServiceTroubles are the services that the queue needs and that are not at work.
	ServiceTroubles []ServiceTrouble `json:"service_troubles,omitempty"`
	// Unreachable is given while the lander cannot work on the mainline.
	Unreachable *Trouble `json:"mainline_unreachable,omitempty"`
	// Analyzed is false while a direct push is being analysed.
	Analyzed bool `json:"mainline_analyzed"`
	// Pace is how fast it has landed changes lately. It is not given beside a list of changes.
	Pace *Pace `json:"pace,omitempty"`
	// Models that were put into use. A kind that is not here is predicted by priors.
	Models []Model `json:"models,omitempty"`
}

// Model is what predicts a kind of thing.
type Model struct {
	// Kind is success, conflict or duration.
	Kind    string `json:"kind"`
	Version string `json:"version"`
	// Trouble is why it is not used, and priors predict in its place; empty if it is.
	Trouble string    `json:"trouble,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// RedSince is the oldest direct push that made a target of the mainline red that still is.
type RedSince struct {
	Commit string `json:"commit"`
	// Author and Title are what the commit says of itself; the author is a name, without an address.
	Author string `json:"author,omitempty"`
	Title  string `json:"title,omitempty"`
	// At is when a step first failed for it, zero if its run is not kept.
	At time.Time `json:"at,omitzero"`
	// Suspects is of how many pushes it is the first, one of which broke the target; 1 if it was this one.
	Suspects int `json:"suspects"`
}

// Trouble is why the lander cannot work on the mainline.
type Trouble struct {
	// Kind is branch_missing, unreadable, push_unanswered, unmade or push_refused.
	Kind string `json:"kind"`
	// Message is git's own, or the remote's.
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
	// Sentence is for people, with what to do.
	Sentence string `json:"sentence"`
}

// Pause of a queue: builds go on, nothing lands.
type Pause struct {
	Who string `json:"who"`
	Why string `json:"why"`
	// Since is missing if the queue was paused before this time was recorded.
	Since time.Time `json:"since,omitzero"`
}

// PauseOver is a pause of a queue that was resumed.
type PauseOver struct {
	Pause
	Until      time.Time `json:"until"`
	ResumedBy  string    `json:"resumed_by"`
	ResumedWhy string    `json:"resumed_why"`
}

// RemotePause is why landings are paused by the remote: it refuses every push. The lander tries again by itself.
type RemotePause struct {
	// Message is the remote's own sentence.
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
	// Sentence is for people.
	Sentence string `json:"sentence"`
}

// Attempt is one finished run of a step, for its output.
type Attempt struct {
	Target  string
	Hash    string
	Number  uint32
	Outcome string
	// Step is the command that failed, empty if none did.
	Step string
	Log  string
	Tail []byte
	// Bytes that the step printed altogether.
	Bytes      int64
	FinishedAt time.Time
	// With are the other changes of the build that it ran in: those that this one assumed, and the one that it was of. Of a run that
	// proves the landing, or is at fault, none are named.
	With  []string
	build string
	// Lease and Until are of a run that has not finished (StepRunning): the lease of who runs it, and until when that lasts.
	Lease string
	Until time.Time
}
