// Package guard is the lander's last check before a decision takes effect, and the only one that safety rests
// on (M21). It sees T, the tree that would land, and what is proven of T's own target versions. It does not see who
// proposed the decision, nor what the conflict analysis found.
package guard

import (
	"fmt"
	"slices"

	"landfall.build/engine/directpush"
	"landfall.build/engine/evidence"
	eventsv1 "landfall.build/events/v1"
)

// Candidate is T: what the mainline M would be with the change.
type Candidate struct {
	// Obstacle is why T cannot land whatever its steps say: the change does not merge, or T defines no valid targets.
	Obstacle *eventsv1.Reason
	// Versions is δ(M, T) over every landing commit.
	Versions []*eventsv1.TargetVersion
	// Base holds, by target, the versions that M has of the targets of Versions. A target that M lacks is in no entry. If the
	// targets of M are not known, each entry is the version of the whole repository (M4).
	Base map[string]*eventsv1.TargetVersion
}

// Evidence is what the guard judges by.
type Evidence struct {
	Ledger *evidence.Ledger
	Policy *eventsv1.StepPolicy
	// Pushes holds what came onto the mainline past the queue. A target that is red there is not held against a change (M23a).
	Pushes *directpush.Pushes
}

// Finding is what is proven of a candidate.
type Finding struct {
	// Proof names the step that proved each green version.
	Proof []*eventsv1.Proof
	// Missing holds every version that is not green.
	Missing []*eventsv1.TargetVersion
	// Red holds the missing ones that are red while the mainline is proven green in their targets, or lacks them. In one of them at least
	// it was proven so after the failure.
	Red []*eventsv1.Proof
	// BaseUnproven holds the versions of M that have to be proven green before a red version of T counts against the change.
	BaseUnproven []*eventsv1.TargetVersion
	// BaseOutdated holds the attempts that passed at the last of BaseUnproven before the candidate's version became red, and Shared the
	// failed attempts at versions of the candidate around which M's version failed too. They no longer count (M23c). Both are nil while Red
	// is not.
	BaseOutdated, Shared []*eventsv1.Proof
	// Exhausted holds the missing ones that have used up their retries without a result.
	Exhausted []*eventsv1.Proof
	// RedReason is why the last of Red failed, ExhaustedReason why the first of Exhausted has no result.
	RedReason, ExhaustedReason string
}

// Examine compares a candidate's versions with what is proven.
func Examine(c Candidate, e Evidence) Finding {
	var f Finding
	var outdated *eventsv1.TargetVersion // the first of M's versions that passed only before the candidate's failed
	var passed, shared []*eventsv1.Proof
	confirmed := false // M's version of a red target has passed since
	for _, v := range c.Versions {
		if v.Trivial || v.Absent {
			f.Proof = append(f.Proof, proof(v, nil))
			continue
		}
		r := e.Ledger.Result(evidence.Version{Target: v.Target, Hash: v.Hash})
		if r == nil {
			f.Missing = append(f.Missing, v)
			continue
		}
		switch r.State(e.Policy) {
		case evidence.Green:
			f.Proof = append(f.Proof, proofOfGreen(v, r, e.Policy))
			continue
		case evidence.Red:
			base := c.Base[v.Target]
			switch {
			case e.Pushes.Blocks(v.Target, e.Ledger, e.Policy):
			case base != nil && !e.Pushes.ProvenGreen(base, e.Ledger, e.Policy):
				f.doubt(base)
			default:
				f.Red = append(f.Red, failure(v, r.FailedBy))
				f.RedReason = r.FailedBy.GetReason()
				switch before := e.outdated(base, v); {
				case e.failedWith(base, v):
					shared = append(shared, failure(v, r.FailedBy))
				case before == nil:
					confirmed = true
				case outdated == nil:
					outdated, passed = base, before
				}
			}
		case evidence.Exhausted:
			f.Exhausted = append(f.Exhausted, failure(v, r.LastFruitless))
			if f.ExhaustedReason == "" {
				f.ExhaustedReason = r.LastFruitless.GetReason()
			}
		}
		f.Missing = append(f.Missing, v)
	}
	switch {
	case confirmed:
	case len(shared) > 0:
		f.Red, f.RedReason, f.Shared = nil, "", shared
	case outdated != nil:
		f.Red, f.RedReason, f.BaseOutdated = nil, "", passed
		f.doubt(outdated)
	}
	return f
}

// failedWith reports whether M's version failed around the last failure of the candidate's, and is green by now.
func (e Evidence) failedWith(base, red *eventsv1.TargetVersion) bool {
	return base != nil && e.Pushes.FailedWith(base, evidence.Version{Target: red.Target, Hash: red.Hash}, e.Ledger, e.Policy)
}

// outdated returns the attempts by which M's version is green, if the candidate's became red after all of them, else nil.
func (e Evidence) outdated(base, red *eventsv1.TargetVersion) []*eventsv1.Proof {
	if base == nil {
		return nil
	}
	return e.Pushes.Outdated(base, evidence.Version{Target: red.Target, Hash: red.Hash}, e.Ledger, e.Policy)
}

// doubt adds a version of M once; the landing commits of a change share it.
func (f *Finding) doubt(base *eventsv1.TargetVersion) {
	if !slices.ContainsFunc(f.BaseUnproven, func(v *eventsv1.TargetVersion) bool { return v.Target == base.Target }) {
		f.BaseUnproven = append(f.BaseUnproven, base)
	}
}

// proofOfGreen names the attempt that passed, or the last one of a quarantined target that did not (M24a).
func proofOfGreen(v *eventsv1.TargetVersion, r *evidence.Result, policy *eventsv1.StepPolicy) *eventsv1.Proof {
	if !r.Tolerated(policy) {
		p := proof(v, r.PassedBy)
		p.Tests, p.Untested = r.PassedBy.GetTests(), r.PassedBy.GetUntested()
		return p
	}
	last := r.FailedBy
	if last == nil {
		last = r.LastFruitless
	}
	p := proof(v, last)
	p.Quarantined = true
	return p
}

func proof(v *eventsv1.TargetVersion, step *eventsv1.StepFinished) *eventsv1.Proof {
	return &eventsv1.Proof{Version: v, Build: step.GetBuild(), Attempt: step.GetAttempt()}
}

// failure is a proof that names the command that did not pass.
func failure(v *eventsv1.TargetVersion, step *eventsv1.StepFinished) *eventsv1.Proof {
	p := proof(v, step)
	p.Step = step.GetFailedCommand()
	return p
}

// MayLand returns nil if the candidate may land, else the refusal; the caller names change, decision and base in it.
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

// MayReject returns the reason for which the candidate is rejected, or the refusal. missingRequirement is a change that
// the candidate requires and that can no longer land, "" if there is none.
func MayReject(c Candidate, f Finding, proposed *eventsv1.Reason, missingRequirement string) (*eventsv1.Reason, *eventsv1.Refused) {
	switch {
	case missingRequirement != "":
		return &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_REQUIREMENT, Other: missingRequirement,
			Message: fmt.Sprintf("it requires %s, which will not land", missingRequirement)}, nil
	case c.Obstacle != nil:
		return c.Obstacle, nil
	case len(f.Red) > 0:
		return &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_STEP_FAILED, Message: f.RedReason, Failed: f.Red, Other: proposed.GetOther()}, nil
	}
	refused := &eventsv1.Refused{Versions: c.Versions, Missing: f.Missing, Disproved: true, BaseUnproven: f.BaseUnproven, BaseOutdated: append(f.BaseOutdated, f.Shared...),
		Message: "no target version of the tree that would land is proven red"}
	switch {
	case len(f.Shared) > 0:
		refused.Message = f.Shared[0].GetVersion().GetTarget() + " failed, and at that time it failed on the mainline too, which is green again; it is run once more with the change"
	case len(f.BaseOutdated) > 0:
		refused.Message = f.BaseOutdated[0].GetVersion().GetTarget() + " failed, and it has passed on the mainline before that; it is run there once more, without the change, to tell whether the change is the cause"
	case len(f.BaseUnproven) > 0:
		refused.Message = f.BaseUnproven[0].Target + " failed, and it is not known to be green on the mainline without the change; it is verified there first"
	}
	return nil, refused
}

// MayEject returns the reason for which the candidate is ejected, or the refusal. unprepared is set if trees with the
// change could not be made more often than the policy allows: then none of its versions can have attempts.
func MayEject(c Candidate, f Finding, proposed *eventsv1.Reason, unprepared bool) (*eventsv1.Reason, *eventsv1.Refused) {
	switch {
	case c.Obstacle != nil:
		return nil, &eventsv1.Refused{Class: c.Obstacle.Class, Message: c.Obstacle.Message, Disproved: true}
	case len(f.Exhausted) > 0:
		return &eventsv1.Reason{Class: proposed.GetClass(), Message: f.ExhaustedReason, Failed: f.Exhausted}, nil
	case unprepared && len(f.Missing) > 0:
		return &eventsv1.Reason{Class: eventsv1.ReasonClass_REASON_CLASS_INFRASTRUCTURE, Message: proposed.GetMessage()}, nil
	}
	return nil, &eventsv1.Refused{Versions: c.Versions, Missing: f.Missing, Disproved: true,
		Message: "no target version of the tree that would land has used up its retries"}
}
