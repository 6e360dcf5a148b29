package kafka

import (
	"time"

	"landfall.build/services/journal"
)

// MaxQueued is the bound above which a cursor's partition is paused.
const MaxQueued = maxQueued

// Queued is how much a cursor holds, in bytes.
func Queued(c journal.Cursor) int {
	of := c.(*cursor)
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.bytes
}

// Readers is how many clients read for a log.
func Readers(l *Log) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.readers)
}

// Complaints says of each kind whether it is to be said, and how many were not.
func Complaints(now func() time.Time) func(kind string) (held int, say bool) {
	return (&complaints{now: now, said: map[string]*complaint{}}).say
}
