package eta

// Why there is no estimate of a change, whatever is ahead of it.
const (
	Paused = "the queue is paused"
	// PausedByRemote may be followed by since when.
	PausedByRemote = "landings are paused: the remote refuses every push"
	Held           = "it is held"
	NotAnalyzed    = "it is not analysed yet"
	Blocked        = "the mainline is red, or not known, in its targets"
	NoDurations    = "nothing is known yet of how long its targets take"
	// WaitsForUnknown is for a change behind such ones.
	WaitsForUnknown = "what it waits for has no estimate"
)
