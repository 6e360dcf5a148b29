// Package archive keeps the old part of a log outside of the brokers: segments of consecutive records, in a folder or a bucket
// ([Store]). Once records are in the store, and were compared there, they may be deleted from the brokers. Archive and brokers
// together are the log (decision 0121).
//
// A segment is a file that never changes. Its name says which records it has, so the list of names is the archive's index. It opens
// with a header in JSON, a line; the records follow, compressed by Zstandard, and the SHA-256 of all before it ends the file.
package archive
