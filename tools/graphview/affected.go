package graphview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
)

// Affected is what `landfall affected --json` prints.
type Affected struct {
	Affected []AffectedTarget `json:"affected"`
	// Structural: a target came or went, or depends on other targets, definitions or externals than before.
	Structural bool `json:"structural"`
	// All: the targets of one side are not known (M4), or no target covers a file and the queue does not ignore it, so the
	// change conflicts with everything.
	All     bool     `json:"all"`
	Reasons []string `json:"reasons"`
	// Uncovered are the files of the difference that no target covers on either side.
	Uncovered []UncoveredFile `json:"uncovered"`
}

// AffectedTarget is a target that is another one after the change.
type AffectedTarget struct {
	Name string `json:"name"`
	// Change is added, removed or modified.
	Change string `json:"change"`
}

// affect returns which targets change on the way to a commit from where it left another one. Commits without a common ancestor are
// compared as they are.
func (v *view) affect(ctx context.Context, headName, base, head string) (*Affected, error) {
	left, err := v.MergeBase(ctx, base, head)
	if err != nil {
		return nil, err
	}
	base = cmp.Or(left, base)
	from, err := v.TreeOf(ctx, base)
	if err != nil {
		return nil, err
	}
	to, err := v.TreeOf(ctx, head)
	if err != nil {
		return nil, err
	}
	study, err := buildgraph.Compare(ctx, v.loader, v.Repo, from, []string{to})
	if err != nil {
		return nil, err
	}
	if study.Invalid != nil {
		return nil, fmt.Errorf("%s has target definitions that are not valid, so a queue would refuse it:\n%s", headName, study.Invalid.Message)
	}
	return affectedOf(study), nil
}

func affectedOf(study *buildgraph.Result) *Affected {
	a := &Affected{Affected: []AffectedTarget{}, All: study.All, Structural: study.All || len(study.Deleted) > 0, Reasons: study.Reasons, Uncovered: uncoveredOf(study.Uncovered)}
	if a.Reasons == nil {
		a.Reasons = []string{}
	}
	base, head := study.Base.Graph, study.Parts[len(study.Parts)-1].Graph
	for _, t := range study.Targets {
		change := targets.ChangeModified
		if _, was := study.Base.Target(t.Target); !was {
			change = targets.ChangeAdded
		}
		a.Structural = a.Structural || change == targets.ChangeAdded || !slices.Equal(structureOf(base, t.Target), structureOf(head, t.Target))
		a.Affected = append(a.Affected, AffectedTarget{Name: t.Target, Change: change.String()})
	}
	for _, name := range study.Deleted {
		a.Affected = append(a.Affected, AffectedTarget{Name: name, Change: "removed"})
	}
	slices.SortFunc(a.Affected, func(x, y AffectedTarget) int { return cmp.Compare(x.Name, y.Name) })
	return a
}

// structureOf is what a target depends on besides files and the listings behind globs.
func structureOf(graph *targets.Graph, name string) []string {
	return slices.DeleteFunc(graph.Dependencies(name), func(label string) bool {
		return strings.HasPrefix(label, targets.Label(targets.KindFile, "")) || strings.HasPrefix(label, targets.Label(targets.KindListing, ""))
	})
}
