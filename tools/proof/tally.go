package proof

import (
	"fmt"
	"strings"
)

// Count is something that schedules go through, or a promise that was broken.
type Count int

// What schedules go through.
const (
	Schedules Count = iota
	Changes
	Landed
	Rejected
	Ejected
	Cancelled
	Revisions
	TooLate // a cancellation or a new revision behind LandIntended

	LandedInParts // by several commits
	Requirements  // changes that require another
	LandedInChain // that required another
	RequirementRejections
	Moves
	Holds
	Pauses
	Duplicates   // records that were written twice
	Redeliveries // of land requests
	Resubmissions

	Pushes
	RedPushes
	Repairs // of a red mainline by a change of the queue
	Rewrites
	Resets // of the mainline to a former head
	Unknown
	Unmergeable
	Invalid
	Deletions
	AddedEdges
	Clashes
	UnmergeableBuilds
	Sabotages

	Bypasses
	SeveralBypassed // by one change
	Refusals
	RefusedPushes
	Freezes        // of the remote
	FrozenPushes   // that it refused meanwhile
	PausedByRemote // landings, as the log says
	LostCommits    // changes that the lander could not make
	Outages        // of the remote
	OutagesTold    // by the log
	Dropped        // landings, by a push that rewrote the mainline
	EarlyRejections
	Voids
	LostAnswers
	TakeOvers // during a push
	Crashes
	StaleWrites
	Faults
	Stalls
	Interruptions
	InParts // records in several parts
	Torn
	ClockJumps
	OtherVersions
	Rereadings // of trees, with another configuration
	MovedHeads // of reviews, to what lands
	HeadsTakenBack
	BrokenWorlds // in which a target fails whatever its tree holds
	Quarantines  // facts of operators, configuration and rates
	Retries      // of blocked changes
	Tolerated    // versions that landed without a pass
	HubLandings  // of changes that alter a hub
	HubChanges   // queues that got other hubs on the way
	SeveralQueues
	Snapshots
	Thaws // starts from a snapshot

	Analyses
	Surveys    // of a mainline
	IdleBuilds // for one
	Builds
	Aborts
	Steps
	FalseFailures
	TakenOver // leases that lapsed
	LostWorkers
	Companions   // steps that went with another one
	BrokenGroups // whose tool ended without a result for the rest
	LateResults
	RunTwice  // attempts that two workers made
	Forgotten // versions whose results were forgotten
	RunAgain  // attempts at versions that were forgotten

	// Spoiled changes were passed by one that makes red a target that they create, or that a third change, which
	// landed meanwhile, has a part in: what an analysis of pairs cannot tell (M20, M24).
	Spoiled
	// StaleSnapshots are opened, and found to hold what does not count.
	StaleSnapshots

	// Broken promises.
	Red
	Unproven
	Doubled
	Lost
	Undecided
	WronglyRejected
	WronglyEjected
	Overtaken // by one that spoiled it
	Unheeded  // holds and pauses
	Disordered

	counts
)

var countNames = [counts]string{
	"schedules", "changes", "landed", "rejected", "ejected", "cancelled", "revisions", "too late",
	"landed in parts", "requirements", "landed in chain", "requirement rejections", "moves", "holds", "pauses", "duplicates", "redeliveries", "resubmissions",
	"pushes", "red pushes", "repairs", "rewrites", "resets", "unknown targets", "unmergeable", "invalid", "deletions",
	"added edges", "clashes", "unmergeable builds", "sabotages",
	"bypasses", "several bypassed", "refusals", "refused pushes", "freezes", "frozen pushes", "paused by the remote", "lost commits", "outages", "outages told", "dropped", "early rejections", "voids", "lost answers", "take-overs", "crashes", "stale writes", "faults", "stalls", "interruptions", "records in parts", "torn", "clock jumps", "other versions", "readings", "heads moved", "heads taken back", "broken worlds", "quarantines", "retries of blocked changes", "tolerated", "landings in hubs", "other hubs", "several queues", "snapshots", "thaws",
	"analyses", "surveys", "builds while idle", "builds", "aborts", "steps", "false failures", "leases taken over", "lost workers", "companions", "broken groups", "late results", "run twice", "forgotten", "run again", "spoiled", "stale snapshots",
	"RED", "UNPROVEN", "DOUBLED", "LOST", "UNDECIDED", "WRONGLY REJECTED", "WRONGLY EJECTED", "OVERTAKEN", "UNHEEDED", "DISORDERED",
}

func (c Count) String() string { return countNames[c] }

// Tally counts what schedules went through, and what was found.
type Tally [counts]int

// Add sums tallies.
func (t *Tally) Add(o Tally) {
	for i, n := range o {
		t[i] += n
	}
}

// Violations is the number of broken promises.
func (t Tally) Violations() (n int) {
	for c := Red; c < counts; c++ {
		n += t[c]
	}
	return n
}

// Missing are the things that never happened.
func (t Tally) Missing() (list []Count) {
	for c := Schedules; c < Spoiled; c++ {
		if t[c] == 0 {
			list = append(list, c)
		}
	}
	return list
}

func (t Tally) String() string {
	var b strings.Builder
	for c, n := range t {
		switch Count(c) {
		case LandedInParts, Pushes, Bypasses, Analyses, Red:
			b.WriteString("\n  ")
		default:
			if c > 0 {
				b.WriteString(", ")
			}
		}
		fmt.Fprintf(&b, "%v %d", Count(c), n)
	}
	return b.String()
}

// KnownFaults are broken promises whose cause is known: they are counted by themselves, so that what is new stands out. docs/guides/proof.md
// says what each is.
func KnownFaults() []Count { return []Count{Spoiled} }
