// Package guard is the lander's core: the last word before anything takes effect (M21). It looks at T, the
// tree that would land, and at what is proven of T's own target versions – not at who proposed it, nor at
// what the conflict analysis said.
package guard

import (
	"fmt"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/evidence"
	"landfall.build/services/foreign"
)

// Candidate is what a change makes of the mainline as it stands.
type Candidate struct {
	// Obstacle is set if T speaks against the change by itself: it does not merge, or is invalid.
	Obstacle *eventsv1.Reason
	// Versions is δ(M, T) over every landing commit.
	Versions []*eventsv1.TargetVersion
}

// Evidence is what the guard rests on.
type Evidence struct {
	Ledger *evidence.Ledger
	Policy *eventsv1.StepPolicy
	// Foreign is what came past the queue: what is red on the mainline itself is nobody's fault (M23a).
	Foreign *foreign.Pushes
}

// Finding is what the guard sees in a candidate.
type Finding struct {
	// Proof names, for each version, the step that proved it.
	Proof []*eventsv1.Proof
	// Missing are versions that are not proven green.
	Missing []*eventsv1.TargetVersion
	// Red are proven red, and the mainline is not to blame. Exhausted have used up their retries.
	Red, Exhausted []*eventsv1.Proof
	Reason         string
}

// Look compares a candidate's versions with what is proven.
func Look(c Candidate, e Evidence) Finding {
	var f Finding
	for _, v := range c.Versions {
		key := evidence.Version{Target: v.Target, Hash: v.Hash}
		if v.Trivial || v.Absent {
			f.Proof = append(f.Proof, &eventsv1.Proof{Version: v})
			continue
		}
		r := e.Ledger.Result(key)
		switch e.Ledger.State(key, e.Policy) {
		case evidence.Green:
			f.Proof = append(f.Proof, &eventsv1.Proof{Version: v, Build: r.PassedBy.GetBuild(), Attempt: r.PassedBy.GetAttempt()})
			continue
		case evidence.Red:
			if !e.Foreign.Blocks(v.Target, e.Ledger, e.Policy) {
				f.Red = append(f.Red, &eventsv1.Proof{Version: v, Build: r.FailedBy.GetBuild(), Attempt: r.FailedBy.GetAttempt()})
				f.Reason = r.FailedBy.GetReason()
			}
		case evidence.Exhausted:
			f.Exhausted = append(f.Exhausted, &eventsv1.Proof{Version: v, Build: r.LastFruitless.GetBuild(), Attempt: r.LastFruitless.GetAttempt()})
			if f.Reason == "" {
				f.Reason = r.LastFruitless.GetReason()
			}
		}
		f.Missing = append(f.Missing, v)
	}
	return f
}

// MayLand is nil if the candidate may land; else it is the refusal, without its names.
func MayLand(c Candidate, f Finding) *eventsv1.Refused {
	switch {
	case c.Obstacle != nil:
		return &eventsv1.Refused{Class: c.Obstacle.Class, Message: c.Obstacle.Message, Disproved: true}
	case len(f.Missing) > 0:
		return &eventsv1.Refused{Versions: c.Versions, Missing: f.Missing, Disproved: true,
			Message: fmt.Sprintf("%d target versions of the tree that would land are not proven, %s among them", len(f.Missing), f.Missing[0].Target)}
	}
	return nil
}

// MayReject gives the reason for which the candidate is rejected, or the refusal.
func MayReject(c Candidate, f Finding, proposed *eventsv1.Reason, missingRequirement string) (*eventsv1.Reason, *eventsv1.Refused) {
	switch {
	case missingRequirement != "":
		return &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT, Other: missingRequirement,
			Message: fmt.Sprintf("it requires %s, which will not land", missingRequirement)}, nil
	case c.Obstacle != nil:
		return c.Obstacle, nil
	case len(f.Red) > 0:
		return &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: f.Reason, Failed: f.Red, Other: proposed.GetOther()}, nil
	}
	return nil, &eventsv1.Refused{Versions: c.Versions, Missing: f.Missing, Disproved: true,
		Message: "no target version of the tree that would land is proven red"}
}

// MayEject gives the reason for which the candidate is ejected, or the refusal. unprepared says that trees with the
// change could not be made more often than the policy allows: then no version need have attempts.
func MayEject(c Candidate, f Finding, proposed *eventsv1.Reason, unprepared bool) (*eventsv1.Reason, *eventsv1.Refused) {
	switch {
	case c.Obstacle != nil:
		return nil, &eventsv1.Refused{Class: c.Obstacle.Class, Message: c.Obstacle.Message, Disproved: true}
	case len(f.Exhausted) > 0:
		return &eventsv1.Reason{Class: proposed.GetClass(), Message: f.Reason, Failed: f.Exhausted}, nil
	case unprepared && len(f.Missing) > 0:
		return &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE, Message: proposed.GetMessage()}, nil
	}
	return nil, &eventsv1.Refused{Versions: c.Versions, Missing: f.Missing, Disproved: true,
		Message: "no target version of the tree that would land has used up its retries"}
}
