// Package verdict says whether the promises were kept: nothing red, nothing lost, nothing landed twice, nothing
// undecided, nobody rejected for no fault of theirs. It believes git and the audit; what the queue says is held
// against them.
package verdict

import (
	"landfall.build/services/gateway/view"
	"landfall.build/tools/audit"
	"landfall.build/tools/demo/expectation"
	"landfall.build/tools/demo/sample"
)

// Line is the last line of a run. Its fields are those of every proof of Landfall, so they can be compared: red
// to wrongly_rejected must be 0, the others say how much was thrown at it.
type Line struct {
	Schedules int    `json:"schedules"`
	Seed      uint64 `json:"seed"`
	// Red counts commits of the mainline that are not green when they are built again.
	Red int `json:"red"`
	// Lost counts changes that landed by the queue's word and are not on the mainline whole, or that the queue
	// does not know.
	Lost int `json:"lost"`
	// Doubled counts commits that are on the mainline once more than they were asked for.
	Doubled int `json:"doubled"`
	// Undecided counts changes that nothing happened to any more.
	Undecided int `json:"undecided"`
	// WronglyRejected counts changes that left the queue otherwise than they had to, and without landing.
	WronglyRejected int `json:"wrongly_rejected"`
	// Bypasses counts landings past a change that was still pending.
	Bypasses int `json:"bypasses"`
	// Crashes counts SIGKILLs: of services, of what they had started, of brokers.
	Crashes int `json:"crashes"`
	// StaleWrites counts records of owners that another had replaced.
	StaleWrites int `json:"stale_writes"`
	// GuardRefusals counts the land guard's.
	GuardRefusals int `json:"guard_refusals"`
}

// Kept says that no promise is broken.
func (l Line) Kept() bool {
	return l.Red+l.Lost+l.Doubled+l.Undecided+l.WronglyRejected == 0
}

// Add adds the counts of a round to those of a run.
func (l *Line) Add(o Line) {
	l.Schedules += o.Schedules
	l.Red += o.Red
	l.Lost += o.Lost
	l.Doubled += o.Doubled
	l.Undecided += o.Undecided
	l.WronglyRejected += o.WronglyRejected
	l.Bypasses += o.Bypasses
	l.Crashes += o.Crashes
	l.StaleWrites += o.StaleWrites
	l.GuardRefusals += o.GuardRefusals
}

// Judge counts the broken promises of a round: changes are as they ended, by name, mainline is git's, report is
// the audit of every commit. It gives the sentences of what is otherwise than it has to be, too.
func Judge(r *sample.Repository, changes map[string]view.Change, mainline expectation.Mainline, report *audit.Report) (Line, []string) {
	result := expectation.CheckOutcome(r, changes, mainline)
	var l Line
	l.Red = len(report.Commits) - report.Green()
	on := map[string]bool{}
	for _, id := range mainline.Commits {
		on[id] = true
	}
	times := map[string]int{}
	for _, title := range mainline.Titles {
		if times[title]++; times[title] > 1 {
			l.Doubled++
		}
	}
	for _, e := range result.Ends {
		switch {
		case e.View.Change == "":
			l.Lost++
		case !view.Final(e.View.State):
			l.Undecided++
		case e.View.State == view.StateLanded, e.View.State == view.StateDropped:
			if !whole(e, on) { // nobody rewrites the mainline in a round: what is dropped is lost
				l.Lost++
			}
		case !e.AsExpected:
			l.WronglyRejected++
		}
		if e.View.Landing != nil && len(e.View.Landing.Bypassed) > 0 {
			l.Bypasses++
		}
	}
	return l, result.Problems
}

// whole says that every commit that a change landed as is on the mainline, and that it is as many as were asked
// for.
func whole(e expectation.End, on map[string]bool) bool {
	for _, id := range e.View.Commits {
		if !on[id] {
			return false
		}
	}
	return len(e.View.Commits) == len(e.Change.Commits)
}
