package kafka

import (
	"landfall.build/platform/journal"
)

// MaxQueued is the bound above which a cursor's partition is paused.
var MaxQueued = fast.queued

// Queued returns how much a cursor holds, in bytes.
func Queued(c journal.Cursor) int {
	of := c.(*cursor)
	of.mu.Lock()
	defer of.mu.Unlock()
	return of.bytes
}

// Bounds of what waits in a claimed writer's lane.
const (
	MaxWaiting      = maxWaiting
	MaxWaitingBytes = maxWaitingBytes
)

// Waiting returns what waits in a writer's lane, and whether a call waits for a place in it.
func Waiting(l *Log, topic string, partition int32, source string) (appends, bytes int, full bool) {
	la := l.lanes.lane(writer{topic, partition, source})
	la.mu.Lock()
	defer la.mu.Unlock()
	for _, p := range la.waiting {
		for _, r := range p.records {
			bytes += len(r.Value)
		}
	}
	return len(la.waiting), bytes, la.room != nil
}

// Readers returns how many clients read for a log.
func Readers(l *Log) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.readers)
}

// MaxSparing is the most that a cursor holds which follows sparingly.
var MaxSparing = sparing.queued + int(sparing.fetched)
