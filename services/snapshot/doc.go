// Package snapshot keeps the states of services on disk, so that a start need not fold a log from its beginning
// (ARCHITECTURE section 3: a snapshot is a cache; dropping them all changes nothing but the time to start).
//
// Freeze writes down everything that can be reached from a state, unexported fields included, and Thaw makes the same
// of it again: no core has to list what belongs to its state, so none can forget a field. What keeps that honest is
// that only the very program that froze a state thaws it: a snapshot of another build is not opened.
//
// A Store keeps files: written aside and moved into place, checked by a digest, bound to the log, the program and
// the partition that they are of. Whatever does not fit is as good as none.
package snapshot
