package kafka

import "landfall.build/services/journal"

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
