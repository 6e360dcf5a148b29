// Package view is the fold that answers people's questions about one queue: what is in it and in which
// order, why a change waits, which builds run and what they assume, what failed and where its log is,
// what was landed and which step proved each target version of it.
//
// It is pure and takes counted records of several topics, which arrive in order within a topic and in
// any order between topics: the same records give the same answers once all have arrived. It decides
// nothing; nothing else may be decided by it.
//
// Memory is bounded by Limits. Pending changes are kept whole; of finished ones the newest.
package view

// Limits bound what a view keeps.
type Limits struct {
	// Finished is the number of changes kept after they landed or left.
	Finished int
	// Builds is the number of builds kept, newest first to stay.
	Builds int
	// Attempts is the number of finished steps kept.
	Attempts int
	// TailBytes is how much of the steps' output tails is kept altogether.
	TailBytes int
}

// DefaultLimits keep some 100 MiB at the very most.
func DefaultLimits() Limits {
	return Limits{Finished: 2000, Builds: 10_000, Attempts: 50_000, TailBytes: 32 << 20}
}

const (
	maxTimeline         = 200
	keptTimelineHead    = 20
	maxFinishedText     = 8 << 10
	maxAnalysedShown    = 50
	maxNamesInSentences = 3
	keptPauses          = 10
	maxBuildsOfChange   = 64
	// maxVersionsOfBuilds bounds the target versions that all builds of a queue hold, some 300 bytes each.
	maxVersionsOfBuilds = 4 << 20
	// keptRevisions is of how many revisions of a change builds are kept, for their output.
	keptRevisions   = uint64(4)
	maxEarlyEvents  = 50
	maxEarlyChanges = 10_000
	maxAnswered     = 10_000
)
