package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"landfall.build/engine/lineup"
	"landfall.build/engine/prediction"
	eventsv1 "landfall.build/events/v1"
)

// Overview returns the queue itself.
func (q *Queue) Overview() Overview {
	o := Overview{
		Queue: q.name, Head: q.lineup.Head, Sequence: q.lineup.Sequence, Pending: len(q.lineup.Order()),
		Running: q.runningBuilds(), MainlineRed: q.mainlineRed(), RedBeforeQueue: q.redBeforeQueue(), RedSince: q.redSince(), MainlineFailures: q.mainlineFailures(), NeedRetry: q.needRetry(), Analyzed: q.known.Mainline().GetAnalyzed(),
		Repository: q.known.Settings().GetRepository(), Branch: q.known.Settings().GetBranch(), Strategy: q.known.Settings().GetStrategy(),
		Workers: int(q.known.Settings().GetWorkers()), Unreachable: q.trouble(), PausedByRemote: q.pausedByRemote(), ServiceTroubles: q.serviceTroubles,
		Shadow: q.shadow,
	}
	for i := len(q.pauses) - 1; i >= 0; i-- {
		if o.LastPause == nil {
			o.LastPause = &q.pauses[i]
			continue
		}
		o.EarlierPauses = append(o.EarlierPauses, q.pauses[i])
	}
	o.Pool, o.Unproven = q.pool(), int(q.survey.GetUnproven())
	for _, k := range slices.Sorted(maps.Keys(q.priority.models)) {
		m := q.priority.models[k]
		o.Models = append(o.Models, Model{Kind: prediction.KindName(k), Version: m.Version, Trouble: m.Trouble, Since: time.UnixMicro(m.StampUs).UTC()})
	}
	if o.Unreachable == nil {
		o.Unreachable = q.refusing()
	}
	if p := q.lineup.Paused; p != nil {
		paused := pauseOf(p)
		o.Paused = &paused
	}
	for _, f := range q.quarantines.List() {
		if o.QuarantinedTotal++; len(o.Quarantined) < maxAnalysedShown {
			o.Quarantined = append(o.Quarantined, f.Target)
		}
	}
	unseen := q.unseenQuarantines()
	o.UnseenQuarantines = slices.Clone(unseen[:min(len(unseen), maxAnalysedShown)])
	for _, entry := range q.lineup.Order() {
		switch q.standingOf(q.changes[entry.ID()], 0).state {
		case StateTesting:
			o.Testing++
		case StatePassed:
			o.Passed++
		default:
			o.Waiting++
		}
	}
	return o
}

func pauseOf(p *lineup.Pause) Pause {
	pause := Pause{Who: p.Who, Why: p.Why}
	if p.SinceUS != 0 {
		pause.Since = time.UnixMicro(p.SinceUS).UTC()
	}
	return pause
}

// Pending lists the changes in the queue, in order. What keeps the whole queue from landing is in its Overview alone.
func (q *Queue) Pending() []Summary {
	out := make([]Summary, 0, len(q.lineup.Order()))
	refusing := q.refusing()
	for i, entry := range q.lineup.Order() {
		c := q.changes[entry.ID()]
		s := q.standingOf(c, i+1)
		why := ownReason(q.reasons(c, s))
		if refusing != nil && c.pushRefused() && c.lastRefusal.Message == refusing.Message { // the overview quotes it
			why = c.ownRefusal()
		}
		out = append(out, q.summary(c, s, why))
	}
	return out
}

// ofQueue holds what keeps a whole queue from landing, in words, by code of the reason.
var ofQueue = map[string]string{ReasonPaused: "pause of the queue", ReasonPausedByRemote: "remote, which refuses pushes,", ReasonUnreachable: "mainline, which cannot be reached,"}

// ownReason returns the first reason that is not the whole queue's, as briefly as there is, or that there is no other.
func ownReason(reasons []Reason) Reason {
	one := true
	for _, r := range reasons {
		if ofQueue[r.Code] == "" {
			r.Sentence = cmp.Or(r.brief, r.Sentence)
			return r
		}
		one = one && r.Code == reasons[0].Code
	}
	if one {
		return Reason{Sentence: "Only the " + ofQueue[reasons[0].Code] + " keeps it waiting."}
	}
	return Reason{Sentence: "Only what keeps the whole queue from landing keeps it waiting."}
}

// namedIn returns the changes that a reason's sentence has by their names, if they are kept.
func (q *Queue) namedIn(r Reason) (out []string) {
	if len(r.Changes) == 0 {
		return nil
	}
	for word := range strings.FieldsSeq(r.Sentence) {
		if id := strings.TrimRight(word, ",.;:"); q.changes[id] != nil && slices.Contains(r.Changes, id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// Finished lists the kept changes that have left the queue, newest first, at most limit.
func (q *Queue) Finished(limit int) []Summary {
	var out []Summary
	for i := len(q.finished) - 1; i >= 0 && len(out) < limit; i-- {
		if c := q.stillFinished(q.finished[i]); c != nil {
			out = append(out, q.summaryOf(c, 0))
		}
	}
	return out
}

func (q *Queue) stillFinished(f finishedChange) *change {
	if c := q.changes[f.id]; c != nil && !c.pending() && c.end.seq == f.seq {
		return c
	}
	return nil
}

// Summary returns a change in one line; false if it is not kept.
func (q *Queue) Summary(id string) (Summary, bool) {
	c := q.changes[id]
	if c == nil {
		return Summary{}, false
	}
	return q.summaryOf(c, q.positionOf(id)), true
}

func (q *Queue) positionOf(id string) int {
	return 1 + slices.IndexFunc(q.lineup.Order(), func(c *lineup.Change) bool { return c.ID() == id })
}

// summaryOf returns the summary of a change at a position, with the first of its reasons.
func (q *Queue) summaryOf(c *change, position int) Summary {
	s := q.standingOf(c, position)
	return q.summary(c, s, q.reasons(c, s)[0])
}

func (q *Queue) summary(c *change, s standing, why Reason) Summary {
	out := Summary{
		Queue: q.name, Change: c.admission.Change, Revision: c.admission.Revision, State: s.state, Position: s.position,
		Title: c.admission.Title, Author: c.admission.Author, Team: c.admission.Team, AdmittedAt: c.admittedAt,
		RunningBuilds: len(s.running), ETA: q.eta(c, s), Why: why.Sentence, Names: q.namedIn(why),
	}
	if entry := q.lineup.Pending(c.admission.Change); entry != nil {
		out.Held, out.Urgent = len(entry.Holds) > 0, entry.Urgent
		out.Blocked = s.state == StateWaiting && len(blockedTargets(s.node)) > 0
	}
	b := s.told()
	out.StepsDone, out.StepsRunning, out.StepsTotal = b.StepsDone, b.StepsRunning, b.StepsTotal
	if !c.pending() {
		out.FinishedAt, out.Failure = c.end.at, q.fault(c)
	}
	if c.end.landed != nil {
		out.Commits, out.Bypassed, out.Dropped = c.end.landed.Commits, refNames(c.end.landed.Bypasses), c.end.dropped
	}
	return out
}

// Change returns everything about a change; false if it is not kept.
func (q *Queue) Change(id string) (Change, bool) {
	c := q.changes[id]
	if c == nil {
		return Change{}, false
	}
	a, s := c.admission, q.standingOf(c, q.positionOf(id))
	reasons := q.reasons(c, s)
	out := Change{
		Summary: q.summary(c, s, reasons[0]), Reasons: reasons, Description: a.Description, URI: a.Uri,
		Benefit: a.Benefit, Labels: a.Labels, Mainline: a.Mainline, Requires: q.requirements(c), Analysis: c.analysis,
		Ahead: q.ahead(c), Builds: q.buildsShown(c), Landing: q.landing(c), Rejection: q.rejection(c),
		LastRefusal: c.lastRefusal, Timeline: c.shownTimeline(), OmittedEvent: c.omitted, Entries: []Pinned{}, Revisions: q.Revisions(id),
	}
	out.Failure, out.Flaky = q.fault(c), q.flakyTargets(c)
	for _, e := range a.Entries {
		out.Entries = append(out.Entries, Pinned{Ref: e.Ref, Commit: e.Commit})
	}
	if entry := q.lineup.Pending(id); entry != nil {
		for _, h := range entry.Holds {
			out.Holds = append(out.Holds, Hold(h))
		}
	}
	return out, true
}

// Explain returns why a change is where it is; false if it is not kept.
func (q *Queue) Explain(id string) (Explanation, bool) {
	c := q.changes[id]
	if c == nil {
		return Explanation{}, false
	}
	s := q.standingOf(c, q.positionOf(id))
	reasons := q.reasons(c, s)
	out := Explanation{
		Summary: q.summary(c, s, reasons[0]), Reasons: reasons, Requires: q.requirements(c), Ahead: q.ahead(c),
		Builds: q.buildsShown(c), Landing: q.landing(c), Rejection: q.rejection(c),
		LastRefusal: c.lastRefusal, Timeline: c.shownTimeline(),
	}
	out.Failure, out.Flaky = q.fault(c), q.flakyTargets(c)
	return out, true
}

// Admission returns what a kept change's newest revision was admitted with, nil if it is not kept. Readers
// must not change it.
func (q *Queue) Admission(id string) *eventsv1.Admission {
	if c := q.changes[id]; c != nil {
		return c.admission
	}
	return nil
}

func (q *Queue) requirements(c *change) []Related {
	var out []Related
	for _, id := range c.admission.Requires {
		state := q.lineup.RequirementState(id).String()
		if other, kept := q.changes[id]; kept {
			state = q.standingOf(other, 0).state
		}
		out = append(out, Related{Change: id, State: state})
	}
	return out
}

func (q *Queue) ahead(c *change) []Ahead {
	var out []Ahead
	if !c.pending() {
		return nil
	}
	for _, a := range q.node(c.ref()).GetAhead() {
		other := q.pendingAt(refOf(a.Change))
		if other == nil {
			continue
		}
		s := q.standingOf(other, 0)
		out = append(out, Ahead{
			Change: a.Change.GetChange(), Title: other.admission.GetTitle(), Revision: a.Change.GetRevision(), State: s.state, StepsRunning: s.told().StepsRunning,
			Held: len(q.lineup.Pending(a.Change.GetChange()).Holds) > 0, Targets: a.Targets, MergeConflict: a.MergeConflict, Required: a.Required,
		})
	}
	return out
}

func (q *Queue) buildsShown(c *change) []Build {
	var out []Build
	for _, b := range q.builds.ofChange[c.ref()] {
		out = append(out, q.shownBuild(b, true))
	}
	return out
}

// proven returns the steps that a proof names, with what is still kept of each.
func (q *Queue) proven(proof []*eventsv1.Proof, withTail bool) []Step {
	out := make([]Step, 0, len(proof))
	for _, p := range proof {
		v := version{p.GetVersion().GetTarget(), p.GetVersion().GetHash()}
		step := Step{Target: v.target, Hash: v.hash, State: StepPassed, Build: p.Build, Attempt: p.Attempt}
		if withTail {
			step.State = StepFailed
		}
		if p.GetVersion().GetTrivial() || p.GetVersion().GetAbsent() {
			step.State = StepTrivial
		}
		if a := q.steps.find(v, p.Attempt); a != nil {
			build := step.Build
			if step = a.shown(); build != "" {
				step.Build = build
			}
			if withTail {
				step.OutputTail = text(a.tail)
			}
		}
		if step.Quarantined = p.Quarantined; p.Quarantined && step.State == StepPassed {
			step.State = StepFailed
		}
		step.Commit = p.GetVersion().GetPart()
		out = append(out, step)
	}
	return out
}

func (q *Queue) landing(c *change) *Landing {
	f := c.end.landed
	if f == nil {
		return nil
	}
	return &Landing{Base: f.Base, Commits: f.Commits, Tree: f.Tree, Proof: q.proven(f.Proof, false), Quarantined: f.Quarantined, Bypassed: refNames(f.Bypasses), At: c.end.at}
}

func (q *Queue) rejection(c *change) *Rejection {
	if c.end.reason == nil {
		return nil
	}
	failed := c.end.reason.Failed
	if f := q.fault(c); f != nil {
		first := &eventsv1.Proof{Version: &eventsv1.TargetVersion{Target: f.Target, Hash: f.Hash}, Attempt: f.Attempt}
		others := slices.DeleteFunc(slices.Clone(failed), func(p *eventsv1.Proof) bool {
			is := p.GetVersion().GetTarget() == f.Target && p.GetVersion().GetHash() == f.Hash
			if is {
				first = p
			}
			return is
		})
		failed = append([]*eventsv1.Proof{first}, others...)
	}
	return &Rejection{
		Class: lowerEnum(c.end.reason.Class.String(), "REASON_CLASS_"), Message: c.end.reason.Message, Conflicting: c.end.reason.Other,
		Failed: q.proven(failed, true), Base: c.end.base, At: c.end.at,
	}
}

func (c *change) shownTimeline() []Event {
	out := slices.Clone(c.timeline)
	for i := range c.ownEvents() {
		out[i].Earlier = true
	}
	// A decision and its answer may have one time; they stand in different topics, of which either may be read first.
	decided := func(e Event) int {
		if e.Kind == "decided" {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(decided(a), decided(b))) })
	return out
}

// ownEvents returns where in the timeline the newest revision begins.
func (c *change) ownEvents() int {
	for i := len(c.timeline) - 1; i >= 0; i-- {
		if e := c.timeline[i]; (e.Kind == "admitted" || e.Kind == "revised") && e.At.Equal(c.admittedAt) {
			return i
		}
	}
	return min(keptTimelineHead, len(c.timeline)) // its beginning was cut out, where the head ends
}

// Update is a change as it is after some point of the fold, with what happened to it since.
type Update struct {
	Summary
	Events []Event `json:"events"`
}

// Since lists the pending changes, and the finished ones that were modified after sequence number since, each with its
// events after that number. If only is not empty, exactly these changes are listed.
func (q *Queue) Since(since uint64, only []string) []Update {
	var of []*change
	positions := map[string]int{}
	for i, entry := range q.lineup.Order() {
		positions[entry.ID()] = i + 1
	}
	if len(only) > 0 {
		for _, id := range only {
			if c := q.changes[id]; c != nil {
				of = append(of, c)
			}
		}
	} else {
		for i := len(q.finished) - 1; i >= 0 && (q.finished[i].seq > since || q.lateSeq > since); i-- {
			if c := q.stillFinished(q.finished[i]); c != nil && c.modified > since {
				of = append(of, c)
			}
		}
		slices.Reverse(of)
		for _, entry := range q.lineup.Order() {
			of = append(of, q.changes[entry.ID()])
		}
	}
	out := make([]Update, 0, len(of))
	for _, c := range of {
		u := Update{Summary: q.summaryOf(c, positions[c.admission.Change]), Events: []Event{}}
		for _, e := range c.timeline {
			if e.seq > since {
				u.Events = append(u.Events, e)
			}
		}
		out = append(out, u)
	}
	return out
}

// text returns what a step printed as valid UTF-8.
func text(tail []byte) string { return strings.ToValidUTF8(string(tail), "\uFFFD") }
