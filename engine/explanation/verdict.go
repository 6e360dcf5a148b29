package explanation

import (
	"fmt"
	"strings"

	"landfall.build/engine/decision"
	"landfall.build/engine/graph"
	"landfall.build/engine/memberset"
	eventsv1 "landfall.build/events/v1"
)

// maxPaths bounds the paths that are named for a change.
const maxPaths = 8

// Verdict is the decision about a change as things stand, why it is, and, if the change waits, what is missing to decide it.
type Verdict struct {
	// Decision is land, reject, eject or wait, by the rules alone (M19, M19a): a hold or a pause does not change it.
	Decision string `json:"decision"`
	Why      string `json:"why"`
	// Ahead are the pending members of A(c), in queue order. A change that lands bypasses them; one that waits can be decided once they
	// are.
	Ahead []string `json:"ahead"`
	// Green, Red and Open count the paths that can still come about. Counting ends with the eighth open path.
	Green int `json:"green"`
	Red   int `json:"red"`
	Open  int `json:"open"`
	// Paths are the open paths if the change waits, else those that decide it: at most 8.
	Paths []Path `json:"paths"`
}

// Path is a path that can still come about.
type Path struct {
	Assumed []string `json:"assumed"`
	State   string   `json:"state"`
	// Message is why the path is not green, empty for one that is green or unknown.
	Message string `json:"message,omitempty"`
	// Outstanding are the targets that an unknown path still needs verified, at most 8; More counts the others.
	Outstanding []string `json:"outstanding,omitempty"`
	More        int      `json:"more,omitempty"`
	// Builds are the running builds of the change that verify some of them.
	Builds []string `json:"builds,omitempty"`
	// Covered reports whether these builds verify all of them.
	Covered bool    `json:"covered,omitempty"`
	Proof   []Proof `json:"proof,omitempty"`
}

// Verdict returns the verdict about a change, nil if it is not pending at that revision.
func (e *Explainer) Verdict(c *eventsv1.ChangeRef) *Verdict {
	n := e.g.NodeAt(c)
	if n == nil {
		return nil
	}
	v := &Verdict{Decision: decision.Wait.String(), Ahead: []string{}, Paths: []Path{}}
	for j, a := range n.Ahead {
		if n.Member(j) != nil {
			v.Ahead = append(v.Ahead, a.Change.Change)
		}
	}
	switch {
	case !n.Analyzed:
		v.Why = "it, or a change ahead of it, is not analysed yet"
		return v
	case n.Intended:
		v.Why = "it is being pushed to the mainline"
		return v
	}
	verdict, reason := decision.Decide(e.g, n)
	v.Decision = verdict.String()
	e.countPaths(v, n, verdict)
	switch verdict {
	case decision.Land:
		v.Why = "all steps passed"
		if len(v.Ahead) > 0 {
			v.Why += ", whichever of the changes ahead land"
		}
	case decision.Reject:
		v.Why = "it fails on every path: " + strings.TrimRight(reason.GetMessage(), ".")
	case decision.Eject:
		v.Why = "no retries are left: " + strings.TrimRight(reason.GetMessage(), ".")
	default:
		v.Why = e.whyWait(v, n)
	}
	return v
}

// countPaths counts the paths that can still come about, and lists those that explain the verdict.
func (e *Explainer) countPaths(v *Verdict, n *graph.Node, verdict decision.Verdict) {
	each := e.g.EachPath
	if verdict == decision.Reject {
		each = e.g.EachEnding
	}
	each(n, func(s memberset.Set) bool {
		state := n.Path(s)
		open := state == graph.Unknown
		switch {
		case open:
			v.Open++
		case state == graph.Green:
			v.Green++
		default:
			v.Red++
		}
		if open == (verdict == decision.Wait) && len(v.Paths) < maxPaths {
			v.Paths = append(v.Paths, e.pathOf(n, s, state))
		}
		return v.Open < maxPaths
	})
}

// pathOf describes a path that is in a state.
func (e *Explainer) pathOf(n *graph.Node, s memberset.Set, state eventsv1.OutcomeState) Path {
	p := Path{Assumed: []string{}, State: stateNames[state]}
	for j, a := range n.Ahead {
		if s.Has(j) {
			p.Assumed = append(p.Assumed, a.Change.Change)
		}
	}
	if state != graph.Unknown {
		p.Message, p.Proof = n.PathOutcome(s).Message, e.proof(n, s, state)
		return p
	}
	versions, targets := n.Outstanding(s)
	names := targetsOf(targets)
	p.More = max(0, len(names)-maxNamed)
	p.Outstanding = names[:len(names)-p.More]
	made := make([]bool, len(versions))
	e.eachBuild(n, func(build string, path memberset.Set) {
		some := false
		for i, version := range versions {
			if version.Class != graph.Guarded && n.Classes[version.Class].MakesOn(path, version.Members) {
				made[i], some = true, true
			}
		}
		if some {
			p.Builds = append(p.Builds, build)
		}
	})
	p.Covered = len(versions) > 0
	for _, m := range made {
		p.Covered = p.Covered && m
	}
	return p
}

// eachBuild calls f for each running build of a change, with its path as it is now.
func (e *Explainer) eachBuild(n *graph.Node, f func(build string, path memberset.Set)) {
	if e.how.Active == nil {
		for _, x := range e.active(n.Change.Change) {
			if path, alive := e.path(x.run); alive {
				f(x.build, path)
			}
		}
		return
	}
	for _, b := range e.how.Active(n.Change) {
		path := memberset.New(len(n.Ahead))
		for _, a := range b.Assumed { // a change that is not a member has landed, or the build is about to be aborted
			if j := n.IndexOf(a.Change); j >= 0 && n.Ahead[j].Change.Revision == a.Revision {
				path.Add(j)
			}
		}
		f(b.Build, path)
	}
}

// whyWait returns what a change waits for.
func (e *Explainer) whyWait(v *Verdict, n *graph.Node) string {
	alone := n.Path(memberset.New(len(n.Ahead)))
	switch {
	case !e.g.Mainline.GetAnalyzed():
		return "a direct push to the mainline is being analysed first"
	case v.Open > 0 && len(n.Ahead) == 0:
		return "no build of it has finished"
	case v.Open >= maxPaths:
		return fmt.Sprintf("%d or more paths have no result yet", maxPaths)
	case v.Open == 1:
		return "one path has no result yet: on top of " + OnTopOf(v.Paths[0].Assumed)
	case v.Open > 1:
		return fmt.Sprintf("%d paths have no result yet", v.Open)
	case alone == graph.Blocked:
		return "its targets fail, or have no result yet, on the mainline itself"
	case e.g.Held(n) && alone == graph.Green:
		if e.g.Mainline.GetPaused() && len(n.Holds) == 0 {
			return "the queue is paused"
		}
		return "it is held"
	case alone == graph.Red && v.Green == 0:
		return "it fails as things stand; it is not rejected before the changes ahead that could mend it are decided"
	case v.Red > 0:
		return "it passes or fails depending on which of the changes ahead land"
	}
	return "the changes ahead are decided first"
}

// Covered reports whether running builds of the change, on whatever paths, verify all that a path waits for.
func (e *Explainer) Covered(c *eventsv1.ChangeRef, assumed []*eventsv1.ChangeRef) bool {
	n := e.g.NodeAt(c)
	if n == nil {
		return false
	}
	path := memberset.New(len(n.Ahead))
	for _, a := range assumed {
		if j := n.IndexOf(a.Change); j >= 0 {
			path.Add(j)
		}
	}
	return e.pathOf(n, path, graph.Unknown).Covered
}

// OnTopOf names the changes that a path assumes to land.
func OnTopOf(assumed []string) string {
	if len(assumed) == 0 {
		return "the mainline alone"
	}
	return strings.Join(assumed, ", ")
}
