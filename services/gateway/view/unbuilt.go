package view

import (
	"fmt"
	"slices"
	"strings"

	eventsv1 "landfall.build/events/v1"
)

// uncoveredOf returns the first files of an analysis that no target covers; nil if it names none.
func uncoveredOf(u *eventsv1.Uncovered) *Uncovered {
	if u == nil {
		return nil
	}
	first := func(paths []string) []string { return paths[:min(len(paths), maxAnalysedShown)] }
	return &Uncovered{
		Files: first(u.Files), FilesTotal: int(u.FilesTotal), Policy: u.Policy, Ignored: first(u.Ignored), IgnoredTotal: int(u.IgnoredTotal),
	}
}

// message returns it as a snapshot has it.
func (u *Uncovered) message() *eventsv1.Uncovered {
	if u == nil {
		return nil
	}
	return &eventsv1.Uncovered{
		Files: u.Files, FilesTotal: uint32(u.FilesTotal), Policy: u.Policy, Ignored: u.Ignored, IgnoredTotal: uint32(u.IgnoredTotal),
	}
}

// ignored returns which files the queue ignores; "" for none.
func (u *Uncovered) ignored() string {
	if u == nil || u.IgnoredTotal == 0 {
		return ""
	}
	return fmt.Sprintf("%s %s ignored by analysis.uncovered", namesOf(u.Ignored, u.IgnoredTotal), verb(u.IgnoredTotal, "is", "are"))
}

// warned returns for which files nothing is built though the queue does not ignore them; "" for none.
func (u *Uncovered) warned() string {
	if u == nil || u.FilesTotal == 0 || u.Policy == "whole_repository" {
		return ""
	}
	return fmt.Sprintf("no target covers %s (analysis.uncovered: %s)", namesOf(u.Files, u.FilesTotal), u.Policy)
}

// unbuiltFiles returns for which files of the change nothing is built, and why; "" for none.
func (a *Analysis) unbuiltFiles() string {
	if a == nil || a.Everything {
		return ""
	}
	return joined(a.Uncovered.warned(), a.Uncovered.ignored())
}

// whyUnbuilt returns why nothing is built for the change; "" if something is, or if that is not known.
func (a *Analysis) whyUnbuilt() string {
	if a == nil || a.Outcome != "analyzed" || a.Everything || a.TargetsTotal > a.TargetsWithoutSteps {
		return ""
	}
	return unbuilt(a, a.Targets, a.TargetsTotal)
}

// whyNotBuilt returns why nothing was built for landing commits, by their proof; "" if something was.
func (a *Analysis) whyNotBuilt(proof []*eventsv1.Proof) string {
	var targets []string
	for _, p := range proof {
		if v := p.GetVersion(); !v.GetTrivial() && !v.GetAbsent() {
			return ""
		}
		targets = append(targets, p.GetVersion().GetTarget())
	}
	targets = sortedUnique(targets)
	return unbuilt(a, targets, len(targets))
}

// unbuilt returns why nothing is built: the files that no target covers, the targets that no step verifies, and those that are removed.
func unbuilt(a *Analysis, targets []string, total int) string {
	var without, removes string
	if total > 0 {
		without = namesOf(targets, total) + " " + verb(total, "has", "have") + " no steps"
	}
	if a != nil && a.does.removedTotal > 0 {
		removes = "it removes " + namesOf(a.does.removed, a.does.removedTotal)
	}
	if why := joined(a.unbuiltFiles(), without, removes); why != "" {
		return why
	}
	return "it affects no target"
}

// joined joins the clauses that are not empty.
func joined(clauses ...string) string {
	return strings.Join(slices.DeleteFunc(clauses, func(c string) bool { return c == "" }), "; ")
}

// namesOf is names for a list that is cut after its first ones.
func namesOf(first []string, total int) string {
	if total <= maxNamesInSentences || len(first) < maxNamesInSentences {
		return names(first)
	}
	return strings.Join(first[:maxNamesInSentences], ", ") + fmt.Sprintf(" and %d more", total-maxNamesInSentences)
}
