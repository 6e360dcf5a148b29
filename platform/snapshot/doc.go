// Package snapshot keeps the states of services on disk, so that a start need not fold a log from its beginning. A snapshot is
// a cache: dropping them all changes nothing but the time to start (decision 0047).
//
// What is in a state is its core's to say, as a message of schemas/snapshots. A Store keeps the bytes: written aside and moved
// into place, checked by a digest, bound to the log, the partition and the format of the messages. Whatever does not fit is as
// good as none. A Keeper says when a snapshot is due, so that it takes a hundredth of the service's time at most.
package snapshot
