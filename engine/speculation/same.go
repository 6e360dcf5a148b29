package speculation

import (
	"bytes"
	"slices"

	"landfall.build/engine/graph"
	eventsv1 "landfall.build/events/v1"
)

// sameNode reports whether two nodes are equal. Nodes are compared at every fact, and proto.Equal takes longer than making
// them does.
func sameNode(a, b *eventsv1.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return graph.SameRef(a.Change, b.Change) && a.Position == b.Position && a.Analyzed == b.Analyzed &&
		slices.EqualFunc(a.Ahead, b.Ahead, sameAhead) && slices.EqualFunc(a.Classes, b.Classes, sameClass) &&
		slices.EqualFunc(a.Paths, b.Paths, sameOutcome) && slices.EqualFunc(a.Holds, b.Holds, sameHold) &&
		sameGuard(a.Guard, b.Guard) && a.Benefit == b.Benefit && a.AdmittedUs == b.AdmittedUs &&
		slices.EqualFunc(a.LandingCommits, b.LandingCommits, sameLandingCommit) && a.MissingRequirement == b.MissingRequirement &&
		a.Epoch == b.Epoch && a.Intended == b.Intended && a.Mainline == b.Mainline && a.Urgent == b.Urgent && a.Author == b.Author &&
		slices.Equal(a.Inherited, b.Inherited)
}

func sameSurvey(a, b *eventsv1.Survey) bool {
	return (a == nil) == (b == nil) && a.GetUnproven() == b.GetUnproven() && slices.EqualFunc(a.GetTargets(), b.GetTargets(), sameVersion)
}

func sameAhead(a, b *eventsv1.Ahead) bool {
	return graph.SameRef(a.Change, b.Change) && a.MergeConflict == b.MergeConflict && a.Required == b.Required &&
		a.Conflicts == b.Conflicts && slices.Equal(a.Targets, b.Targets)
}

func sameClass(a, b *eventsv1.Class) bool {
	return slices.Equal(a.Members, b.Members) && slices.Equal(a.Through, b.Through) && slices.EqualFunc(a.Targets, b.Targets, sameVersion) &&
		slices.EqualFunc(a.Outcomes, b.Outcomes, sameOutcome)
}

func sameVersion(a, b *eventsv1.TargetVersion) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Target == b.Target && a.Hash == b.Hash && a.Part == b.Part && a.Trivial == b.Trivial && a.Absent == b.Absent
}

func sameOutcome(a, b *eventsv1.Outcome) bool {
	return bytes.Equal(a.Members, b.Members) && a.State == b.State && sameVersion(a.Version, b.Version) &&
		a.Message == b.Message && a.Class == b.Class
}

func sameHold(a, b *eventsv1.Hold) bool {
	return a.Name == b.Name && a.Who == b.Who && a.Why == b.Why
}

func sameGuard(a, b *eventsv1.Guard) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Base == b.Base && slices.EqualFunc(a.Versions, b.Versions, sameVersion) && a.State == b.State &&
		slices.EqualFunc(a.Missing, b.Missing, sameVersion) && sameReason(a.Reason, b.Reason)
}

func sameReason(a, b *eventsv1.Reason) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Class == b.Class && a.Message == b.Message && slices.EqualFunc(a.Failed, b.Failed, sameProof) && a.Other == b.Other
}

func sameProof(a, b *eventsv1.Proof) bool {
	return sameVersion(a.Version, b.Version) && a.Build == b.Build && a.Attempt == b.Attempt && a.Tests == b.Tests && a.Untested == b.Untested && a.Quarantined == b.Quarantined && a.Step == b.Step
}

func sameLandingCommit(a, b *eventsv1.LandingCommit) bool {
	return a.Head == b.Head && a.Base == b.Base && a.Merge == b.Merge && a.Entry == b.Entry
}
