// Package whatif runs simulations of a queue's own past under other settings: one at a time in a gateway, when somebody asks, with
// progress, and until somebody cancels it. What simulates is given to it.
package whatif

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// ErrRunning is returned by Start while another simulation runs.
var ErrRunning = errors.New("another simulation runs")

// Bounds of what is asked.
const (
	MaxWorkers     = 10_000
	MaxChanges     = 2000
	DefaultChanges = 500
	// MaxTime is how long a simulation may take.
	MaxTime = 10 * time.Minute
)

// Setting is what is tried. The thresholds are probabilities: a build starts if it is needed with Threshold or more, and a bypass gets
// builds if the change finishes first with BypassThreshold or more; above 1 none does.
type Setting struct {
	Workers         int     `json:"workers"`
	Threshold       float64 `json:"threshold"`
	BypassThreshold float64 `json:"bypass_threshold"`
}

// Validate returns what is wrong with a setting, "" if nothing is.
func (s Setting) Validate() string {
	switch {
	case s.Workers < 1 || s.Workers > MaxWorkers:
		return fmt.Sprintf("workers is %d; it is 1 to %d.", s.Workers, MaxWorkers)
	case !(s.Threshold >= 0 && s.Threshold <= 1):
		return fmt.Sprintf("threshold is %v; it is 0 to 1.", s.Threshold)
	case !(s.BypassThreshold >= 0 && s.BypassThreshold <= 2):
		return fmt.Sprintf("bypass_threshold is %v; it is 0 to 1, or 2 for no bypasses.", s.BypassThreshold)
	}
	return ""
}

// Question is what is simulated: the newest changes of a queue that landed or were rejected, at most Changes of them, under both settings.
type Question struct {
	Queue           string
	Present, Chosen Setting
	Changes         int
}

// SettingFigures are of all changes under one setting. Times are in seconds.
type SettingFigures struct {
	// WaitP50 and WaitP95 are of the time until a change is decided, less what it takes with all workers to itself.
	WaitP50 float64 `json:"wait_p50_s"`
	WaitP95 float64 `json:"wait_p95_s"`
	// Slowdown is the time until a change is decided over what it takes with all workers to itself, on average.
	Slowdown float64 `json:"slowdown"`
	// WorkerHours is for how long workers were busy, together.
	WorkerHours float64 `json:"worker_hours"`
}

// Comparison is what a simulation has found.
type Comparison struct {
	Present SettingFigures `json:"present"`
	Chosen  SettingFigures `json:"chosen"`
	// Changes were simulated; From and To are when the first and the last of them arrived.
	Changes int       `json:"changes"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	// Sentence is the result in words.
	Sentence string `json:"sentence"`
}

// Outcome is what simulates returns.
type Outcome struct {
	Present, Chosen SettingFigures
	Changes         int
	From, To        time.Time
}

// Simulate answers a question. It calls progress with the share that is done, 0 to 1, now and then. Its errors are for people. It returns
// soon once the context ends.
type Simulate func(ctx context.Context, q Question, progress func(share float64)) (Outcome, error)

// States of a run.
const (
	Running   = "running"
	Done      = "done"
	Failed    = "failed"
	Cancelled = "cancelled"
)

// Simulation is a simulation that runs or has ended.
type Simulation struct {
	State   string  `json:"state"`
	Present Setting `json:"present"`
	Chosen  Setting `json:"chosen"`
	// Changes is how many were asked for at most.
	Changes int `json:"changes"`
	// Who asked for it.
	Who       string    `json:"who,omitempty"`
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Done is the share that is done while it runs, 0 to 1.
	Done float64 `json:"done"`
	// Message is why it failed.
	Message string      `json:"message,omitempty"`
	Result  *Comparison `json:"result,omitempty"`
}

// Runner runs simulations, one at a time, and keeps the last one of each queue. Its methods are safe for concurrent use.
type Runner struct {
	simulate Simulate
	// changed is called when something of a queue's run has changed.
	changed func(queue string)
	// clock is time.Now, but in tests.
	clock func() time.Time

	mu   sync.Mutex
	runs map[string]*Simulation
	// running is the queue whose simulation runs, "" if none does. stop ends it, and ended is closed once it has.
	running string
	stop    context.CancelCauseFunc
	ended   chan struct{}
	closed  bool
}

var errCancelled = errors.New("cancelled")

// New returns a runner. changed may be called from any goroutine: when a simulation begins, ends, and a hundred times between at most.
func New(simulate Simulate, changed func(queue string)) *Runner {
	return &Runner{simulate: simulate, changed: changed, clock: time.Now, runs: map[string]*Simulation{}}
}

// Start begins a simulation that somebody asked for. Its only error is ErrRunning.
func (r *Runner) Start(q Question, who string) error {
	r.mu.Lock()
	if r.running != "" || r.closed {
		r.mu.Unlock()
		return ErrRunning
	}
	ctx, stop := context.WithCancelCause(context.Background())
	run := &Simulation{State: Running, Present: q.Present, Chosen: q.Chosen, Changes: q.Changes, Who: who, StartedAt: r.clock().UTC()}
	r.runs[q.Queue], r.running, r.stop, r.ended = run, q.Queue, stop, make(chan struct{})
	ended := r.ended
	r.mu.Unlock()
	r.changed(q.Queue)
	go func() {
		defer close(ended)
		defer stop(nil)
		limited, done := context.WithTimeoutCause(ctx, MaxTime, fmt.Errorf("it took longer than %v; ask for fewer changes", MaxTime))
		defer done()
		outcome, err := r.simulate(limited, q, func(share float64) { r.progress(q.Queue, run, share) })
		if limited.Err() != nil {
			err = context.Cause(limited)
		}
		r.end(q, run, outcome, err)
	}()
	return nil
}

// progressEvery is the share after which progress is told.
const progressEvery = 0.01

func (r *Runner) progress(queue string, run *Simulation, share float64) {
	r.mu.Lock()
	moved := share >= run.Done+progressEvery
	if moved {
		run.Done = math.Min(share, 1)
	}
	r.mu.Unlock()
	if moved {
		r.changed(queue)
	}
}

func (r *Runner) end(q Question, run *Simulation, o Outcome, err error) {
	r.mu.Lock()
	run.EndedAt = r.clock().UTC()
	switch {
	case errors.Is(err, errCancelled):
		run.State = Cancelled
	case err != nil:
		run.State, run.Message = Failed, err.Error()
	default:
		run.State, run.Done = Done, 1
		run.Result = &Comparison{Present: o.Present, Chosen: o.Chosen, Changes: o.Changes, From: o.From.UTC(), To: o.To.UTC(), Sentence: sentence(q, o)}
	}
	r.running = ""
	r.mu.Unlock()
	r.changed(q.Queue)
}

// Cancel ends the simulation of a queue, and reports whether one ran. It returns once it has ended.
func (r *Runner) Cancel(queue string) bool {
	r.mu.Lock()
	if r.running != queue {
		r.mu.Unlock()
		return false
	}
	stop, ended := r.stop, r.ended
	r.mu.Unlock()
	stop(errCancelled)
	<-ended
	return true
}

// Close ends what runs. Nothing starts any more.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	queue := r.running
	r.mu.Unlock()
	if queue != "" {
		r.Cancel(queue)
	}
}

// Of returns the last run of a queue, nil if there is none, and the queue whose simulation runs now, "" if none does.
func (r *Runner) Of(queue string) (run *Simulation, running string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kept := r.runs[queue]; kept != nil {
		was := *kept
		run = &was
	}
	return run, r.running
}
