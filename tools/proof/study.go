package proof

import (
	"slices"

	"landfall.build/engine/targets"
	eventsv1 "landfall.build/events/v1"
)

// study is what edits make of a tree, as package repograph says it of a git repository.
type study struct {
	trees []*tree
	// obstacle says with what they do not merge, invalid that they make the definitions invalid.
	obstacle string
	invalid  bool
	affected *eventsv1.Affected
}

// study is δ of the edits, each prefix against the base (M23).
func (r *repository) study(base *tree, edits []*atom) study {
	s := study{}
	if s.trees, s.obstacle = r.apply(base, edits); s.obstacle != "" {
		return s
	}
	s.compare(base)
	return s
}

// compare is for trees that are there already.
func compare(base, head *tree) study {
	s := study{trees: []*tree{head}}
	s.compare(base)
	return s
}

func (s *study) compare(base *tree) {
	// Where the definitions are invalid on the base, that they stay so says nothing against the edits.
	if s.invalid = !base.truth().invalid && slices.ContainsFunc(s.trees, func(t *tree) bool { return t.truth().invalid }); s.invalid {
		return
	}
	type version struct {
		name string
		hash targets.Hash
	}
	seen := map[version]bool{}
	deltas := make([]targets.Analysis, len(s.trees))
	var versions []*eventsv1.TargetVersion
	for i, t := range s.trees {
		deltas[i] = targets.Delta(base.truth().graph, t.truth().graph)
		for _, v := range deltas[i].Affected {
			if k := (version{v.Name, v.Hash}); !seen[k] {
				seen[k] = true
				versions = append(versions, t.version(v.Name, uint32(i+1)))
			}
		}
	}
	u := targets.Union(deltas...)
	if u.All {
		versions = nil
		whole := map[string]bool{base.id: true}
		for i, t := range s.trees {
			if !whole[t.id] {
				whole[t.id] = true
				versions = append(versions, t.version(targets.Repository, uint32(i+1)))
			}
		}
	}
	s.affected = &eventsv1.Affected{
		Targets: versions, Deleted: u.Deleted, Leaves: u.Leaves, AddedEdges: u.Added, All: u.All, Reasons: u.Reasons, Adapter: "model",
	}
}

// among returns the targets that the edits alter and that have one of the names.
func (s study) among(names []string) (list []string) {
	patterns := targets.NewNamePatterns(names)
	for _, v := range s.affected.GetTargets() {
		if patterns.Has(v.Target) && !slices.Contains(list, v.Target) {
			list = append(list, v.Target)
		}
	}
	return list
}

// isNotGreen names a target that the edits alter and leave red, or make red, at any of their commits; "" if
// they are green on the base (M23, M23a). What is quarantined is left out.
func (s study) isNotGreen(base *tree, quarantined *targets.NamePatterns) string {
	for _, v := range s.affected.GetTargets() {
		if !v.Absent && !v.Trivial && s.trees[v.Part-1].isRed(v.Target) && !quarantined.Has(v.Target) {
			return v.Target
		}
	}
	return s.reddens(base, quarantined)
}

// reddens names a target that is red with the edits, and not without them; "" if there is none. What is red
// on the base itself, or quarantined, says nothing against them.
func (s study) reddens(base *tree, quarantined *targets.NamePatterns) string {
	for _, v := range s.affected.GetTargets() {
		if !v.Absent && !v.Trivial && s.trees[v.Part-1].isRed(v.Target) && !base.isRed(v.Target) && !quarantined.Has(v.Target) {
			return v.Target
		}
	}
	for _, t := range s.trees {
		for name, red := range t.truth().red {
			if red && !base.isRed(name) && !quarantined.Has(name) {
				return name
			}
		}
	}
	return ""
}
