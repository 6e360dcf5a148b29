// Package plan decides, from a seed, what befalls the processes of a run and when. It does nothing itself.
package plan

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind is what befalls.
type Kind int

// The kinds.
const (
	// Kill: SIGKILL; the process is started again after Hold.
	Kill Kind = iota
	// KillChild: SIGKILL to something that the process has started.
	KillChild
	// Stop: SIGSTOP for Hold, in which another takes over; then it goes on with what it believed.
	Stop
	// Intrude: another instance of Target's service claims its partitions, writes for a while, is stopped for
	// Hold while the rightful one claims them back, goes on writing, and is killed.
	Intrude
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case Kill:
		return "kill"
	case KillChild:
		return "kill a child of"
	case Stop:
		return "stop"
	case Intrude:
		return "intrude beside"
	}
	return fmt.Sprintf("kind %d", int(k))
}

// Action is one thing that befalls.
type Action struct {
	Kind   Kind
	Target string
	// Wait before it, Hold as the kind says.
	Wait, Hold time.Duration
	// Pick chooses among the children.
	Pick int
}

// Plan gives actions without end.
type Plan struct {
	random  *rand.Rand
	targets Targets
}

// Targets are the names of processes.
type Targets struct {
	// Services have several instances each: any of them may die or stall.
	Services []string
	// Builders are those of them whose children are killed too.
	Builders []string
	// Brokers may die. Replicated says that others take over from one that is stopped.
	Brokers    []string
	Replicated bool
	// Intrudable are services beside which another instance may intrude.
	Intrudable []string
}

const (
	// takenOver is how long a process has to be silent until another has its partitions for sure: the group's
	// session timeout of six seconds, and a while.
	takenOver = 8 * time.Second
	// meanWait between two actions.
	meanWait = 900 * time.Millisecond
	maxWait  = 5 * time.Second
)

// Replacement is when a process is replaced by one of another release.
type Replacement struct {
	Target string
	// Wait before it.
	Wait time.Duration
}

// meanReplacement between two replacements.
const meanReplacement = 400 * time.Millisecond

// Replacements replaces each target once, in an order that the seed decides.
func Replacements(seed uint64, targets []string) (out []Replacement) {
	random := rand.New(rand.NewPCG(seed, 0x75706772616465))
	for _, at := range random.Perm(len(targets)) {
		out = append(out, Replacement{targets[at], min(maxWait, time.Duration(random.ExpFloat64()*float64(meanReplacement)))})
	}
	return out
}

// New makes the plan of a seed. There must be a target of each sort.
func New(seed uint64, t Targets) *Plan {
	return &Plan{random: rand.New(rand.NewPCG(seed, 0x6b696c6c73)), targets: t}
}

// Next is the next action.
func (p *Plan) Next() Action {
	a := Action{Wait: min(maxWait, time.Duration(p.random.ExpFloat64()*float64(meanWait))), Pick: p.random.IntN(1 << 20)}
	switch n := p.random.IntN(100); {
	case n < 52:
		a.Kind, a.Target, a.Hold = Kill, p.one(p.targets.Services), p.between(0, 1500*time.Millisecond)
	case n < 62:
		a.Kind, a.Target, a.Hold = Kill, p.one(p.targets.Brokers), p.between(0, 1500*time.Millisecond)
	case n < 74:
		a.Kind, a.Target = KillChild, p.one(p.targets.Builders)
	case n < 86:
		targets := p.targets.Services
		if p.targets.Replicated && p.random.IntN(4) == 0 {
			targets = p.targets.Brokers
		}
		a.Kind, a.Target, a.Hold = Stop, p.one(targets), p.between(takenOver, takenOver+5*time.Second)
	default:
		a.Kind, a.Target, a.Hold = Intrude, p.one(p.targets.Intrudable), p.between(2*time.Second, 7*time.Second)
	}
	return a
}

func (p *Plan) one(of []string) string { return of[p.random.IntN(len(of))] }

func (p *Plan) between(low, high time.Duration) time.Duration {
	return low + time.Duration(p.random.Int64N(int64(high-low)))
}
