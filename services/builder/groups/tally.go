// Package groups reads what a tool reports of the targets that one invocation verifies (M27a). It believes as little as it can: a
// target has passed only if the tool said so of that very target, and nothing that it said contradicts that.
package groups

import (
	"slices"
	"strings"
	"sync"
)

// Outcome is the outcome of a target, as its tool reports it.
type Outcome int

// The outcomes of a target.
const (
	// Nothing was reported, or what was is not to be believed.
	Nothing Outcome = iota
	Passed
	Failed
	// Skipped is a target that the tool did not verify.
	Skipped
)

// Result is the result of one target.
type Result struct {
	Label   string
	Outcome Outcome
	// Why is, for Nothing, what kept the target from a result.
	Why string
}

// Trust says which reports of a tool count.
type Trust struct {
	// Streams is set if a pass counts before the tool has ended: for tools that report on a target's process once that has ended.
	// The pass of the last target waits for the tool's exit code.
	Streams bool
	// ExitSpeaks: exit code 0 says of every target that it has passed. So it is with a tool that reports failures alone.
	ExitSpeaks bool
}

// maxStrange is how many labels that nobody asked for are kept, and maxStrangeBytes how much of each.
const (
	maxStrange      = 20
	maxStrangeBytes = 300
)

// Tally holds the results of one invocation. Several goroutines may use it.
type Tally struct {
	trust Trust

	mu      sync.Mutex
	members map[string]*member
	// ready are results that count and were not taken; open is how many members have none.
	ready []Result
	open  int
	// strange are labels that nobody asked for, the first ones; contradicted are labels of which the opposite was said once their
	// result counted.
	strange, contradicted []string
	changed               chan struct{}
}

type member struct {
	passed, failed, skipped bool
	// counts is set once the result is ready.
	counts bool
}

// NewTally returns the tally of an invocation for some labels.
func NewTally(labels []string, trust Trust) *Tally {
	t := &Tally{trust: trust, members: map[string]*member{}, changed: make(chan struct{}, 1)}
	for _, l := range labels {
		t.members[l] = &member{}
	}
	t.open = len(t.members)
	return t
}

// Asked reports whether a label is one of those that the invocation is for.
func (t *Tally) Asked(label string) bool { return t.members[label] != nil }

// Report takes one report of the tool.
func (t *Tally) Report(label string, o Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.members[label]
	if m == nil {
		label = strings.ToValidUTF8(label[:min(len(label), maxStrangeBytes)], "")
		if len(t.strange) < maxStrange && !slices.Contains(t.strange, label) {
			t.strange = append(t.strange, strings.Clone(label))
		}
		return
	}
	if m.counts {
		if (o == Passed) == m.failed && !slices.Contains(t.contradicted, label) {
			t.contradicted = append(t.contradicted, label)
		}
		return
	}
	m.passed, m.failed, m.skipped = m.passed || o == Passed, m.failed || o == Failed, m.skipped || o == Skipped
	switch {
	case m.failed:
		t.count(label, m, Result{Label: label, Outcome: Failed})
	case m.passed && !m.skipped && t.trust.Streams && t.open > 1:
		t.count(label, m, Result{Label: label, Outcome: Passed})
	}
}

func (t *Tally) count(label string, m *member, r Result) {
	m.counts = true
	t.open--
	t.ready = append(t.ready, r)
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Changed receives a value when there is something to take.
func (t *Tally) Changed() <-chan struct{} { return t.changed }

// Take returns the results that count and were not taken yet.
func (t *Tally) Take() []Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.ready
	t.ready = nil
	return list
}

// End returns the rest of the results, one for each label that has none, sorted by label. exited is set if the tool ended by
// itself, with an exit code.
func (t *Tally) End(exited bool, code int) []Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.ready
	t.ready = nil
	failed := false
	var labels []string
	for label, m := range t.members {
		failed = failed || m.failed
		if !m.counts {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	for _, label := range labels {
		m := t.members[label]
		m.counts = true
		r := Result{Label: label}
		switch {
		case m.passed && m.skipped:
			r.Why = "it was reported as passed and as skipped"
		case m.skipped:
			r.Why = "it was reported as skipped"
		case !m.passed && !(t.trust.ExitSpeaks && exited && code == 0):
			r.Why = "nothing was reported of it"
		case !exited:
			r.Why = "it was reported as passed, and then the tool did not end by itself"
		case code != 0 && !failed:
			r.Why = "the tool failed though it reported no target as failed"
		default:
			r.Outcome = Passed
		}
		list = append(list, r)
	}
	t.open = 0
	return list
}

// Odd returns labels that the tool named and that are not in the group, and labels that it reported the opposite of after their
// result had counted.
func (t *Tally) Odd() (strange, contradicted []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.strange), slices.Clone(t.contradicted)
}
