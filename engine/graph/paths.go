package graph

import (
	"fmt"

	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// Short names for the states of a version or path; Unknown is the enum's zero.
const (
	Unknown   = eventsv1.OutcomeState_OUTCOME_STATE_UNSPECIFIED
	Green     = eventsv1.OutcomeState_OUTCOME_STATE_GREEN
	Red       = eventsv1.OutcomeState_OUTCOME_STATE_RED
	Exhausted = eventsv1.OutcomeState_OUTCOME_STATE_EXHAUSTED
	Blocked   = eventsv1.OutcomeState_OUTCOME_STATE_BLOCKED
)

// The outcomes of most paths. They are shared, as outcomes are never changed.
var (
	greenOutcome   = &eventsv1.Outcome{State: Green}
	unknownOutcome = &eventsv1.Outcome{}
)

// PathOutcome returns what is known of (c, S), derived from the versions that S makes (M25): green if all of them are green, red
// if one is red or M5 or M5a rule the path out. It is never nil.
func (n *Node) PathOutcome(s memberset.Set) *eventsv1.Outcome {
	if n.MissingRequirement != "" {
		return &eventsv1.Outcome{State: Red, Class: eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT,
			Message: fmt.Sprintf("it requires %s, which will not land", n.MissingRequirement)}
	}
	if n.fixed {
		for i, a := range n.Ahead {
			in := s.Has(i)
			if in && a.MergeConflict {
				return &eventsv1.Outcome{State: Red, Class: eventsv1.ReasonClass_REASON_CLASS_MERGE_CONFLICT,
					Message: fmt.Sprintf("it does not merge with %s", a.Change.Change)}
			}
			if !in && a.Required {
				return &eventsv1.Outcome{State: Red, Class: eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT,
					Message: fmt.Sprintf("it requires %s, which has not landed", a.Change.Change)}
			}
		}
	}
	if n.Guard != nil && s.Empty() {
		// On the present mainline only the guard's own versions are evidence for (c, {}) (M21).
		o := &eventsv1.Outcome{State: n.Guard.State}
		if r := n.Guard.Reason; r != nil {
			o.Class, o.Message = r.Class, r.Message
			if len(r.Failed) > 0 {
				o.Version = r.Failed[0].Version
			}
		}
		return o
	}
	if o := memberset.Get(n.paths, s); o != nil {
		return o
	}
	var blocked, exhausted *eventsv1.Outcome
	green := true
	for _, k := range n.Classes {
		o := k.outcomeOn(s)
		switch o.GetState() {
		case Red:
			return o
		case Blocked:
			blocked, green = o, false
		case Exhausted:
			exhausted, green = o, false
		case Green:
		default:
			green = false
		}
	}
	switch {
	case blocked != nil:
		return blocked
	case exhausted != nil:
		return exhausted
	case green:
		return greenOutcome
	}
	return unknownOutcome
}

// Path returns the state of PathOutcome.
func (n *Node) Path(s memberset.Set) eventsv1.OutcomeState {
	if n.unproven {
		return Unknown
	}
	return n.PathOutcome(s).State
}

// ClassVersion is a version that a path waits for.
type ClassVersion struct {
	Class int
	// Members is a memberset's key: which of the class's members land. Where Class is Guarded it names the version itself.
	Members string
}

// Guarded is the Class of versions that the land guard asked for.
const Guarded = -1

// Outstanding returns the versions that a path waits for, and the targets to be verified for them. Both are empty if nothing can be
// built for it.
func (n *Node) Outstanding(s memberset.Set) (versions []ClassVersion, targets []*eventsv1.TargetVersion) {
	if n.Guard != nil && s.Empty() {
		for _, v := range n.Guard.Missing {
			versions = append(versions, ClassVersion{Guarded, v.Target + "@" + v.Hash})
		}
		return versions, n.Guard.Missing
	}
	for i, k := range n.Classes {
		set := k.Restrict(s)
		if k.Outcome(set).GetState() != Unknown {
			continue
		}
		if len(k.Targets) == 0 {
			return nil, nil
		}
		versions = append(versions, ClassVersion{i, set.Key()})
		targets = append(targets, k.Targets...)
	}
	return versions, targets
}

// ruledOut reports whether M5 or M5a keeps member j of A(i) from landing on a path whose earlier members are decided as in s.
func (g *Graph) ruledOut(i *Node, s memberset.Set, j int) bool {
	n := i.Member(j)
	if n == nil || n.unproven {
		return false
	}
	if n.MissingRequirement != "" {
		return true
	}
	places := g.Places(i, j)
	for x, a := range n.Ahead {
		if at := int(places[x]); at >= 0 && at < j && (s.Has(at) && a.MergeConflict || !s.Has(at) && a.Required) {
			return true
		}
	}
	return false
}

// May returns whether member j of A(i) may land, and whether it may fail, on a path whose earlier members are decided as in s
// (M9, M5, M5a). A path that takes a way that is ruled out is dead.
func (g *Graph) May(i *Node, s memberset.Set, j int) (land, fail bool) {
	n := i.Member(j)
	if n == nil || n.unproven {
		return true, true
	}
	if n.MissingRequirement != "" {
		return false, true
	}
	inside := true    // all that the member has ahead is decided on the path
	var room [32]byte // enough for most, without an allocation
	bits := room[:]
	if need := (len(n.Ahead) + 7) / 8; need <= len(room) {
		bits = bits[:need]
	} else {
		bits = make([]byte, need)
	}
	set := memberset.Over(bits)
	places := g.Places(i, j)
	for x, a := range n.Ahead {
		at := int(places[x])
		if at < 0 {
			inside = false
			continue
		}
		in := s.Has(at)
		if in {
			set.Add(x)
		}
		if at < j && (in && a.MergeConflict || !in && a.Required) {
			return false, true
		}
		if at > j {
			inside = false // it was moved behind the member, so it is not decided yet
		}
	}
	if !inside || !n.Analyzed {
		return true, true
	}
	switch n.Path(set) {
	case Green:
		return true, g.Held(n)
	case Red, Blocked:
		// Blocked is red because of the mainline. That keeps the member from being rejected, but on the mainline as it is it
		// cannot land either, and a change that repairs the mainline does not wait for it (M23a).
		return false, true
	}
	return true, true
}
