package targets

import (
	"cmp"
	"slices"
)

// Change is how a target version came about.
type Change uint8

const (
	// ChangeAdded: the base has no such target.
	ChangeAdded Change = iota + 1
	// ChangeModified: the base has it with another hash.
	ChangeModified
)

// String returns "added" or "modified".
func (c Change) String() string {
	switch c {
	case ChangeAdded:
		return "added"
	case ChangeModified:
		return "modified"
	}
	return "unspecified"
}

// TargetVersion is a target at a hash: what steps prove green or red.
type TargetVersion struct {
	Name   string
	Hash   Hash
	Change Change
}

// Analysis is what a change does to the target graph, relative to its base.
// All lists are sorted and free of repetitions.
type Analysis struct {
	// Affected is δ: the target versions that applying the change creates or
	// alters. A change of several landing commits can have several versions of
	// one target, in the order of the commits.
	Affected []TargetVersion
	// Deleted names the targets that the change removes.
	Deleted []string
	// Leaves labels the other nodes that the change adds, alters or removes:
	// file:…, dir:…, def:…, ext:….
	Leaves []string
	// Uncovered holds the paths of the files among the leaves that no target covers (Graph.Covers), before or after; nil with
	// All. What they mean is the caller's to decide: no version in Affected rests on them.
	Uncovered []string
	// Added is N: the labels of the dependency ends of the edges that the change
	// adds.
	Added []string
	// All is set if the targets are not known, so that the change conflicts with
	// everything (M4). Reasons tell why.
	All     bool
	Reasons []string
}

// Touched returns D: the names of the targets that the change adds, alters or
// deletes, sorted.
func (a Analysis) Touched() []string {
	names := make([]string, 0, len(a.Affected)+len(a.Deleted))
	for _, v := range a.Affected {
		names = append(names, v.Name)
	}
	return Normal(append(names, a.Deleted...))
}

// Union joins the analyses of a change's prefixes, each relative to the same
// base (M23): what has to be green is every version that some
// prefix makes, and it meets another change where some prefix does.
func Union(prefixes ...Analysis) Analysis {
	var u Analysis
	for _, p := range prefixes {
		u.Affected = append(u.Affected, p.Affected...)
		u.Deleted = append(u.Deleted, p.Deleted...)
		u.Leaves = append(u.Leaves, p.Leaves...)
		u.Uncovered = append(u.Uncovered, p.Uncovered...)
		u.Added = append(u.Added, p.Added...)
		u.All = u.All || p.All
		for _, reason := range p.Reasons {
			if !slices.Contains(u.Reasons, reason) {
				u.Reasons = append(u.Reasons, reason)
			}
		}
	}
	// Stable: versions of one target keep the order of the landing commits.
	slices.SortStableFunc(u.Affected, func(x, y TargetVersion) int { return cmp.Compare(x.Name, y.Name) })
	u.Affected = dropRepeatedVersions(u.Affected)
	u.Deleted, u.Leaves, u.Added = Normal(u.Deleted), Normal(u.Leaves), Normal(u.Added)
	if u.Uncovered = Normal(u.Uncovered); u.All {
		u.Uncovered = nil
	}
	return u
}

// dropRepeatedVersions keeps the first of equal versions, which need not be
// neighbours: a later commit can return to an earlier version.
func dropRepeatedVersions(sorted []TargetVersion) []TargetVersion {
	kept := sorted[:0]
	first := 0
	for _, v := range sorted {
		if len(kept) > first && kept[first].Name != v.Name {
			first = len(kept)
		}
		if !slices.ContainsFunc(kept[first:], func(k TargetVersion) bool { return k.Hash == v.Hash }) {
			kept = append(kept, v)
		}
	}
	return kept
}

// Normal sorts in place and drops repetitions; nil stays nil.
func Normal(names []string) []string {
	if !slices.IsSorted(names) {
		slices.Sort(names)
	}
	return slices.Compact(names)
}
