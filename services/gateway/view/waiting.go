package view

import (
	"fmt"
	"strings"
	"time"

	"landfall.build/engine/steps"
	"landfall.build/events"
	"landfall.build/platform/journal"
)

// WaitingStep is the first step of a change that waits for a worker: where it stands, and why (M33).
type WaitingStep struct {
	// Sentence says so in plain words.
	Sentence string `json:"sentence"`
	Pool     string `json:"pool,omitempty"`
	// Open is how many steps of the change wait, Before how many others come before its first one: at least so many if
	// BeforeMore is set, and then the step itself is not named.
	Open       int  `json:"open"`
	Before     int  `json:"before"`
	BeforeMore bool `json:"before_more,omitempty"`
	// Quota is the one for which the first step is not among those that workers would start; it is then not named.
	Quota *Quota `json:"quota,omitempty"`
	// PatienceS is the time in seconds that waits are held to.
	PatienceS float64     `json:"patience_s"`
	Step      *RankedStep `json:"step,omitempty"`
	// First is the step that comes next of all.
	First *RankedStep `json:"first,omitempty"`
}

// RankedStep is a step with its rank: urgent ones come first, then those whose dependencies have passed, of these those that are late
// (M33a), then by index.
type RankedStep struct {
	Target  string `json:"target"`
	Hash    string `json:"hash"`
	Attempt uint32 `json:"attempt"`
	// Labels are of the machines that can run it.
	Labels []string `json:"labels,omitempty"`
	Urgent bool     `json:"urgent,omitempty"`
	Ready  bool     `json:"ready"`
	// Late reports whether a build that wants it has taken more than twice as long as with a fair share of the workers.
	Late bool `json:"late,omitempty"`
	// Index is the sum of the indexes of the builds that want it.
	Index  float64     `json:"index"`
	Builds []StepShare `json:"builds"`
}

// StepShare is what a build adds to the index of a step: value · (patience + waited) / work left.
type StepShare struct {
	Build  string `json:"build"`
	Change string `json:"change,omitempty"`
	// Value is what the build is worth now.
	Value   float64 `json:"value"`
	WaitedS float64 `json:"waited_s"`
	// WorkLeftS is how many worker seconds its open steps are likely to take together.
	WorkLeftS float64 `json:"work_left_s"`
	Index     float64 `json:"index"`
}

const (
	// maxBefore bounds how many steps are counted before one. The queue is locked meanwhile.
	maxBefore = 1000
	maxShares = 16
	// maxEarlyPrepared bounds the preparations that are kept without their schedule.
	maxEarlyPrepared = 1000
)

// foldChoice has the builder's core fold a record too.
func (q *Queue) foldChoice(e journal.Entry) {
	if q.choice == nil {
		return
	}
	switch e.Topic {
	case events.TopicDecisions, events.TopicBuilds, events.TopicChanges:
		q.choice.Apply(e.Message, steps.Origin{Offset: e.Offset})
	}
	if q.choice.Early() > maxEarlyPrepared {
		q.choice.ForgetEarly()
	}
}

// DropChoice makes folding cost less: what workers choose their steps by is no longer folded, so Waiting must not be asked, nor
// anything once HasQuotas.
func (q *Queue) DropChoice() { q.choice = nil }

// HasQuotas reports whether what is said of changes that wait rests on what workers choose their steps by.
func (q *Queue) HasQuotas() bool { return q.known.Settings().GetQuotas() != nil }

// Waiting returns where the first waiting step of a change stands at a time, nil if no step of it waits for a worker.
func (q *Queue) Waiting(id string, now time.Time) *WaitingStep {
	c := q.changes[id]
	if c == nil || !c.pending() {
		return nil
	}
	q.choice.Workers = int(q.known.Settings().GetPoolWorkers())
	q.choice.SetQuotas(q.known.Settings().GetQuotas())
	us := now.UnixMicro()
	p := q.choice.PlaceOf(q.lineup.Pending(id).Ref(), us, maxBefore)
	if p.Open == 0 {
		return nil
	}
	w := &WaitingStep{Pool: q.known.Settings().GetPool(), Open: p.Open, Before: p.Before, PatienceS: float64(q.choice.PatienceUs()) / 1e6}
	w.Quota = quotaOf(p.Full)
	if w.BeforeMore = p.Target == "" && w.Quota == nil; p.Target != "" {
		w.Step = q.ranked(p.Step, us)
	}
	if p.First != nil {
		w.First = q.ranked(*p.First, us)
	}
	w.Sentence = w.sentence()
	return w
}

func (q *Queue) ranked(s steps.Step, nowUs int64) *RankedStep {
	r := &RankedStep{Target: s.Target, Hash: s.Hash, Attempt: s.Attempt, Labels: s.Claims.GetLabels(), Urgent: s.Rank.Urgent, Ready: s.Rank.Ready, Late: s.Rank.Late, Index: s.Rank.Index}
	for _, of := range q.choice.Shares(s.Version, nowUs) {
		if len(r.Builds) < maxShares {
			r.Builds = append(r.Builds, StepShare{of.Build, of.Change, of.Value, float64(of.WaitedUs) / 1e6, float64(of.WorkUs) / 1e6, of.Index})
		}
	}
	return r
}

func (w *WaitingStep) sentence() string {
	worker := "a worker"
	if w.Pool != "" {
		worker += " of pool " + w.Pool
	}
	switch {
	case w.Quota != nil:
		return fmt.Sprintf("%s of it %s: %s.", count(w.Open, "step"), verb(w.Open, "waits", "wait"), w.Quota.clause())
	case w.BeforeMore:
		return fmt.Sprintf("%s of it %s for %s: more than %d are before %s, first %s.", count(w.Open, "step"), verb(w.Open, "waits", "wait"), worker, w.Before, verb(w.Open, "it", "them"), w.First.name())
	case w.First == nil:
		return fmt.Sprintf("%s is next for %s%s.", w.Step.Target, worker+w.Step.labelled(), w.Step.afterOthers())
	}
	return fmt.Sprintf("%s waits for %s: %s %s before it, first %s (%s).", w.Step.Target, worker+w.Step.labelled(), count(w.Before, "step"), verb(w.Before, "is", "are"), w.First.name(), w.why())
}

// why compares the step with the one that comes first.
func (w *WaitingStep) why() string {
	switch {
	case w.First.Urgent && !w.Step.Urgent:
		return "moved to the front"
	case w.First.Ready && !w.Step.Ready:
		return "which can start now; what this one depends on has not passed"
	case w.First.Late && w.Step.Late:
		return "with a fair share of the workers both would have been over long ago, and it has waited longer beside that"
	case w.First.Late:
		return "with a fair share of the workers it would have been over long ago"
	case w.First.Index == w.Step.Index:
		return fmt.Sprintf("both of index %.3g; its build was scheduled first", w.First.Index)
	}
	return fmt.Sprintf("of index %.3g, this one of %.3g: worth times wait over the work that is left", w.First.Index, w.Step.Index)
}

// labelled says which labels the worker's machine has to have.
func (r *RankedStep) labelled() string {
	if len(r.Labels) == 0 {
		return ""
	}
	return " on a machine with " + verb(len(r.Labels), "the label ", "the labels ") + names(r.Labels)
}

func (r *RankedStep) afterOthers() string {
	if r.Ready {
		return ""
	}
	return ", though what it depends on has not passed"
}

// name is a step with whom it is of.
func (r *RankedStep) name() string {
	var of []string
	for _, b := range r.Builds {
		if b.Change != "" {
			of = append(of, b.Change)
		}
	}
	if of = sortedUnique(of); len(of) == 0 {
		return r.Target + " of the mainline"
	}
	return r.Target + " of " + strings.TrimSpace(names(of))
}
