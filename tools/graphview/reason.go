package graphview

import (
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
)

// reasonsOf returns in words why two changes conflict.
func reasonsOf(a, b *proposal, why targets.Why) []string {
	var reasons []string
	if why.All {
		for _, p := range []*proposal{a, b} {
			if p.footprint.All {
				reasons = append(reasons, fmt.Sprintf("%s conflicts with everything: %s", p.name, strings.Join(p.study.Reasons, ", ")))
			}
		}
		return reasons
	}
	if n := len(why.Targets); n > 0 {
		reason := "both change " + why.Targets[0]
		if n > 1 {
			reason += fmt.Sprintf(" and %d more", n-1)
		}
		reasons = append(reasons, reason)
	}
	if why.Edge != "" {
		adds, changes := a, b
		if why.EdgeBy == 2 {
			adds, changes = b, a
		}
		reasons = append(reasons, fmt.Sprintf("%s makes %s depend on %s, which %s changes", adds.name, adds.whoNeeds(why.Edge), why.Edge, changes.name))
	}
	return reasons
}

// whoNeeds names what the change makes depend on a node: a target if one does, or else what stands between.
func (p *proposal) whoNeeds(label string) string {
	base, head := p.study.Base.Graph, p.study.Parts[len(p.study.Parts)-1].Graph
	adds := func(from string) bool {
		return slices.Contains(head.Dependencies(from), label) && !slices.Contains(base.Dependencies(from), label)
	}
	for _, list := range [][]string{p.footprint.Touched, p.footprint.Leaves} {
		if at := slices.IndexFunc(list, adds); at >= 0 {
			return list[at]
		}
	}
	return "a target"
}
