package explanation

import (
	"fmt"
	"strings"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/graph"
	"landfall.build/services/memberset"
	"landfall.build/services/selector/decision"
)

// maxPaths bounds the paths that are named for a change.
const maxPaths = 8

// Verdict is what may become of a change now, why, and, if it has to wait, what it would take to decide it.
type Verdict struct {
	// Decision is land, reject, eject or wait: the rule's (M19, M19a), whatever is held or paused.
	Decision string `json:"decision"`
	Why      string `json:"why"`
	// Ahead are the pending members of A(c), in queue order: what lands is decided past them, what waits can be decided once
	// they are.
	Ahead []string `json:"ahead"`
	// Green, Red and Open count the paths that can still come about, of those that were looked at. Looking ends once as many open
	// ones are found as are named.
	Green int `json:"green"`
	Red   int `json:"red"`
	Open  int `json:"open"`
	// Paths are those of which nothing is known if it waits; else those that decide it.
	Paths []Path `json:"paths"`
}

// Path is one that can still come about.
type Path struct {
	Assumed []string `json:"assumed"`
	State   string   `json:"state"`
	// Message says what is in the way of one that is not green.
	Message string `json:"message,omitempty"`
	// Outstanding are the targets that are to be verified for one that is unknown, at most 8, and More how many there are besides.
	Outstanding []string `json:"outstanding,omitempty"`
	More        int      `json:"more,omitempty"`
	// Builds are the running ones of the change that verify some of them.
	Builds []string `json:"builds,omitempty"`
	// Covered: they verify all of them.
	Covered bool    `json:"covered,omitempty"`
	Proof   []Proof `json:"proof,omitempty"`
}

// Verdict says what may become of a change, nil if it is not pending at that revision.
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
		v.Why = "it, or what is ahead of it, is not analysed yet"
		return v
	case n.Intended:
		v.Why = "it is being pushed to the mainline"
		return v
	}
	verdict, reason := decision.Decide(e.g, n)
	v.Decision = verdict.String()
	e.lookAtPaths(v, n, verdict)
	switch verdict {
	case decision.Land:
		v.Why = "every path that can still come about is green"
	case decision.Reject:
		v.Why = "every path is red: " + strings.TrimRight(reason.GetMessage(), ".")
	case decision.Eject:
		v.Why = "its one path has used up its retries: " + strings.TrimRight(reason.GetMessage(), ".")
	default:
		v.Why = e.whyWait(v, n)
	}
	return v
}

func (e *Explainer) lookAtPaths(v *Verdict, n *graph.Node, verdict decision.Verdict) {
	e.g.EachPath(n, verdict == decision.Reject, func(s memberset.Set) bool {
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

// eachBuild calls f for the builds of a change that run, each with its path as that is now.
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
		for _, a := range b.Assumed { // what is no member has landed, or the build is about to be aborted
			if j := n.IndexOf(a.Change); j >= 0 && n.Ahead[j].Change.Revision == a.Revision {
				path.Add(j)
			}
		}
		f(b.Build, path)
	}
}

func (e *Explainer) whyWait(v *Verdict, n *graph.Node) string {
	blocked := n.Path(memberset.New(len(n.Ahead))) == graph.Blocked
	switch {
	case !e.g.Mainline.GetAnalyzed():
		return "what came to the mainline past the queue is being analysed first"
	case v.Open > 0 && len(n.Ahead) == 0:
		return "no build of it has finished"
	case v.Open >= maxPaths:
		return fmt.Sprintf("%d paths or more that can come about are not known", maxPaths)
	case v.Open == 1:
		return "one path that can come about is not known: on top of " + OnTopOf(v.Paths[0].Assumed)
	case v.Open > 1:
		return fmt.Sprintf("%d paths that can come about are not known", v.Open)
	case blocked:
		return "the mainline itself is red, or not known yet, in targets of it"
	case e.g.Held(n) && n.Path(memberset.New(len(n.Ahead))) == graph.Green:
		if e.g.Mainline.GetPaused() && len(n.Holds) == 0 {
			return "the queue is paused"
		}
		return "it is held"
	case v.Red > 0:
		return "what is ahead of it decides: it is red on some paths that can come about"
	}
	return "what is ahead of it has to be decided first"
}

// Covered says that running builds of the change make, on whatever paths, all that the path waits for.
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

// OnTopOf names what a path assumes to land.
func OnTopOf(assumed []string) string {
	if len(assumed) == 0 {
		return "the mainline alone"
	}
	return strings.Join(assumed, ", ")
}
