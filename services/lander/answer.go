package lander

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/guard"
	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
)

// answerTo returns the record that makes a decision take effect on base, or refuses it. made is T. If there is
// none, made is empty and commitsErr holds why: ErrGone or ErrUnmakeable.
func (q *queue) answerTo(d decided, base string, made *Landing, commitsErr error) proto.Message {
	c := q.lineup.PendingAt(d.change)
	f := guard.Examine(made.Candidate, q.evidence(d.policy))
	refuse := func(r *eventsv1.Refused) proto.Message {
		r.Change, r.Decision, r.Base, r.Tree, r.StampUs = d.change, d.id, base, made.Tree, d.stampUS
		return r
	}
	eject := func(class eventsv1.ReasonClass, message string) proto.Message {
		return &eventsv1.ChangeEjected{Change: d.change, Decision: d.id, Base: base, StampUs: d.stampUS, Reason: &eventsv1.Reason{Class: class, Message: message}}
	}
	switch {
	case commitsErr != nil && d.eject != nil && len(d.eject.Reason.GetFailed()) == 0 && q.oftenUnprepared(d):
		// Its tree could not be made, by the workers or here, more often than the policy repeats; nor can it be now.
		return eject(eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE, oneLine(commitsErr.Error()))
	case errors.Is(commitsErr, ErrUnmakeable) && (d.reject == nil || q.lineup.MissingRequirement(c) == ""):
		// Workers may have built it. But only the lander makes commits, so it could never land.
		return eject(eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE, oneLine(commitsErr.Error()))
	case commitsErr != nil && (d.reject == nil || q.lineup.MissingRequirement(c) == ""):
		// A refusal without a tree. It is tried again at a tick, and ejected after as many tries as a build gets.
		return refuse(&eventsv1.Refused{Message: oneLine(commitsErr.Error())})
	case d.land == nil:
		left, refused := q.leave(c, d, base, made.Candidate, f)
		if refused != nil {
			return refuse(refused)
		}
		return left
	}
	if refused := guard.MayLand(made.Candidate, f); refused != nil {
		return refuse(refused)
	}
	if why := q.mayNotLandNow(c); why != "" {
		return refuse(&eventsv1.Refused{Versions: made.Versions, Message: why})
	}
	if q.refusedTooOften(c.ID()) {
		return eject(eventsv1.ReasonClass_REASON_CLASS_PUSH_REFUSED, q.pushRefused[c.ID()].message)
	}
	return &eventsv1.LandIntended{
		Change: d.change, Decision: d.id, Base: base, Commits: made.Commits, Tree: made.Tree,
		Proof: f.Proof, Bypasses: q.stillPending(d.land.Bypasses), StampUs: d.stampUS, Deleted: made.Deleted, Quarantined: made.Quarantined,
		Heads: HeadsOf(c.Admission, made.Commits),
	}
}

// HeadsOf returns the branches under review that are to be moved to what lands. One that lands by a merge commit stays: that has its head.
func HeadsOf(a *eventsv1.Admission, commits []string) (heads []*eventsv1.ReviewHead) {
	for n, e := range a.Entries {
		last := -1
		for at, l := range a.LandingCommits {
			if int(l.Entry) == n && at < len(commits) {
				last = at
			}
		}
		if e.Review != nil && last >= 0 && !a.LandingCommits[last].Merge {
			heads = append(heads, &eventsv1.ReviewHead{Review: e.Review, From: e.Commit, To: commits[last]})
		}
	}
	return heads
}

// leave returns the ChangeRejected or ChangeEjected on base that d asks for, or why it is refused.
func (q *queue) leave(c *lineup.Change, d decided, base string, made guard.Candidate, f guard.Finding) (left proto.Message, refused *eventsv1.Refused) {
	missing := q.lineup.MissingRequirement(c)
	if ahead := q.overruled(c, d); ahead != nil && missing == "" {
		why := fmt.Sprintf("it was decided before the land guard refused %s, which is ahead of it", ahead.ID())
		if made.Obstacle != nil {
			why = fmt.Sprintf("%s (%s)", made.Obstacle.Message, why)
		}
		return nil, &eventsv1.Refused{Versions: made.Versions, Missing: f.Missing, Class: made.Obstacle.GetClass(), Message: why}
	}
	if d.reject != nil {
		reason, refused := guard.MayReject(made, f, d.reject.Reason, missing)
		return &eventsv1.ChangeRejected{Change: d.change, Decision: d.id, Base: base, Reason: reason, StampUs: d.stampUS}, refused
	}
	reason, refused := guard.MayEject(made, f, d.eject.Reason, q.oftenUnprepared(d))
	return &eventsv1.ChangeEjected{Change: d.change, Decision: d.id, Base: base, Reason: reason, StampUs: d.stampUS}, refused
}

// oftenUnprepared reports whether trees with the change could not be made more often than the policy repeats.
func (q *queue) oftenUnprepared(d decided) bool {
	return q.unprepared.count(d.change) > int(d.policy.GetInfrastructureRetries())
}

// stillPending returns the bypassed changes without those that were decided in the meantime: a change that landed first was
// not bypassed.
func (q *queue) stillPending(bypasses []*eventsv1.ChangeRef) []*eventsv1.ChangeRef {
	return slices.DeleteFunc(slices.Clone(bypasses), func(c *eventsv1.ChangeRef) bool { return q.lineup.PendingAt(c) == nil })
}

// mayNotLandNow returns why a change may not land by the lander's own fold, "" if it may: a pause, a hold or a requirement
// that the decision did not know.
func (q *queue) mayNotLandNow(c *lineup.Change) string {
	if q.lineup.Paused != nil {
		return "the queue is paused"
	}
	if len(c.Holds) > 0 {
		return fmt.Sprintf("it is held by %s: %s", c.Holds[0].Who, c.Holds[0].Why)
	}
	for _, r := range c.Admission.Requires {
		if q.lineup.RequirementState(r) != lineup.Landed {
			return fmt.Sprintf("it requires %s, which has not landed", r)
		}
	}
	return ""
}
