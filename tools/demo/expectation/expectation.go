// Package expectation holds what became of the sample's changes against what has to become of them. The
// states come from the gateway, but the mainline from git itself: what the queue says about it is checked
// against it.
package expectation

import (
	"fmt"
	"slices"
	"strings"

	"landfall.build/services/gateway/view"
	"landfall.build/tools/demo/sample"
)

// Result is what became of the sample.
type Result struct {
	// Ends has each change's end, in the sample's order.
	Ends []End
	// Problems are sentences, one for each thing that is not as it has to be; none if all is well.
	Problems []string
}

// End is one change's.
type End struct {
	Change *sample.Change
	Got    sample.Ending
	// AsExpected: this alone, or with its rivals, is what has to be.
	AsExpected bool
	View       view.Change
}

// Mainline is a repository's mainline as git has it.
type Mainline struct {
	// Commits from after the sample's head on, oldest first.
	Commits []string
	// Titles of them.
	Titles []string
}

// Check compares. changes are as they ended, by name.
func Check(r *sample.Repository, changes map[string]view.Change, mainline Mainline) *Result {
	c := checkOutcome(r, changes, mainline)
	c.checkHotfix()
	c.checkBypass()
	return &c.result
}

// CheckOutcome is Check without what depends on how fast somebody is: who passes the slow change. It is for
// runs in which processes die all the time.
func CheckOutcome(r *sample.Repository, changes map[string]view.Change, mainline Mainline) *Result {
	return &checkOutcome(r, changes, mainline).result
}

func checkOutcome(r *sample.Repository, changes map[string]view.Change, mainline Mainline) *check {
	c := &check{sample: r, changes: changes, mainline: mainline, place: map[string]int{}}
	for i, id := range mainline.Commits {
		c.place[id] = i
	}
	landed := map[string]int{}
	for i := range r.Changes {
		if s := &r.Changes[i]; s.Rivals != "" && changes[s.Name].State == view.StateLanded {
			landed[s.Rivals]++
		}
	}
	for i := range r.Changes {
		c.end(&r.Changes[i], landed)
	}
	c.checkMainline()
	c.checkRequirements()
	return c
}

type check struct {
	sample   *sample.Repository
	changes  map[string]view.Change
	mainline Mainline
	// place of a commit on the mainline.
	place  map[string]int
	result Result
}

func (c *check) problem(format string, arguments ...any) {
	c.result.Problems = append(c.result.Problems, fmt.Sprintf(format, arguments...))
}

// end judges one change by itself and its rivals.
func (c *check) end(s *sample.Change, landed map[string]int) {
	v, known := c.changes[s.Name]
	e := End{Change: s, View: v, Got: sample.Ending{State: v.State}}
	if v.Rejection != nil {
		e.Got.Class = v.Rejection.Class
	}
	switch {
	case !known:
		c.problem("%s is not known to the queue.", s.Name)
	case s.Rivals == "":
		e.AsExpected = e.Got == s.Want
	default:
		e.AsExpected = landed[s.Rivals] == 1 && (e.Got == sample.Landed || e.Got == s.Want)
	}
	if known && !e.AsExpected {
		want := s.Want.String()
		if s.Rivals != "" {
			want = fmt.Sprintf("landed, or %s with exactly one of its rivals landed (%d did)", s.Want, landed[s.Rivals])
		}
		c.problem("%s is %s, not %s: %s", s.Name, e.Got, want, v.Why)
	}
	if s.Better != nil && known && v.Revision != 2 {
		c.problem("%s ended with revision %d, not with the second one.", s.Name, v.Revision)
	}
	c.result.Ends = append(c.result.Ends, e)
}

// checkMainline: the mainline consists of what landed and the push past the queue, each once, the commits of
// a stack one right after the other.
func (c *check) checkMainline() {
	explained := map[string]string{}
	for _, e := range c.result.Ends {
		ids := e.View.Commits
		if e.Got != sample.Landed {
			if len(ids) > 0 {
				c.problem("%s is %s and has commits on the mainline.", e.Change.Name, e.Got)
			}
			continue
		}
		if len(ids) != len(e.Change.Commits) {
			c.problem("%s landed as %d commits, not as %d.", e.Change.Name, len(ids), len(e.Change.Commits))
		}
		for i, id := range ids {
			at, there := c.place[id]
			switch {
			case !there:
				c.problem("Commit %s of %s is not on the mainline.", id, e.Change.Name)
			case explained[id] != "":
				c.problem("Commit %s is of %s and of %s.", id, e.Change.Name, explained[id])
			case i > 0 && at != c.place[ids[i-1]]+1:
				c.problem("The commits of %s do not follow each other.", e.Change.Name)
			}
			explained[id] = e.Change.Name
		}
	}
	direct := 0
	for i, id := range c.mainline.Commits {
		if explained[id] != "" {
			continue
		}
		if c.mainline.Titles[i] == c.sample.Direct.Title() {
			direct++
			continue
		}
		c.problem("Commit %s (%s) of the mainline is of no change that landed.", id, c.mainline.Titles[i])
	}
	if direct != 1 {
		c.problem("The push past the queue is on the mainline %d times, not once.", direct)
	}
}

// checkRequirements: what a change requires landed before it.
func (c *check) checkRequirements() {
	for _, e := range c.result.Ends {
		for _, name := range e.Change.Requires {
			if e.Got == sample.Landed && !c.before(name, e.Change.Name) {
				c.problem("%s landed before %s, which it requires.", e.Change.Name, name)
			}
		}
	}
}

// checkHotfix: though it came after the slow change, it landed before it, or the slow one landed past it for
// good reason.
func (c *check) checkHotfix() {
	landing := c.changes[sample.Slow].Landing
	past := landing != nil && slices.Contains(landing.Bypassed, sample.Hotfix)
	if c.bothLanded(sample.Hotfix, sample.Slow) && !c.before(sample.Hotfix, sample.Slow) && !past {
		c.problem("%s, moved to the front, landed after %s.", sample.Hotfix, sample.Slow)
	}
}

func (c *check) bothLanded(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return len(c.changes[n].Commits) == 0 })
}

func (c *check) before(a, b string) bool {
	return c.bothLanded(a, b) && c.place[c.changes[a].Commits[0]] < c.place[c.changes[b].Commits[0]]
}

// checkBypass: small changes that meet the slow one did not wait for it.
func (c *check) checkBypass() {
	var past []string
	for _, e := range c.result.Ends {
		if e.View.Landing != nil && slices.Contains(e.View.Landing.Bypassed, sample.Slow) {
			past = append(past, e.Change.Name)
		}
	}
	if len(past) == 0 {
		c.problem("No change landed past %s.", sample.Slow)
	}
	if slices.Contains(past, sample.Slow) {
		c.problem("%s landed past itself: %s.", sample.Slow, strings.Join(past, ", "))
	}
}
