// Package plainmerge finds out what a mainline would have come to without a queue: every change is merged in
// the order in which it was asked for, if it merges without a conflict, and nothing is built first.
package plainmerge

import (
	"context"
	"fmt"

	"landfall.build/engine/targets"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/gitrepo"
	"landfall.build/platform/landing"
	"landfall.build/tools/audit"
)

// Request asks for a merge.
type Request struct {
	Name string
	// Picks are what is to be merged, in order.
	Picks []landing.Pick
}

// Chain is the mainline that plain merging makes.
type Chain struct {
	// Start is the head that everything was merged onto.
	Start string
	// Merged are the requests that merge, with the head of the mainline after each.
	Merged []Merged
	// Refused are those that have a textual conflict with what is there.
	Refused []string
	// Reverted define no valid targets: nothing can be built any more, so even people who merge
	// plainly take such a merge back at once.
	Reverted []string
}

// Merged is one merge.
type Merged struct{ Name, Head string }

// Merge makes the chain. It writes commits into the mirror and pushes nothing.
func Merge(ctx context.Context, repo *gitrepo.Repo, loader *buildgraph.Loader, start string, requests []Request) (*Chain, error) {
	chain := &Chain{Start: start}
	at := start
	for _, r := range requests {
		landed, conflict, err := landing.Commits(ctx, repo, at, r.Picks, landing.Meta{Change: r.Name, Date: "0 +0000"})
		if err != nil {
			return nil, fmt.Errorf("merging %s: %w", r.Name, err)
		}
		if conflict != nil {
			chain.Refused = append(chain.Refused, r.Name)
			continue
		}
		_, invalid, err := loader.Part(ctx, repo, landed.Trees[len(landed.Trees)-1])
		if err != nil {
			return nil, fmt.Errorf("the targets after merging %s: %w", r.Name, err)
		}
		if invalid != nil {
			chain.Reverted = append(chain.Reverted, r.Name)
			continue
		}
		at = landed.Commits[len(landed.Commits)-1]
		chain.Merged = append(chain.Merged, Merged{r.Name, at})
	}
	return chain, nil
}

// Damage is what plain merging did to a mainline.
type Damage struct {
	// Breaking are the merges that made a target red that was green, or was not there, those that were
	// reverted at once among them.
	Breaking []Breaking
	// RedHeads counts the heads of the mainline with a red target, Heads all of them, reverted ones left out.
	RedHeads, Heads int
}

// Breaking is a merge after which targets are red that were not.
type Breaking struct {
	Name    string
	Targets []string
}

// Assess builds what the chain's heads consist of and returns which merges broke the mainline. What the auditor
// has run before, for the same target version, it does not run again.
func Assess(ctx context.Context, auditor *audit.Auditor, chain *Chain) (*Damage, error) {
	heads := []string{chain.Start}
	for _, m := range chain.Merged {
		heads = append(heads, m.Head)
	}
	report, err := auditor.Judge(ctx, heads)
	if err != nil {
		return nil, err
	}
	d := &Damage{Heads: len(chain.Merged)}
	for _, name := range chain.Reverted {
		d.Breaking = append(d.Breaking, Breaking{name, []string{targets.Repository}})
	}
	was := red(report.Commits[0])
	for i, m := range chain.Merged {
		is := red(report.Commits[i+1])
		b := Breaking{Name: m.Name}
		for _, f := range report.Commits[i+1].Bad {
			if !was[f.Target] {
				b.Targets = append(b.Targets, f.Target)
			}
		}
		if len(b.Targets) > 0 {
			d.Breaking = append(d.Breaking, b)
		}
		if len(is) > 0 {
			d.RedHeads++
		}
		was = is
	}
	return d, nil
}

func red(c audit.Commit) map[string]bool {
	out := map[string]bool{}
	for _, f := range c.Bad {
		out[f.Target] = true
	}
	return out
}
