// Package steplog names the logs of steps in the log store, a folder in which builders write and gateways read. A name follows from the
// lease of the run, so that a gateway finds the log of a step that has not finished.
package steplog

import (
	"path"
	"strconv"

	"landfall.build/events"
)

const (
	// Ending is that of all logs.
	Ending = ".log"
	// FailedEnding is that of the log of a step that failed or timed out, once it has.
	FailedEnding = ".failed.log"
)

// Key returns the beginning of the names of a target version's logs. It tells which version a log is of.
func Key(log, queue, target, hash string) string {
	return events.DeriveID(log, "logs of a version", queue, target, hash)[:16]
}

// Run is one run of a step. Log is the id of the log of events.
type Run struct {
	Log, Queue, Target, Hash string
	Attempt                  uint32
	Lease                    string
}

// Name returns the name of a run's log while the step runs, below the store's folder. A queue's name is one element of a path (keys of
// queues in the configuration).
func Name(r Run) string {
	id := events.DeriveID(r.Log, "log", r.Queue, r.Target, r.Hash, strconv.FormatUint(uint64(r.Attempt), 10), r.Lease)
	return path.Join(r.Queue, Key(r.Log, r.Queue, r.Target, r.Hash)+"-"+id+Ending)
}
